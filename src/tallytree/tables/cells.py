"""Released counts: the cells of the regions of each level that have one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tallytree.errors import VerificationError
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.releases.region_tables import (
    NAME,
    ROWS_PER_BATCH,
    attribute_columns,
    names_of_rows,
    path_array,
    region_numbers,
    slots_from_table,
    with_attributes,
)

COUNTS_SCHEMA = pa.schema([("level", pa.int32()), ("region", NAME), ("count", pa.int64())])


@dataclass(frozen=True, eq=False)
class LevelCells:
    """Counts of the regions of one level, those of 0 left out.

    Attributes
    ----------
    cell
        Region within its level times cells, plus cell; rising.
    n
        The counts.
    """

    cell: IntArray
    n: IntArray

    def __post_init__(self) -> None:
        read_only(self.cell)
        read_only(self.n)

    def between(self, first: int, last: int) -> LevelCells:
        """Those of cells ``first:last``."""
        here = slice(*np.searchsorted(self.cell, [first, last]))
        return LevelCells(self.cell[here], self.n[here])

    def equals(self, other: LevelCells) -> bool:
        """Whether both say the same."""
        return np.array_equal(self.cell, other.cell) and np.array_equal(self.n, other.n)


def summed(cell: IntArray, n: IntArray) -> LevelCells:
    """Counts by cell, of counts that may name a cell many times."""
    order = np.argsort(cell, kind="stable")
    cell, n = cell[order], n[order]
    opens = np.ones(len(cell), dtype=bool)
    opens[1:] = cell[1:] != cell[:-1]
    first = np.flatnonzero(opens)
    return LevelCells(cell[first], np.add.reduceat(n, first) if len(first) else n)


def levels_above(hierarchy: Hierarchy, n_cells: int, leaves: LevelCells) -> tuple[LevelCells, ...]:
    """The counts of every level, root first, by adding up those of the leaves."""
    found = [leaves]
    for level in range(hierarchy.n_levels - 1, 0, -1):
        region, cell = np.divmod(found[-1].cell, n_cells)
        parent = hierarchy.parent[hierarchy.level_slice(level)] - hierarchy.level_starts[level - 1]
        found.append(summed(parent[region] * n_cells + cell, found[-1].n))
    return tuple(reversed(found))


def cells_reader(lattice: Lattice, levels: Sequence[LevelCells]) -> pa.RecordBatchReader:
    """Level, region, a column per attribute, count: one row per count, in batches of bounded size."""
    schema = with_attributes(COUNTS_SCHEMA, lattice)
    return pa.RecordBatchReader.from_batches(schema, _batches(lattice, levels, schema))


def _batches(
    lattice: Lattice, levels: Sequence[LevelCells], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    tree, n_cells = lattice.hierarchy, lattice.attributes.n_cells
    paths, slots = path_array(tree), lattice.slots(lattice.finest.margin)
    for level, cells in enumerate(levels):
        own = paths.slice(int(tree.level_starts[level]), tree.level_size(level))
        for start in range(0, len(cells.n), ROWS_PER_BATCH):
            here = slice(start, start + ROWS_PER_BATCH)
            region, cell = np.divmod(cells.cell[here], n_cells)
            first = int(region[0])
            columns = [
                pa.array(np.full(len(region), level, dtype=np.int32)),
                names_of_rows(own, first, region - first),
                *attribute_columns(lattice, slots[cell]),
                pa.array(cells.n[here]),
            ]
            yield pa.record_batch(columns, schema=schema)


def cells_from_parts(lattice: Lattice, parts: Iterable[pa.Table]) -> tuple[LevelCells, ...]:
    """The counts that :func:`cells_reader` wrote; refuses fractions, numbers below 1, unknown
    regions and values, and rows out of order.
    """
    tree, n_cells = lattice.hierarchy, lattice.attributes.n_cells
    paths = path_array(tree)
    cell_of_slot = np.full(lattice.n_slots, -1, dtype=np.int64)
    cell_of_slot[lattice.slots(lattice.finest.margin)] = np.arange(n_cells)
    start, found, counts = 0, [], []
    for part in parts:
        if not len(part):
            continue
        region = region_numbers(paths, part["region"], start)
        start = int(region[-1])
        cell = cell_of_slot[slots_from_table(lattice, part)]
        kind = part.schema.field("count").type
        if not pa.types.is_integer(kind) or part["count"].null_count:
            raise VerificationError("counts.parquet: column 'count' does not hold whole numbers.")
        n = part["count"].to_numpy().astype(np.int64, copy=False)
        levels = tree.level_of[region]
        if np.any(cell < 0) or np.any(n < 1) or np.any(part["level"].to_numpy() != levels):
            raise VerificationError(
                "counts.parquet has a count below 1, one without a value of every attribute, or a "
                "region on another level than its own."
            )
        found.append(region * n_cells + cell)
        counts.append(n)
    place = np.concatenate([np.zeros(0, dtype=np.int64), *found])
    n = np.concatenate([np.zeros(0, dtype=np.int64), *counts])
    if np.any(np.diff(place) <= 0):
        raise VerificationError("counts.parquet has a cell twice, or its rows are out of order.")
    ends = np.searchsorted(place, tree.level_starts * n_cells)
    return tuple(
        LevelCells(place[a:b] - tree.level_starts[level] * n_cells, n[a:b])
        for level, (a, b) in enumerate(itertools.pairwise(ends))
    )
