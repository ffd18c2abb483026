"""Least squares on a tree of noisy counts in two linear passes: the best estimates that add up.

hay2010 §4.1 (Theorem 3) and qardaji2013 §3.3 give the passes for perfect trees with equal noise.
Here every node has its own noise variance, infinite where it was not counted, and any number of
children. Upwards, a node's own count is averaged with the sum of its children by inverse variance;
downwards, what a parent has more than the sum of its children is divided among them in proportion
to their variances. For equal noise on a perfect tree these are the papers' weights.
"""

from __future__ import annotations

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.jit import serial
from tallytree.model.arrays import FloatArray, IntArray


@serial
def _spread(variances, child_starts, from_below):
    """Variance of the best estimate of each node from the counts at and below it, written to
    ``from_below``.
    """
    for node in range(len(variances) - 1, -1, -1):
        own = variances[node]
        first, last = child_starts[node], child_starts[node + 1]
        if first == last:
            from_below[node] = own
            continue
        below = 0.0
        for child in range(first, last):
            below += from_below[child]
        # 1 / (1 / own + 1 / below), also for own = ∞ and own = 0
        from_below[node] = (
            below if own == np.inf else own * (below / (own + below)) if own + below > 0 else 0.0
        )


@serial
def _combine_upwards(noisy, variances, child_starts, from_below, combined):
    """The z of hay2010 §4.1: best estimate of each node from the counts at and below it."""
    for node in range(len(noisy) - 1, -1, -1):
        own = variances[node]
        first, last = child_starts[node], child_starts[node + 1]
        if first == last:
            combined[node] = noisy[node]
            continue
        total = 0.0
        for child in range(first, last):
            total += combined[child]
        if own < np.inf:
            # Inverse variance: V / own, with 1 / V = 1 / own + 1 / below.
            trust = from_below[node] / own if own > 0 else 1.0
            total += trust * (noisy[node] - total)
        combined[node] = total


@serial
def _distribute_downwards(child_starts, from_below, estimates):
    """Mean consistency in place: z becomes the estimate that uses all counts, parents before
    children.
    """
    for node in range(len(estimates)):
        first, last = child_starts[node], child_starts[node + 1]
        missing, variance = estimates[node], 0.0
        for child in range(first, last):
            missing -= estimates[child]
            variance += from_below[child]
        if variance > 0:
            missing /= variance
            for child in range(first, last):
                estimates[child] += from_below[child] * missing


def tree_least_squares(
    noisy: FloatArray | IntArray,
    variances: FloatArray,
    child_starts: IntArray,
    *,
    from_below: FloatArray | None = None,
) -> FloatArray:
    """Estimates of all nodes that add up and are closest to the noisy counts in inverse-variance
    weighted squares.

    Parameters
    ----------
    noisy
        One noisy count per node, parents before their children; ignored where the variance is
        infinite.
    variances
        Variance of each noisy count; ``inf`` where nothing was counted, which no leaf may have.
    child_starts
        Children of node ``v`` are ``child_starts[v]:child_starts[v + 1]``; length nodes + 1.
    from_below
        What :func:`variances_from_below` gives for the same variances, where it is known already.

    Returns
    -------
    FloatArray
        One estimate per node. O(nodes).

    Examples
    --------
    >>> tree_least_squares(np.array([7, 4, 6]), np.ones(3), np.array([1, 3, 3, 3]))
    array([8., 3., 5.])
    """
    if from_below is None:
        from_below = variances_from_below(variances, child_starts)
    values = np.ascontiguousarray(noisy, dtype=np.float64)
    if values.shape != from_below.shape:
        raise RequestError(
            f"A tree of {len(from_below)} nodes needs as many noisy counts, got {values.shape}."
        )
    estimates = np.empty_like(values)
    starts = np.ascontiguousarray(child_starts, dtype=np.int64)
    _combine_upwards(
        values, np.ascontiguousarray(variances, dtype=np.float64), starts, from_below, estimates
    )
    _distribute_downwards(starts, from_below, estimates)
    return estimates


def variances_from_below(variances: FloatArray, child_starts: IntArray) -> FloatArray:
    """Variance of the best estimate of each node from the counts at and below it: V↓ of qardaji2013
    §3.3.

    ``variances`` and the result are (n_nodes,), ``child_starts`` is (n_nodes + 1,).
    """
    own = np.ascontiguousarray(variances, dtype=np.float64)
    starts = np.ascontiguousarray(child_starts, dtype=np.int64)
    check_tree(starts, len(own))
    is_leaf = starts[1:] == starts[:-1]
    if not np.all(own >= 0) or not np.all(np.isfinite(own[is_leaf])):
        raise RequestError(
            "Variances of a tree are at least 0, and finite for leaves: every leaf must be counted."
        )
    from_below = np.empty_like(own)
    _spread(own, starts, from_below)
    return from_below


def combined_from_below(
    noisy: FloatArray | IntArray,
    variances: FloatArray,
    child_starts: IntArray,
    from_below: FloatArray,
) -> FloatArray:
    """Best estimate of each node from the noisy counts at and below it, the z of hay2010 §4.1;
    siblings' are independent.

    ``from_below`` is what :func:`variances_from_below` gives, and the variance of the result.

    ``child_starts`` is (n_nodes + 1,), all others and the result are (n_nodes,).
    """
    combined = np.empty(len(from_below))
    _combine_upwards(
        np.ascontiguousarray(noisy, dtype=np.float64),
        np.ascontiguousarray(variances, dtype=np.float64),
        np.ascontiguousarray(child_starts, dtype=np.int64),
        from_below,
        combined,
    )
    return combined


def check_tree(child_starts: IntArray, n_nodes: int) -> None:
    """Refuse offsets of children that do not describe a tree with parents before children and every
    node below the first.

    ``child_starts`` is (n_nodes + 1,).
    """
    if (
        len(child_starts) != n_nodes + 1
        or n_nodes < 1
        or child_starts[0] != 1
        or child_starts[-1] != n_nodes
    ):
        raise RequestError(
            f"A tree of {n_nodes} nodes needs child_starts from 1 to {n_nodes}, one more than "
            "nodes."
        )
    has_children = child_starts[1:] > child_starts[:-1]
    if np.any(np.diff(child_starts) < 0) or np.any(
        (child_starts[:-1] <= np.arange(n_nodes)) & has_children
    ):
        raise RequestError(
            "The nodes of a tree are numbered with parents before children, siblings side by side."
        )
