"""How uncertain the answer to a box is after least squares on a tree of boxes in any number of
dimensions.

The same facts as in :mod:`tallytree.kernels.range_moments`, with more nodes that a query cuts:
those on the surface of the box. Work per query is their number times the number of children.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray

OUTSIDE, INSIDE, CUT = 0, 1, 2


class BoxNoise(NamedTuple):
    """A tree of boxes, parents before children, and what least squares makes of its noise.

    ``low`` and ``high`` hold the first and one past the last cell of each node along each axis;
    ``variance`` and ``cumulant`` are those of each node's noise, ``below`` and ``quartic`` as in
    :class:`tallytree.kernels.range_moments.TreeNoise`.
    """

    child_starts: IntArray
    low: IntArray
    high: IntArray
    variance: FloatArray
    cumulant: FloatArray
    below: FloatArray
    quartic: FloatArray


@serial
def _place(tree, node, low, high):
    """Whether the box of the query holds a node, misses it or cuts it."""
    held = True
    for axis in range(len(low)):
        if tree.high[node, axis] <= low[axis] or high[axis] <= tree.low[node, axis]:
            return OUTSIDE
        held = held and low[axis] <= tree.low[node, axis] and tree.high[node, axis] <= high[axis]
    return INSIDE if held else CUT


@serial
def _find_cut_nodes(tree, low, high, cut, first_cut_child):
    """Nodes that the query cuts, parents before children; the cut children of one node are
    consecutive. Returns how many.
    """
    if _place(tree, 0, low, high) != CUT:
        return 0
    cut[0] = 0
    n_cut, done = 1, 0
    while done < n_cut:
        node = cut[done]
        first_cut_child[done] = n_cut
        for child in range(tree.child_starts[node], tree.child_starts[node + 1]):
            if _place(tree, child, low, high) == CUT:
                cut[n_cut] = child
                n_cut += 1
        done += 1
    return n_cut


@serial
def _own_cumulant(tree, node, covariance):
    if tree.variance[node] == np.inf:
        return 0.0
    return tree.cumulant[node] * (covariance / tree.variance[node]) ** 4


@serial
def _one_box(tree, low, high, cut, first_cut_child, part, covariance):
    """Variance and fourth cumulant of the estimate of one box.

    Upwards: the query restricted to a cut node is part · (count of the node) plus a remainder,
    uncorrelated with the node's estimate, whose variances add up to ``residual``. Downwards:
    covariance of the query with each node's estimate, hence its noise's coefficient.
    """
    n_cut = _find_cut_nodes(tree, low, high, cut, first_cut_child)
    if n_cut == 0:
        held = 1.0 if _place(tree, 0, low, high) == INSIDE else 0.0
        return held * tree.below[0], held * tree.quartic[0]
    residual = 0.0
    for place in range(n_cut - 1, -1, -1):
        node, next_cut = cut[place], first_cut_child[place]
        total, mixed, squared = 0.0, 0.0, 0.0
        for child in range(tree.child_starts[node], tree.child_starts[node + 1]):
            where, coefficient = _place(tree, child, low, high), 0.0
            if where == INSIDE:
                coefficient = 1.0
            elif where == CUT:
                coefficient = part[next_cut]
                next_cut += 1
            total += tree.below[child]
            mixed += coefficient * tree.below[child]
            squared += coefficient * coefficient * tree.below[child]
        part[place] = mixed / total
        residual += squared - mixed * mixed / total
    variance = part[0] * part[0] * tree.below[0] + residual
    covariance[0] = part[0] * tree.below[0]
    cumulant = 0.0
    for place in range(n_cut):
        node, next_cut = cut[place], first_cut_child[place]
        cumulant += _own_cumulant(tree, node, covariance[place])
        total = 0.0
        for child in range(tree.child_starts[node], tree.child_starts[node + 1]):
            total += tree.below[child]
        base = covariance[place] / total - part[place]
        for child in range(tree.child_starts[node], tree.child_starts[node + 1]):
            where = _place(tree, child, low, high)
            if where == CUT:
                covariance[next_cut] = tree.below[child] * (base + part[next_cut])
                next_cut += 1
            else:
                cumulant += (base + (1.0 if where == INSIDE else 0.0)) ** 4 * tree.quartic[child]
    return variance, cumulant


@serial
def _many_boxes(tree, lows, highs, variance, cumulant, start, stop):
    n_nodes = len(tree.below)
    cut, first_cut_child = np.empty(n_nodes, dtype=np.int64), np.empty(n_nodes, dtype=np.int64)
    part, covariance = np.empty(n_nodes), np.empty(n_nodes)
    for query in range(start, stop):
        found = _one_box(tree, lows[query], highs[query], cut, first_cut_child, part, covariance)
        variance[query], cumulant[query] = found


def box_moments(tree: BoxNoise, lows: IntArray, highs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Variance and fourth cumulant of the estimates of boxes from ``lows`` up to, not including,
    ``highs``; one row each.

    ``lows`` and ``highs`` are (n_boxes, n_dimensions), the results (n_boxes,).
    """
    low, high = (
        np.ascontiguousarray(lows, dtype=np.int64),
        np.ascontiguousarray(highs, dtype=np.int64),
    )
    variance, cumulant = np.empty(len(low)), np.empty(len(low))
    run_in_chunks(
        lambda start, stop: _many_boxes(tree, low, high, variance, cumulant, start, stop),
        len(low),
        smallest=16,
    )
    return variance, cumulant
