"""From the name of a strategy to the strategy itself, using public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.bins import Bins
from tallytree.model.range_tree import RangeTree
from tallytree.planning.branching import best_branching
from tallytree.planning.level_budgets import Allocation, equal_shares, level_shares
from tallytree.planning.noise_variances import NoiseKind
from tallytree.privacy.budget import Budget, exact
from tallytree.ranges.strategies import Strategy, TreeStrategy, WaveletStrategy, matrix_strategy
from tallytree.ranges.wavelet import haar_levels

NAMES = ("auto", "flat", "hierarchical", "wavelet", "optimised", "eigen-select", "low-rank")


@dataclass(frozen=True, eq=False)
class StrategyRequest:
    """What a user asked for; see :func:`tallytree.histogram`."""

    strategy: str | FloatArray | IntArray = "auto"
    branching: int | None = None
    budget: str | Sequence[Any] = "equal"
    workload: Any = "ranges"


def noise_kind(budget: Budget) -> NoiseKind:
    """The law of the noise, as the planning formulas name it."""
    return "discrete-laplace" if budget.definition == "pure" else "gaussian"


def hierarchical(n_bins: int, request: StrategyRequest, budget: Budget) -> TreeStrategy:
    """A tree with the asked-for or the best branching factor, and shares per level."""
    branching = request.branching
    if branching is None:
        branching = best_branching(n_bins, budget=float(budget.total), noise=noise_kind(budget))
    if isinstance(branching, bool) or not isinstance(branching, int | np.integer) or branching < 2:
        raise RequestError(f"A branching factor is a whole number of at least 2, got {branching!r}.")
    tree = RangeTree.regular(n_bins, int(branching))
    return TreeStrategy("hierarchical", tree, shares_of(tree, request.budget, budget))


def shares_of(tree: RangeTree, asked: str | Sequence[Any], budget: Budget) -> tuple[Fraction, ...]:
    """Shares of the levels of a tree, by name or as given."""
    if isinstance(asked, str):
        for known in get_args(Allocation):
            if asked == known:
                return level_shares(tree, known, budget=float(budget.total), noise=noise_kind(budget))
        raise RequestError(
            f"budget is one of {', '.join(get_args(Allocation))}, or one share per level; got {asked!r}."
        )
    shares = tuple(Fraction(0) if _is_zero(share) else exact(share, "a share") for share in asked)
    if len(shares) != tree.n_levels or sum(shares) != 1:
        raise RequestError(
            f"This tree has {tree.n_levels} levels; give as many shares that add up to 1, the coarsest first."
        )
    return shares


def _is_zero(share: Any) -> bool:
    """Whether a level is meant to be left out; anything else must be a positive number."""
    return isinstance(share, int | float | str | Fraction) and str(share).strip() in ("0", "0.0")


def choose(request: StrategyRequest, bins: Bins, budget: Budget) -> tuple[Strategy, str]:
    """The strategy that a request asks for, and in words why it is this one."""
    n_bins = bins.n_bins
    if not isinstance(request.strategy, str):
        matrix = np.asarray(request.strategy, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != n_bins:
            raise RequestError(
                f"A strategy matrix for {n_bins} bins has as many columns; got the shape {matrix.shape}."
            )
        return matrix_strategy("matrix", matrix), "given as a matrix"
    if request.branching is not None and request.strategy != "hierarchical":
        raise RequestError("branching goes with strategy 'hierarchical'.")
    match request.strategy:
        case "auto":
            tree = hierarchical(n_bins, request, budget)
            if tree.tree.n_levels == 1:
                return TreeStrategy(
                    "flat", tree.tree, tree.shares
                ), f"least expected error over all ranges of {n_bins} bins"
            return tree, f"least expected error over all ranges of {n_bins} bins"
        case "flat":
            return TreeStrategy("flat", RangeTree.flat(n_bins), (Fraction(1),)), "asked for"
        case "hierarchical":
            return hierarchical(n_bins, request, budget), "asked for"
        case "wavelet":
            return WaveletStrategy(n_bins, equal_shares(haar_levels(n_bins))), "asked for"
    raise RequestError(f"strategy is one of {', '.join(NAMES)}, or a matrix; got {request.strategy!r}.")
