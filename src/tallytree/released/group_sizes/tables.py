"""The Arrow tables of a release, and back. Tables are streamed: only one batch of rows exists at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import VerificationError
from tallytree.measure.noisy import NoisyCounts, NoisyLevel, NoisyQuery
from tallytree.model.arrays import FloatArray, IntArray, offsets_from_lengths
from tallytree.model.classes import SizeClasses
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.hierarchy import SEPARATOR, Hierarchy, escape_labels
from tallytree.planning.group_sizes.plan import Plan

ROWS_PER_BATCH = 1 << 20
# Rows of a region are neighbours, so a batch names few regions many times: a dictionary per batch, kept so in Parquet.
NAME = pa.dictionary(pa.int32(), pa.string())
COUNTS_SCHEMA = pa.schema([("level", pa.int32()), ("region", NAME), ("size", pa.int64()), ("count", pa.int64())])
NOISY_SCHEMA = pa.schema(
    [("level", pa.int32()), ("region", NAME), ("query", NAME), ("index", pa.int64()), ("value", pa.int64())]
)
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
    separator = pa.scalar(SEPARATOR, pa.large_string())
    levels = [own.slice(0, 1)]
    for level in range(1, hierarchy.n_levels):
        here = hierarchy.level_slice(level)
        parents = pa.array(hierarchy.parent[here] - hierarchy.level_starts[level - 1])
        labels = own.slice(here.start, here.stop - here.start)
        levels.append(pc.binary_join_element_wise(levels[-1].take(parents), labels, separator))
    return pa.concat_arrays(levels)


def counts_table(hierarchy: Hierarchy, counts: CountsBySize, classes: SizeClasses | None = None) -> pa.Table:
    """Level, region, size, count: one row per size that a region has; of classes the smallest size, and their name."""
    region = counts.region_of_run()
    return pa.table(
        {
            "level": pa.array(hierarchy.level_of[region].astype(np.int32)),
            "region": path_array(hierarchy).take(pa.array(region)).cast(pa.string()),
            **{name: _text(values) for name, values in sized_columns(counts.size, classes).items()},
            "count": pa.array(counts.count),
        }
    )


def sized_columns(size: IntArray, classes: SizeClasses | None) -> dict[str, pa.Array]:
    """The columns that say which size a row is about: sizes themselves, or the smallest one of a class and its name."""
    if classes is None:
        return {"size": pa.array(size)}
    names = pa.DictionaryArray.from_arrays(size.astype(np.int32), pa.array(classes.labels))
    return {"size": pa.array(classes.low_array[size]), "class": names}


def _text(values: pa.Array) -> pa.Array:
    return values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values


def counts_reader(
    hierarchy: Hierarchy,
    counts: CountsBySize,
    paths: pa.LargeStringArray,
    more: Mapping[str, IntArray | FloatArray] | None = None,
    classes: SizeClasses | None = None,
) -> pa.RecordBatchReader:
    """The rows of :func:`counts_table` in batches of bounded size; ``more`` columns with one value per run may follow."""
    more = more or {}
    first, last = list(COUNTS_SCHEMA)[:-1], list(COUNTS_SCHEMA)[-1:]
    own = [*first, *([] if classes is None else [pa.field("class", NAME)]), *last]
    schema = pa.schema([*own, *(pa.field(name, pa.array(values[:0]).type) for name, values in more.items())])

    def batches() -> Iterator[pa.RecordBatch]:
        for start, stop in _pieces(len(counts.size)):
            first, row_region = _regions_of_rows(counts.offsets, start, stop)
            columns = [
                pa.array(hierarchy.level_of[first + row_region].astype(np.int32)),
                _names(paths, first, row_region),
                *sized_columns(counts.size[start:stop], classes).values(),
                pa.array(counts.count[start:stop]),
                *(pa.array(values[start:stop]) for values in more.values()),
            ]
            yield pa.record_batch(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def regions_reader(hierarchy: Hierarchy, n_groups: IntArray, paths: pa.LargeStringArray) -> pa.RecordBatchReader:
    """Level, region, label, parent, groups: one row per region, so that regions without groups are not lost."""

    def batches() -> Iterator[pa.RecordBatch]:
        for start, stop in _pieces(hierarchy.n_regions):
            columns = [
                pa.array(hierarchy.level_of[start:stop].astype(np.int32)),
                paths.slice(start, stop - start).cast(pa.string()),
                pa.array(hierarchy.labels[start:stop], pa.string()),
                pa.array(hierarchy.parent[start:stop]),
                pa.array(n_groups[start:stop]),
            ]
            yield pa.record_batch(columns, schema=REGIONS_SCHEMA)

    return pa.RecordBatchReader.from_batches(REGIONS_SCHEMA, batches())


def noisy_reader(hierarchy: Hierarchy, noisy: NoisyCounts, paths: pa.LargeStringArray) -> pa.RecordBatchReader:
    """Level, region, query, index, value: every raw measurement, in batches of bounded size."""
    return pa.RecordBatchReader.from_batches(NOISY_SCHEMA, _noisy_batches(hierarchy, noisy, paths))


def _noisy_batches(hierarchy: Hierarchy, noisy: NoisyCounts, paths: pa.LargeStringArray) -> Iterator[pa.RecordBatch]:
    for level in noisy.levels:
        here = hierarchy.level_slice(level.level)
        level_paths = paths.slice(here.start, here.stop - here.start)
        for query in level.queries:
            for start, stop in _pieces(len(query.values)):
                first, row_region = _regions_of_rows(query.offsets, start, stop)
                name = pa.DictionaryArray.from_arrays(np.zeros(stop - start, dtype=np.int32), pa.array([query.name]))
                columns = [
                    pa.array(np.full(stop - start, level.level, dtype=np.int32)),
                    _names(level_paths, first, row_region),
                    name,
                    pa.array(np.arange(start, stop) - query.offsets[first + row_region]),
                    pa.array(query.values[start:stop]),
                ]
                yield pa.record_batch(columns, schema=NOISY_SCHEMA)


def _pieces(n_rows: int) -> Iterator[tuple[int, int]]:
    for start in range(0, n_rows, ROWS_PER_BATCH):
        yield start, min(start + ROWS_PER_BATCH, n_rows)


def _regions_of_rows(offsets: IntArray, start: int, stop: int) -> tuple[int, IntArray]:
    """The first region among rows ``start:stop``, and the region of each row counted from it."""
    first = int(np.searchsorted(offsets, start, side="right")) - 1
    last = int(np.searchsorted(offsets, stop, side="left"))
    bounds: IntArray = np.clip(offsets[first : last + 1], start, stop)
    lengths: IntArray = np.diff(bounds)
    return first, np.repeat(np.arange(last - first, dtype=np.int64), lengths)


def _names(paths: pa.LargeStringArray, first: int, row_region: IntArray) -> pa.DictionaryArray:
    n_regions = int(row_region[-1]) + 1
    names = paths.slice(first, n_regions).cast(pa.string())
    return pa.DictionaryArray.from_arrays(row_region.astype(np.int32), names)


def hierarchy_from_table(regions: pa.Table, level_names: list[str]) -> Hierarchy:
    """The hierarchy that ``regions_reader`` wrote."""
    level = regions["level"].to_numpy()
    starts = np.searchsorted(level, np.arange(len(level_names) + 1)).astype(np.int64)
    return Hierarchy(
        tuple(level_names),
        starts,
        regions["parent"].to_numpy().astype(np.int64),
        np.asarray(regions["label"].to_numpy(), dtype=object),
    )


def regions_from_table(regions: pa.Table, levels: Sequence[Mapping[str, Any]]) -> tuple[Hierarchy, IntArray]:
    """The hierarchy and the numbers of groups that ``regions_reader`` wrote."""
    hierarchy = hierarchy_from_table(regions, [level["name"] for level in levels])
    return hierarchy, regions["groups"].to_numpy().astype(np.int64)


def measured_tables(hierarchy: Hierarchy, noisy: NoisyCounts) -> dict[str, pa.RecordBatchReader]:
    """What was measured, and the regions: enough to estimate the release."""
    paths = path_array(hierarchy)
    return {
        "noisy.parquet": noisy_reader(hierarchy, noisy, paths),
        "regions.parquet": regions_reader(hierarchy, noisy.n_groups, paths),
    }


# What each view asks, in the order of its answers. A question that happened to have no answers leaves no rows.
_QUERIES: dict[str, tuple[str, ...]] = {
    "naive": ("counts",),
    "sizes": ("sizes",),
    "cumulative": ("cumulative",),
    "hybrid": ("cumulative", "tail"),
    "chain": ("chain",),
    "staircase": ("blocks", "block ends", "tail"),
}


def noisy_levels_from_table(hierarchy: Hierarchy, plan: Plan, table: pa.Table) -> tuple[NoisyLevel, ...]:
    """The measurements that ``noisy_reader`` wrote, with the noise that the plan says they have."""
    level, value = (table[name].to_numpy() for name in ("level", "value"))
    query = np.array(table["query"].to_pylist(), dtype=object)
    region = _region_numbers(path_array(hierarchy), table["region"])
    found = []
    for one in plan.levels:
        here = hierarchy.level_slice(one.level)
        rows = np.flatnonzero(level == one.level)
        names = list(dict.fromkeys([*query[rows].tolist(), *(_QUERIES[one.view] if one.query is not None else ())]))
        queries = []
        for name in names:
            noise = plan.first_look if name == "first look" else one.query
            if noise is None:
                raise VerificationError(f"noisy.parquet has answers on {one.name}, where nothing was measured.")
            of_query = rows[query[rows] == name]
            lengths = np.bincount(region[of_query] - here.start, minlength=here.stop - here.start)
            values = value[of_query].astype(np.int64)
            queries.append(NoisyQuery(str(name), noise.noise, offsets_from_lengths(lengths), values))
        found.append(NoisyLevel(one.level, tuple(queries)))
    return tuple(found)


def counts_from_table(hierarchy: Hierarchy, table: pa.Table, classes: SizeClasses | None = None) -> CountsBySize:
    """The counts that ``counts_reader`` wrote; refuses fractions, negative numbers, unknown regions and classes."""
    for column in ("size", "count"):
        kind = table.schema.field(column).type
        if not pa.types.is_integer(kind):
            raise VerificationError(f"counts.parquet: column {column!r} holds {kind}, not integers.")
        if table[column].null_count:
            raise VerificationError(f"counts.parquet: column {column!r} has missing values.")
    region = _region_numbers(path_array(hierarchy), table["region"])
    size, count = (table[column].to_numpy().astype(np.int64, copy=False) for column in ("size", "count"))
    if np.any(count <= 0) or np.any(size < 0):
        raise VerificationError("counts.parquet holds a negative or zero count, or a negative size.")
    if classes is not None:
        number = classes.number(size)
        if np.any(classes.low_array[number] != size):
            raise VerificationError("counts.parquet holds a size that begins none of the classes in the manifest.")
        size = number
    return counts_from_runs(region, size, count, hierarchy.n_regions)


def _region_numbers(paths: pa.LargeStringArray, names: pa.ChunkedArray) -> IntArray:
    """Number of the region that each row names."""
    if names.null_count:
        raise VerificationError("counts.parquet has rows without a region.")
    encoded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    numbers = [np.zeros(0, dtype=np.int64)]
    first = 0
    for chunk in encoded.chunks:
        # A batch may come back in several chunks with the same dictionary.
        found = _neighbours(paths, chunk.dictionary, first)
        if found is None:
            return _looked_up(paths, encoded.unify_dictionaries())
        first = found
        numbers.append(chunk.indices.to_numpy() + np.int64(first))
    return np.concatenate(numbers)


def _neighbours(paths: pa.LargeStringArray, names: pa.Array, start: int) -> int | None:
    """The first of the named regions if they are consecutive from there, as ``counts_reader`` writes them."""
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
        raise VerificationError(f"counts.parquet names a region {unknown!r} that regions.parquet does not have.")
    return found.to_numpy().astype(np.int64)[np.concatenate([chunk.indices.to_numpy() for chunk in names.chunks])]
