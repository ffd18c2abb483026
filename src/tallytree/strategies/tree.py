"""Estimates and their errors from the noisy blocks of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tallytree.kernels.range_moments import TreeNoise, running_sum, tree_moments, tree_noise
from tallytree.kernels.trees.least_squares import tree_least_squares, variances_from_below
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.strategies.tree_layout import TreeLayout


@dataclass(frozen=True, eq=False)
class TreeErrors:
    """Noise per counted level of a tree, the coarsest first; infinite variance for a level that was
    not measured.
    """

    layout: TreeLayout
    variance: FloatArray
    cumulant: FloatArray

    @cached_property
    def _by_level(self) -> tuple[FloatArray, FloatArray]:
        """Variance and fourth cumulant per level of the layout: a bare root was not measured."""
        if not self.layout.has_bare_root:
            return self.variance, self.cumulant
        return np.concatenate([[np.inf], self.variance]), np.concatenate([[0.0], self.cumulant])

    @cached_property
    def node_variances(self) -> FloatArray:
        """Noise variance of every node."""
        return np.repeat(self._by_level[0], np.diff(self.layout.level_starts))

    @cached_property
    def from_below(self) -> FloatArray:
        """Variance of the best estimate of each node from the blocks at and below it."""
        return variances_from_below(self.node_variances, self.layout.child_starts)

    @cached_property
    def _noise(self) -> TreeNoise:
        layout = self.layout
        return tree_noise(
            layout.widths,
            layout.level_starts,
            layout.child_starts,
            *self._by_level,
            self.from_below,
        )

    def moments(
        self, first: IntArray, last: IntArray, share: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Variance and fourth cumulant of the estimate of bins first … last − 1, less ``share``
        times that of all bins.
        """
        return tree_moments(self._noise, first, last, share)

    def node_values(self, noisy: Sequence[IntArray]) -> FloatArray:
        """Noisy answers of every node; 0 at nodes that were not measured, where it is ignored."""
        bare = [np.zeros(1)] if self.layout.has_bare_root else []
        tree = self.layout.tree
        levels = [
            answers if len(answers) else np.zeros(tree.n_blocks(level))
            for level, answers in enumerate(noisy)
        ]
        return np.concatenate([*bare, *levels]).astype(np.float64)

    def node_estimates(self, noisy: Sequence[IntArray]) -> FloatArray:
        """Least-squares estimate of every node (hay2010's H̄, qardaji2013's H_b^c)."""
        values, variances = self.node_values(noisy), self.node_variances
        return tree_least_squares(
            values, variances, self.layout.child_starts, from_below=self.from_below
        )


def fewest_blocks(
    errors: TreeErrors, noisy: Sequence[IntArray], first: IntArray, last: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Each range as the sum of the fewest noisy blocks, without inference: hay2010's H̃,
    qardaji2013's H_b.

    Returns estimates, variances and fourth cumulants. Levels that were not measured are passed
    over.
    """
    tree = errors.layout.tree
    measured = [level for level in range(tree.n_levels) if np.isfinite(errors.variance[level])]
    low, high = np.array(first, dtype=np.int64), np.array(last, dtype=np.int64)
    estimates, variances, cumulants = (np.zeros(len(low)) for _ in range(3))
    for place in reversed(range(len(measured))):
        level = measured[place]
        n_blocks = tree.n_blocks(level)
        if place == 0:
            next_low, next_high = high, high  # nothing coarser: the rest is taken here
            up, down = high, high
        else:
            ratio = tree.widths[measured[place - 1]] // tree.widths[level]
            next_low = -(-low // ratio)
            next_high = np.where(high == n_blocks, -(-high // ratio), high // ratio)
            fits = next_low <= next_high
            next_low = np.where(fits, next_low, next_high)
            up = np.where(fits, np.minimum(next_low * ratio, n_blocks), high)
            down = np.where(fits, np.minimum(next_high * ratio, n_blocks), high)
        before = running_sum(noisy[level].astype(np.float64))
        estimates += before[up] - before[low] + before[high] - before[down]
        n_used = up - low + high - down
        variances += n_used * errors.variance[level]
        cumulants += n_used * errors.cumulant[level]
        low, high = next_low, next_high
    return estimates, variances, cumulants
