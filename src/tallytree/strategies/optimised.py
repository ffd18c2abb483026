"""The strategy ``optimised``: the best matrix our optimiser finds, or the best weighted tree where
that is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.range_tree import RangeTree
from tallytree.privacy.noise_variances import NoiseKind, noise_variance
from tallytree.strategies.gaussian_strategy import gaussian_strategy
from tallytree.strategies.hats import COLUMN_SUM, FEWEST_BINS, Hats, optimised_hats
from tallytree.strategies.matrix_mechanism import relative_error, strategy_norm, unit_variance
from tallytree.strategies.optimised_tree import OptimisedTree, optimised_tree
from tallytree.strategies.optimiser import optimise_bumps
from tallytree.strategies.strategy_cache import cache_folder, read_rows, write_rows
from tallytree.strategies.workloads import AllRanges, GivenRanges, Workload

# that a matrix is optimised for, whatever the workload and the noise, and that `auto` considers
MOST_DENSE_BINS = 2048
# the same for all ranges and Laplace noise; beyond, nested hats take its place, in linear time
MOST_BINS_OF_BUMPS = 4096
MOST_BINS_OF_HATS = (
    1 << 18
)  # that nested hats are chosen for, all ranges and Laplace noise; some seconds and 150 MB


@dataclass(frozen=True, eq=False)
class OptimisedMatrix:
    """A strategy in whole numbers, all rows measured with the same noise.

    Attributes
    ----------
    rows
        One row per query. For Laplace noise a diagonal (the bins) and then overlapping sums, every
        column summing to exactly 2^16; for Gaussian noise a triangle whose columns have an L2 norm
        of about 2^16.
    error
        Average variance over the workload for the budget and noise asked for.
    """

    rows: IntArray
    error: float

    def __post_init__(self) -> None:
        read_only(self.rows)


@dataclass(frozen=True)
class OptimisedHats:
    """Every bin and nested levels of hats.

    Attributes
    ----------
    error
        Average variance over the workload for the budget and noise asked for.
    """

    hats: Hats
    error: float


Optimised = OptimisedMatrix | OptimisedTree | OptimisedHats


def optimised_strategy(
    workload: Workload,
    *,
    budget: float = 1.0,
    noise: NoiseKind = "laplace",
    cache: Path | None = None,
) -> Optimised:
    """The strategy with the least error over a workload that we can find.

    Never worse than the flat method or any regular tree: for few bins, or at large budgets with
    noise in whole numbers, these may be the best, and are then returned. Takes seconds for hundreds
    of bins, half a minute for 1,000 to 4,096 (two minutes for Gaussian noise), and then nothing:
    matrices are cached in the folder ``cache``, by default the user's cache folder. Beyond that,
    nested hats take a second or two.

    Examples
    --------
    >>> from tallytree.strategies.workloads import AllRanges
    >>> optimised_strategy(AllRanges(8)).tree.widths
    (1,)
    """
    best: Optimised = named_strategy(workload, budget=budget, noise=noise)
    if workload.n_bins <= most_bins(workload, noise):
        matrix = optimised_matrix(workload, budget=budget, noise=noise, cache=cache)
        if matrix.error < best.error * (1 - 1e-9):
            best = matrix
    elif suits_hats(workload, noise):
        hats = best_hats(workload.n_bins, budget=budget, noise=noise)
        if hats.error < best.error * (1 - 1e-9):
            best = hats
    return best


def suits_hats(workload: Workload, noise: NoiseKind) -> bool:
    """Whether nested hats are worth a trial."""
    suited = isinstance(workload, AllRanges) and noise != "gaussian"
    return suited and FEWEST_BINS <= workload.n_bins <= MOST_BINS_OF_HATS


def best_hats(n_bins: int, *, budget: float = 1.0, noise: NoiseKind = "laplace") -> OptimisedHats:
    """The best nested hats for all ranges."""
    hats, error = optimised_hats(n_bins)
    return OptimisedHats(hats, error * unit_variance(COLUMN_SUM, budget, noise))


def most_bins(workload: Workload, noise: NoiseKind) -> int:
    """How many bins a matrix is optimised for: products with the queries are fast for all ranges
    alone.
    """
    return (
        MOST_BINS_OF_BUMPS
        if isinstance(workload, AllRanges) and noise != "gaussian"
        else MOST_DENSE_BINS
    )


def named_strategy(
    workload: Workload, *, budget: float = 1.0, noise: NoiseKind = "laplace"
) -> OptimisedTree:
    """The best tree, the flat method included; the flat method alone where bins have no order."""
    if isinstance(workload, AllRanges | GivenRanges):
        return optimised_tree(workload, budget=budget, noise=noise)
    held = float(np.trace(workload.gram())) / workload.n_queries
    return OptimisedTree(
        RangeTree.flat(workload.n_bins), (Fraction(1),), held * noise_variance(noise, budget)
    )


def optimised_matrix(
    workload: Workload,
    *,
    budget: float = 1.0,
    noise: NoiseKind = "laplace",
    cache: Path | None = None,
) -> OptimisedMatrix:
    """The optimised matrix from the cache, or computed and then cached. One matrix serves all
    budgets.
    """
    if workload.n_bins > most_bins(workload, noise):
        raise RequestError(
            f"A strategy matrix is optimised for at most {most_bins(workload, noise):,} bins, got "
            f"{workload.n_bins:,}. "
            "Use 'optimised' or 'auto', which take a tree for more."
        )
    import scipy.linalg  # noqa: F401 - limits reach the libraries that are loaded
    from threadpoolctl import threadpool_limits

    folder = cache_folder() if cache is None else cache
    key = f"{workload.key}-{'gaussian' if noise == 'gaussian' else 'laplace'}"
    rows = read_rows(folder, key, workload.n_bins, COLUMN_SUM)
    if rows is None:
        # Vectors and matrices are small: spread over cores, these wait for each other in busy loops
        # most of the time.
        with threadpool_limits(limits=1, user_api="blas"):
            rows = whole_triangle(workload) if noise == "gaussian" else whole_bumps(workload)
        write_rows(folder, key, rows)
    error = relative_error(rows, workload, noise=noise)
    return OptimisedMatrix(rows, error * unit_variance(strategy_norm(rows, noise), budget, noise))


def whole_bumps(workload: Workload) -> IntArray:
    """Our optimiser's strategy in multiples of 2^-16, the bin's own entry being what its column
    lacks to sum 1.
    """
    bumps = optimise_bumps(workload)
    whole = np.rint(bumps / (1.0 + bumps.sum(axis=0)) * COLUMN_SUM).astype(np.int64)
    whole = whole[whole.any(axis=1)]
    return np.concatenate([np.diag(COLUMN_SUM - whole.sum(axis=0)), whole])


def whole_triangle(workload: Workload) -> IntArray:
    """The optimal strategy for Gaussian noise in multiples of 2^-16."""
    return np.rint(gaussian_strategy(workload) * COLUMN_SUM).astype(np.int64)
