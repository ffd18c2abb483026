"""From the name of a strategy to the strategy itself, using public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.bins import Bins
from tallytree.model.range_tree import RangeTree
from tallytree.options.choices import Allocation
from tallytree.options.choices import Strategy as StrategyName
from tallytree.options.histogram import StrategyOptions
from tallytree.privacy.budget import Budget, Exact, exact
from tallytree.privacy.noise_variances import NoiseKind
from tallytree.strategies.branching import best_branching
from tallytree.strategies.choose_strategy import StrategyChoice, choose_strategy
from tallytree.strategies.level_budgets import equal_shares, level_shares
from tallytree.strategies.matrix_mechanism import eigen_select, low_rank
from tallytree.strategies.optimised import (
    MOST_DENSE_BINS,
    OptimisedHats,
    OptimisedMatrix,
    optimised_strategy,
)
from tallytree.strategies.strategies import (
    HatStrategy,
    MatrixStrategy,
    Strategy,
    TreeStrategy,
    WaveletStrategy,
    matrix_strategy,
)
from tallytree.strategies.wavelet import haar_levels
from tallytree.strategies.workloads import AllRanges, Workload, given_ranges, identity, prefixes

WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "ranges": AllRanges,
    "prefixes": prefixes,
    "identity": identity,
}


@dataclass(frozen=True)
class Terms:
    """The budget as planning takes it: per row, as a number, with the law of its noise."""

    budget: float
    noise: NoiseKind


def terms_of(budget: Budget, contributions: int = 1) -> Terms:
    """What one row may cost when a unit has several: noise for k rows at ε is noise for one at ε/k,
    or at ρ/k².
    """
    if budget.definition == "pure":
        return Terms(float(budget.total / contributions), "discrete-laplace")
    return Terms(float(budget.total / contributions**2), "gaussian")


def choose(
    request: StrategyOptions, bins: Bins, budget: Budget, contributions: int = 1
) -> tuple[Strategy, str]:
    """The strategy that a request asks for, and in words why it is this one."""
    n_bins, terms = bins.n_bins, terms_of(budget, contributions)
    workload: Any = workload_of(request.workload, bins)
    if not isinstance(request.mechanism, str):
        matrix = np.asarray(request.mechanism, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != n_bins:
            raise RequestError(
                f"A strategy matrix for {n_bins} bins has as many columns; got the shape "
                f"{matrix.shape}."
            )
        return matrix_strategy("matrix", matrix), "given as a matrix"
    if request.branching is not None and request.mechanism != "hierarchical":
        raise RequestError("branching goes with 'hierarchical'.")
    name: StrategyName = request.mechanism
    match name:
        case "auto":
            return _automatic(_chosen(workload, terms), n_bins)
        case "flat":
            return TreeStrategy("flat", RangeTree.flat(n_bins), (Fraction(1),)), "asked for"
        case "hierarchical":
            return hierarchical(n_bins, request, terms), "asked for"
        case "wavelet":
            return WaveletStrategy(n_bins, equal_shares(haar_levels(n_bins))), "asked for"
        case "optimised":
            return _optimised(workload, terms), "asked for"
        case "eigen-select" | "low-rank":
            return _from_paper(name, workload), "asked for"
        case "adaptive":
            raise RequestError(
                "adaptive lays out no strategy beforehand: what it asks follows from noisy answers."
            )


def workload_of(asked: Any, bins: Bins) -> Workload:
    """The queries that a strategy should be good at, by name or as a list of ranges."""
    if isinstance(asked, str):
        if asked not in WORKLOADS:
            raise RequestError(
                f"workload is one of {', '.join(WORKLOADS)}, or a list of ranges; got {asked!r}."
            )
        return WORKLOADS[asked](bins.n_bins)
    if hasattr(asked, "gram"):
        if asked.n_bins != bins.n_bins:
            raise RequestError(
                f"The workload is over {asked.n_bins} bins, the histogram has {bins.n_bins}."
            )
        return asked
    try:
        spans = bins.spans(asked)
    except TypeError:
        raise RequestError(
            f"workload is one of {', '.join(WORKLOADS)}, or a list of ranges; got {asked!r}."
        ) from None
    return given_ranges(bins.n_bins, zip(*spans))


def hierarchical(n_bins: int, request: StrategyOptions, terms: Terms) -> TreeStrategy:
    """A tree with the asked-for or the best branching factor, and shares per level."""
    branching = (
        request.branching if request.branching is not None else _best_branching(n_bins, terms)
    )
    tree = RangeTree.regular(n_bins, branching)
    return TreeStrategy("hierarchical", tree, shares_of(tree, request.budget, terms))


def shares_of(
    tree: RangeTree, asked: Allocation | Sequence[Exact], terms: Terms
) -> tuple[Fraction, ...]:
    """Shares of the levels of a tree, by name or as given."""
    if isinstance(asked, str):
        return level_shares(tree, cast(Allocation, asked), budget=terms.budget, noise=terms.noise)
    shares = tuple(Fraction(0) if _is_zero(share) else exact(share, "a share") for share in asked)
    if len(shares) != tree.n_levels or sum(shares) != 1:
        raise RequestError(
            f"This tree has {tree.n_levels} levels; give as many shares that add up to 1, the "
            "coarsest first."
        )
    return shares


def _is_zero(share: Any) -> bool:
    """Whether a level is meant to be left out; anything else must be a positive number."""
    return isinstance(share, int | float | str | Fraction) and str(share).strip() in ("0", "0.0")


# Both depend on public facts alone and take a while, so experiments with many seeds should not
# repeat them.
@lru_cache(maxsize=64)
def _best_branching(n_bins: int, terms: Terms) -> int:
    return best_branching(n_bins, budget=terms.budget, noise=terms.noise)


@lru_cache(maxsize=64)
def _chosen(workload: Any, terms: Terms) -> StrategyChoice:
    return choose_strategy(workload, budget=terms.budget, noise=terms.noise)


def _automatic(choice: StrategyChoice, n_bins: int) -> tuple[Strategy, str]:
    if choice.rows is not None:
        return MatrixStrategy(choice.name, choice.rows), choice.reason
    if choice.hats is not None:
        return HatStrategy(choice.name, choice.hats), choice.reason
    if choice.tree is not None and choice.shares is not None:
        return TreeStrategy(choice.name, choice.tree, choice.shares), choice.reason
    return WaveletStrategy(n_bins, equal_shares(haar_levels(n_bins))), choice.reason


@lru_cache(maxsize=16)
def _optimised(workload: Any, terms: Terms) -> Strategy:
    found = optimised_strategy(workload, budget=terms.budget, noise=terms.noise)
    if isinstance(found, OptimisedMatrix):
        return MatrixStrategy("optimised", found.rows)
    if isinstance(found, OptimisedHats):
        return HatStrategy("optimised", found.hats)
    return TreeStrategy("optimised", found.tree, found.shares)


@lru_cache(maxsize=16)
def _from_paper(name: str, workload: Any) -> MatrixStrategy:
    if workload.n_bins > MOST_DENSE_BINS:
        raise RequestError(
            f"{name!r} takes at most {MOST_DENSE_BINS:,} bins, got {workload.n_bins:,}. Use "
            "'optimised'."
        )
    return matrix_strategy(name, (eigen_select if name == "eigen-select" else low_rank)(workload))
