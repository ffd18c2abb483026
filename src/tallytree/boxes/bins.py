"""A map of one column as a histogram: counts of single bins, and how uncertain ranges of bins are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.boxes.answers import MapSurface
from tallytree.boxes.estimates import MapEstimates
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.box_tree import uniform_density


@dataclass(frozen=True, eq=False)
class BoxErrors:
    """How uncertain the estimates of ranges are: noise, and what is not known inside boxes that a
    range cuts.
    """

    surface: MapSurface

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return self.surface.estimates.tree.shape[0]

    def moments(
        self, first: IntArray, last: IntArray, share: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Variance of the estimate of bins first … last − 1, less ``share`` times that of all bins;
        no fourth cumulant.

        With T = P + S, a prefix and the rest, cov(P, T) = (var P + var T − var S)/2; a range is the
        difference of two prefixes.
        """
        variance = self._variance(first, last)
        if share:
            whole = self._variance(np.zeros(1, dtype=np.int64), np.array([self.n_bins]))[0]
            with_total = self._with_total(last, whole) - self._with_total(first, whole)
            variance = np.maximum(variance + share**2 * whole - 2 * share * with_total, 0.0)
        return variance, np.zeros_like(variance)

    def _with_total(self, edge: IntArray, whole: float) -> FloatArray:
        """Covariance of the bins below an edge and of all bins."""
        below = self._variance(np.zeros_like(edge), edge)
        return (below + whole - self._variance(edge, np.full_like(edge, self.n_bins))) / 2

    def _variance(self, first: IntArray, last: IntArray) -> FloatArray:
        found, some = np.zeros(len(first)), np.flatnonzero(last > first)
        if len(some):
            ends = (end[some, None].astype(np.float64) for end in (first, last))
            noise, _, _, unknown = self.surface.uncertainty(*ends)
            found[some] = noise + unknown
        return found


def bin_counts(estimates: MapEstimates) -> FloatArray | IntArray:
    """Published counts of single bins: a box's count spread evenly over its bins.

    Whole counts stay whole: the first i of w bins of a box of n hold i n / w, rounded half up, so
    that no range inside the box is further off than 1 by rounding, and the box holds what it held.
    """
    tree = estimates.tree
    if estimates.published.dtype != np.int64:
        return uniform_density(tree, estimates.leaves, estimates.published)
    nodes = np.flatnonzero(estimates.leaves)
    nodes = nodes[np.argsort(tree.low[nodes, 0])]
    bins = np.repeat(np.arange(len(nodes)), tree.volume[nodes])
    place = np.arange(len(bins)) - tree.low[nodes, 0][bins]
    width = tree.volume[nodes][bins]
    each, rest = np.divmod(estimates.published[nodes][bins], width)

    def below(i: IntArray) -> IntArray:
        return (2 * rest * i + width) // (2 * width)

    return np.asarray(each + below(place + 1) - below(place), dtype=np.int64)


def bin_estimates(estimates: MapEstimates) -> FloatArray:
    """Unbiased counts of boxes, spread evenly over their bins."""
    return uniform_density(estimates.tree, estimates.leaves, estimates.unbiased)
