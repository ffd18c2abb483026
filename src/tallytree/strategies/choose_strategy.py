"""Which strategy answers a workload best, from public facts alone: bins, workload, budget and kind
of noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from tallytree.model.arrays import IntArray
from tallytree.model.range_tree import RangeTree
from tallytree.privacy.noise_variances import NoiseKind, noise_variance
from tallytree.strategies.errors import flat_range_error
from tallytree.strategies.hats import COLUMN_SUM, Hats
from tallytree.strategies.matrix_mechanism import error_lower_bound, unit_variance
from tallytree.strategies.optimised import MOST_DENSE_BINS, best_hats, optimised_matrix, suits_hats
from tallytree.strategies.optimised_tree import optimised_tree
from tallytree.strategies.workload_errors import wavelet_error
from tallytree.strategies.workloads import AllRanges, GivenRanges, Workload

StrategyName = Literal["flat", "hierarchical", "wavelet", "optimised"]


@dataclass(frozen=True, eq=False)
class StrategyChoice:
    """The chosen strategy and why.

    Attributes
    ----------
    name
        ``flat``, ``hierarchical``, ``wavelet`` or ``optimised``.
    tree, shares
        The tree and its shares of the budget, for ``flat`` and ``hierarchical``.
    rows, hats
        The matrix in whole numbers, or for more bins its nested hats, for ``optimised``.
    error
        Expected average variance over the workload.
    considered
        Expected average variance of the best strategy of each name, the best first.
    reason
        One sentence for users.
    """

    name: StrategyName
    tree: RangeTree | None
    shares: tuple[Fraction, ...] | None
    rows: IntArray | None
    hats: Hats | None
    error: float
    considered: tuple[tuple[StrategyName, float], ...]
    reason: str


def choose_strategy(
    workload: Workload,
    *,
    budget: float = 1.0,
    noise: NoiseKind = "discrete-laplace",
    cache: Path | None = None,
) -> StrategyChoice:
    """The strategy with the least expected error for a workload at a budget.

    The law of the noise matters: counts of blocks get noise in whole numbers, which at large
    budgets is smaller than the continuous law says; the rows of ``optimised`` are in units of
    2^-16, where the two agree.

    Examples
    --------
    >>> from tallytree.strategies.workloads import AllRanges
    >>> choose_strategy(AllRanges(10)).name
    'flat'
    """
    n_bins = workload.n_bins
    flat = RangeTree.flat(n_bins)
    found = [
        Candidate("flat", flat_error(workload, budget, noise), tree=flat, shares=(Fraction(1),))
    ]
    if isinstance(workload, AllRanges | GivenRanges) and n_bins > 1:
        best = optimised_tree(workload, budget=budget, noise=noise)
        if best.tree.n_levels > 1:
            found.append(Candidate("hierarchical", best.error, tree=best.tree, shares=best.shares))
        found.append(
            Candidate("wavelet", wavelet_error(workload, wavelet_variance(n_bins, budget, noise)))
        )
    # The bound saves the time to optimise a matrix that cannot win: at large budgets, noise in
    # whole numbers is smaller.
    if n_bins <= MOST_DENSE_BINS and unit_variance(COLUMN_SUM, budget, noise) * error_lower_bound(
        workload
    ) < least(found):
        matrix = optimised_matrix(workload, budget=budget, noise=noise, cache=cache)
        found.append(Candidate("optimised", matrix.error, rows=matrix.rows))
    elif n_bins > MOST_DENSE_BINS and suits_hats(workload, noise):
        best_of_hats = best_hats(n_bins, budget=budget, noise=noise)
        found.append(Candidate("optimised", best_of_hats.error, hats=best_of_hats.hats))
    found.sort(key=lambda candidate: candidate.error)
    chosen = found[0]
    considered = tuple((candidate.name, candidate.error) for candidate in found)
    reason = explain(chosen, considered, workload, budget)
    return StrategyChoice(
        chosen.name,
        chosen.tree,
        chosen.shares,
        chosen.rows,
        chosen.hats,
        chosen.error,
        considered,
        reason,
    )


class Candidate(NamedTuple):
    """The best strategy of one name."""

    name: StrategyName
    error: float
    tree: RangeTree | None = None
    shares: tuple[Fraction, ...] | None = None
    rows: IntArray | None = None
    hats: Hats | None = None


def least(found: list[Candidate]) -> float:
    """Smallest error so far."""
    return min(candidate.error for candidate in found)


def flat_error(workload: Workload, budget: float, noise: NoiseKind) -> float:
    """Average variance when every bin is counted on the whole budget."""
    variance = noise_variance(noise, budget)
    if isinstance(workload, AllRanges):
        return flat_range_error(workload.n_bins, variance)
    if isinstance(workload, GivenRanges):
        return float(np.mean(workload.stops - workload.starts)) * variance
    return float(np.trace(workload.gram())) / workload.n_queries * variance


def wavelet_variance(n_bins: int, budget: float, noise: NoiseKind) -> float:
    """Variance of one wavelet coefficient when the 1 + ⌈log2 N⌉ levels share the budget equally."""
    return noise_variance(noise, budget / (1 + (n_bins - 1).bit_length()))


def explain(
    chosen: Candidate,
    considered: tuple[tuple[StrategyName, float], ...],
    workload: Workload,
    budget: float,
) -> str:
    """One sentence: what was chosen, for what, and how the others compare, in standard errors."""
    described: str = chosen.name
    if chosen.tree is not None and chosen.tree.n_levels > 1:
        described += (
            f" with {chosen.tree.widths[-2]} children per block and {chosen.tree.n_levels} levels"
        )
    queries = "the one query" if workload.n_queries == 1 else f"the {workload.n_queries:,} queries"
    others = ", ".join(f"{name} {error**0.5:,.4g}" for name, error in considered[1:])
    return (
        f"{described} has the least expected error over {queries} ({workload.name}) on "
        f"{workload.n_bins:,} bins at a budget "
        f"of {budget:g}: a standard error of {chosen.error**0.5:,.4g}"
        + (f"; others: {others}." if others else ".")
    )
