"""How uncertain the answer to a range is after least squares on a tree of blocks, in O(levels) per
range.

The estimate of a range is linear in the independent noise of the nodes, so its variance and its
fourth cumulant are Σ c² · variance and Σ c⁴ · cumulant over all nodes. Two facts make the sums
short. Given the estimate of a node, what lies inside the node is uncorrelated with everything
outside; and inside a block that the range holds fully or not at all, all coefficients have the same
factor. Only the blocks that the two ends of the range cut remain: at most two per level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray


class TreeNoise(NamedTuple):
    """A tree of nested blocks, level 0 the root, and what least squares makes of its noise.

    Level ``l`` has the nodes ``starts[l]:starts[l + 1]``, each ``widths[l]`` bins wide but the
    last. ``variance`` and ``cumulant`` are those of the noise per level (infinite and 0 where
    nothing was counted). ``below[v]`` is the variance of node ``v`` from the counts at and below
    it; ``cum_below`` its running sum, from 0. ``quartic[v]`` is Σ c⁴ · cumulant over the subtree of
    ``v`` for a query whose covariance with the estimate of ``v`` is ``below[v]``; ``cum_quartic``
    its running sum.
    """

    widths: IntArray
    starts: IntArray
    variance: FloatArray
    cumulant: FloatArray
    below: FloatArray
    cum_below: FloatArray
    quartic: FloatArray
    cum_quartic: FloatArray


@serial
def _siblings(tree, level, node):
    """First and one past last node of a level below the parent of the given one (nodes counted
    within the level).
    """
    size = tree.starts[level + 1] - tree.starts[level]
    if level == 1:
        return 0, size
    ratio = tree.widths[level - 1] // tree.widths[level]
    first = node // ratio * ratio
    return first, min(first + ratio, size)


@serial
def _climb(tree, level, node, part, residual):
    """A prefix that ends inside a node, seen from its parent.

    The prefix restricted to a node is part · (count of the node) plus a remainder that is
    uncorrelated with the node's estimate and has variance ``residual``. Siblings to the left belong
    to the prefix. Returns part and residual of the parent.
    """
    first, last = _siblings(tree, level, node)
    at = tree.starts[level]
    if first >= tree.starts[level + 1] - at:  # the prefix ends where the level ends: nothing is cut
        return 0.0, residual
    left = tree.cum_below[at + node] - tree.cum_below[at + first]
    own = tree.below[at + node] if part != 0.0 else 0.0
    total = tree.cum_below[at + last] - tree.cum_below[at + first]
    mixed = left + part * own
    return mixed / total, residual + left + part * part * own - mixed * mixed / total


@serial
def _meet(tree, level, node_a, part_a, node_b, part_b):
    """The range between two prefixes that end in different children of one parent: part and added
    residual of the parent.
    """
    first, last = _siblings(tree, level, node_a)
    at = tree.starts[level]
    own_a = tree.below[at + node_a]
    own_b = tree.below[at + node_b] if part_b != 0.0 else 0.0
    between = tree.cum_below[at + node_b] - tree.cum_below[at + node_a + 1]
    total = tree.cum_below[at + last] - tree.cum_below[at + first]
    mixed = between + (1.0 - part_a) * own_a + part_b * own_b
    squared = between + (1.0 - part_a) ** 2 * own_a + part_b**2 * own_b
    return mixed / total, squared - mixed * mixed / total


@serial
def _own_cumulant(tree, level, covariance):
    """What a node's own noise adds to the fourth cumulant; its coefficient is covariance /
    variance.
    """
    if tree.variance[level] == np.inf:
        return 0.0
    return tree.cumulant[level] * (covariance / tree.variance[level]) ** 4


@serial
def _descend(tree, level, node, covariance, parts, inside_left, position):
    """Fourth cumulant from the subtree of a node that one end of the range cuts.

    ``parts[l]`` is the coefficient of the query on the cut node of level ``l``. Children left of
    the cut have the coefficient ``inside_left`` (1 for a prefix, 0 for what follows one), those
    right of it 1 − inside_left.
    """
    total = _own_cumulant(tree, level, covariance)
    for deeper in range(level + 1, len(tree.widths)):
        at = tree.starts[deeper]
        size = tree.starts[deeper + 1] - at
        cut = position // tree.widths[deeper]
        if deeper == 1:
            first, last = 0, size
        else:
            ratio = tree.widths[deeper - 1] // tree.widths[deeper]
            first, last = node * ratio, min((node + 1) * ratio, size)
        base = (
            covariance / (tree.cum_below[at + last] - tree.cum_below[at + first])
            - parts[deeper - 1]
        )
        left = tree.cum_quartic[at + min(cut, last)] - tree.cum_quartic[at + first]
        right = tree.cum_quartic[at + last] - tree.cum_quartic[at + min(cut + 1, last)]
        total += (base + inside_left) ** 4 * left + (base + 1.0 - inside_left) ** 4 * right
        if cut >= last:
            return total
        node = cut
        covariance = tree.below[at + node] * (base + parts[deeper])
        total += _own_cumulant(tree, deeper, covariance)
    return total


@serial
def _one_range(tree, a, b, share, parts_a, parts_b):
    """Variance and fourth cumulant of the estimate of bins a … b − 1 less ``share`` times the
    estimate of all bins.
    """
    deepest = len(tree.widths) - 1
    parts_a[deepest], parts_b[deepest] = 0.0, 0.0
    residual = 0.0
    met = 0  # level of the children in which the two ends lie apart, below one parent
    for level in range(deepest, 0, -1):
        node_a, node_b = a // tree.widths[level], b // tree.widths[level]
        if met == 0 and (level == 1 or a // tree.widths[level - 1] == b // tree.widths[level - 1]):
            met = level
            parts_a[level - 1], added = _meet(
                tree, level, node_a, parts_a[level], node_b, parts_b[level]
            )
            residual += added
        elif met == 0:
            parts_a[level - 1], residual = _climb(tree, level, node_a, parts_a[level], residual)
            parts_b[level - 1], residual = _climb(tree, level, node_b, parts_b[level], residual)
        else:
            first, last = _siblings(tree, level, node_a)
            at = tree.starts[level]
            own, part = tree.below[at + node_a], parts_a[level]
            total = tree.cum_below[at + last] - tree.cum_below[at + first]
            parts_a[level - 1] = part * own / total
            residual += part * part * own * (1.0 - own / total)
    if deepest == 0:
        parts_a[0] = 1.0
    whole = tree.below[0]
    variance = (parts_a[0] - share) ** 2 * whole + residual
    covariance = (parts_a[0] - share) * whole
    cumulant = _own_cumulant(tree, 0, covariance)
    for level in range(
        1, met
    ):  # above the meeting level one node is cut and its siblings lie outside
        node = a // tree.widths[level]
        first, last = _siblings(tree, level, node)
        at = tree.starts[level]
        base = (
            covariance / (tree.cum_below[at + last] - tree.cum_below[at + first])
            - parts_a[level - 1]
        )
        outside = (
            tree.cum_quartic[at + last] - tree.cum_quartic[at + first] - tree.quartic[at + node]
        )
        cumulant += base**4 * outside
        covariance = tree.below[at + node] * (base + parts_a[level])
        cumulant += _own_cumulant(tree, level, covariance)
    if met > 0:
        at = tree.starts[met]
        node_a, node_b = a // tree.widths[met], b // tree.widths[met]
        first, last = _siblings(tree, met, node_a)
        base = (
            covariance / (tree.cum_below[at + last] - tree.cum_below[at + first]) - parts_a[met - 1]
        )
        outside = tree.cum_quartic[at + node_a] - tree.cum_quartic[at + first]
        outside += tree.cum_quartic[at + last] - tree.cum_quartic[at + min(node_b + 1, last)]
        between = tree.cum_quartic[at + node_b] - tree.cum_quartic[at + node_a + 1]
        cumulant += base**4 * outside + (base + 1.0) ** 4 * between
        if node_b < last:
            reach = tree.below[at + node_b] * (base + parts_b[met])
            cumulant += _descend(tree, met, node_b, reach, parts_b, 1.0, b)
        for level in range(met, deepest + 1):
            parts_a[level] = 1.0 - parts_a[level]  # from here on: what follows the prefix
        reach = tree.below[at + node_a] * (base + parts_a[met])
        cumulant += _descend(tree, met, node_a, reach, parts_a, 0.0, a)
    return variance, cumulant


@serial
def _many_ranges(tree, first, last, share, variance, cumulant, start, stop):
    parts_a = np.zeros(len(tree.widths))
    parts_b = np.zeros(len(tree.widths))
    for query in range(start, stop):
        if first[query] < last[query]:
            variance[query], cumulant[query] = _one_range(
                tree, first[query], last[query], share, parts_a, parts_b
            )
        else:
            variance[query] = share * share * tree.below[0]
            cumulant[query] = share**4 * tree.quartic[0]


def tree_moments(
    tree: TreeNoise, first: IntArray, last: IntArray, share: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Variance and fourth cumulant of the estimate of bins ``first … last − 1`` less ``share``
    times that of all bins.

    ``share`` serves quantiles, which ask whether a prefix holds a given share of all. O(levels) per
    range.

    ``first``, ``last`` and the results are (n_ranges,).
    """
    a, b = np.ascontiguousarray(first, dtype=np.int64), np.ascontiguousarray(last, dtype=np.int64)
    variance, cumulant = np.empty(len(a)), np.empty(len(a))
    run_in_chunks(
        lambda start, stop: _many_ranges(tree, a, b, float(share), variance, cumulant, start, stop),
        len(a),
        smallest=4096,
    )
    return variance, cumulant


