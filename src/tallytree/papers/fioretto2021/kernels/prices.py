"""The continuous relaxation of fioretto2021 Model 1 (root total), solved exactly over all sizes at
once.

For each size the regions form a tree; values at children add up to the parent, leaves are at least
0, and the roots of all sizes add up to the public number of groups. Minimise ``Σ w_level (x −
target)²``.

Give every internal region a *price*: the marginal cost that all its children share. A leaf with
target y takes ``max(0, y + price / 2w)``: a convex, increasing, piecewise linear function of the
price, and so is, by induction, the value of every region as a function of its parent's price. Hence
Newton's method that replaces each leaf by its current straight piece and solves the linear tree by
one pass up and one pass down moves the prices monotonically, drops leaves but never takes them
back, and stops at the exact solution after finitely many rounds; 4 to 10 are usual. No cost tables
are built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray


class Tree(NamedTuple):
    """A hierarchy of at least two levels as kernels take it: regions level by level, leaves on the
    last level.
    """

    level_starts: IntArray
    parent: IntArray
    child_starts: IntArray
    weights: IntArray
    """Weight of a squared deviation, per level."""


class RealFit(NamedTuple):
    """Prices and values of the continuous optimum, sizes first: ``[size, internal region]``."""

    child_price: FloatArray
    value: FloatArray
    top_price: float
    """Marginal cost that the roots of all sizes share."""
    rounds: int


@serial
def _sum_up(tree, target, price, start, stop, intercept, slope, n_active):
    """Value of each internal region as a line in its children's price: ``intercept + slope ·
    price``, leaves linearised.
    """
    n_levels = len(tree.level_starts) - 1
    first_leaf = tree.level_starts[n_levels - 1]
    first_bottom = tree.level_starts[n_levels - 2]
    leaf_stretch = 2.0 * tree.weights[n_levels - 1]
    for size in range(start, stop):
        active_leaves = 0
        region_weight_level = n_levels - 2
        for region in range(first_leaf - 1, -1, -1):
            while region < tree.level_starts[region_weight_level]:
                region_weight_level -= 1
            total = 0.0
            rise = 0.0
            if region >= first_bottom:
                shift = price[size, region] / leaf_stretch
                active = 0
                active_target = 0
                for leaf in range(tree.child_starts[region], tree.child_starts[region + 1]):
                    y = target[size, leaf]
                    if y + shift > 0.0:
                        active += 1
                        active_target += y
                active_leaves += active
                total = float(active_target)
                rise = active / leaf_stretch
            else:
                child_stretch = 2.0 * tree.weights[region_weight_level + 1]
                for child in range(tree.child_starts[region], tree.child_starts[region + 1]):
                    # q = (p + 2w (y − a)) / (1 + 2w b) is the child's own price under the parent's
                    # price p.
                    damping = 1.0 + child_stretch * slope[size, child]
                    pull = child_stretch * (target[size, child] - intercept[size, child])
                    total += intercept[size, child] + slope[size, child] * pull / damping
                    rise += slope[size, child] / damping
            intercept[size, region] = total
            slope[size, region] = rise
        n_active[size] = active_leaves


@serial
def _hand_down(tree, target, top_price, start, stop, intercept, slope, price):
    """Prices of all internal regions from the price that the roots share."""
    n_internal = tree.level_starts[len(tree.level_starts) - 2]
    for size in range(start, stop):
        level = 0
        for region in range(n_internal):
            while region >= tree.level_starts[level + 1]:
                level += 1
            above = top_price if region == 0 else price[size, tree.parent[region]]
            stretch = 2.0 * tree.weights[level]
            pull = stretch * (target[size, region] - intercept[size, region])
            price[size, region] = (above + pull) / (1.0 + stretch * slope[size, region])


@serial
def _newton_round(tree, target, top_price, start, stop, intercept, slope, price, n_active):
    _hand_down(tree, target, top_price, start, stop, intercept, slope, price)
    _sum_up(tree, target, price, start, stop, intercept, slope, n_active)


@serial
def _root_response(tree, target, intercept, slope):
    """Sum of all roots as a line in the price they share."""
    stretch = 2.0 * tree.weights[0]
    total = 0.0
    rise = 0.0
    for size in range(len(target)):
        damping = 1.0 + stretch * slope[size, 0]
        pull = stretch * (target[size, 0] - intercept[size, 0])
        total += intercept[size, 0] + slope[size, 0] * pull / damping
        rise += slope[size, 0] / damping
    return total, rise


def sizes_per_chunk(tree: Tree) -> int:
    """Sizes that make a chunk worth a thread of its own."""
    return max(1, 20_000 // len(tree.parent))


@serial
def _newton_alone(tree, target, total, max_rounds, intercept, slope, price, n_active):
    """All rounds in one go, for tables too small to be worth threads; returns the roots' price and
    the rounds.
    """
    n_sizes = len(target)
    top_price = np.inf
    _sum_up(tree, target, price, 0, n_sizes, intercept, slope, n_active)
    for rounds in range(1, max_rounds + 1):
        active_before = n_active.sum()
        at_zero, rise = _root_response(tree, target, intercept, slope)
        if rise == 0.0:  # no active leaf, by rounding of floats alone
            return top_price, rounds
        top_price = (total - at_zero) / rise
        _newton_round(tree, target, top_price, 0, n_sizes, intercept, slope, price, n_active)
        # With the same leaves active the linear system would repeat itself: solved.
        if n_active.sum() == active_before:
            return top_price, rounds
    return top_price, max_rounds


def _newton_in_chunks(tree, target, total, max_rounds, intercept, slope, price, n_active):
    """The same rounds, each spread over threads."""
    n_sizes, smallest = len(target), sizes_per_chunk(tree)
    top_price = np.inf
    run_in_chunks(
        lambda start, stop: _sum_up(tree, target, price, start, stop, intercept, slope, n_active),
        n_sizes,
        smallest=smallest,
    )
    for rounds in range(1, max_rounds + 1):
        active_before = n_active.sum()
        at_zero, rise = _root_response(tree, target, intercept, slope)
        if rise == 0.0:
            return top_price, rounds
        top_price = (total - at_zero) / rise
        run_in_chunks(
            lambda start, stop, at=top_price: _newton_round(  # type: ignore[misc]
                tree, target, at, start, stop, intercept, slope, price, n_active
            ),
            n_sizes,
            smallest=smallest,
        )
        if n_active.sum() == active_before:
            return top_price, rounds
    return top_price, max_rounds


def fit_tree_prices(tree: Tree, target: IntArray, total: int, *, max_rounds: int = 200) -> RealFit:
    """Solve the relaxation.

    Parameters
    ----------
    target
        ``(n_sizes, n_regions)``, contiguous.
    total
        What the roots of all sizes add up to; at least 1.

    Cost: a few passes over the table; time and memory linear in its size.
    """
    n_sizes, n_internal = target.shape[0], int(tree.level_starts[-2])
    price = np.full((n_sizes, n_internal), np.inf)
    intercept = np.empty((n_sizes, n_internal))
    slope = np.empty((n_sizes, n_internal))
    n_active = np.empty(n_sizes, dtype=np.int64)
    newton: Callable[..., tuple[float, int]] = (
        _newton_alone if n_sizes < 2 * sizes_per_chunk(tree) else _newton_in_chunks
    )
    top_price, rounds = newton(tree, target, total, max_rounds, intercept, slope, price, n_active)
    return RealFit(price, intercept + slope * price, top_price, rounds)
