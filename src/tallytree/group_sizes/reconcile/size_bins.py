"""Whole numbers of groups by size from estimated counts of bins: nothing negative, children add up
to parents.

Counts of bins are rounded as columns of a table (:mod:`tallytree.lattice.whole`), whose row sums
are the rounded numbers of groups. A bin of several sizes is then filled: the root's groups along a
smooth curve through the bins, and each region's groups dealt evenly out of its parent's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallytree.group_sizes.plan.size_bins import SizeBins
from tallytree.kernels.trees.rounding import round_tree
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.hierarchy import Hierarchy


def whole_totals(hierarchy: Hierarchy, estimates: FloatArray) -> IntArray:
    """Whole numbers of groups per region that add up, near the sums of estimates of at least 0."""
    totals = estimates.sum(axis=1)
    for level in range(hierarchy.n_levels - 1, 0, -1):
        here, above = hierarchy.level_slice(level), hierarchy.level_slice(level - 1)
        totals[above] = np.add.reduceat(totals[here], hierarchy.child_starts[above] - here.start)
    return round_tree(totals, hierarchy.child_starts)


def fill_bins(hierarchy: Hierarchy, table: IntArray, bins: SizeBins) -> CountsBySize:
    """Counts by size of the leaves from whole counts of bins of every region."""
    leaves = hierarchy.level_slice(hierarchy.n_levels - 1)
    region, size, count = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    curve = _curve(table[0], bins)
    for place in np.flatnonzero(table[0]).tolist():
        first, end = int(bins.edges[place]), int(bins.edges[place + 1])
        if end - first == 1:
            there = table[leaves, place]
            region.append(np.flatnonzero(there))
            size.append(np.full(len(region[-1]), first))
            count.append(there[region[-1]])
            continue
        sizes = _along(curve, first, end, int(table[0, place]))
        for level in range(1, hierarchy.n_levels):
            sizes = _dealt(hierarchy, level, table[hierarchy.level_slice(level), place], sizes)
        region.append(np.repeat(np.arange(hierarchy.n_leaves), table[leaves, place]))
        size.append(sizes)
        count.append(np.ones_like(sizes))
    return counts_from_runs(
        np.concatenate(region), np.concatenate(size), np.concatenate(count), hierarchy.n_leaves
    )


def _curve(root: IntArray, bins: SizeBins) -> Callable[[FloatArray], FloatArray]:
    """Groups of at least each size: through the bins' edges, falling, smooth in logarithms of both,
    as tails of sizes are.

    Half a group more everywhere keeps the logarithm finite where the groups end.
    """
    from scipy.interpolate import PchipInterpolator  # slow to load, and needed here alone

    filled = np.flatnonzero(root)
    last = int(filled[-1]) + 1 if len(filled) else 1
    above = np.append(np.cumsum(root[:last][::-1])[::-1], 0) + 0.5
    edges = np.log(np.maximum(bins.edges[: last + 1], 0.5))
    curve = PchipInterpolator(edges, np.log(above))
    return lambda size: np.exp(curve(np.log(np.maximum(size, 0.5))))


def _along(
    curve: Callable[[FloatArray], FloatArray], first: int, end: int, n_groups: int
) -> IntArray:
    """Sizes of the root's groups of a bin, rising, spread as the curve falls."""
    heights = curve(np.arange(first, end + 1, dtype=np.float64))
    upto = np.rint((heights[0] - heights[1:]) / (heights[0] - heights[-1]) * n_groups).astype(
        np.int64
    )
    upto[-1] = n_groups
    return np.repeat(np.arange(first, end), np.diff(np.maximum.accumulate(upto), prepend=0))


def _dealt(hierarchy: Hierarchy, level: int, n_groups: IntArray, sizes: IntArray) -> IntArray:
    """The sizes of each parent's groups, rising, dealt to its children: the k-th of a child's n
    goes to rank (k + ½)/n.
    """
    region = np.repeat(np.arange(len(n_groups)), n_groups)
    starts = np.cumsum(n_groups) - n_groups
    rank = (np.arange(len(region)) - starts[region] + 0.5) / n_groups[region]
    parent = hierarchy.parent[hierarchy.level_slice(level)][region]
    dealt = np.empty_like(sizes)
    dealt[np.lexsort((rank, parent))] = sizes
    return dealt
