"""The Arrow tables of released counts and of regions, and back. Tables are streamed: one batch of
rows exists at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import VerificationError
from tallytree.model.arrays import AnyArray, FloatArray, IntArray
from tallytree.model.classes import SizeNames, SizesUpTo
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.hierarchy import LABELS_AT_ONCE, SEPARATOR, Hierarchy, escape_labels
from tallytree.model.lattice import Lattice
from tallytree.storage.folder import Folder

ROWS_PER_BATCH = 1 << 20
# Rows of a region are neighbours, so a batch names few regions many times: a dictionary per batch,
# kept so in Parquet.
NAME = pa.dictionary(pa.int32(), pa.string())
COUNTS_SCHEMA = pa.schema(
    [("level", pa.int32()), ("region", NAME), ("size", pa.int64()), ("count", pa.int64())]
)
INTERVAL_COLUMNS = ("std_error", "low", "high")
REGIONS_SCHEMA = pa.schema(
    [
        ("level", pa.int32()),
        ("region", pa.string()),
        ("label", pa.string()),
        ("parent", pa.int64()),
        ("groups", pa.int64()),
    ]
)


def path_array(hierarchy: Hierarchy) -> pa.LargeStringArray:
    """Path of every region, as in ``Hierarchy.paths`` but without a Python object for each."""
    own = pa.array(escape_labels(hierarchy.labels), pa.large_string())
    levels = [own.slice(0, 1)]
    for level in range(1, hierarchy.n_levels):
        here = hierarchy.level_slice(level)
        parents = hierarchy.parent[here] - hierarchy.level_starts[level - 1]
        levels.append(
            paths_below(levels[-1], parents, own.slice(here.start, here.stop - here.start))
        )
    return pa.concat_arrays(levels)


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


def attribute_columns(lattice: Lattice, slots: IntArray) -> list[pa.DictionaryArray]:
    """The value of each attribute at some slots; null for all values."""
    columns = []
    for values, place in zip(lattice.attributes.values, lattice.slot_values(slots)):
        indices = pa.array(place.astype(np.int32), mask=place < 0)
        columns.append(pa.DictionaryArray.from_arrays(indices, pa.array(values)))
    return columns


def with_attributes(schema: pa.Schema, lattice: Lattice) -> pa.Schema:
    """A schema with one column per attribute after that of the region."""
    place = schema.get_field_index("region") + 1
    added = [pa.field(name, NAME) for name in lattice.attributes.names]
    return pa.schema([*list(schema)[:place], *added, *list(schema)[place:]])


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


def regions_reader(
    hierarchy: Hierarchy, n_groups: IntArray, counted: str = "groups"
) -> pa.RecordBatchReader:
    """Level, region, label, parent, groups: one row per region, so that regions without groups are
    not lost. The last column may be called otherwise.

    Leaves are named batch by batch: of all names together there may be more than of anything else.
    """
    above = _paths_above_leaves(hierarchy)
    schema = pa.schema([*list(REGIONS_SCHEMA)[:-1], (counted, pa.int64())])

    def batches() -> Iterator[pa.RecordBatch]:
        for start, stop in pieces(hierarchy.n_regions, LABELS_AT_ONCE):
            parent, labels = hierarchy.parent[start:stop], hierarchy.labels_of(slice(start, stop))
            n_above = max(0, len(above) - start)
            own = pa.array(escape_labels(labels[n_above:]), pa.large_string())
            leaves = paths_below(above, parent[n_above:], own) if len(above) else own
            columns = [
                pa.array(
                    np.searchsorted(hierarchy.level_starts, np.arange(start, stop), "right").astype(
                        np.int32
                    )
                    - 1
                ),
                pa.concat_arrays([above.slice(start, stop - start), leaves]).cast(pa.string()),
                pa.array(labels, pa.string()),
                pa.array(parent),
                pa.array(n_groups[start:stop]),
            ]
            yield pa.record_batch(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _paths_above_leaves(hierarchy: Hierarchy) -> pa.LargeStringArray:
    """Paths of the regions above the last level; none where the root is the only region."""
    return (
        path_array(hierarchy.above_leaves())
        if hierarchy.n_levels > 1
        else pa.array([], pa.large_string())
    )


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


def paths_below(
    above: pa.LargeStringArray, parent: IntArray, labels: pa.LargeStringArray
) -> pa.LargeStringArray:
    """Paths of regions from those of their parents, which ``parent`` numbers, and their own labels,
    made safe.
    """
    return pc.binary_join_element_wise(
        above.take(pa.array(parent)), labels, pa.scalar(SEPARATOR, pa.large_string())
    )


def pieces(n_rows: int, at_once: int | None = None) -> Iterator[tuple[int, int]]:
    """First row and end of each batch of a table."""
    at_once = ROWS_PER_BATCH if at_once is None else at_once
    for start in range(0, n_rows, at_once):
        yield start, min(start + at_once, n_rows)


def regions_of_rows(offsets: IntArray, start: int, stop: int) -> tuple[int, IntArray]:
    """The first region among rows ``start:stop``, and the region of each row counted from it."""
    first = int(np.searchsorted(offsets, start, side="right")) - 1
    last = int(np.searchsorted(offsets, stop, side="left"))
    bounds: IntArray = np.clip(offsets[first : last + 1], start, stop)
    lengths: IntArray = np.diff(bounds)
    return first, np.repeat(np.arange(last - first, dtype=np.int64), lengths)


def names_of_rows(
    paths: pa.LargeStringArray, first: int, row_region: IntArray
) -> pa.DictionaryArray:
    """The path of the region of each row, which is counted from ``first``."""
    n_regions = int(row_region[-1]) + 1
    names = paths.slice(first, n_regions).cast(pa.string())
    return pa.DictionaryArray.from_arrays(row_region.astype(np.int32), names)


def regions_of_folder(folder: Folder) -> tuple[Hierarchy, IntArray]:
    """The hierarchy and the numbers of groups that ``regions_reader`` wrote; paths follow from
    labels and are not read.
    """
    level_names = [level["name"] for level in folder.manifest["levels"]]
    counted = "rows" if "values" in folder.manifest else "groups"
    regions = folder.table("regions.parquet", columns=("level", "label", "parent", counted))
    starts = np.searchsorted(regions["level"].to_numpy(), np.arange(len(level_names) + 1)).astype(
        np.int64
    )
    hierarchy = Hierarchy(
        tuple(level_names),
        starts,
        regions["parent"].to_numpy().astype(np.int64, copy=False),
        np.asarray(regions["label"].to_numpy(), dtype=object),
    )
    return hierarchy, regions[counted].to_numpy().astype(np.int64, copy=False)


def slots_from_table(lattice: Lattice, table: pa.Table) -> IntArray:
    """The slot of each row of a table with one column per attribute, null for all values; refuses
    unknown values.
    """
    slot = np.zeros(len(table), dtype=np.int64)
    for name, values in zip(lattice.attributes.names, lattice.attributes.values):
        if name not in table.column_names:
            raise VerificationError(f"A table of the release lacks the attribute {name!r}.")
        column = table[name].cast(pa.string())
        place = pc.index_in(column, value_set=pa.array(values))
        if place.null_count != column.null_count:
            raise VerificationError(
                f"A table of the release has a value of {name!r} that its manifest does not list."
            )
        slot = slot * (len(values) + 1) + pc.add(pc.fill_null(place, -1), 1).to_numpy().astype(
            np.int64
        )
    return slot


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


def region_numbers(paths: pa.LargeStringArray, names: pa.ChunkedArray, start: int = 0) -> IntArray:
    """Number of the region that each row names; found fastest where they come in order, from
    ``start`` on.
    """
    if names.null_count:
        raise VerificationError("counts.parquet has rows without a region.")
    encoded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    numbers = [np.zeros(0, dtype=np.int64)]
    first = start
    for chunk in encoded.chunks:
        # A batch may come back in several chunks with the same dictionary.
        found = _neighbours(paths, chunk.dictionary, first)
        if found is None:
            return _looked_up(paths, encoded.unify_dictionaries())
        first = found
        numbers.append(chunk.indices.to_numpy() + np.int64(first))
    return np.concatenate(numbers)


def _neighbours(paths: pa.LargeStringArray, names: pa.Array, start: int) -> int | None:
    """The first of the named regions if they are consecutive from there, as ``counts_reader``
    writes them.
    """
    if not len(names):
        return None
    names = names.cast(pa.large_string())
    gap = pc.index(paths.slice(start), names[0]).as_py()
    return start + gap if gap >= 0 and paths.slice(start + gap, len(names)).equals(names) else None


def _looked_up(paths: pa.LargeStringArray, names: pa.ChunkedArray) -> IntArray:
    if not names.num_chunks:
        return np.zeros(0, dtype=np.int64)
    known = names.chunk(0).dictionary.cast(pa.large_string())
    found = pc.index_in(known, value_set=paths)
    if found.null_count:
        unknown = known.filter(pc.is_null(found))[0].as_py()
        raise VerificationError(
            f"counts.parquet names a region {unknown!r} that regions.parquet does not have."
        )
    return found.to_numpy().astype(np.int64)[
        np.concatenate([chunk.indices.to_numpy() for chunk in names.chunks])
    ]
