"""Group sizes as flat tables whose columns say what they are, and by region as shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.group_sizes.release.people import PeopleCounts
from tallytree.group_sizes.release.release import Release
from tallytree.group_sizes.release.tables import sized_columns
from tallytree.model.arrays import IntArray
from tallytree.model.classes import SizeClasses, SizeNames
from tallytree.releases.export.files import decoded_type
from tallytree.releases.export.geographic import Features
from tallytree.releases.export.placed import LEVEL, labels_by_level, level_names_of, placed
from tallytree.releases.export.sheet import (
    Codes,
    Column,
    Sheet,
    about_release,
    with_errors,
)
from tallytree.releases.region_tables import path_array
from tallytree.shapes.matching import ShapedLevel

# A table with a column per size is for people who draw; beyond this many columns it serves nobody.
MOST_SIZES = 200


def group_sizes_sheet(release: Release) -> Sheet:
    """Level, one column per level with the labels as they were given, region (its path),
    attributes, size, count, errors, flag.

    A region above a level has no label there. Counts of 0 are left out, as in the release itself.
    Every table by attributes of groups is there; where one is not by an attribute, its value is
    ``all``.
    """
    hierarchy, counts = release.hierarchy, release.all_counts
    rows, columns, codes = placed(
        release.lattice, *np.divmod(counts.region_of_run(), release.lattice.n_slots)
    )
    classes = release.size_names
    rows |= {**sized_columns(counts.size, classes), "count": counts.count}
    what = (
        "entities in a group"
        if classes is None
        else "smallest number of entities in a group of the class"
    )
    columns += [
        Column("size", "key", what),
        *([] if classes is None else [Column("class", "label", "class of sizes")]),
        Column("count", "value", "groups of that size"),
    ]
    intervals = release.intervals
    errors = (
        {}
        if intervals is None
        else {name: getattr(intervals, name) for name in ("std_error", "low", "high")}
    )
    note = (
        ""
        if intervals is None
        else f"; its interval holds with confidence {intervals.confidence:g}"
    )
    rows, columns = with_errors(rows, columns, "count", errors, note)
    codes["size"] = _sizes(np.unique(counts.size), classes)
    title = f"Group sizes of {hierarchy.labels[0]}"
    about = (*about_release(release), "Sizes that a region has no row for have a count of 0.")
    beside = () if release.people is None else (people_sheet(release, release.people),)
    return Sheet(
        "counts",
        title,
        about,
        pa.table(rows),
        tuple(columns),
        codes,
        True,
        (LEVEL,),
        region_table(release),
        beside,
    )


def _sizes(found: IntArray, classes: SizeNames | None) -> Codes:
    """Sizes that occur, or all classes, with their names."""
    if classes is None:
        return Codes(found.tolist(), [str(size) for size in found.tolist()])
    numbers = np.arange(classes.n_classes) if isinstance(classes, SizeClasses) else found
    return Codes(classes.lowest(numbers).tolist(), classes.names(numbers))


def people_sheet(release: Release, counted: PeopleCounts) -> Sheet:
    """Level, one column per level, region, attributes of groups, classes of entities, count; as for
    group sizes.
    """
    region, slot = np.nonzero(counted.slots)
    rows, columns, codes = placed(counted.lattice, region, slot, counted.people.classes.names)
    rows["count"] = pa.array(counted.slots[region, slot])
    columns.append(Column("count", "value", "entities of that class"))
    title = (
        f"Entities by {', '.join(counted.people.classes.names)} of {release.hierarchy.labels[0]}"
    )
    about = (*about_release(release), "Classes that a region has no row for have a count of 0.")
    return Sheet("people", title, about, pa.table(rows), tuple(columns), codes, True, (LEVEL,))


def region_table(release: Release, counted: str = "groups") -> pa.Table:
    """One row per region: path, path of the region above, level, own label, number of groups
    (or of what else is ``counted``).
    """
    hierarchy = release.hierarchy
    paths = path_array(hierarchy).cast(pa.string())
    above = pa.array(hierarchy.parent, mask=hierarchy.parent < 0)
    return pa.table(
        {
            "region": paths,
            "parent": paths.take(above),
            LEVEL: level_names_of(hierarchy).cast(pa.string()),
            "label": pa.array(hierarchy.labels, pa.string()),
            counted: release.n_groups,
        }
    )


def region_features(release: Release, sheet: Sheet, shaped: ShapedLevel) -> Features:
    """One row per region: its path, its labels, groups, and per size its count, standard error and
    flag.
    """
    tree, regions = release.hierarchy, shaped.regions
    sizes = np.array(sheet.codes["size"].values)
    if len(sizes) > MOST_SIZES:
        raise RequestError(
            f"The release has {len(sizes):,} sizes, a column each here; at most {MOST_SIZES} make "
            "a map. Release classes "
            "(--classes), or join csv with the outlines by region."
        )
    columns: dict[str, Any] = {"region": pa.array(tree.paths[regions], pa.string())}
    for name, labels in labels_by_level(tree).items():
        if labels.take(pa.array(regions)).null_count == 0:
            columns[name] = labels.take(pa.array(regions)).cast(pa.string())
    columns["groups"] = release.counts.n_groups()[regions]
    row = np.full(tree.n_regions, -1, dtype=np.int64)
    row[regions] = np.arange(len(regions))
    of_run = row[release.counts.region_of_run()]
    kept = np.flatnonzero(of_run >= 0)
    size = np.searchsorted(sizes, np.asarray(sheet.table["size"])[kept])
    for name in sheet.names("value", "error", "flag"):
        values = np.full((len(sizes), len(regions)), 0 if name == "count" else None, dtype=object)
        values[size, of_run[kept]] = np.array(sheet.table[name].to_pylist(), dtype=object)[kept]
        for place, number in enumerate(sheet.codes["size"].labels):
            columns[f"{name}_{number}"] = pa.array(
                values[place].tolist(), decoded_type(sheet.table[name].type)
            )
    return Features(pa.table(columns), shaped.polygons, sheet.about)
