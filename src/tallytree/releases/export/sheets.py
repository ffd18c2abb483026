"""The sheet of each kind of release."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.boxes.release import SpatialRelease
from tallytree.degree_sequences.release import DegreeSequence
from tallytree.group_sizes.release.people import PeopleCounts
from tallytree.group_sizes.release.release import Release
from tallytree.group_sizes.release.tables import path_array, sized_columns
from tallytree.kernels.trees.least_squares import variances_from_below
from tallytree.model.arrays import IntArray
from tallytree.model.bins import Bins
from tallytree.model.classes import SizeClasses, SizeNames
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.ranges.release import RangeHistogram
from tallytree.releases.export.sheet import Codes, Column, Sheet, with_errors
from tallytree.releases.published import Published
from tallytree.streams.release import StreamRelease

READING = (
    "Every number contains noise. Differences smaller than a few standard errors mean nothing."
)
LEVEL = "level"


def group_sizes_sheet(release: Release) -> Sheet:
    """Level, one column per level with the labels as they were given, region (its path),
    attributes, size, count, errors, flag.

    A region above a level has no label there. Counts of 0 are left out, as in the release itself.
    Every table by attributes of groups is there; where one is not by an attribute, its value is
    ``all``.
    """
    hierarchy, counts = release.hierarchy, release.all_counts
    rows, columns, codes = _placed(
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
    about = (*_about(release), "Sizes that a region has no row for have a count of 0.")
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
        _regions(release),
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
    rows, columns, codes = _placed(counted.lattice, region, slot, counted.people.classes.names)
    rows["count"] = pa.array(counted.slots[region, slot])
    columns.append(Column("count", "value", "entities of that class"))
    title = (
        f"Entities by {', '.join(counted.people.classes.names)} of {release.hierarchy.labels[0]}"
    )
    about = (*_about(release), "Classes that a region has no row for have a count of 0.")
    return Sheet("people", title, about, pa.table(rows), tuple(columns), codes, True, (LEVEL,))


def _placed(
    lattice: Lattice, region: IntArray, slot: IntArray, classes: Sequence[str] = ()
) -> tuple[dict[str, Any], list[Column], dict[str, Codes]]:
    """The columns that say where rows lie, and what these may hold: level, one per level, region,
    one per attribute.

    ``slot`` says which values each row is about; attributes named in ``classes`` are of entities,
    all others of groups.
    """
    hierarchy, attributes = lattice.hierarchy, lattice.attributes
    rows: dict[str, Any] = {LEVEL: _level_names(hierarchy).take(pa.array(region))}
    columns = [Column(LEVEL, "label", "name of the region's level")]
    for level, (name, labels) in enumerate(labels_by_level(hierarchy, attributes.names).items()):
        rows[name] = labels.take(pa.array(region))
        columns.append(
            Column(name, "label", f"{hierarchy.level_names[level]} that the region lies in or is")
        )
    paths = path_array(hierarchy).cast(pa.string())
    rows["region"] = pa.DictionaryArray.from_arrays(pa.array(region.astype(np.int32)), paths)
    columns.append(Column("region", "key", "path of the region from the root"))
    codes = {"region": Codes(paths.to_pylist(), hierarchy.labels.tolist(), hierarchy.parent)}
    for name, values, place in zip(attributes.names, attributes.values, lattice.slot_values(slot)):
        known = [_all_of(values), *values]
        rows[name] = pa.DictionaryArray.from_arrays(
            pa.array((place + 1).astype(np.int32)), pa.array(known)
        )
        whose = "entities" if name in classes else "groups"
        columns.append(Column(name, "key", f"{name} of the {whose}, or {known[0]}"))
        codes[name] = Codes(known, known, np.minimum(np.arange(len(known)), 1) - 1)
    return rows, columns, codes


def _all_of(values: Sequence[str]) -> str:
    """What stands for all values of an attribute."""
    return "all" if "all" not in values else "all values"


def _regions(release: Release) -> pa.Table:
    """One row per region: path, path of the region above, level, own label, number of groups."""
    hierarchy = release.hierarchy
    paths = path_array(hierarchy).cast(pa.string())
    above = pa.array(hierarchy.parent, mask=hierarchy.parent < 0)
    return pa.table(
        {
            "region": paths,
            "parent": paths.take(above),
            LEVEL: _level_names(hierarchy).cast(pa.string()),
            "label": pa.array(hierarchy.labels, pa.string()),
            "groups": release.n_groups,
        }
    )


def labels_by_level(
    hierarchy: Hierarchy, names: Sequence[str] = ()
) -> dict[str, pa.DictionaryArray]:
    """Per level, by the name of its column, the label that each region has there; null for regions
    above it.

    ``names`` are those of further columns.
    """
    taken = {
        LEVEL,
        "region",
        "size",
        "class",
        "count",
        "std_error",
        "low",
        "high",
        "reliability",
        *names,
    }
    found = {}
    for level, name in enumerate(hierarchy.level_names):
        here = hierarchy.level_slice(level)
        place = np.full(hierarchy.n_regions, -1, dtype=np.int64)
        place[here] = np.arange(here.stop - here.start)
        for below in range(level + 1, hierarchy.n_levels):
            own = hierarchy.level_slice(below)
            place[own] = place[hierarchy.parent[own]]
        codes = pa.array(place.astype(np.int32), mask=place < 0)
        own_name = name
        while name in taken:
            name += "_"
        if name != own_name:
            warnings.warn(
                f"The level {own_name!r} is in the column {name!r}, since {own_name!r} is a column "
                "of every table.",
                UserWarning,
                stacklevel=2,
            )
        taken.add(name)
        found[name] = pa.DictionaryArray.from_arrays(
            codes, pa.array(hierarchy.labels[here], pa.string())
        )
    return found


def _level_names(hierarchy: Hierarchy) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(hierarchy.level_of.astype(np.int32)), pa.array(hierarchy.level_names, pa.string())
    )


def histogram_sheet(histogram: RangeHistogram) -> Sheet:
    """Bin, where it lies, count, unbiased estimate, standard error, flag."""
    made, bins = histogram.table(), histogram.bins
    rows: dict[str, Any] = {"bin": made["bin"]}
    columns = [Column("bin", "key", "number of the bin")]
    for name, title in (("category", "category"), ("low", "lower edge"), ("high", "upper edge")):
        if name in made.column_names:
            own = name if name == "category" else f"{name}_edge"
            rows[own] = made[name]
            columns.append(Column(own, "label", f"{title} of the bin"))
    rows, columns = _counted(rows, columns, made, np.asarray(made["standard_error"]))
    codes = {"bin": Codes(list(range(bins.n_bins)), _bin_labels(bins))}
    return Sheet(
        "counts",
        f"Histogram of {bins.n_bins:,} bins",
        _about(histogram),
        pa.table(rows),
        tuple(columns),
        codes,
    )


def degrees_sheet(sequence: DegreeSequence) -> Sheet:
    """Degree and how many nodes have it."""
    made = sequence.table()
    columns = (
        Column("degree", "key", "degree of a node"),
        Column("count", "value", "nodes of that degree"),
    )
    degrees = made["degree"].to_pylist()
    codes = {"degree": Codes(degrees, [str(degree) for degree in degrees])}
    about = (*_about(sequence), "Degrees without a row have a count of 0.")
    return Sheet("counts", "Degree sequence", about, made, columns, codes, True)


def stream_sheet(release: StreamRelease) -> Sheet:
    """Step (its number, or its first day), count so far, unbiased estimate, standard error, flag."""
    made = release.table()
    steps = made["step"] if release.steps.every is None else made["step"].cast(pa.string())
    rows, columns = (
        {"step": steps},
        [Column("step", "key", "step after which was counted: its number, or its first day")],
    )
    rows, columns = _counted(rows, columns, made, np.asarray(made["std_error"]))
    names = steps.to_pylist()
    codes = {"step": Codes(names, [str(name) for name in names])}
    about = (*_about(release), "Counts are of all steps so far.")
    return Sheet(
        "counts",
        f"Stream of {release.n_steps:,} steps",
        about,
        pa.table(rows),
        tuple(columns),
        codes,
    )


def map_sheet(release: SpatialRelease) -> Sheet:
    """The boxes that tile the map: number, ends per column, count, unbiased estimate, standard
    error, flag.
    """
    estimates, made = release.estimates, release.table()
    variance = variances_from_below(estimates.variances, estimates.tree.child_starts)
    leaves = np.flatnonzero(estimates.leaves)
    made = made.take(pa.array(leaves))
    rows: dict[str, Any] = {"box": made["node"]}
    columns = [Column("box", "key", "number of the box")]
    for name in release.columns:
        for end, word in (("low", "lower"), ("high", "upper")):
            rows[f"{end}_{name}"] = made[f"{end}_{name}"]
            columns.append(Column(f"{end}_{name}", "label", f"{word} end of the box in {name}"))
    rows, columns = _counted(rows, columns, made, np.sqrt(variance[leaves]))
    ends = [
        (name, np.asarray(rows[f"low_{name}"]), np.asarray(rows[f"high_{name}"]))
        for name in release.columns
    ]
    labels = [
        ", ".join(f"{name} {low[box]:g} to {high[box]:g}" for name, low, high in ends)
        for box in range(len(leaves))
    ]
    codes = {"box": Codes(leaves.tolist(), labels)}
    title = f"Map by {' and '.join(release.columns)}"
    return Sheet(
        "counts", title, (*_about(release), release.note), pa.table(rows), tuple(columns), codes
    )


def _counted(
    rows: dict[str, Any], columns: list[Column], made: pa.Table, std_error: Any
) -> tuple[dict[str, Any], list[Column]]:
    """Count, unbiased estimate and standard error behind the columns that say of what."""
    rows = {**rows, "count": made["count"], "estimate": made["estimate"]}
    columns = [
        *columns,
        Column("count", "value", "published count"),
        Column("estimate", "value", "unbiased estimate behind the count; may be negative"),
    ]
    return with_errors(rows, columns, "count", {"std_error": std_error}, ", of the noise alone")


def _bin_labels(bins: Bins) -> list[str]:
    if bins.categories is not None:
        return list(bins.categories)
    return [f"{low:g} to {high:g}" for low, high in pairwise(bins.edges.tolist())]


def _about(release: Published) -> tuple[str, ...]:
    """What every copy of a release says: the guarantee, or that there is none, and how to read
    numbers.
    """
    privacy = release.manifest["privacy"]
    warning = (
        ()
        if privacy["private"]
        else ("NOT PRIVATE: made with an insecure seed, for tests and experiments only.",)
    )
    return (*warning, privacy["statement"], READING)
