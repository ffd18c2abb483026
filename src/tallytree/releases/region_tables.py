"""Arrow tables with a row or more per region, and back: paths of regions, values of attributes, the
table of regions. Tables are streamed: one batch of rows exists at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import VerificationError
from tallytree.model.arrays import IntArray
from tallytree.model.hierarchy import LABELS_AT_ONCE, SEPARATOR, Hierarchy, escape_labels
from tallytree.model.lattice import Lattice
from tallytree.storage.folder import Folder

ROWS_PER_BATCH = 1 << 20


# Rows of a region are neighbours, so a batch names few regions many times: a dictionary per batch,
# kept so in Parquet.
NAME = pa.dictionary(pa.int32(), pa.string())


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


def regions_reader(
    hierarchy: Hierarchy, n_groups: IntArray | None = None, counted: str = "groups"
) -> pa.RecordBatchReader:
    """Level, region, label, parent, and where there are some groups (or what else is ``counted``): one row per region, so that
    regions without rows are not lost.

    Leaves are named batch by batch: of all names together there may be more than of anything else.
    """
    above = _paths_above_leaves(hierarchy)
    last = [] if n_groups is None else [(counted, pa.int64())]
    schema = pa.schema([*list(REGIONS_SCHEMA)[:-1], *last])

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
                *([] if n_groups is None else [pa.array(n_groups[start:stop])]),
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


def hierarchy_of_folder(folder: Folder) -> Hierarchy:
    """The hierarchy that :func:`regions_reader` wrote; paths follow from labels and are not read."""
    level_names = [level["name"] for level in folder.manifest["levels"]]
    regions = folder.table("regions.parquet", columns=("level", "label", "parent"))
    starts = np.searchsorted(regions["level"].to_numpy(), np.arange(len(level_names) + 1)).astype(
        np.int64
    )
    return Hierarchy(
        tuple(level_names),
        starts,
        regions["parent"].to_numpy().astype(np.int64, copy=False),
        np.asarray(regions["label"].to_numpy(), dtype=object),
    )
