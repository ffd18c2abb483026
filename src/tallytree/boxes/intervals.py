"""Intervals around counts of boxes, from the law of the noise alone: exact where the query cuts no
box.

They are given where the boxes do not follow from noisy counts and each was counted at most once.
Given the boxes, the least-squares estimate of a query is then unbiased and a fixed sum of
independent noise. Where boxes were split because their noisy counts came out large, the noise of
those counts leans upwards, and where boxes are cut, nobody knows how the points are spread inside:
then there is no interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tallytree.boxes.kernels.moments import BoxNoise, box_moments
from tallytree.kernels.range_moments import quartics
from tallytree.kernels.trees.least_squares import variances_from_below
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.box_tree import BoxTree
from tallytree.privacy.noise import Noise
from tallytree.strategies.estimates import SMALLEST_VARIANCE
from tallytree.strategies.intervals import SMALL_ERRORS, half_widths, whole_half_widths
from tallytree.strategies.noise_moments import fourth_cumulant


@dataclass(frozen=True, eq=False)
class BoxLaw:
    """The law of the error of any query that is made of whole boxes.

    Attributes
    ----------
    tree
        The boxes.
    variances
        Noise variance of each box; infinite where it was not counted.
    noise
        The different laws of noise that counts have.
    """

    tree: BoxTree
    variances: FloatArray
    noise: tuple[Noise, ...]

    @cached_property
    def _moments(self) -> BoxNoise:
        tree, own = self.tree, np.maximum(self.variances, SMALLEST_VARIANCE)
        known = np.array([law.variance for law in self.noise])
        cumulants = np.array([fourth_cumulant(law) for law in self.noise])
        nearest = np.abs(known[None, :] - np.where(np.isfinite(own), own, 0.0)[:, None]).argmin(
            axis=1
        )
        cumulant = np.where(np.isfinite(own), cumulants[nearest], 0.0)
        below = variances_from_below(own, tree.child_starts)
        quartic = quartics(tree.child_starts, own, cumulant, below)
        return BoxNoise(tree.child_starts, tree.low, tree.high, own, cumulant, below, quartic)

    def half_widths(self, first: IntArray, last: IntArray, confidence: float) -> FloatArray:
        """Half of the width of an interval around the unbiased estimate of each box of whole boxes."""
        variance, cumulant = box_moments(self._moments, first, last)
        single = len(self.noise) == 1 and self.tree.is_leaf[np.isfinite(self.variances)].all()
        if (
            single
            and self.tree.is_leaf.sum() == self.tree.volume[0]
            and variance.max(initial=0) <= SMALL_ERRORS**2
        ):
            return whole_half_widths(self.noise[0], np.prod(last - first, axis=1), confidence)
        return half_widths(variance, cumulant, confidence)
