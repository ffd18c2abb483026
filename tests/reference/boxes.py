"""Slow, obvious twins of what trees of boxes compute."""

from __future__ import annotations

import numpy as np

from tallytree.model.box_tree import BoxTree


def covered_fraction(low, high, query_low, query_high) -> float:
    fraction = 1.0
    for a, b, first, last in zip(low, high, query_low, query_high):
        fraction *= max(0.0, min(b, last) - max(a, first)) / (b - a)
    return fraction


def leaf_weights(tree: BoxTree, leaves, query_low, query_high):
    nodes = np.flatnonzero(leaves)
    return np.array(
        [covered_fraction(tree.low[v], tree.high[v], query_low, query_high) for v in nodes]
    )


def contains(tree: BoxTree, outer: int, inner: int) -> bool:
    return bool(
        np.all(tree.low[outer] <= tree.low[inner]) and np.all(tree.high[inner] <= tree.high[outer])
    )


def least_squares_covariance(tree: BoxTree, variances):
    """Covariance of the leaves of the tree after least squares over all measured nodes, by
    inverting a dense matrix.
    """
    leaves = np.flatnonzero(tree.is_leaf)
    measured = np.flatnonzero(np.isfinite(variances))
    design = np.array([[float(contains(tree, v, leaf)) for leaf in leaves] for v in measured])
    return np.linalg.inv(design.T @ (design / variances[measured, None]))


def box_variance(tree: BoxTree, leaves, variances, query_low, query_high) -> float:
    """Variance of a query: ``leaves`` tile the map; a leaf that was cut short spreads the sum of
    what lies below it.
    """
    covariance = least_squares_covariance(tree, variances)
    bottom = np.flatnonzero(tree.is_leaf)
    weights = np.zeros(len(bottom))
    for v in np.flatnonzero(leaves):
        w = covered_fraction(tree.low[v], tree.high[v], query_low, query_high)
        weights[[contains(tree, v, leaf) for leaf in bottom]] = w
    return float(weights @ covariance @ weights)


def box_count(counts, low, high) -> int:
    return int(counts[tuple(slice(a, b) for a, b in zip(low, high))].sum())


def best_median_cuts(counts, low, high, axis) -> dict[int, int]:
    """Score of every cut of one box along an axis."""
    scores = {}
    for cut in range(low[axis] + 1, high[axis]):
        upper, lower = list(high), list(low)
        upper[axis], lower[axis] = cut, cut
        scores[cut] = -abs(box_count(counts, low, upper) - box_count(counts, lower, high))
    return scores
