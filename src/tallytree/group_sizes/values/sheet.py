"""A table of values as flat tables whose columns say what they are, and by region as shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.group_sizes.sheet import region_table
from tallytree.group_sizes.values.release import ValuesRelease
from tallytree.model.arrays import FloatArray
from tallytree.options.exporting import ShapesOptions
from tallytree.releases.export.geographic import Features
from tallytree.releases.export.placed import labels_by_level, placed
from tallytree.releases.export.sheet import Codes, Column, Sheet, about_release, with_errors
from tallytree.shapes.matching import read_shaped_level

_NOTE = "; its interval holds with confidence 0.95"


def values_sheet(release: ValuesRelease) -> Sheet:
    """Level, one column per level, region, attributes, statistic, value, errors, flag; beside it
    the counts by value.
    """
    lattice, own = release.lattice, release.statistics
    n_names = len(own.names)
    known = np.flatnonzero(~np.isnan(own.value.ravel()))
    rows, columns, codes = placed(lattice, *np.divmod(known // n_names, lattice.n_slots), of="rows")
    names = pa.DictionaryArray.from_arrays(
        pa.array((known % n_names).astype(np.int32)), pa.array(own.names)
    )
    rows |= {"statistic": names, "value": own.value.ravel()[known]}
    columns += [
        Column("statistic", "key", f"statistic of {release.scale.name}"),
        Column("value", "value", f"the statistic, of {release.scale.sentence}"),
    ]
    codes["statistic"] = Codes(list(own.names), list(own.names))
    errors = {name: each.ravel()[known] for name, each in own.errors.items()}
    rows, columns = with_errors(rows, columns, "value", errors, _NOTE if errors else "")
    title = f"{release.scale.name} in {release.hierarchy.labels[0]}: statistics"
    return Sheet(
        "statistics",
        title,
        about_release(release),
        pa.table(rows),
        tuple(columns),
        codes,
        partition=("level",),
        regions=region_table(release.in_steps, "rows"),
        beside=(counts_sheet(release),),
    )


def counts_sheet(release: ValuesRelease) -> Sheet:
    """Level, one column per level, region, attributes, value, count."""
    counts, lattice = release.in_steps.all_counts, release.lattice
    rows, columns, codes = placed(
        lattice, *np.divmod(counts.region_of_run(), lattice.n_slots), of="rows"
    )
    values = release.scale.values(counts.size)
    rows |= {"value": values, "count": counts.count}
    columns += [
        Column("value", "key", f"{release.scale.name}, rounded down"),
        Column("count", "value", "rows with that value"),
    ]
    found = np.unique(values).tolist()
    codes["value"] = Codes(found, [str(value) for value in found])
    title = f"{release.scale.name} in {release.hierarchy.labels[0]}: counts by value"
    about = (*about_release(release), "Values that a region has no row for have a count of 0.")
    return Sheet("counts", title, about, pa.table(rows), tuple(columns), codes, True, ("level",))


def values_features(release: ValuesRelease, sheet: Sheet, outlines: ShapesOptions) -> Features:
    """Regions of one level with their outlines and a column per statistic and error, of all rows
    together.
    """
    if outlines.shapes is None:
        raise RequestError(
            "The regions of a release have no shapes of their own: name a file of outlines "
            "(--shapes)."
        )
    shaped = read_shaped_level(outlines, release.hierarchy)
    tree, regions, own = release.hierarchy, shaped.regions, release.statistics
    columns: dict[str, Any] = {"region": pa.array(tree.paths[regions], pa.string())}
    for name, labels in labels_by_level(tree).items():
        if labels.take(pa.array(regions)).null_count == 0:
            columns[name] = labels.take(pa.array(regions)).cast(pa.string())
    rows = regions * release.lattice.n_slots
    for place, name in enumerate(own.names):
        columns[name] = _numbers(own.value[rows, place])
        for error, each in own.errors.items():
            columns[f"{name}_{error}"] = _numbers(each[rows, place])
    return Features(pa.table(columns), shaped.polygons, sheet.about)


def _numbers(values: FloatArray) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))
