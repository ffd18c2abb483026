"""How far may the released numbers be from the truth? Answered from the release alone, by releasing it again.

Possible truths are drawn from the released tables, and the mechanism runs on each of them, with rounding, nonnegativity and
consistency and all. How far the copies lie from the truths they were made of tells how far the release lies from its own (a
parametric bootstrap). Nothing confidential is read, so intervals cost no privacy.

A possible truth gives each group of a leaf a size at random, with the shares that the release has there. The released tables
themselves will not do: mechanisms that average over sizes publish smooth tables, which they reproduce better than rough ones.

For single counts the copies are pooled: among all cells of a level where the copies spread about as much and the *copied*
count is about the same, the distribution of (possible truth − copied) stands for that of (truth − released) in cells that
spread like that and whose released count is like that. This keeps the skewness that nonnegativity brings, and many cells need
few copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import CountsBySize, counts_at, counts_on_all_levels
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.planning.shapes import redrawn
from tallytree.publish.accuracy import data_like
from tallytree.publish.group_sizes import release as release_counts
from tallytree.publish.progress import Progress, silent
from tallytree.release.region import Interval, RegionCounts
from tallytree.release.release import CountIntervals, Release

Numbers = TypeVar("Numbers", IntArray, FloatArray)

# A pool of fewer cells gives no steady 2.5 % quantile; it borrows from a coarser pool.
_SMALLEST_POOL = 200
# Half octaves of a count or a spread: fewer than this many for 64-bit numbers.
_CLASSES = 256
# Whole counts that never moved in the copies may still be off by one half.
_LEAST_SPREAD = 0.5


@dataclass(frozen=True, eq=False)
class Copies:
    """A release, possible truths drawn from it, and a copy made from each by releasing it again."""

    release: Release
    truths: tuple[CountsBySize, ...]
    copies: tuple[CountsBySize, ...]

    def region(self, path: str) -> tuple[RegionCounts, list[tuple[RegionCounts, RegionCounts]]]:
        """One region in the release, and in every possible truth and its copy."""
        index = self.release.hierarchy.find(path)

        def at(counts: CountsBySize) -> RegionCounts:
            table = counts.region(index)
            return RegionCounts(path, table.size, table.count)

        return at(self.release.counts), [(at(truth), at(copy)) for truth, copy in zip(self.truths, self.copies)]

    def __repr__(self) -> str:
        return f"Copies({len(self.copies)} of {self.release!r})"


def copy_release(release: Release, *, copies: int = 40, seed: int = 0, progress: Progress = silent) -> Copies:
    """Release a release again, as its manifest says it was made.

    The seed only makes intervals repeatable; no privacy depends on it, since a release is public.
    """
    if copies < 2:
        raise RequestError(f"Intervals need at least 2 copies of the release, not {copies}.")
    assumed = data_like(release)
    options = ReleaseOptions.told(release.manifest["request"])
    truths, made = [], []
    for number in range(copies):
        progress(number, copies, "simulating the release")
        leaves = redrawn(assumed.leaf_counts, seed=seed + number)
        truths.append(counts_on_all_levels(release.hierarchy, leaves))
        possible = replace(assumed, leaf_counts=leaves)
        made.append(release_counts(possible, replace(options, insecure_seed=seed + number)).counts)
    return Copies(release, tuple(truths), tuple(made))


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
    errors = [_errors(copied, truth) for copied, truth in zip(copies.copies, copies.truths)]
    spread = _spreads(copies, errors)
    samples = [_cells(copies.release, copied, spread) for copied in copies.copies]
    pools = _Cells(*(np.concatenate(column) for column in zip(*samples)))
    low, high, std = _pooled(_cells(copies.release, released, spread), pools, np.concatenate(errors), confidence)
    return CountIntervals(
        confidence=confidence,
        std_error=std,
        low=np.maximum(released.count + low, 0),
        high=np.maximum(released.count + high, 0),
    )


def _errors(copied: CountsBySize, truth: CountsBySize) -> IntArray:
    """Error (truth − copied) of every count of a copy."""
    return counts_at(truth, copied.region_of_run(), copied.size) - copied.count


def _places(size: IntArray) -> IntArray:
    """Sizes up to 16 one by one, larger ones in eight classes per octave."""
    octaves = np.log2(np.maximum(size, 16) / 16)
    return np.minimum(size, 16) + np.floor(8 * octaves).astype(np.int64)


def _spreads(copies: Copies, errors: Sequence[IntArray]) -> FloatArray:
    """Root mean square error of the copies' counts, per level and place of the size."""
    levels = copies.release.hierarchy.n_levels
    squares, cells = np.zeros((2, levels, _CLASSES * 2))
    for copied, error in zip(copies.copies, errors):
        at = copies.release.hierarchy.level_of[copied.region_of_run()], _places(copied.size)
        np.add.at(squares, at, error.astype(np.float64) ** 2)
        np.add.at(cells, at, 1.0)
    return np.sqrt(squares / np.maximum(cells, 1))


