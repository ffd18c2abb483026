"""Nonnegative estimates on a tree that add up: three ways, from a rule of thumb to exact least
squares.

``zero_subtrees`` is hay2010 §4.2's heuristic. ``split_downwards`` keeps the total and solves one
small nonnegative problem per parent. ``nonnegative_least_squares`` is the exact optimum that
hay2010 left for future work.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.jit import serial
from tallytree.kernels.trees.least_squares import check_tree
from tallytree.model.arrays import FloatArray, IntArray


@serial
def _zero_subtrees(child_starts, estimates):
    for node in range(len(estimates)):
        if estimates[node] <= 0:
            estimates[node] = 0.0
            for child in range(child_starts[node], child_starts[node + 1]):
                estimates[child] = 0.0


def zero_subtrees(estimates: FloatArray, child_starts: IntArray) -> FloatArray:
    """Set every node whose estimate is at most 0, and all below it, to 0 (hay2010 §4.2).

    Nothing is negative afterwards, but sums no longer hold: children may add up to more than their
    parent. The rule is the paper's and is kept for comparison; counts at the leaves are what it
    publishes.

    ``estimates`` and the result are (n_nodes,), ``child_starts`` is (n_nodes + 1,).
    """
    starts = np.ascontiguousarray(child_starts, dtype=np.int64)
    check_tree(starts, len(estimates))
    result = np.array(estimates, dtype=np.float64)
    _zero_subtrees(starts, result)
    return result


@serial
def rank_ascending(keys, size, ranks):
    """Write to ``ranks`` the order in which the first ``size`` keys ascend; ties keep their order."""
    if size > 40:
        ranks[:size] = np.argsort(keys[:size], kind="mergesort")
        return
    for i in range(size):  # insertion: most nodes have few children
        j = i
        while j > 0 and keys[ranks[j - 1]] > keys[i]:
            ranks[j] = ranks[j - 1]
            j -= 1
        ranks[j] = i


@serial
def share_out(targets, weights, first, last, total, order, ranks, result):
    """min Σ (x − target)² / weight over x ≥ 0 with Σ x = total ≥ 0, for entries first … last − 1.

    x = max(0, target + weight · price). Entries leave zero in the order of −target / weight, so the
    price is found by one walk over the sorted entries. Entries of weight 0 are known exactly and
    stay, unless nothing else can give way.
    """
    size = last - first
    if _fits_without_bounds(targets, weights, first, last, total, result):
        return
    for i in range(size):
        weight = weights[first + i]
        order[i] = -targets[first + i] / weight if weight > 0 else np.inf
        if weight == 0:
            result[first + i] = max(targets[first + i], 0.0)
            total -= result[first + i]
    total = max(total, 0.0)
    rank_ascending(order, size, ranks)
    sum_targets, sum_weights, price = 0.0, 0.0, 0.0
    for i in range(size):
        entry = first + ranks[i]
        if weights[entry] == 0:
            break
        if i > 0 and (total - sum_targets) / sum_weights <= order[ranks[i]]:
            break
        sum_targets += targets[entry]
        sum_weights += weights[entry]
        price = (total - sum_targets) / sum_weights
    for entry in range(first, last):
        if weights[entry] > 0:
            result[entry] = max(0.0, targets[entry] + weights[entry] * price)


@serial
def _fits_without_bounds(targets, weights, first, last, total, result):
    """Try the same without x ≥ 0; True when nothing came out negative, which makes it the answer."""
    missing, sum_weights = total, 0.0
    for entry in range(first, last):
        missing -= targets[entry]
        sum_weights += weights[entry]
    if sum_weights <= 0:
        return False
    for entry in range(first, last):
        result[entry] = targets[entry] + weights[entry] * (missing / sum_weights)
        if result[entry] < 0:
            return False
    return True


@serial
def _split_downwards(child_starts, targets, weights, most_children, result):
    order = np.empty(most_children)
    ranks = np.empty(most_children, dtype=np.int64)
    result[0] = max(targets[0], 0.0)
    for node in range(len(targets)):
        first, last = child_starts[node], child_starts[node + 1]
        if first < last:
            share_out(targets, weights, first, last, result[node], order, ranks, result)


def split_downwards(
    estimates: FloatArray, weights: FloatArray, child_starts: IntArray
) -> FloatArray:
    """Nonnegative estimates that add up: the total is kept (at least 0) and divided from parents to
    children.

    Each parent's value is divided as close as possible to its children's estimates in squares
    weighted by ``1 / weights`` (their variances). Sums over large blocks stay nearly as they were,
    so that long ranges get next to no bias from bins raised to 0; the exact optimum below lacks
    that property. O(nodes · log children).

    ``estimates``, ``weights`` and the result are (n_nodes,), ``child_starts`` is (n_nodes + 1,).
    """
    starts = np.ascontiguousarray(child_starts, dtype=np.int64)
    check_tree(starts, len(estimates))
    result = np.empty(len(estimates))
    most = int(np.diff(starts).max(initial=1))
    _split_downwards(
        starts,
        np.ascontiguousarray(estimates, dtype=np.float64),
        np.ascontiguousarray(weights, dtype=np.float64),
        most,
        result,
    )
    return result


@serial
def _level_demand(noisy, variances, kinks_from, below, demand):
    """How much each node of one level takes at a price, from the same of its children.

    Let f_v(t) be half the least weighted squared distance below and at node v, given its total t ≥
    0. Demand at price p is the t with f_v'(t) = p: 0 up to a first price, then piecewise linear and
    increasing with one kink per leaf below v. Children's demands add up at equal price; the node's
    own count moves a kink at (p, t) to p + (t − noisy) / variance. Rows of ``below``: price and
    step of the slope at each kink; of ``demand``: price, demand there and slope after it. Node i
    owns the kinks kinks_from[i]:kinks_from[i + 1].
    """
    for node in range(len(noisy)):
        start, stop = kinks_from[node], kinks_from[node + 1]
        order = start + np.argsort(below[0, start:stop], kind="mergesort")
        own = variances[node]
        price, taken, slope = below[0, order[0]], 0.0, 0.0
        for rank in range(stop - start):
            kink = order[rank]
            taken += slope * (below[0, kink] - price)
            price = below[0, kink]
            slope += below[1, kink]
            demand[0, start + rank] = price + (taken - noisy[node]) / own if own < np.inf else price
            demand[1, start + rank] = taken
            demand[2, start + rank] = slope / (1.0 + slope / own) if own < np.inf else slope


@serial
def _slopes_to_steps(kinks_from, demand, steps):
    """Prices as they are, slopes as differences, ready to be added up by the level above."""
    steps[0] = demand[0]
    for node in range(len(kinks_from) - 1):
        previous = 0.0
        for kink in range(kinks_from[node], kinks_from[node + 1]):
            steps[1, kink] = demand[2, kink] - previous
            previous = demand[2, kink]


@serial
def _take_at_price(demand, start, stop, price):
    """Demand of one node at a price."""
    kink = start + np.searchsorted(demand[0, start:stop], price) - 1
    return demand[1, kink] + demand[2, kink] * (price - demand[0, kink]) if kink >= start else 0.0


@serial
def _pass_prices(noisy, variances, kinks_from, demand, prices, children, fanned):
    """Prices of one level to the prices of the level below: a node's own count takes its part of
    the price.
    """
    for node in range(len(noisy)):
        price = prices[node]
        if variances[node] < np.inf:
            taken = _take_at_price(demand, kinks_from[node], kinks_from[node + 1], price)
            price -= (taken - noisy[node]) / variances[node]
        for child in range(children[node], children[node + 1]):
            fanned[child] = price


def nonnegative_least_squares(
    noisy: FloatArray | IntArray,
    variances: FloatArray,
    child_starts: IntArray,
    level_starts: IntArray,
) -> FloatArray:
    """The nonnegative estimates that add up and are closest to the noisy counts in inverse-variance
    weighted squares.

    Exact, by dynamic programming over prices instead of iteration: O(levels · leaves · log leaves)
    time and O(levels · leaves) memory.

    Parameters
    ----------
    noisy, variances, child_starts
        As for :func:`tallytree.kernels.trees.least_squares.tree_least_squares`.
    level_starts
        Nodes of level ``l`` are ``level_starts[l]:level_starts[l + 1]``; all leaves lie on the last
        level.
    """
    starts = np.ascontiguousarray(child_starts, dtype=np.int64)
    levels = [slice(int(a), int(b)) for a, b in pairwise(level_starts)]
    check_tree(starts, len(noisy))
    leaves = levels[-1]
    is_leaf = starts[1:] == starts[:-1]
    if levels[0] != slice(0, 1) or is_leaf[: leaves.start].any() or not is_leaf[leaves].all():
        raise RequestError(
            "Nonnegative least squares needs one root and all leaves on the last level."
        )
    counts = np.ascontiguousarray(noisy, dtype=np.float64)
    own = np.ascontiguousarray(variances, dtype=np.float64)
    if not np.all(own > 0) or not np.all(np.isfinite(own[leaves])):
        raise RequestError(
            "Nonnegative least squares needs positive variances, finite ones for leaves."
        )
    kinks = _kinks_per_level(levels, starts)
    below = np.stack([-counts[leaves] / own[leaves], own[leaves]])
    demands: list[FloatArray] = []
    for level, kinks_from in zip(levels[-2::-1], kinks[-2::-1]):
        demand = np.empty((3, below.shape[1]))
        _level_demand(counts[level], own[level], kinks_from, below, demand)
        _slopes_to_steps(kinks_from, demand, below)
        demands.append(demand)
    prices = np.zeros(1)  # the total is free, so its price is 0
    for level, under, kinks_from, demand in zip(levels[:-1], levels[1:], kinks, demands[::-1]):
        fanned = np.empty(under.stop - under.start)
        children = starts[level.start : level.stop + 1] - under.start
        _pass_prices(counts[level], own[level], kinks_from, demand, prices, children, fanned)
        prices = fanned
    return sum_leaves(np.maximum(counts[leaves] + own[leaves] * prices, 0.0), starts, len(counts))


def _kinks_per_level(levels: list[slice], child_starts: IntArray) -> list[IntArray]:
    """For each level, offsets of the leaves below each of its nodes."""
    n_leaves = levels[-1].stop - levels[-1].start
    kinks = [np.arange(n_leaves + 1)]
    for level, under in zip(levels[-2::-1], levels[:0:-1]):
        kinks.append(kinks[-1][child_starts[level.start : level.stop + 1] - under.start])
    return kinks[::-1]


def sum_leaves(leaf_values: FloatArray, child_starts: IntArray, n_nodes: int) -> FloatArray:
    """Values of all nodes, each the sum of the leaves below it; leaves are the last nodes.

    ``leaf_values`` is (n_leaves,), ``child_starts`` (n_nodes + 1,), the result (n_nodes,).
    """
    values = np.empty(n_nodes, dtype=leaf_values.dtype)
    values[n_nodes - len(leaf_values) :] = leaf_values
    _sum_upwards(child_starts, n_nodes - len(leaf_values), values)
    return values


@serial
def _sum_upwards(child_starts, n_inner, values):
    for node in range(n_inner - 1, -1, -1):
        total = values[child_starts[node]]
        for child in range(child_starts[node] + 1, child_starts[node + 1]):
            total += values[child]
        values[node] = total
