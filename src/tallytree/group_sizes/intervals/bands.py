"""Bands: intervals for many numbers of a region that hold all at once, as often as they say.

A band is as wide at each size as the copies spread there, times a factor. For each copy, take the
largest distance from its possible truth in units of the spread of the *other* copies; the truth is
as far from the release as one more pair would be, so the factor is the ⌈confidence · (copies +
1)⌉-th smallest of these distances, the largest where there are too few copies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tallytree.group_sizes.intervals.copies import Copies, public_bounds
from tallytree.group_sizes.intervals.zero_cells import N_PLACES, places_of
from tallytree.group_sizes.release.region import RegionCounts
from tallytree.model.arrays import FloatArray, IntArray

# Whole counts that never moved in the copies may still be off by one half.
_LEAST_SPREAD = 0.5


def cumulative_band(
    copies: Copies, path: str, *, confidence: float = 0.95
) -> tuple[IntArray, FloatArray, FloatArray]:
    """The cumulative curve of a region with a band that holds the whole true curve at once."""
    released, pairs = copies.region(path)
    length = _length(released, pairs)
    curve = _curve(released, length)
    errors = np.stack([_curve(copy, length) - _curve(truth, length) for truth, copy in pairs])
    half = half_widths(errors.astype(np.float64) ** 2, confidence)
    most = public_bounds(copies.release).most_groups[copies.release.hierarchy.find(path)]
    # Whole numbers of groups, and never falling.
    low = np.maximum.accumulate(np.clip(np.ceil(curve - half), 0, most))
    high = np.minimum.accumulate(np.clip(np.floor(curve + half), 0, most)[::-1])[::-1]
    return curve, low, high


def count_band(
    copies: Copies, path: str, *, confidence: float = 0.95, where: Sequence[str] = ()
) -> tuple[IntArray, IntArray, IntArray]:
    """The counts of a region for sizes 0, 1, 2 … with whole intervals that hold all true counts at
    once.

    Sizes of one place share their spread, so that one misplaced group of a rare size does not widen
    everything. Counts beyond the last size have the last interval. Of groups with some values of
    attributes, or of all.
    """
    released, pairs = copies.region(path, where)
    length = _length(released, pairs)
    place = places_of(np.arange(length))
    n_sizes = np.bincount(place, minlength=N_PLACES)
    squares = np.stack(
        [
            (_counts(copy, length) - _counts(truth, length)).astype(np.float64) ** 2
            for truth, copy in pairs
        ]
    )
    of_places = np.stack([np.bincount(place, row, N_PLACES) for row in squares]) / np.maximum(
        n_sizes, 1
    )
    half = half_widths(squares, confidence, smooth=of_places[:, place])
    bounds = public_bounds(copies.release)
    most = np.where(
        np.arange(length) <= bounds.max_size,
        bounds.most_groups[copies.release.hierarchy.find(path)],
        0,
    )
    counts = _counts(released, length)
    low = np.clip(np.ceil(counts - half).astype(np.int64), 0, most)
    return counts, low, np.clip(np.floor(counts + half).astype(np.int64), 0, most)


def half_widths(
    squares: FloatArray, confidence: float, *, smooth: FloatArray | None = None
) -> FloatArray:
    """Half-width of a band per column, from squared errors of each copy; ``smooth`` are those that
    spreads are taken from.
    """
    n_copies = len(squares)
    spreads = squares if smooth is None else smooth
    total = spreads.sum(axis=0)
    of_others = np.maximum((total - spreads) / (n_copies - 1), _LEAST_SPREAD**2)
    distances = np.sort(np.sqrt((squares / of_others).max(axis=1)))
    factor = distances[min(math.ceil(confidence * (n_copies + 1)), n_copies) - 1]
    return np.asarray(factor * np.maximum(np.sqrt(total / n_copies), _LEAST_SPREAD))


def _length(released: RegionCounts, pairs: list[tuple[RegionCounts, RegionCounts]]) -> int:
    return max(
        len(region.counts())
        for region in (released, *(region for pair in pairs for region in pair))
    )


def _counts(region: RegionCounts, length: int) -> IntArray:
    counts = region.counts()
    return np.pad(counts, (0, length - len(counts)))


def _curve(region: RegionCounts, length: int) -> IntArray:
    return np.cumsum(_counts(region, length))
