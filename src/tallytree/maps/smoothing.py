"""Counts of a tree of boxes, drawn to even shares as far as the noisy counts bear it. Post-processing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.kernels.trees.divisions import divide, even_prior, fit_divisions
from tallytree.kernels.trees.least_squares import combined_from_below, tree_least_squares, variances_from_below
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.box_tree import BoxTree

# Stands for "not measured" where variances are summed, and for the least variance that a weight can be made of.
LARGEST_VARIANCE, LEAST_VARIANCE = 1e30, 1e-9
# Boxes along the edge of a query that err together, at most: further down it cuts more boxes, but they differ more.
MOST_AGREEING = 16.0


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Nonnegative counts of every node that add up, and how counts divided at the finest depth."""

    counts: FloatArray
    divisions: FloatArray


def smooth_tree(tree: BoxTree, values: FloatArray, variances: FloatArray) -> Smoothed:
    """Divide the root's count down the tree, family by family, each in halves of halves.

    Upwards all noisy counts are combined without bias (hay2010 §4.1). Downwards a parent's count is divided between the first
    and the second half of its children, and so on down to single ones: a half's noisy count is its own children's sum and
    what the other half's leaves of the parent's, by inverse variance, as in least squares. Each depth has a mixture of its
    own (see :mod:`tallytree.kernels.trees.divisions`), which begins from that of the depth above.
    """
    starts = tree.child_starts
    from_below = variances_from_below(variances, starts)
    sums = _Sums.of(tree, combined_from_below(values, variances, starts, from_below), from_below)
    root = tree_least_squares(values, variances, starts, from_below=from_below)[0]
    counts = np.zeros(tree.n_nodes)
    counts[0] = max(root, 0.0)
    even = mixture = prior = even_prior()
    for layer in range(len(tree.layer_starts) - 1):
        nodes = np.arange(tree.layer_starts[layer], tree.layer_starts[layer + 1])
        nodes = nodes[starts[nodes + 1] > starts[nodes]]
        first, last, total = starts[nodes], starts[nodes + 1], counts[nodes]
        # The edge of a query through the boxes of this depth: a point of a line, a side of a map.
        agreeing = min(MOST_AGREEING, 2.0 ** (layer * (len(tree.shape) - 1)))
        while len(first):
            single = last - first == 1
            counts[first[single]] = total[single]
            first, last, total = first[~single], last[~single], total[~single]
            middle = first + (last - first + 1) // 2
            one = np.zeros(len(first))
            live = np.flatnonzero(total > 0)
            if len(live):
                noisy, variance, share = sums.halves(first[live], middle[live], last[live], total[live])
                mixture = fit_divisions(noisy, variance, total[live], share, prior)
                one[live] = divide(noisy, variance, total[live], share, mixture, agreeing)
                prior = (mixture + even) / 2
            first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
            total = np.concatenate([one, total - one])
    return Smoothed(counts, mixture)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Running sums over the nodes of a tree: noisy counts, their variances, areas."""

    noisy: FloatArray
    variance: FloatArray
    area: FloatArray

    @classmethod
    def of(cls, tree: BoxTree, combined: FloatArray, from_below: FloatArray) -> _Sums:
        area = (tree.high - tree.low).prod(axis=1).astype(np.float64)
        kept = np.minimum(from_below, LARGEST_VARIANCE)
        return cls(*(np.concatenate([[0.0], np.cumsum(one)]) for one in (combined, kept, area)))

    def halves(
        self, first: IntArray, middle: IntArray, last: IntArray, total: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Noisy first half, its variance and its share of the area, for the nodes first … last − 1 cut before ``middle``."""
        one, other = self.noisy[middle] - self.noisy[first], self.noisy[last] - self.noisy[middle]
        spread_one = np.maximum(self.variance[middle] - self.variance[first], LEAST_VARIANCE)
        spread_other = np.maximum(self.variance[last] - self.variance[middle], LEAST_VARIANCE)
        variance = 1 / (1 / spread_one + 1 / spread_other)
        noisy = (one / spread_one + (total - other) / spread_other) * variance
        share = (self.area[middle] - self.area[first]) / (self.area[last] - self.area[first])
        return noisy, variance, share
