"""How far may the released numbers be from the truth? Answered from the release alone, by releasing it again.

The released tables are taken for the truth and the mechanism runs on them several times, with rounding, nonnegativity and
consistency and all. How far the copies lie from the released tables tells how far these lie from the truth (a parametric
bootstrap). Nothing confidential is read, so intervals cost no privacy.

For single counts the copies are pooled: among all cells of a level whose *copied* count and size are about the same, the
distribution of (released − copied) stands for that of (truth − released) in cells whose released count and size are like
that. This keeps the skewness that nonnegativity brings, and many cells need few copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import CountsBySize, counts_at
from tallytree.publish.accuracy import data_like
from tallytree.publish.group_sizes import release as release_counts
from tallytree.publish.progress import Progress, silent
from tallytree.release.region import RegionCounts
from tallytree.release.release import CountIntervals, Release

# A pool of fewer cells gives no steady 2.5 % quantile; it borrows from a coarser pool.
_SMALLEST_POOL = 200


@dataclass(frozen=True)
class Interval:
    """An answer with its standard error and interval."""

    value: float
    std_error: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Copies:
    """A release and copies of it, made by releasing it again."""

    release: Release
    copies: tuple[CountsBySize, ...]

    def region(self, path: str) -> tuple[RegionCounts, list[RegionCounts]]:
        """One region in the release, and in every copy."""
        index = self.release.hierarchy.find(path)
        tables = [counts.region(index) for counts in (self.release.counts, *self.copies)]
        released, *copied = (RegionCounts(path, table.size, table.count) for table in tables)
        return released, copied

    def __repr__(self) -> str:
        return f"Copies({len(self.copies)} of {self.release!r})"


def copy_release(release: Release, *, copies: int = 40, seed: int = 0, progress: Progress = silent) -> Copies:
    """Release a release again, as its manifest says it was made.

    The seed only makes intervals repeatable; no privacy depends on it, since a release is public.
    """
    if copies < 2:
        raise RequestError(f"Intervals need at least 2 copies of the release, not {copies}.")
    assumed = data_like(release)
    options = release.manifest["request"]
    made = []
    for number in range(copies):
        progress(number, copies, "simulating the release")
        made.append(release_counts(assumed, insecure_seed=seed + number, **options).counts)
    return Copies(release, tuple(made))


def with_intervals(
    release: Release, *, copies: int = 40, confidence: float = 0.95, progress: Progress = silent
) -> Release:
    """The same release with a standard error and interval beside every count; costs no privacy."""
    made = copy_release(release, copies=copies, progress=progress)
    return replace(release, intervals=count_intervals(made, confidence=confidence))


def count_intervals(copies: Copies, *, confidence: float = 0.95) -> CountIntervals:
    """Standard error and interval of every released count.

    Intervals are whole numbers, at least 0.
    """
    released = copies.release.counts
    samples = [_sample(copies.release, copied, released) for copied in copies.copies]
    classes = np.concatenate([sample[0] for sample in samples])
    errors = np.concatenate([sample[1] for sample in samples])
    own = _classes(copies.release, released)
    low, high, std = _pooled(own, classes, errors, confidence)
    return CountIntervals(
        confidence=confidence,
        std_error=std,
        low=np.maximum(released.count + low, 0),
        high=np.maximum(released.count + high, 0),
    )


def _sample(release: Release, copied: CountsBySize, released: CountsBySize) -> tuple[IntArray, IntArray]:
    """Class and error (released − copied) of every count of a copy."""
    at_release = counts_at(released, copied.region_of_run(), copied.size)
    return _classes(release, copied), at_release - copied.count


def _classes(release: Release, counts: CountsBySize) -> IntArray:
    """Classes of counts, one column per refinement, coarse first: level; magnitude of the count; magnitude of the size."""
    level = release.hierarchy.level_of[counts.region_of_run()]
    magnitude = np.floor(2 * np.log2(counts.count)).astype(np.int64)
    place = np.minimum(counts.size, 8) + np.floor(np.log2(np.maximum(counts.size, 8))).astype(np.int64)
    return np.stack([level, magnitude, place], axis=1)


def _pooled(
    own: IntArray, classes: IntArray, errors: IntArray, confidence: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """For each own class the interval and root mean square of the errors in the finest pool that is large enough."""
    low, high = (np.zeros(len(own), dtype=np.int64) for _ in range(2))
    std = np.full(len(own), np.nan)
    for depth in (3, 2, 1):
        waiting = np.flatnonzero(np.isnan(std))
        pools = _pools(classes[:, :depth], errors)
        wanted, of_wanted = np.unique(own[waiting, :depth], axis=0, return_inverse=True)
        for number, key in enumerate(wanted.tolist()):
            pooled = pools.get(tuple(key))
            if pooled is None or (len(pooled) < _SMALLEST_POOL and depth > 1):
                continue
            cells = waiting[of_wanted.ravel() == number]
            low[cells], high[cells] = whole_interval(pooled, confidence)
            std[cells] = np.sqrt((pooled.astype(np.float64) ** 2).mean())
    return low, high, np.nan_to_num(std)


def _pools(classes: IntArray, errors: IntArray) -> dict[tuple[int, ...], IntArray]:
    """Errors by class."""
    keys, pool = np.unique(classes, axis=0, return_inverse=True)
    order = np.argsort(pool.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(pool.ravel(), minlength=len(keys)))
    return {tuple(key): part for key, part in zip(keys.tolist(), np.split(errors[order], ends[:-1]))}


def whole_interval(errors: IntArray, confidence: float) -> tuple[int, int]:
    """Whole numbers that hold about ``confidence`` of the errors, about as many left out on either side.

    Quantiles of whole numbers hold too many when the errors are small; the ends move inwards while what is then held comes
    closer to ``confidence``.
    """
    values, counts = np.unique(errors, return_counts=True)
    share = counts / counts.sum()
    first, last, held = 0, len(values) - 1, 1.0
    below = above = 0.0
    while first < last:
        from_below = below + share[first] <= above + share[last]
        next_held = held - (share[first] if from_below else share[last])
        if abs(next_held - confidence) >= abs(held - confidence):
            break
        if from_below:
            below += share[first]
            first += 1
        else:
            above += share[last]
            last -= 1
        held = next_held
    return int(values[first]), int(values[last])


def interval(copies: Copies, path: str, ask: Callable[[RegionCounts], float], *, confidence: float = 0.95) -> Interval:
    """An answer about one region, with the spread that the copies show.

    The error of each copy, (copy − release), stands for that of the release; the interval is the answer less its quantiles.
    """
    released, copied = copies.region(path)
    value = float(ask(released))
    errors = np.array([ask(copy) for copy in copied], dtype=np.float64) - value
    tails = (1 - confidence) / 2
    low, high = value - np.quantile(errors, [1 - tails, tails])
    return Interval(value, float(np.sqrt((errors**2).mean())), float(low), float(high))


def cumulative_band(copies: Copies, path: str, *, confidence: float = 0.95) -> tuple[IntArray, FloatArray, FloatArray]:
    """The cumulative curve of a region with a band that holds the whole true curve at once.

    The band is as wide at each size as the copies spread there, times the factor that contains ``confidence`` of the copies'
    curves entirely.
    """
    released, copied = copies.region(path)
    length = max(len(region.counts()) for region in (released, *copied))
    curve = _padded(released, length)
    errors = np.stack([_padded(copy, length) - curve for copy in copied]).astype(np.float64)
    spread = np.maximum(np.sqrt((errors**2).mean(axis=0)), 0.5)
    factor = float(np.quantile((np.abs(errors) / spread).max(axis=1), confidence))
    n_groups = released.n_groups
    return curve, np.clip(curve - factor * spread, 0, n_groups), np.clip(curve + factor * spread, 0, n_groups)


def _padded(region: RegionCounts, length: int) -> IntArray:
    curve = region.cumulative()
    return np.concatenate([curve, np.full(length - len(curve), curve[-1] if len(curve) else 0)])
