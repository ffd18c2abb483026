"""Strategies of nested levels of hat functions: every bin, and overlapping weighted sums of bins,
for any number of bins.

What an optimiser finds for hundreds and thousands of bins (:mod:`tallytree.strategies.optimiser`)
has a simple shape: levels of hats, each falling to 0 where its neighbours have their peak, and the
peaks of a level crowd near those of the level above. A few whole numbers describe it, and
everything about it takes linear time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.strategies.hat_kernels import hat_forms

COLUMN_SUM = 2**16  # of all coefficients of a bin
CROWDING_UNIT = 16
MOST_BINS, MOST_LEVELS = 1 << 20, 8

# What is searched. The best of each grew neither with bins nor with levels (4,096 to 262,144 bins).
N_LEVELS = (2, 3, 4)
TOPS = (6, 8, 11, 16)  # hats of the coarsest level
FINEST = (15, 19)  # bins between hats of the finest
CROWDING = 6
HEIGHT = 0.9  # of a hat over what the bin counts by itself; from 0.87 to 0.96 where it was free
SMALLEST_RATIO = 4
FEWEST_BINS = SMALLEST_RATIO * TOPS[0] * FINEST[0]


@dataclass(frozen=True)
class HatLevel:
    """One level of hats.

    Attributes
    ----------
    spacing
        Bins from one peak to the next, on average.
    height
        Coefficient of a bin at the peak, in units of 2^-16.
    """

    spacing: int
    height: int


@dataclass(frozen=True)
class Hats:
    """A strategy of all bins and levels of hats over them, the coarsest level first.

    Attributes
    ----------
    crowding
        By how many sixteenths hats are closer than the average where the level above has its peaks.
    """

    n_bins: int
    levels: tuple[HatLevel, ...]
    crowding: int

    def __post_init__(self) -> None:
        heights = sum(level.height for level in self.levels)
        if not (
            0 < self.n_bins <= MOST_BINS
            and 0 < len(self.levels) <= MOST_LEVELS
            and 0 <= self.crowding < CROWDING_UNIT
        ):
            raise RequestError(
                f"Hats need 1 to {MOST_BINS:,} bins, 1 to {MOST_LEVELS} levels, and a crowding "
                "from 0 to 15 sixteenths."
            )
        if (
            min(min(level.spacing, level.height) for level in self.levels) < 1
            or heights >= COLUMN_SUM
        ):
            raise RequestError(
                f"Hats need a spacing and a height of at least 1, and heights below {COLUMN_SUM} "
                "in all."
            )
        for peaks in self.peaks:
            if len(peaks) == 0 or np.any(np.diff(peaks) < 1):
                raise RequestError(
                    "Hats lie so close that two have their peak in the same place. Use a larger "
                    "spacing."
                )

    @cached_property
    def peaks(self) -> tuple[IntArray, ...]:
        """Where the hats of each level have their peaks, as edges of bins; whole numbers, the same
        on every machine.
        """
        found: list[IntArray] = []
        for level in self.levels:
            above = found[-1] if found else np.empty(0, dtype=np.int64)
            ends = np.concatenate([[0], above, [self.n_bins]])
            found.append(
                np.concatenate([self._between(a, b, level.spacing) for a, b in pairwise(ends)])
            )
        return tuple(found)

    def _between(self, first: int, last: int, spacing: int) -> IntArray:
        """Peaks between two neighbouring peaks of the level above: at t = ½/m, 3/2/m …, less c·t(1
        − t)(1 − 2t).
        """
        width = int(last) - int(first)
        count = max(1, (2 * width + spacing) // (2 * spacing))
        twice = (
            2 * np.arange(count, dtype=object) + 1
        )  # 2m·t; Python's whole numbers do not overflow
        whole = 2 * count
        moved = self.crowding * twice * (whole - twice) * (whole - 2 * twice)
        scale = CROWDING_UNIT * whole**3
        places = [
            (2 * width * int(t * CROWDING_UNIT * whole**2 - m) + scale) // (2 * scale)
            for t, m in zip(twice, moved)
        ]
        return int(first) + np.array(places, dtype=np.int64)

    @cached_property
    def n_hats(self) -> int:
        """Hats of all levels."""
        return sum(len(peaks) for peaks in self.peaks)

    @cached_property
    def right(self) -> IntArray:
        """Per level and bin, which hat of the level has the next peak to the right; its number of
        hats where none has.
        """
        middle = np.arange(self.n_bins)
        return np.stack([np.searchsorted(peaks, middle, side="right") for peaks in self.peaks])

    @cached_property
    def coefficients(self) -> IntArray:
        """What is not 0 in the column of every bin: itself; then, level by level, hats with a peak
        to its left and right.
        """
        rows: list[IntArray] = []
        twice = 2 * np.arange(self.n_bins, dtype=np.int64) + 1
        for level, peaks, right in zip(self.levels, self.peaks, self.right):
            ends = np.concatenate([[0], peaks, [self.n_bins]])
            low, high = ends[right], ends[right + 1]
            rising = level.height * (twice - 2 * low) // (2 * (high - low))
            falling = level.height - rising
            rows += [np.where(right > 0, falling, 0), np.where(right < len(peaks), rising, 0)]
        return np.stack([COLUMN_SUM - np.sum(rows, axis=0), *rows])

    @cached_property
    def hats(self) -> IntArray:
        """The hats that :attr:`coefficients` belong to (without its first row), numbered over all
        levels.
        """
        before = np.cumsum([0, *(len(peaks) for peaks in self.peaks)])
        rows = []
        for start, peaks, right in zip(before, self.peaks, self.right):
            rows += [start + np.maximum(right - 1, 0), start + np.minimum(right, len(peaks) - 1)]
        return np.stack(rows)

    def answers(self, counts: IntArray) -> IntArray:
        """Every bin times its coefficient, then the sums of all hats, in whole numbers."""
        sums = np.zeros(self.n_hats, dtype=np.int64)
        for hats, coefficients in zip(self.hats, self.coefficients[1:]):
            np.add.at(sums, hats, coefficients * counts)
        return np.concatenate([self.coefficients[0] * counts, sums])

    def variances(self) -> tuple[FloatArray, FloatArray, float]:
        """After least squares: of every bin, of every prefix, and summed over all ranges; for noise
        of variance 1.
        """
        own = self.coefficients[0].astype(np.float64)
        n_levels, place = len(self.levels), np.arange(self.n_bins)
        weights = np.zeros((self.n_bins, 2 * n_levels))
        ends = np.full((self.n_bins, n_levels), -1)
        for level, right in enumerate(self.right):
            falling, rising = self.coefficients[1 + 2 * level], self.coefficients[2 + 2 * level]
            weights[place, 2 * level + (right + 1) % 2] = falling / own
            weights[place, 2 * level + right % 2] = rising / own
            turned = np.flatnonzero(np.diff(right)) + 1
            ends[turned, level] = 2 * level + right[turned] % 2
        bins, prefixes, whole = hat_forms(weights, ends, 1 / own)
        held = (place + 1.0) * (self.n_bins - place)
        running = np.concatenate([[0.0], np.cumsum(1 / own**2)])
        # Σ over ranges of |z_b − z_a|² is (N + 1)Σ|z_e|² − |Σz_e|² over the ends of prefixes.
        total = float((held / own**2).sum()) - ((self.n_bins + 1) * float(prefixes.sum()) - whole)
        return 1 / own**2 - bins, running - prefixes, total


def optimised_hats(n_bins: int) -> tuple[Hats, float]:
    """The best of a few hats for all ranges with Laplace noise, and its average variance in units
    of that of one count.

    Spacings grow by a constant factor from level to level. Searching further, also for heights and
    crowding of every level, gains less than 2 % from 4,096 to 262,144 bins. Gaussian noise asks for
    something else: there hats lose to trees.
    """
    best: tuple[Hats, float] | None = None
    for n_levels, top, fine in product(N_LEVELS, TOPS, FINEST):
        spacings = _spacings(n_bins, n_levels, top, fine)
        if spacings is None:
            continue
        hats = Hats(
            n_bins, tuple(HatLevel(spacing, _height(n_levels)) for spacing in spacings), CROWDING
        )
        error = hats.variances()[2] * COLUMN_SUM**2 / (n_bins * (n_bins + 1) / 2)
        if best is None or error < best[1]:
            best = hats, error
    if best is None:
        raise RequestError(f"Hats need at least {FEWEST_BINS} bins, got {n_bins}.")
    return best


def _spacings(n_bins: int, n_levels: int, top: int, fine: int) -> list[int] | None:
    """Spacings from about ``top`` hats down to ``fine`` bins; none where levels would not differ
    clearly.
    """
    ratio = (n_bins / top / fine) ** (1 / (n_levels - 1))
    if ratio < SMALLEST_RATIO:
        return None
    return [round(fine * ratio**level) for level in reversed(range(n_levels))]


def _height(n_levels: int) -> int:
    return int(COLUMN_SUM * HEIGHT / (1 + n_levels * HEIGHT))