@serial
def _quartics(child_starts, variance, cumulant, below, quartic):
    """quartic = below⁴ · (cumulant / variance⁴ + Σ quartic of children / (Σ below of children)⁴),
    leaves first.
    """
    for node in range(len(below) - 1, -1, -1):
        factor = cumulant[node] / variance[node] ** 4 if variance[node] < np.inf else 0.0
        total, sum_below = 0.0, 0.0
        for child in range(child_starts[node], child_starts[node + 1]):
            total += quartic[child]
            sum_below += below[child]
        if sum_below > 0:
            factor += total / sum_below**4
        quartic[node] = below[node] ** 4 * factor


def quartics(
    child_starts: IntArray, variance: FloatArray, cumulant: FloatArray, below: FloatArray
) -> FloatArray:
    """Σ c⁴ · cumulant over the subtree of each node, for a query whose covariance with the node's
    estimate is ``below``.

    ``child_starts`` is (n_nodes + 1,), all others and the result are (n_nodes,).
    """
    quartic = np.empty_like(below)
    _quartics(child_starts, variance, cumulant, below, quartic)
    return quartic


def tree_noise(
    widths: IntArray,
    starts: IntArray,
    child_starts: IntArray,
    variance: FloatArray,
    cumulant: FloatArray,
    below: FloatArray,
) -> TreeNoise:
    """Prepare a tree for :func:`tree_moments`; ``below`` comes from ``variances_from_below``.

    ``widths``, ``variance`` and ``cumulant`` are (n_levels,), ``starts`` is (n_levels + 1,),
    ``child_starts`` (n_nodes + 1,), ``below`` (n_nodes,).
    """
    sizes = np.diff(starts)
    quartic = quartics(child_starts, np.repeat(variance, sizes), np.repeat(cumulant, sizes), below)
    return TreeNoise(
        widths, starts, variance, cumulant, below, running_sum(below), quartic, running_sum(quartic)
    )


def running_sum(values: FloatArray | IntArray) -> FloatArray:
    """Sums of the first 0, 1, 2 … values.

    From (n,) to (n + 1,).
    """
    total = np.zeros(len(values) + 1)
    np.cumsum(values, out=total[1:])
    return total
