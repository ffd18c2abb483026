"""Counts of a tree of boxes, drawn to even shares as far as the noisy counts bear it.
Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.boxes.kernels.divisions import divide, even_prior, fit_divisions
from tallytree.kernels.trees.least_squares import (
    combined_from_below,
    tree_least_squares,
    variances_from_below,
)
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.box_tree import BoxTree

# Stands for "not measured" where variances are summed, and for the least variance that a weight can
# be made of.
LARGEST_VARIANCE, LEAST_VARIANCE = 1e30, 1e-9
# Boxes along the edge of a query that err together, at most: further down it cuts more boxes, but
# they differ more.
MOST_AGREEING = 16.0


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Nonnegative counts of every node that add up, and how counts divided at the finest depth."""

    counts: FloatArray
    divisions: FloatArray


def smooth_tree(tree: BoxTree, values: FloatArray, variances: FloatArray) -> Smoothed:
    """Divide the root's count down the tree, family by family, each in halves of halves.

    Upwards all noisy counts are combined without bias (hay2010 §4.1). Downwards a parent's count is
    divided between the first and the second half of its children, and so on down to single ones: a
    half's noisy count is its own children's sum and what the other half's leaves of the parent's,
    by inverse variance, as in least squares. Each depth has a mixture of its own (see
    :mod:`tallytree.boxes.kernels.divisions`), which begins from that of the depth above. On maps,
    what neighbours lose together by that is given back to them (:func:`give_back`).
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
                noisy, variance, share = sums.halves(
                    first[live], middle[live], last[live], total[live]
                )
                mixture = fit_divisions(noisy, variance, total[live], share, prior)
                one[live] = divide(noisy, variance, total[live], share, mixture, agreeing)
                if len(tree.shape) > 1:
                    strips = _strips(tree, first[live], middle[live], last[live])
                    one[live] = give_back(one[live], noisy, variance, total[live], *strips)
                prior = (mixture + even) / 2
            first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
            total = np.concatenate([one, total - one])
    return Smoothed(counts, mixture)


def give_back(
    drawn: FloatArray,
    noisy: FloatArray,
    variance: FloatArray,
    total: FloatArray,
    order: IntArray,
    starts: IntArray,
) -> FloatArray:
    """First halves of boxes, with what neighbouring ones lose together given back to them.

    Where points lie on a line, the boxes along it divide alike, and what draws each of them to even
    shares, or to one side, errs with the same sign in all: the edge of a query that runs along them
    adds that up. Their noisy halves are free of it, and in a sum over many boxes it exceeds the
    noise. So for stretches of two neighbours, then of four, and so on up to whole strips, what the
    noisy halves have more than the drawn ones is given back, divided by the variances of their
    noise, within 0 … total; of it that part by which the squares of such differences, over all
    stretches of a length, exceed those of noise alone and a standard deviation of these.

    Parameters
    ----------
    drawn, noisy, variance, total
        Halves as they were drawn, their unbiased noisy counts, the variances of these, and what was
        divided.
    order, starts
        The boxes strip by strip, neighbours side by side, and where in that order each strip
        begins.
    """
    lengths = np.diff(np.append(starts, len(order)))
    place = np.arange(len(order)) - np.repeat(starts, lengths)
    halves, unbiased, noise, most = drawn[order], noisy[order], variance[order], total[order]
    for level in range(1, (int(lengths.max()) - 1).bit_length() + 1):
        begins = np.flatnonzero(place % (1 << level) == 0)
        n_boxes = np.diff(np.append(begins, len(order)))
        # A box by itself has no neighbour that could tell its bias from its noise.
        several = n_boxes > 1
        lack, chance = np.add.reduceat(unbiased - halves, begins), np.add.reduceat(noise, begins)
        explained = chance[several].sum() + np.sqrt(2 * np.sum(chance[several] ** 2))
        believed = 1 - min(1.0, explained / max(np.sum(lack[several] ** 2), LEAST_VARIANCE))
        rate = np.where(several, believed * lack / chance, 0.0)
        halves = np.clip(halves + np.repeat(rate, n_boxes) * noise, 0.0, most)
    result = np.empty(len(order))
    result[order] = halves
    return result


def _strips(
    tree: BoxTree, first: IntArray, middle: IntArray, last: IntArray
) -> tuple[IntArray, IntArray]:
    """Order and starts for :func:`give_back`: boxes of a strip are cut in the same place of the
    same stretch of a column.

    Nodes of a depth stand in the order in which halving made them, so that neighbours in a strip
    are neighbours on the map.
    """
    low, cut, high = tree.low[first], tree.low[middle], tree.high[last - 1]
    column = np.argmax(cut > low, axis=1)
    keys = (column, *(ends[np.arange(len(first)), column] for ends in (low, cut, high)))
    order = np.lexsort((first, *keys))
    new = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    return order, np.flatnonzero(np.concatenate([[True], new]))


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
        """Noisy first half, its variance and its share of the area, for the nodes first … last − 1
        cut before ``middle``.
        """
        one, other = self.noisy[middle] - self.noisy[first], self.noisy[last] - self.noisy[middle]
        spread_one = np.maximum(self.variance[middle] - self.variance[first], LEAST_VARIANCE)
        spread_other = np.maximum(self.variance[last] - self.variance[middle], LEAST_VARIANCE)
        variance = 1 / (1 / spread_one + 1 / spread_other)
        noisy = (one / spread_one + (total - other) / spread_other) * variance
        share = (self.area[middle] - self.area[first]) / (self.area[last] - self.area[first])
        return noisy, variance, share
