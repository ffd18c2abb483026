"""How far may the released counts be from the truth? Answered from the release alone, by releasing
it again.

How far copies lie from the possible truths they were made of tells how far the release lies from
its own truth (a parametric bootstrap; see :mod:`tallytree.group_sizes.intervals.copies`).

For single counts the copies are pooled: among all cells of a level where the copies spread about as
much and the *copied* count is about the same, the distribution of (possible truth − copied) stands
for that of (truth − released) in cells that spread like that and whose released count is like that.
This keeps the skewness that nonnegativity brings, and many cells need few copies. Counts that are 0
have an upper end by the same rule: how often did a copy with 0 come from a truth with more?

No interval leaves what is public: see
:class:`~tallytree.group_sizes.intervals.copies.PublicBounds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from tallytree.group_sizes.intervals.copies import UNKNOWN, Copies, copy_release, public_bounds
from tallytree.group_sizes.intervals.total_ends import NO_ENDS, TotalEnds
from tallytree.group_sizes.intervals.zero_cells import (
    N_PLACES,
    REACHES,
    ZeroEnds,
    first_sizes,
    groups_per_size,
    places_of,
)
from tallytree.group_sizes.release.release import CountIntervals, Release
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import CountsBySize, counts_at
from tallytree.model.lattice import Lattice
from tallytree.releases.progress import Progress, silent

Numbers = TypeVar("Numbers", IntArray, FloatArray)

# A pool of fewer cells gives no steady 2.5 % quantile; it borrows from a coarser pool.
_SMALLEST_POOL = 200
# Half octaves of a count or a spread: fewer than this many for 64-bit numbers.
_CLASSES = 256
# Whole counts that never moved in the copies may still be off by one half.
_LEAST_SPREAD = 0.5
# Octaves of groups per size around a count that is 0: class 0 is below 2^-20, class c from 2^(c -
# 21) on.
_LEAST_OCTAVE, _DENSITIES = -20, 84
# Regions × places that are looked at in one go.
_CELLS_PER_BLOCK = 1 << 22


def with_intervals(
    release: Release, *, copies: int = 40, confidence: float = 0.95, progress: Progress = silent
) -> Release:
    """The same release with a standard error and interval beside every count; costs no privacy.

    Examples
    --------
    >>> tt.with_intervals(release, copies=2).table().column_names[-3:]
    ['std_error', 'low', 'high']
    """
    made = copy_release(release, copies=copies, progress=progress)
    return replace(release, intervals=count_intervals(made, confidence=confidence))


def count_intervals(copies: Copies, *, confidence: float = 0.95) -> CountIntervals:
    """Standard error and interval of every released count, and upper ends of counts that are 0.

    Intervals are whole numbers from 0 to the region's number of groups where that is public. With
    attributes, of every row of every table by them; counts are pooled within each table.
    """
    release, bounds = copies.release, public_bounds(copies.release)
    released = release.counts if release.margins is None else release.margins
    errors = [_errors(copied, truth) for copied, truth in zip(copies.copies, copies.truths)]
    spread = _spreads(copies, errors)
    samples = [_cells(release, copied, spread) for copied in copies.copies]
    pools = _Cells(*(np.concatenate(column) for column in zip(*samples)))
    low, high, std = _pooled(
        _cells(release, released, spread), pools, np.concatenate(errors), confidence
    )
    groups = bounds.most_groups
    if (
        release.margins is not None
    ):  # public numbers of groups are those of every combination of values
        known = release.manifest["totals"]["source"] == "public"
        groups = released.n_groups() if known else np.full(released.n_regions, UNKNOWN)
    most = np.where(released.size <= bounds.max_size, groups[released.region_of_run()], 0)
    return CountIntervals(
        confidence=confidence,
        std_error=std,
        low=np.clip(released.count + low, 0, most),
        high=np.clip(released.count + high, 0, most),
        zeros=zero_ends(copies, confidence=confidence),
        totals=NO_ENDS
        if copies.release.size_names is not None
        else total_ends(copies, confidence=confidence),
    )


def total_ends(copies: Copies, *, confidence: float = 0.95) -> TotalEnds:
    """How far numbers of entities may be off, by level and octaves of the number of groups.

    Of regions of a level with about as many groups the errors of all copies are pooled, from as
    many octaves beside as hold enough regions.
    """
    groups = np.concatenate([copied.n_groups() for copied in copies.copies])
    octave = np.floor(np.log2(np.maximum(groups, 1))).astype(np.int64)
    errors = np.concatenate(
        [
            _entities(truth) - _entities(copied)
            for truth, copied in zip(copies.truths, copies.copies)
        ]
    )
    # Tables of regions come first; those by attributes, which follow, have no totals of their own.
    level = np.tile(table_of_rows(copies.release.lattice), len(copies.copies))
    steps = []
    for number in range(copies.release.hierarchy.n_levels):
        here = level == number
        steps.append(_total_steps(octave[here], errors[here], confidence))
    return TotalEnds(tuple(steps))


def _entities(counts: CountsBySize) -> IntArray:
    """Number of entities of every region."""
    weights = counts.size.astype(np.float64) * counts.count
    return np.rint(np.bincount(counts.region_of_run(), weights, counts.n_regions)).astype(np.int64)


def _total_steps(
    octave: IntArray, errors: IntArray, confidence: float
) -> tuple[tuple[int, int, int], ...]:
    found: list[tuple[int, int, int]] = []
    for own in np.unique(octave).tolist():
        width = 0
        near = octave == own
        while near.sum() < min(_SMALLEST_POOL, len(octave)):
            width += 1
            near = np.abs(octave - own) <= width
        low, high = whole_interval(errors[near], confidence)
        low, high = (
            min(low, 0),
            max(high, 0),
        )  # an interval without its own figure helps nobody who reads it
        if not found or found[-1][1:] != (low, high):
            found.append((0 if not found else 2**own, low, high))
    return tuple(found)


def _errors(copied: CountsBySize, truth: CountsBySize) -> IntArray:
    """Error (truth − copied) of every count of a copy."""
    return counts_at(truth, copied.region_of_run(), copied.size) - copied.count


def _spreads(copies: Copies, errors: Sequence[IntArray]) -> FloatArray:
    """Root mean square error of the copies' counts, per table and place of the size."""
    table_of = table_of_rows(copies.release.lattice)
    squares, cells = np.zeros((2, int(table_of.max()) + 1, N_PLACES))
    for copied, error in zip(copies.copies, errors):
        at = table_of[copied.region_of_run()], places_of(copied.size)
        np.add.at(squares, at, error.astype(np.float64) ** 2)
        np.add.at(cells, at, 1.0)
    return np.sqrt(squares / np.maximum(cells, 1))


