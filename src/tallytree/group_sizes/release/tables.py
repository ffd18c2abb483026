"""The Arrow tables of released counts and of regions, and back. Tables are streamed: one batch of
rows exists at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tallytree.errors import VerificationError
from tallytree.model.arrays import AnyArray, FloatArray, IntArray
from tallytree.model.classes import SizeNames, SizesUpTo
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.releases.region_tables import (
    NAME,
    attribute_columns,
    hierarchy_of_folder,
    names_of_rows,
    path_array,
    pieces,
    region_numbers,
    regions_of_rows,
    slots_from_table,
    with_attributes,
)
from tallytree.storage.folder import Folder

COUNTS_SCHEMA = pa.schema(
    [("level", pa.int32()), ("region", NAME), ("size", pa.int64()), ("count", pa.int64())]
)
INTERVAL_COLUMNS = ("std_error", "low", "high")


def counts_table(
    lattice: Lattice,
    counts: CountsBySize,
    by: Sequence[str] = (),
    classes: SizeNames | None = None,
) -> pa.Table:
    """Level, region, size, count: one row per size that a region has; of classes the smallest size,
    and their name. With attributes, a column each after the region.

    ``counts`` are those of every region, or with attributes those of every slot of every region, of
    which all values of some attributes and single values of the others are taken.
    """
    kept = chosen_runs(lattice, counts, by)
    rows, margin = counts.region_of_run()[kept], lattice.attributes.chosen(by)
    region = rows // lattice.n_slots
    hierarchy = lattice.hierarchy
    values = attribute_columns(lattice, rows % lattice.n_slots)
    return pa.table(
        {
            "level": pa.array(hierarchy.level_of[region].astype(np.int32)),
            "region": path_array(hierarchy).take(pa.array(region)).cast(pa.string()),
            **{lattice.attributes.names[place]: _text(values[place]) for place in margin},
            **{
                name: _text(column)
                for name, column in sized_columns(counts.size[kept], classes).items()
            },
            "count": pa.array(counts.count[kept]),
        }
    )


def chosen_runs(lattice: Lattice, counts: CountsBySize, by: Sequence[str] = ()) -> IntArray:
    """The runs of the table by some attributes, among those of every slot of every region."""
    slots = lattice.slots(lattice.attributes.chosen(by))
    return np.flatnonzero(np.isin(counts.region_of_run() % lattice.n_slots, slots))


def sized_columns(size: IntArray, classes: SizeNames | None) -> dict[str, pa.Array]:
    """The columns that say which size a row is about: sizes themselves, or the smallest one of a
    class and its name.
    """
    if classes is None:
        return {"size": pa.array(size)}
    numbers, place = np.unique(size, return_inverse=True)
    labels = pa.array(classes.names(numbers), pa.string())
    names = pa.DictionaryArray.from_arrays(place.astype(np.int32), labels)
    return {"size": pa.array(classes.lowest(size)), "class": names}


def as_released(exact: CountsBySize, classes: SizeNames | None) -> CountsBySize:
    """Exact counts with sizes told apart as in a release: all from a public bound on are one.

    Where sizes are in classes, exact counts were read so.
    """
    return exact.clip(classes.last) if isinstance(classes, SizesUpTo) else exact


def _text(values: pa.Array) -> pa.Array:
    return values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values


def counts_reader(
    lattice: Lattice,
    counts: CountsBySize,
    paths: pa.LargeStringArray,
    more: Mapping[str, IntArray | FloatArray] | None = None,
    classes: SizeNames | None = None,
) -> pa.RecordBatchReader:
    """The counts in batches of bounded size; ``more`` columns with one value per run may follow.

    With attributes they are those of every slot of every region, and null stands for all values of
    an attribute.
    """
    more = more or {}
    own = list(with_attributes(_with_classes(classes), lattice))
    schema = pa.schema(
        [*own, *(pa.field(name, pa.array(values[:0]).type) for name, values in more.items())]
    )
    n_slots = lattice.n_slots

    def batches() -> Iterator[pa.RecordBatch]:
        for start, stop in pieces(len(counts.size)):
            first, rows = regions_of_rows(counts.offsets, start, stop)
            region = (first + rows) // n_slots
            columns = [
                pa.array(lattice.hierarchy.level_of[region].astype(np.int32)),
                names_of_rows(paths, first // n_slots, region - first // n_slots),
                *attribute_columns(lattice, (first + rows) % n_slots),
                *sized_columns(counts.size[start:stop], classes).values(),
                pa.array(counts.count[start:stop]),
                *(pa.array(values[start:stop]) for values in more.values()),
            ]
            yield pa.record_batch(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def cells_table(lattice: Lattice, cell_groups: IntArray, paths: pa.LargeStringArray) -> pa.Table:
    """Region, attributes, groups: one row per leaf and combination of values, those without groups
    included.
    """
    n_cells = lattice.attributes.n_cells
    leaves = paths.slice(int(lattice.hierarchy.level_starts[-2])).cast(pa.string())
    slots = np.tile(lattice.slots(lattice.finest.margin), lattice.hierarchy.n_leaves)
    columns = [column.cast(pa.string()) for column in attribute_columns(lattice, slots)]
    names = dict(zip(lattice.attributes.names, columns))
    region = leaves.take(pa.array(np.repeat(np.arange(lattice.hierarchy.n_leaves), n_cells)))
    return pa.table({"region": region, **names, "groups": pa.array(cell_groups)})


def _with_classes(classes: SizeNames | None) -> pa.Schema:
    """The schema of counts, with the names of classes after the size where it stands for one."""
    if classes is None:
        return COUNTS_SCHEMA
    place = COUNTS_SCHEMA.get_field_index("size") + 1
    return COUNTS_SCHEMA.insert(place, pa.field("class", NAME))


def counts_part(
    level: int,
    counts: CountsBySize,
    paths: pa.LargeStringArray,
    classes: SizeNames | None = None,
) -> pa.RecordBatchReader:
    """Counts of consecutive regions of a level, whose paths are given: a part of the table of
    ``counts_reader``.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        for start, stop in pieces(len(counts.size)):
            first, rows = regions_of_rows(counts.offsets, start, stop)
            columns = [
                pa.array(np.full(stop - start, level, dtype=np.int32)),
                names_of_rows(paths, first, rows),
                *sized_columns(counts.size[start:stop], classes).values(),
                pa.array(counts.count[start:stop]),
            ]
            yield pa.record_batch(columns, schema=schema)

    schema = _with_classes(classes)
    return pa.RecordBatchReader.from_batches(schema, batches())