class _Cells(NamedTuple):
    """Cells by level, root mean square error of the level's counts of their size (``spread``), and released groups."""

    level: IntArray
    spread: FloatArray
    groups: IntArray

    def by_spread(self) -> IntArray:
        """Classes by level and half octaves of the spread."""
        return self.level * _CLASSES + np.floor(2 * np.log2(self.spread)).astype(np.int64) + 2

    def by_count(self) -> IntArray:
        """The same, and half octaves of the count."""
        return self.by_spread() * _CLASSES + np.floor(2 * np.log2(self.groups)).astype(np.int64)


def _cells(release: Release, counts: CountsBySize, spread: FloatArray) -> _Cells:
    level = release.hierarchy.level_of[counts.region_of_run()]
    return _Cells(level, np.maximum(spread[level, _places(counts.size)], _LEAST_SPREAD), counts.count)


def _pooled(own: _Cells, pools: _Cells, errors: IntArray, confidence: float) -> tuple[IntArray, IntArray, FloatArray]:
    """For each cell the interval and root mean square of the errors in the finest pool that is large enough.

    Where none is, all errors of the level are taken, each in units of the spread at its size.
    """
    low, high = (np.zeros(len(own.groups), dtype=np.int64) for _ in range(2))
    std = np.full(len(own.groups), np.nan)
    for own_class, pool_class in ((own.by_count(), pools.by_count()), (own.by_spread(), pools.by_spread())):
        waiting = np.flatnonzero(np.isnan(std))
        pooled_errors = _pools(pool_class, errors)
        wanted, of_wanted = np.unique(own_class[waiting], return_inverse=True)
        for number, key in enumerate(wanted.tolist()):
            pooled = pooled_errors.get(key)
            if pooled is None or len(pooled) < _SMALLEST_POOL:
                continue
            cells = waiting[of_wanted == number]
            low[cells], high[cells] = whole_interval(pooled, confidence)
            std[cells] = np.sqrt((pooled.astype(np.float64) ** 2).mean())
    tails = (1 - confidence) / 2
    scaled = _pools(pools.level, errors / pools.spread)
    for level in np.unique(own.level[np.isnan(std)]).tolist():
        cells = np.flatnonzero(np.isnan(std) & (own.level == level))
        of_level = scaled.get(level, np.zeros(1))
        ends = np.quantile(of_level, [tails, 1 - tails], method="weibull")[:, None] * own.spread[cells]
        low[cells], high[cells] = np.rint(ends).astype(np.int64)
        std[cells] = np.sqrt((of_level**2).mean()) * own.spread[cells]
    return low, high, std


def _pools(classes: IntArray, errors: Numbers) -> dict[int, Numbers]:
    """Errors by class."""
    order = np.argsort(classes, kind="stable")
    keys, starts = np.unique(classes[order], return_index=True)
    return dict(zip(keys.tolist(), np.split(errors[order], starts[1:])))


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

    The error of each copy, (copy − possible truth), stands for that of the release; the interval is the answer less its
    quantiles.
    """
    released, pairs = copies.region(path)
    value = float(ask(released))
    errors = np.array([ask(copy) - ask(truth) for truth, copy in pairs], dtype=np.float64)
    tails = (1 - confidence) / 2
    # Among one error more than there are copies, as the true one is: rank (copies + 1) · share.
    low, high = value - np.quantile(errors, [1 - tails, tails], method="weibull")
    return Interval(value, float(np.sqrt((errors**2).mean())), float(low), float(high))


def cumulative_band(copies: Copies, path: str, *, confidence: float = 0.95) -> tuple[IntArray, FloatArray, FloatArray]:
    """The cumulative curve of a region with a band that holds the whole true curve at once.

    The band is as wide at each size as the copies spread there, times a factor. For each copy, take the largest distance from
    its possible truth in units of the spread of the *other* copies; the truth is as far from the release as one more pair would
    be, so the factor is the ⌈confidence · (copies + 1)⌉-th smallest of these distances, the largest where there are too few
    copies.
    """
    released, pairs = copies.region(path)
    length = max(len(region.counts()) for region in (released, *(region for pair in pairs for region in pair)))
    curve = _padded(released, length)
    differences = [_padded(copy, length) - _padded(truth, length) for truth, copy in pairs]
    squares = np.stack(differences).astype(np.float64) ** 2
    total = squares.sum(axis=0)
    of_others = np.maximum((total - squares) / (len(pairs) - 1), _LEAST_SPREAD**2)
    distances = np.sort(np.sqrt((squares / of_others).max(axis=1)))
    factor = distances[min(math.ceil(confidence * (len(pairs) + 1)), len(pairs)) - 1]
    half = factor * np.maximum(np.sqrt(total / len(pairs)), _LEAST_SPREAD)
    return curve, np.clip(curve - half, 0, released.n_groups), np.clip(curve + half, 0, released.n_groups)


def _padded(region: RegionCounts, length: int) -> IntArray:
    curve = region.cumulative()
    return np.concatenate([curve, np.full(length - len(curve), curve[-1] if len(curve) else 0)])
