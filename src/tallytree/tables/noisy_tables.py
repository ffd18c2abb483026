"""The Arrow table of what was measured, and back; streamed, one batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import VerificationError
from tallytree.model.arrays import IntArray
from tallytree.releases.region_tables import NAME, ROWS_PER_BATCH, names_of_rows, path_array
from tallytree.storage.folder import Folder
from tallytree.tables.measure import NoisyTable, narrow, widened
from tallytree.tables.plan import TablePlan, query_name

NOISY_SCHEMA = pa.schema(
    [
        ("level", pa.int32()),
        ("region", NAME),
        ("query", NAME),
        ("index", pa.int64()),
        ("value", pa.int64()),
    ]
)


def noisy_reader(plan: TablePlan, noisy: Sequence[NoisyTable]) -> pa.RecordBatchReader:
    """Level, region, query, index, value: every raw measurement, table by table, region by region;
    the index counts the classes of all attributes, the last one running fastest.
    """
    return pa.RecordBatchReader.from_batches(NOISY_SCHEMA, _batches(plan, noisy))


def _batches(plan: TablePlan, noisy: Sequence[NoisyTable]) -> Iterator[pa.RecordBatch]:
    tree = plan.facts.hierarchy
    paths = path_array(tree)
    for table in noisy:
        level = table.key.level
        own = paths.slice(int(tree.level_starts[level]), tree.level_size(level))
        drawn = plan.drawn(table.key.parts)
        n_rows = len(drawn)
        at_once = max(1, ROWS_PER_BATCH // n_rows)
        query = pa.array([query_name(plan, table.key)])
        for first in range(0, len(table.values), at_once):
            values = table.values[first : first + at_once, drawn].ravel()
            region = np.repeat(np.arange(len(values) // n_rows), n_rows)
            columns = [
                pa.array(np.full(len(values), level, dtype=np.int32)),
                names_of_rows(own, first, region),
                pa.DictionaryArray.from_arrays(np.zeros(len(values), dtype=np.int32), query),
                pa.array(np.tile(drawn, len(values) // n_rows)),
                pa.array(values.astype(np.int64)),
            ]
            yield pa.record_batch(columns, schema=NOISY_SCHEMA)


def noisy_from_folder(plan: TablePlan, folder: Folder) -> tuple[NoisyTable, ...]:
    """The answers that :func:`noisy_reader` wrote, a part of the table at a time; refuses any
    others, or others in their place.
    """
    tree = plan.facts.hierarchy
    sizes = [
        (tree.level_size(table.key.level), len(plan.drawn(table.key.parts)))
        for table in plan.tables
    ]
    answers: list[list[IntArray]] = [[] for _ in sizes]
    table, done = 0, 0
    for part in folder.parts("noisy.parquet", names=("region", "query")):
        start = 0
        while start < len(part):
            if table == len(sizes):
                raise VerificationError("noisy.parquet holds more than was planned.")
            n_regions, n_rows = sizes[table]
            taken = part.slice(start, n_regions * n_rows - done)
            answers[table].append(_answers(plan, table, taken, done, n_rows))
            start, done = start + len(taken), done + len(taken)
            if done == n_regions * n_rows:
                table, done = table + 1, 0
    if table < len(sizes):
        raise VerificationError("noisy.parquet lacks answers that were planned.")
    return tuple(
        NoisyTable(
            planned.key,
            widened(plan, planned.key, narrow(np.concatenate(parts)).reshape(size)),
        )
        for planned, parts, size in zip(plan.tables, answers, sizes)
    )


def _answers(plan: TablePlan, table: int, part: pa.Table, first: int, n_rows: int) -> IntArray:
    """Consecutive answers of a planned table, from its answer ``first`` on."""
    key = plan.tables[table].key
    index = plan.drawn(key.parts)[np.arange(first, first + len(part)) % n_rows]
    names = set(pc.unique(part["query"].cast(pa.string())).to_pylist())
    same = (
        names == {query_name(plan, key)}
        and pc.all(pc.equal(part["level"], key.level)).as_py()
        and np.array_equal(part["index"].to_numpy(), index)
    )
    if not same or not pa.types.is_integer(part.schema.field("value").type):
        raise VerificationError("noisy.parquet does not hold the tables that were planned.")
    return narrow(part["value"].to_numpy().astype(np.int64, copy=False))