def table_of_rows(lattice: Lattice) -> IntArray:
    """The table of each row that releases and copies hold: the level of a region, or with
    attributes the number of its family, of which those without attributes come first.
    """
    found = np.empty(lattice.hierarchy.n_regions * lattice.n_slots, dtype=np.int64)
    for number, family in enumerate(lattice.families):
        found[lattice.rows_in_margins(family)] = number
    return found


class _Cells(NamedTuple):
    """Cells by level or table by attributes, root mean square error of its counts of their size
    (``spread``), and released groups.
    """

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
    level = table_of_rows(release.lattice)[counts.region_of_run()]
    return _Cells(
        level, np.maximum(spread[level, places_of(counts.size)], _LEAST_SPREAD), counts.count
    )


def _pooled(
    own: _Cells, pools: _Cells, errors: IntArray, confidence: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """For each cell the interval and root mean square of the errors in the finest pool that is
    large enough.

    Where none is, all errors of the level are taken, each in units of the spread at its size.
    """
    low, high = (np.zeros(len(own.groups), dtype=np.int64) for _ in range(2))
    std = np.full(len(own.groups), np.nan)
    for own_class, pool_class in (
        (own.by_count(), pools.by_count()),
        (own.by_spread(), pools.by_spread()),
    ):
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
        ends = (
            np.quantile(of_level, [tails, 1 - tails], method="weibull")[:, None] * own.spread[cells]
        )
        low[cells], high[cells] = np.rint(ends).astype(np.int64)
        std[cells] = np.sqrt((of_level**2).mean()) * own.spread[cells]
    return low, high, std


def _pools(classes: IntArray, errors: Numbers) -> dict[int, Numbers]:
    """Errors by class."""
    order = np.argsort(classes, kind="stable")
    keys, starts = np.unique(classes[order], return_index=True)
    return dict(zip(keys.tolist(), np.split(errors[order], starts[1:])))


def whole_interval(errors: IntArray, confidence: float) -> tuple[int, int]:
    """Whole numbers that hold about ``confidence`` of the errors, about as many left out on either
    side.

    Quantiles of whole numbers hold too many when the errors are small; the ends move inwards while
    what is then held comes closer to ``confidence``.
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


def zero_ends(copies: Copies, *, confidence: float = 0.95) -> ZeroEnds:
    """Upper ends of counts that were released as 0, by level (or table) and by the groups per size
    around them.

    Of the zero counts of all copies that are alike, at least ``confidence`` come from possible
    truths of at most the end.
    """
    lattice = copies.release.lattice
    pairs = list(zip(copies.truths, copies.copies))
    largest = max(int(table.size.max(initial=0)) for pair in pairs for table in pair)
    n_places = int(places_of(np.array([largest]))[0]) + 1 + max(REACHES)
    ends = []
    for family in lattice.families:
        zeros = np.zeros(len(REACHES) * _DENSITIES)
        above: list[IntArray] = [np.zeros((2, 0), dtype=np.int64)]
        for rows in _blocks(lattice.rows_in_margins(family), n_places):
            for truth, copied in pairs:
                of_block, classes, counts = _zero_cells(truth.at(rows), copied.at(rows), n_places)
                zeros += of_block
                above.append(np.stack([classes, counts]))
        missed, counts = np.concatenate(above, axis=1)
        steps = []
        for number, of_reach in enumerate(np.split(zeros, len(REACHES))):
            own = missed // _DENSITIES == number
            steps.append(_steps(of_reach, missed[own] % _DENSITIES, counts[own], confidence))
        ends.append(tuple(steps))
    return ZeroEnds(tuple(ends))


def _blocks(rows: IntArray, n_places: int) -> Iterator[IntArray]:
    at_once = max(1, _CELLS_PER_BLOCK // n_places)
    for start in range(0, len(rows), at_once):
        yield rows[start : start + at_once]


def _zero_cells(
    truth: CountsBySize, copied: CountsBySize, n_places: int
) -> tuple[FloatArray, IntArray, IntArray]:
    """Number of zero counts of a copy per class; and of those whose possible truth is above 0,
    classes and true counts.
    """
    near, wide = (groups_per_size(copied, np.arange(n_places), reach) for reach in REACHES)
    density = np.where(near > 0, near, wide)
    octave = np.floor(np.log2(np.maximum(density, 2.0 ** (_LEAST_OCTAVE - 1)))).astype(np.int64)
    classes = octave - _LEAST_OCTAVE + 1 + np.where(near > 0, 0, _DENSITIES)
    cells = np.tile(np.diff(first_sizes(n_places)), (copied.n_regions, 1))
    np.subtract.at(cells, (copied.region_of_run(), places_of(copied.size)), 1)
    region = truth.region_of_run()
    missed = counts_at(copied, region, truth.size) == 0
    of_missed = classes[region[missed], places_of(truth.size[missed])]
    zeros = np.bincount(classes.ravel(), cells.ravel(), len(REACHES) * _DENSITIES).astype(
        np.float64
    )
    return zeros, of_missed, truth.count[missed]


def _steps(
    zeros: FloatArray, classes: IntArray, counts: IntArray, confidence: float
) -> tuple[tuple[float, int], ...]:
    """Upper end per class, from as many classes beside it as hold enough cells; neighbours with the
    same end as one step.
    """
    seen = np.flatnonzero(zeros)
    steps: list[tuple[float, int]] = [(0.0, 0)]
    for density in range(int(seen[-1]) + 1 if len(seen) else 0):
        width = 0
        while (
            zeros[max(density - width, 0) : density + width + 1].sum() < _SMALLEST_POOL
            and width < _DENSITIES
        ):
            width += 1
        pooled = np.sort(counts[np.abs(classes - density) <= width])
        n_cells = zeros[max(density - width, 0) : density + width + 1].sum()
        # As many cells may lie above the end as the confidence leaves out.
        n_above = int((1 - confidence) * n_cells + 1e-9)
        high = 0 if n_above >= len(pooled) else int(pooled[len(pooled) - n_above - 1])
        if density == 0:
            steps = [(0.0, high)]
        elif high != steps[-1][1]:
            steps.append((2.0 ** (density - 1 + _LEAST_OCTAVE), high))
    return tuple(steps)
