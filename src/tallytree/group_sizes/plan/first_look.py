"""The first look: a rough, cheap picture of the root's sizes that everything else is planned from.

Its blocks are fixed, so it needs to know nothing: single sizes up to 9, then blocks a fifth as wide
as the size they begin at, up to sizes that no group reaches. Enters: noisy block sums, already paid
for. Leaves: a falling curve and how far to look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tallytree.group_sizes.kernels.curves import fit_falling
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.tuning.blocks import SPACING
from tallytree.tuning.look import (
    CLEAR_FALL,
    FARTHEST,
    FEW_GROUPS,
    LARGEST_LOOK,
    LEANING,
    LEAST_SIZES,
    OUTLYING,
    RELATIVE_WIDTH,
    SEEN_SCALES,
    UNSEEN_FALL,
    USUAL_DEVIATION,
    USUAL_SIZES,
)


def look_ends() -> IntArray:
    """Ends of the blocks of the first look."""
    ends = [0]
    while ends[-1] < LARGEST_LOOK:
        ends.append(ends[-1] + max(1, int(RELATIVE_WIDTH * ends[-1])))
    return np.array(ends[1:], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class FirstLook:
    """Mean number of groups above the sizes of each block, falling, as the noisy sums tell it.

    Attributes
    ----------
    ends
        Ends of the blocks; the first begins at size 0.
    height
        Estimated mean of N(i) over each block.
    n_groups
        Number of groups of the root.
    noise_std
        Standard deviation of the noise of a block's sum.
    """

    ends: IntArray
    height: FloatArray
    n_groups: int
    noise_std: float

    @property
    def widths(self) -> IntArray:
        """Sizes per block."""
        return np.diff(self.ends, prepend=0)

    @property
    def starts(self) -> IntArray:
        """First size of each block."""
        return self.ends - self.widths

    @property
    def n_seen(self) -> int:
        """Blocks up to the last that stands five noise scales above 0, and one more. With three, 1
        look in 30 sees ghosts.
        """
        seen = np.flatnonzero(
            self.height * self.widths > SEEN_SCALES / math.sqrt(2) * self.noise_std
        )
        return min(int(seen[-1]) + 2 if len(seen) else 2, len(self.widths))

    def cells_beyond(self, size: int) -> float:
        """Estimated entities that lie beyond a size; the size is an end of a block."""
        after = self.starts >= size
        return float((self.height[after] * self.widths[after]).sum())

    def n_sizes(self, least_noise_std: float, most: int, told: int = 0) -> int:
        """Sizes to tell apart: up to where single groups lie further apart than the best noise on
        any level blurs.

        From there on the largest groups are measured one by one; so are the last few where they
        lie far out, and those far past what the look can see. Never fewer than answers already
        ``told`` apart, as far as memory goes.
        """
        before = np.concatenate(([float(self.n_groups)], self.height[:-1]))
        cells = np.cumsum((self.height * self.widths)[::-1])[::-1]
        usual = min(USUAL_SIZES, max(most // 4, LEAST_SIZES))
        apart = cells > SPACING * least_noise_std * before**2
        outlying = (before < FEW_GROUPS) & (cells > OUTLYING * before * self.starts)
        sparse = (apart | outlying) & (self.starts >= usual)
        seen = max(FARTHEST * int(self.ends[self.n_seen - 1]), usual)
        found = min(int(self.starts[np.argmax(sparse)]), seen) if sparse.any() else seen
        fitting = self.ends[self.ends <= max(most, LEAST_SIZES)]
        if told > found:
            found = int(fitting[min(int(np.searchsorted(fitting, told)), len(fitting) - 1)])
        return min(found, int(fitting[-1]))

    def curve(self, n_sizes: int) -> tuple[FloatArray, FloatArray]:
        """N(i) below ``n_sizes`` by straight lines between block means, and the variance of its
        falls.

        The fall at a size is the difference of two block means over a width w: 2 σ²/w⁴, and where a
        block has several sizes also what a straight line misses, taken as three tenths of the fall.
        """
        middle = (self.starts + self.ends - 1) / 2
        sizes = np.arange(n_sizes)
        height = np.interp(sizes, np.append(-1, middle), np.append(self.n_groups, self.height))
        near = self.starts < n_sizes
        width = np.repeat(self.widths[near], self.widths[near])[:n_sizes].astype(np.float64)
        fall = -np.diff(height, prepend=self.n_groups)
        unseen = np.where(width > 1, (UNSEEN_FALL * fall) ** 2, 0.0)
        return height, 2 * self.noise_std**2 / width**4 + unseen

    def usual_falls(self, n_sizes: int) -> tuple[FloatArray, FloatArray]:
        """Share of groups of at least i entities that have exactly i, where sizes stop at the same
        rate from i on, as far as a fall stands out of the noise; variance.

        The rate is that of stops over entities, 1/(1 + mean excess), between a block and the next
        from which clearly fewer groups are left; to the end, where nothing is clear. A mean excess
        leans on the block before by a part of a noise deviation's worth of groups: where nothing is
        seen it stays the same.
        """
        cells = np.where(np.arange(len(self.ends)) < self.n_seen, self.height * self.widths, 0.0)
        passed = np.concatenate(([0.0], np.cumsum(cells)))
        above = np.concatenate(([float(self.n_groups)], self.height))[: self.n_seen + 1]
        lean = LEANING * self.noise_std
        near = self.starts < n_sizes
        excess = np.empty(int(near.sum()))
        before = cells.sum() / max(self.n_groups, 1)
        for block in range(len(excess)):
            if block < self.n_seen:
                left = above[block + 1 :]
                clear = np.flatnonzero(above[block] - left > CLEAR_FALL * self.noise_std)
                stop = block + 1 + int(clear[0]) if len(clear) else len(cells)
                stops = above[block] - (above[stop] if len(clear) else 0.0)
                if stops + lean > 0:
                    seen = passed[stop] - passed[block]
                    before = (seen + lean * before) / (stops + lean)
            excess[block] = before
        fall = 1 / (1 + np.repeat(excess, self.widths[near])[:n_sizes])
        return fall, (USUAL_DEVIATION * fall) ** 2

    def curve_variance(self, n_sizes: int) -> tuple[FloatArray, FloatArray]:
        """N(i) below ``n_sizes`` and its variance: noise σ²/w² on a mean over w sizes, and a third
        of the block's fall.
        """
        height, _ = self.curve(n_sizes)
        near = self.starts < n_sizes
        width = np.repeat(self.widths[near], self.widths[near])[:n_sizes].astype(np.float64)
        within = np.where(width > 1, width * -np.diff(height, prepend=self.n_groups) / 3, 0.0)
        return height, (self.noise_std / width) ** 2 + within**2


def first_look(answers: IntArray, n_groups: int, noise_std: float) -> FirstLook:
    """The falling curve nearest to the noisy block sums, between 0 and the number of groups."""
    ends = look_ends()
    widths = np.diff(ends, prepend=0).astype(np.float64)
    height = answers / widths
    fit_falling(height, widths**2, 0.0, float(n_groups))
    return FirstLook(ends, height, int(n_groups), noise_std)
