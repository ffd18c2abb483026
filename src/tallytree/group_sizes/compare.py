"""Two releases of group sizes side by side, or a release and a published table; what is clear of
noise is said in :mod:`tallytree.releases.comparison`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.release.release import Release
from tallytree.group_sizes.release.tables import as_released, sized_columns
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.classes import SizeClasses, SizeNames, SizesUpTo
from tallytree.model.count_of_counts import CountsBySize, counts_at
from tallytree.model.hierarchy import Hierarchy
from tallytree.releases.comparison import (
    COMPOSITION,
    EXACT,
    LEAST_ERROR,
    Comparison,
    changes_of,
    common_regions,
    half_width,
    p_values,
)


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """Numbers that somebody published without noise, to compare a release with: public, unlike
    counts read for a release.

    Attributes
    ----------
    hierarchy, counts, classes
        Regions, counts of all of them, and the classes that sizes are counted in, as in a release.
    """

    hierarchy: Hierarchy
    counts: CountsBySize
    classes: SizeClasses | None = None


def compare_group_sizes(
    first: Release, second: Release | PublishedTable, *, rate: float = 0.05
) -> Comparison:
    """Differences (second − first) of two releases with intervals, or of a release and published
    numbers, where both have a region.
    """
    if isinstance(second, PublishedTable):
        second = replace(second, counts=as_released(second.counts, first.size_names))
    _check_sizes(first, second)
    pairs, left_out = common_regions(first.hierarchy, second.hierarchy)
    region, size = _cells(first, second, pairs)
    ours, theirs = pairs[region, 0], pairs[region, 1]
    one, one_error = _estimates(first, ours, size)
    other, other_error = _estimates(second, theirs, size)
    difference = other - one
    error = np.hypot(one_error, other_error)
    single = isinstance(second, PublishedTable)
    p_value = p_values(difference, error, single=single)
    half = np.ceil(half_width(error, rate, single=single)).astype(np.int64)
    columns = {
        **sized_columns(size, first.size_names),
        "first": one,
        "second": other,
        "difference": difference,
        "std_error": error,
        "low": difference - half,
        "high": difference + half,
    }
    note = EXACT if single else COMPOSITION
    return changes_of(first.hierarchy, ours, columns, p_value, rate, left_out, note)


def _check_sizes(first: Release, second: Release | PublishedTable) -> None:
    """Counts of sizes that do not mean the same are not compared."""
    if first.classes != second.classes:
        raise RequestError("The releases are not counted in the same classes of sizes.")
    if isinstance(second, Release) and first.size_names != second.size_names:
        told = " and ".join(_bound(release.size_names) for release in (first, second))
        raise RequestError(
            f"The releases tell sizes apart up to different bounds ({told}); release both with the "
            "same --max-size to compare them."
        )


def _bound(named: SizeNames | None) -> str:
    return f"{named.last}+" if isinstance(named, SizesUpTo) else "none"


def _cells(
    first: Release, second: Release | PublishedTable, pairs: IntArray
) -> tuple[IntArray, IntArray]:
    """Pair of regions and size of every count that one of the releases has."""
    found = []
    for release, column in ((first, 0), (second, 1)):
        place = np.full(release.hierarchy.n_regions, -1, dtype=np.int64)
        place[pairs[:, column]] = np.arange(len(pairs))
        of_run = place[release.counts.region_of_run()]
        found.append(np.stack([of_run, release.counts.size], axis=1)[of_run >= 0])
    cells = np.unique(np.concatenate(found), axis=0)
    return cells[:, 0], cells[:, 1]


def _estimates(
    release: Release | PublishedTable, region: IntArray, size: IntArray
) -> tuple[IntArray, FloatArray]:
    """Counts with standard errors; a count of 0 has that of its upper end, a published number none."""
    if isinstance(release, PublishedTable):
        return counts_at(release.counts, region, size), np.zeros(len(region))
    found = release.region_intervals
    if found is None:
        raise RequestError(
            "Comparing needs standard errors: give releases with intervals, or say how many copies "
            "to make."
        )
    count = counts_at(release.counts, region, size)
    from scipy.special import ndtri  # loads slowly, and few compare

    width = int(max(release.counts.size.max(initial=0), size.max(initial=0))) + 1
    keys = release.counts.region_of_run() * width + release.counts.size
    at = np.minimum(np.searchsorted(keys, region * width + size), max(len(keys) - 1, 0))
    error = np.where(count > 0, found.std_error[at], 0.0)
    zeros = np.flatnonzero(count == 0)
    levels = release.hierarchy.level_of
    for one in np.unique(region[zeros]):
        here = zeros[region[zeros] == one]
        ends = found.zeros.of(release.counts.region(int(one)), int(levels[one]), size[here])[0]
        error[here] = ends / float(ndtri((1 + found.confidence) / 2))
    return count, np.maximum(error, LEAST_ERROR)
