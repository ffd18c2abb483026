"""Counts by size for many regions at once, as runs: how many groups of each size a region has.

The three views of kuo2018 §3 convert into one another here without ever expanding groups: ``counts
by size`` (H), ``cumulative`` (H_c: groups of at most each size) and ``sizes`` (H_g: the sorted list
of sizes), the last as runs ``(size, how many groups)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tallytree.errors import InputError
from tallytree.model.arrays import IntArray, offsets_from_lengths, read_only, runs_at
from tallytree.model.hierarchy import Hierarchy

# Runs that are added up together: sorting them takes some 100 MB.
RUNS_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class CountsBySize:
    """Sparse counts by size of several regions: region ``r`` has ``count[i]`` groups of ``size[i]``
    for ``i`` in ``offsets[r]:offsets[r + 1]``, sizes strictly increasing, counts positive.
    """

    offsets: IntArray
    size: IntArray
    count: IntArray

    def __post_init__(self) -> None:
        if (
            self.offsets[0] != 0
            or self.offsets[-1] != len(self.size)
            or len(self.size) != len(self.count)
        ):
            raise InputError(
                "Counts by size need offsets from 0 to the number of runs, and as many sizes as "
                "counts."
            )
        falling = np.any(self.offsets[1:] < self.offsets[:-1])
        if falling or self.count.min(initial=1) <= 0 or self.size.min(initial=0) < 0:
            raise InputError(
                "Counts by size need nondecreasing offsets, sizes of at least 0 and counts of at "
                "least 1."
            )
        rising = self.size[1:] > self.size[:-1]
        opens_region = self.offsets[1:-1]
        rising[opens_region[(opens_region > 0) & (opens_region < len(self.size))] - 1] = True
        if not rising.all():
            raise InputError(
                "Counts by size need sizes in strictly increasing order within each region."
            )
        for array in (self.offsets, self.size, self.count):
            read_only(array)

    @property
    def n_regions(self) -> int:
        """Number of regions."""
        return len(self.offsets) - 1

    def facts(self) -> Iterator[IntArray]:
        """All that there is, in the one order that it has."""
        yield from (self.offsets, self.size, self.count)

    def region(self, region: int) -> CountsBySize:
        """The counts of one region alone."""
        return self.regions(slice(region, region + 1))

    def regions(self, which: slice) -> CountsBySize:
        """The counts of consecutive regions alone."""
        offsets = self.offsets[which.start : which.stop + 1]
        runs = slice(int(offsets[0]), int(offsets[-1]))
        return CountsBySize(offsets - offsets[0], self.size[runs], self.count[runs])

    def at(self, regions: IntArray) -> CountsBySize:
        """The counts of some regions, in this order."""
        offsets, runs = runs_at(self.offsets, regions)
        return CountsBySize(offsets, self.size[runs], self.count[runs])

    def region_of_run(self) -> IntArray:
        """Region of each run."""
        return np.repeat(np.arange(self.n_regions), np.diff(self.offsets))

    def n_groups(self) -> IntArray:
        """Number of groups per region."""
        return sum_runs(self.offsets, self.count)

    def n_entities(self) -> IntArray:
        """Number of entities per region: the sum of all group sizes."""
        return sum_runs(self.offsets, self.size * self.count)

    def largest_size(self) -> IntArray:
        """Largest group size per region, 0 where there are no groups."""
        largest = np.zeros(self.n_regions, dtype=np.int64)
        filled = np.diff(self.offsets) > 0
        largest[filled] = self.size[self.offsets[1:][filled] - 1]
        return largest

    def dense(self, max_size: int) -> IntArray:
        """H for sizes 0 … ``max_size``, one row per region; larger groups count at ``max_size``
        (kuo2018 §4.1).
        """
        table = np.zeros((self.n_regions, max_size + 1), dtype=np.int64)
        np.add.at(table, (self.region_of_run(), np.minimum(self.size, max_size)), self.count)
        return table

    def cumulative(self, max_size: int) -> IntArray:
        """H_c for sizes 0 … ``max_size``, one row per region, from groups clipped at ``max_size``."""
        return np.cumsum(self.dense(max_size), axis=1)

    def clip(self, max_size: int) -> CountsBySize:
        """The same groups with every size above ``max_size`` lowered to it."""
        return counts_from_runs(
            self.region_of_run(), np.minimum(self.size, max_size), self.count, self.n_regions
        )

    def between(self, least: int, most: int | None) -> CountsBySize:
        """The same groups with every size below ``least`` raised to it and every size above
        ``most`` lowered to it; no copy where none is.
        """
        largest = int(self.size.max(initial=0))
        if least <= int(self.size.min(initial=least)) and (most is None or largest <= most):
            return self
        size = np.clip(self.size, least, most)
        return counts_from_runs(self.region_of_run(), size, self.count, self.n_regions)

    def __repr__(self) -> str:
        return f"CountsBySize({self.n_regions:,} regions, {len(self.size):,} runs)"


def sum_runs(offsets: IntArray, values: IntArray) -> IntArray:
    """Sum of consecutive runs of values, 0 for empty runs."""
    sums = np.zeros(len(offsets) - 1, dtype=values.dtype)
    filled = np.flatnonzero(offsets[1:] > offsets[:-1])
    if len(filled):
        sums[filled] = np.add.reduceat(
            values[offsets[0] : offsets[-1]], offsets[filled] - offsets[0]
        )
    return sums


def counts_from_runs(
    region: IntArray, size: IntArray, count: IntArray, n_regions: int
) -> CountsBySize:
    """Counts by size from runs in any order; runs of the same region and size are added, zero
    counts dropped.

    Runs that are in order already, as tables and files hold them, are taken as they are: sorting
    would need room for six times as many numbers.
    """
    if _in_order(region, size) and np.all(count):
        return CountsBySize(
            offsets_from_lengths(np.bincount(region, minlength=n_regions)), size, count
        )
    order = order_of_runs(region, size)
    region, size, count = region[order], size[order], count[order]
    opens = np.ones(len(region), dtype=bool)
    opens[1:] = (region[1:] != region[:-1]) | (size[1:] != size[:-1])
    first = np.flatnonzero(opens)
    if len(first):
        count = np.add.reduceat(count, first)
    region, size = region[first], size[first]
    kept = count != 0
    lengths = np.bincount(region[kept], minlength=n_regions)
    return CountsBySize(offsets_from_lengths(lengths), size[kept], count[kept])


def _in_order(region: IntArray, size: IntArray) -> bool:
    """Whether runs rise by region, and by size within each, none of them twice."""
    if np.any(region[1:] < region[:-1]):
        return False
    rising = size[1:] > size[:-1]
    rising |= region[1:] > region[:-1]
    return bool(rising.all())


def order_of_runs(region: IntArray, size: IntArray) -> IntArray:
    """Order of runs by region, then by size.

    One sort by both at once where they fit 64 bits: it finds the order that runs mostly have
    already, and is about seven times as fast as a sort by one after the other.
    """
    width = int(size.max(initial=0)) + 1
    if int(region.max(initial=0)) < np.iinfo(np.int64).max // width - 1:
        return np.argsort(region * width + size, kind="stable")
    return np.lexsort((size, region))


def counts_from_dense(table: IntArray) -> CountsBySize:
    """Counts by size from H given as one row per region."""
    region, size = np.nonzero(table)
    lengths = np.bincount(region, minlength=len(table))
    return CountsBySize(offsets_from_lengths(lengths), size.astype(np.int64), table[region, size])


def counts_at(counts: CountsBySize, region: IntArray, size: IntArray) -> IntArray:
    """Number of groups of the given sizes in the given regions, one answer per pair, 0 where there
    are none.
    """
    width = int(max(counts.size.max(initial=0), size.max(initial=0))) + 1
    keys = counts.region_of_run() * width + counts.size
    wanted = region * width + size
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    if not len(keys):
        return np.zeros(len(wanted), dtype=np.int64)
    return np.where(keys[place] == wanted, counts.count[place], 0)


def sum_over_regions(counts: CountsBySize, target: IntArray, n_targets: int) -> CountsBySize:
    """Add up the counts of regions that share a target (a parent, say).

    Regions whose targets rise are added up some at a time: sorting needs room for several times as
    many runs.
    """
    if np.any(target[1:] < target[:-1]) or len(counts.size) <= RUNS_AT_ONCE:
        return counts_from_runs(
            target[counts.region_of_run()], counts.size, counts.count, n_targets
        )
    first = np.searchsorted(target, np.arange(n_targets + 1))  # of the regions of each target
    runs = counts.offsets[first]
    parts, start = [], 0
    while start < n_targets:
        stop = int(np.searchsorted(runs, runs[start] + RUNS_AT_ONCE, side="right")) - 1
        stop = min(max(stop, start + 1), n_targets)
        here = slice(int(first[start]), int(first[stop]))
        some = counts.regions(here)
        whose = target[here] - start
        parts.append(
            counts_from_runs(whose[some.region_of_run()], some.size, some.count, stop - start)
        )
        start = stop
    return concatenate(parts)


def counts_by_level(hierarchy: Hierarchy, leaf_counts: CountsBySize) -> list[CountsBySize]:
    """Counts of the regions of every level, added up from the leaves, whose own counts are the
    last.
    """
    levels = [leaf_counts]
    for level in range(hierarchy.n_levels - 1, 0, -1):
        parents = hierarchy.parent[hierarchy.level_slice(level)] - hierarchy.level_starts[level - 1]
        levels.append(sum_over_regions(levels[-1], parents, hierarchy.level_size(level - 1)))
    return levels[::-1]


def counts_on_all_levels(hierarchy: Hierarchy, leaf_counts: CountsBySize) -> CountsBySize:
    """Counts of every region of the hierarchy, in its numbering, added up from the leaves."""
    return concatenate(counts_by_level(hierarchy, leaf_counts))


def concatenate(parts: list[CountsBySize]) -> CountsBySize:
    """Counts of the regions of all parts, one part after the other."""
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return CountsBySize(
        offsets_from_lengths(lengths),
        np.concatenate([part.size for part in parts]),
        np.concatenate([part.count for part in parts]),
    )
