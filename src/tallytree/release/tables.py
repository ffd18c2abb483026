"""The Arrow tables of a release, and back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tallytree.errors import VerificationError
from tallytree.measure.noisy import NoisyCounts
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.hierarchy import Hierarchy

ROWS_PER_BATCH = 1 << 20
NOISY_SCHEMA = pa.schema(
    [
        ("level", pa.int32()),
        ("region", pa.string()),
        ("query", pa.string()),
        ("index", pa.int64()),
        ("value", pa.int64()),
    ]
)


def counts_table(hierarchy: Hierarchy, counts: CountsBySize) -> pa.Table:
    """Level, region, size, count: one row per size that a region has."""
    region = counts.region_of_run()
    paths = pa.array(hierarchy.paths, pa.string())
    return pa.table(
        {
            "level": pa.array(hierarchy.level_of[region].astype(np.int32)),
            "region": paths.take(pa.array(region)),
            "size": pa.array(counts.size),
            "count": pa.array(counts.count),
        }
    )


def regions_table(hierarchy: Hierarchy, n_groups: IntArray) -> pa.Table:
    """Level, region, label, parent, groups: one row per region, so that regions without groups are not lost."""
    paths = pa.array(hierarchy.paths, pa.string())
    return pa.table(
        {
            "level": pa.array(hierarchy.level_of.astype(np.int32)),
            "region": paths,
            "label": pa.array(hierarchy.labels, pa.string()),
            "parent": pa.array(hierarchy.parent),
            "groups": pa.array(n_groups),
        }
    )


def noisy_reader(hierarchy: Hierarchy, noisy: NoisyCounts) -> pa.RecordBatchReader:
    """Level, region, query, index, value: every raw measurement, in batches of bounded size."""
    return pa.RecordBatchReader.from_batches(NOISY_SCHEMA, _noisy_batches(hierarchy, noisy))


def _noisy_batches(hierarchy: Hierarchy, noisy: NoisyCounts) -> Iterator[pa.RecordBatch]:
    for level in noisy.levels:
        paths = pa.array(hierarchy.paths[hierarchy.level_slice(level.level)], pa.string())
        for query in level.queries:
            for start in range(0, len(query.values), ROWS_PER_BATCH):
                rows = np.arange(start, min(start + ROWS_PER_BATCH, len(query.values)))
                region = np.searchsorted(query.offsets, rows, side="right") - 1
                yield pa.record_batch(
                    [
                        pa.array(np.full(len(rows), level.level, dtype=np.int32)),
                        paths.take(pa.array(region)),
                        pa.array([query.name], pa.string()).take(pa.array(np.zeros(len(rows), dtype=np.int64))),
                        pa.array(rows - query.offsets[region]),
                        pa.array(query.values[rows]),
                    ],
                    schema=NOISY_SCHEMA,
                )


def hierarchy_from_table(regions: pa.Table, level_names: list[str]) -> Hierarchy:
    """The hierarchy that ``regions_table`` wrote."""
    level = regions["level"].to_numpy()
    starts = np.searchsorted(level, np.arange(len(level_names) + 1)).astype(np.int64)
    return Hierarchy(
        tuple(level_names),
        starts,
        regions["parent"].to_numpy().astype(np.int64),
        np.array(regions["label"].to_pylist(), dtype=object),
    )


def counts_from_table(hierarchy: Hierarchy, table: pa.Table) -> CountsBySize:
    """The counts that ``counts_table`` wrote; refuses fractions, negative numbers and unknown regions."""
    for column in ("size", "count"):
        if not pa.types.is_integer(table.schema.field(column).type):
            raise VerificationError(
                f"counts.parquet: column {column!r} holds {table.schema.field(column).type}, not integers."
            )
    names = table["region"].combine_chunks().dictionary_encode()
    if isinstance(names, pa.ChunkedArray):
        names = names.combine_chunks()
    region_of_name = np.array([hierarchy.find(path) for path in names.dictionary.to_pylist()], dtype=np.int64)
    region = region_of_name[names.indices.to_numpy()] if len(names) else np.zeros(0, dtype=np.int64)
    size, count = (table[column].to_numpy().astype(np.int64) for column in ("size", "count"))
    if np.any(count <= 0) or np.any(size < 0):
        raise VerificationError("counts.parquet holds a negative or zero count, or a negative size.")
    return counts_from_runs(region, size, count, hierarchy.n_regions)