def regions_of_folder(folder: Folder) -> tuple[Hierarchy, IntArray]:
    """The hierarchy and the numbers of groups that ``regions_reader`` wrote; paths follow from
    labels and are not read.
    """
    hierarchy = hierarchy_of_folder(folder)
    counted = "rows" if "values" in folder.manifest else "groups"
    groups = folder.table("regions.parquet", columns=(counted,))[counted]
    return hierarchy, groups.to_numpy().astype(np.int64, copy=False)


def cell_groups_from_table(lattice: Lattice, table: pa.Table) -> IntArray:
    """The numbers of groups that ``cells_table`` wrote."""
    expected = cells_table(
        lattice,
        np.zeros(lattice.n_rows(lattice.finest), dtype=np.int64),
        path_array(lattice.hierarchy),
    )
    if not table.drop_columns(["groups"]).equals(expected.drop_columns(["groups"])):
        raise VerificationError(
            "cells.parquet does not list every leaf with every combination of values."
        )
    return table["groups"].to_numpy().astype(np.int64)


def counts_from_parts(
    lattice: Lattice, parts: Iterable[pa.Table], classes: SizeNames | None = None
) -> tuple[CountsBySize, dict[str, AnyArray]]:
    """The counts that ``counts_reader`` wrote, from parts of consecutive rows, and the columns with
    one value per run that follow them; refuses fractions, negative numbers, unknown regions and
    classes.
    """
    paths = path_array(lattice.hierarchy)
    start = 0
    found: dict[str, list[AnyArray]] = {"row": [], "size": [], "count": []}
    for part in parts:
        region = region_numbers(paths, part["region"], start)
        start = int(region[-1]) if len(region) else start
        row = region * lattice.n_slots
        if lattice.attributes:
            row += slots_from_table(lattice, part)
        size, count = _sizes_and_counts(part, classes)
        more = {
            name: part[name].to_numpy() for name in INTERVAL_COLUMNS if name in part.column_names
        }
        for name, values in {
            "row": row.astype(np.uint32),
            "size": size,
            "count": count,
            **more,
        }.items():
            found.setdefault(name, []).append(values)
    del paths
    columns = {name: np.concatenate(found.pop(name)) for name in list(found)}
    n_rows = lattice.hierarchy.n_regions * lattice.n_slots
    return counts_from_runs(
        columns.pop("row"), columns.pop("size"), columns.pop("count"), n_rows
    ), columns


def _sizes_and_counts(table: pa.Table, classes: SizeNames | None) -> tuple[IntArray, IntArray]:
    for column in ("size", "count"):
        kind = table.schema.field(column).type
        if not pa.types.is_integer(kind):
            raise VerificationError(
                f"counts.parquet: column {column!r} holds {kind}, not integers."
            )
        if table[column].null_count:
            raise VerificationError(f"counts.parquet: column {column!r} has missing values.")
    size, count = (
        table[column].to_numpy().astype(np.int64, copy=False) for column in ("size", "count")
    )
    if np.any(count <= 0) or np.any(size < 0):
        raise VerificationError(
            "counts.parquet holds a negative or zero count, or a negative size."
        )
    if classes is None:
        return size, count
    number = classes.number(size)
    if np.any(classes.lowest(number) != size):
        raise VerificationError(
            "counts.parquet holds a size that begins none of the classes in the manifest."
        )
    return number, count
