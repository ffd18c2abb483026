"""What a range histogram measures: blocks of a tree, differences of a wavelet, the rows of a
matrix, or bins and hats.

A strategy is a list of levels; each level is a vector of whole-number combinations of the bin
counts, gets one share of the budget and one kind of noise. Public inputs only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray, read_only
from tallytree.model.confidential import Fact
from tallytree.model.range_tree import RangeTree
from tallytree.privacy.sensitivity import (
    Sensitivity,
    block_differences_sensitivity,
    histogram_sensitivity,
    linear_queries_sensitivity,
)
from tallytree.strategies.hats import Hats
from tallytree.strategies.tree_layout import TreeLayout
from tallytree.strategies.wavelet import haar_answers, haar_levels

LARGEST_COEFFICIENT = 1 << 16
MOST_DENSE_BINS = 4096


@dataclass(frozen=True)
class TreeStrategy:
    """Counts of nested blocks, one level per width, the coarsest first. ``flat`` is the tree of the
    bins alone.
    """

    name: str
    tree: RangeTree
    shares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        _check_shares(self.shares, self.tree.n_levels)
        if self.shares[-1] == 0:
            raise RequestError(
                "The bins themselves need a share of the budget; otherwise ranges cannot be "
                "answered."
            )

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return self.tree.n_bins

    @property
    def layout(self) -> TreeLayout:
        """The blocks as numbered nodes."""
        return TreeLayout(self.tree)


@dataclass(frozen=True)
class WaveletStrategy:
    """The total, then left minus right half of the blocks of 2^k, 2^(k-1) … 2 bins: the Haar
    wavelet in whole numbers.

    Privelet adds noise λ / weight to the average-based coefficient of a block, with the number of
    its bins as weight (qardaji2013 §4.1); in these units that is the same noise for every
    difference and for the total.
    """

    n_bins: int
    shares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        _check_shares(self.shares, haar_levels(self.n_bins))
        if min(self.shares) == 0:
            raise RequestError("Every level of a wavelet needs a share of the budget.")

    @property
    def name(self) -> str:
        """Its name in requests and manifests."""
        return "wavelet"


@dataclass(frozen=True, eq=False)
class MatrixStrategy:
    """Any whole-number combinations of bin counts, one per row, with the same noise for every row."""

    name: str
    rows: IntArray

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or self.rows.dtype != np.int64:
            raise RequestError(
                "A strategy matrix has whole numbers, one row per query and one column per bin."
            )
        if self.n_bins > MOST_DENSE_BINS:
            raise RequestError(
                f"A strategy matrix may have at most {MOST_DENSE_BINS:,} bins, got "
                f"{self.n_bins:,}. "
                "Use 'hierarchical' or 'auto' for more."
            )
        if len(self.rows) < self.n_bins:
            raise RequestError(
                f"A strategy of {len(self.rows)} queries cannot answer all ranges of {self.n_bins} "
                "bins: its rank is too low."
            )
        read_only(self.rows)

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return int(self.rows.shape[1])

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """All rows are one level."""
        return (Fraction(1),)


@dataclass(frozen=True)
class HatStrategy:
    """Every bin and nested levels of overlapping hats, in whole numbers, with the same noise for
    all of them.
    """

    name: str
    hats: Hats

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return self.hats.n_bins

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """All answers are one level."""
        return (Fraction(1),)


Strategy = TreeStrategy | WaveletStrategy | MatrixStrategy | HatStrategy


def _check_shares(shares: tuple[Fraction, ...], n_levels: int) -> None:
    if len(shares) != n_levels or min(shares) < 0 or sum(shares) != 1:
        raise RequestError(
            f"A strategy of {n_levels} levels needs as many shares of at least 0 that add up to 1."
        )


def matrix_strategy(name: str, matrix: FloatArray | IntArray) -> MatrixStrategy:
    """A strategy from a matrix of real coefficients, scaled and rounded to whole numbers of at most
    2^16.

    What is measured are the rounded rows, and estimates and errors are computed from them: rounding
    costs a little accuracy (relative 2^-17 of the largest coefficient) and no privacy. A matrix of
    small whole numbers is kept as it is.
    """
    coefficients = np.asarray(matrix)
    if coefficients.ndim != 2 or coefficients.size == 0 or not np.all(np.isfinite(coefficients)):
        raise RequestError(
            "A strategy matrix needs finite numbers, one row per query and one column per bin."
        )
    largest = float(np.abs(coefficients).max())
    if largest == 0:
        raise RequestError("A strategy matrix cannot be all 0.")
    whole = np.rint(coefficients)
    if largest > LARGEST_COEFFICIENT or not np.array_equal(whole, coefficients):
        whole = np.rint(coefficients * (LARGEST_COEFFICIENT / largest))
    rows = whole.astype(np.int64)
    return MatrixStrategy(name, np.ascontiguousarray(rows[np.any(rows != 0, axis=1)]))


def exact_answers(strategy: Strategy, counts: IntArray) -> list[IntArray]:
    """Answers of a strategy without noise, one vector per level. Bins count as at most what keeps
    sums within 62 bits.

    Cutting a bin off at a public limit moves neighbours no further apart, so sensitivities hold
    whatever the counts are.
    """
    coefficient = LARGEST_COEFFICIENT if isinstance(strategy, MatrixStrategy | HatStrategy) else 1
    limit = (1 << 61) // (strategy.n_bins * coefficient)
    bounded = np.minimum(counts, limit)
    match strategy:
        case TreeStrategy():
            return strategy.layout.block_sums(bounded)
        case WaveletStrategy():
            return haar_answers(bounded)
        case MatrixStrategy():
            return [strategy.rows @ bounded]
        case HatStrategy():
            return [strategy.hats.answers(bounded)]


def sensitivities(strategy: Strategy, *, contributions: int = 1) -> list[Sensitivity]:
    """Sensitivity of each level's answers."""
    match strategy:
        case TreeStrategy():
            return [histogram_sensitivity(contributions=contributions)] * len(strategy.shares)
        case WaveletStrategy():
            return [block_differences_sensitivity(contributions=contributions)] * len(
                strategy.shares
            )
        case MatrixStrategy():
            return [linear_queries_sensitivity(strategy.rows, contributions=contributions)]
        case HatStrategy():
            # Norms of a column need its coefficients, not the rows that they stand in.
            return [
                linear_queries_sensitivity(strategy.hats.coefficients, contributions=contributions)
            ]


def strategy_facts(strategy: Strategy) -> list[Fact]:
    """All that says which combinations of bins a strategy asks for."""
    match strategy:
        case TreeStrategy():
            return [repr(strategy.tree)]
        case WaveletStrategy():
            return [repr(strategy.n_bins)]
        case MatrixStrategy():
            return [strategy.rows]
        case HatStrategy():
            return [repr(strategy.hats.levels), *strategy.hats.peaks]


def query_name(strategy: Strategy) -> str:
    """What one answer is called in the table of noisy answers."""
    match strategy:
        case TreeStrategy():
            return "block"
        case WaveletStrategy():
            return "difference"
        case MatrixStrategy() | HatStrategy():
            return "row"
