"""What the noisy sizes of the largest groups tell about a level: the few rows that stand out of the
noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray, runs_at
from tallytree.model.count_of_counts import sum_runs


class Rows(NamedTuple):
    """Sizes of the largest groups of some regions, as far as they stand out of the noise.

    Attributes
    ----------
    offsets, sizes
        Region ``r`` owns ``sizes`` from ``offsets[r]`` on, falling.
    last
        What further groups of each region are taken to have: the size at which its blocks end.
    """

    offsets: IntArray
    sizes: FloatArray
    last: IntArray

    def piece(self, regions: slice) -> Rows:
        """The rows of consecutive regions."""
        offsets = self.offsets[regions.start : regions.stop + 1]
        return Rows(offsets - offsets[0], self.sizes[offsets[0] : offsets[-1]], self.last[regions])

    def at(self, regions: IntArray) -> Rows:
        """The rows of some regions, in this order."""
        offsets, places = runs_at(self.offsets, regions)
        return Rows(offsets, self.sizes[places], self.last[regions])


@dataclass(frozen=True, eq=False)
class Largest:
    """What a level tells about its largest groups.

    Attributes
    ----------
    rows
        Those that stand out.
    n_rows
        Rows of each region in all; the others are as large as the last block end, as far as can be
        told.
    clear
        Groups per region that stand clear of all noise of the level, past the last size that curves
        tell apart.
    reach
        How far noise may move a row of the level.
    noise_variance
        Of each row.
    """

    rows: Rows
    n_rows: IntArray
    clear: IntArray
    reach: float
    noise_variance: float

    def clear_from(self, n_sizes: int) -> float:
        """No group below this size stands clear of the level's noise."""
        return max(float(self.rows.last.min()) + self.reach, float(n_sizes))

    def possible(self, size: float) -> IntArray:
        """Groups per region that may be as large as this, as far as noise goes."""
        standing = sum_runs(
            self.rows.offsets, (self.rows.sizes + self.reach >= size).astype(np.int64)
        )
        hidden = self.n_rows - np.diff(self.rows.offsets)
        return standing + np.where(self.rows.last + self.reach >= size, hidden, 0)

    def at(self, regions: IntArray) -> Largest:
        """What is told of some regions, in this order."""
        return replace(
            self, rows=self.rows.at(regions), n_rows=self.n_rows[regions], clear=self.clear[regions]
        )
