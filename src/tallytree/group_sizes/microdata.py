"""Synthetic groups and entities whose tables are exactly those of a release: post-processing, and
nobody's data.

Leaf by leaf, a release says how many groups of each size and combination of values there are: so
many rows are written, sizes rising, combinations in the order of their values. Where entities were
counted by class, every group then has as many members as its size says. Classes are dealt by one
rule: the members of all groups of a row of the finest table of people are taken in the order of
their groups, and each class is spread evenly over them, the k-th of n at (k + ½)/n. So every group
has about the mix of its row. Which classes go together in one group was not measured and is not
imitated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tallytree.group_sizes.release.release import Release
from tallytree.group_sizes.release.tables import sized_columns
from tallytree.model.arrays import IntArray
from tallytree.model.attributes import names_beside
from tallytree.model.count_of_counts import CountsBySize
from tallytree.releases.export.files import writing
from tallytree.releases.region_tables import NAME, attribute_columns, path_array

GROUPS_FILE, ENTITIES_FILE, FACTS_FILE = (
    "synthetic_groups.parquet",
    "synthetic_entities.parquet",
    "microdata.json",
)
SYNTHETIC = (
    "Synthetic: made from a differentially private release so that its tables come out. No row is "
    "a real group or entity, and "
    "what the release did not measure (who lives with whom) is not imitated."
)
RULE = (
    "Members of the groups of a row of the finest table of people, in the order of their groups; "
    "each class spread evenly over "
    "them, the k-th of n at (k + 1/2)/n."
)
# Groups and entities that are written in one go; a leaf is never split.
ROWS_PER_PIECE = 1 << 20


@dataclass(frozen=True, eq=False)
class Piece:
    """Some consecutive leaves: their groups, and the classes of the members of these where there
    are classes.

    Attributes
    ----------
    cell
        Leaf and combination of values of each group, as the finest table numbers them.
    size
        Size of each group, or the number of its class of sizes.
    member_of, member_class
        Group of each entity, counted within the piece, and the number of its class; empty without
        classes.
    """

    cell: IntArray
    size: IntArray
    member_of: IntArray
    member_class: IntArray


def write_microdata(release: Release, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write the synthetic files of a release into a folder of their own, in streams, and return it."""
    with writing(out, folder=True, overwrite=overwrite) as place:
        rows = _write_files(release, place)
        facts = {
            "synthetic": True,
            "note": SYNTHETIC,
            **({"rule": RULE} if release.people is not None else {}),
            "rows": rows,
            "privacy": release.manifest["privacy"]["statement"],
            "private": release.manifest["privacy"]["private"],
        }
        (place / FACTS_FILE).write_text(
            json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    return Path(out)


def _write_files(release: Release, place: Path) -> dict[str, int]:
    columns = _Columns(release)
    says = {"tallytree": json.dumps({"synthetic": True, "note": SYNTHETIC})}
    schemas = {GROUPS_FILE: columns.groups.with_metadata(says)}
    if release.people is not None:
        schemas[ENTITIES_FILE] = columns.entities.with_metadata(says)
    files = {name: pq.ParquetWriter(place / name, schema) for name, schema in schemas.items()}
    rows = dict.fromkeys(files, 0)
    try:
        for piece in pieces(release):
            batches = columns.batches(piece, first_group=rows[GROUPS_FILE])
            for (name, file), batch in zip(files.items(), batches):
                file.write_batch(batch)
                rows[name] += batch.num_rows
    finally:
        for file in files.values():
            file.close()
    return rows


def pieces(release: Release) -> Iterator[Piece]:
    """The groups of all leaves with their members, some leaves at a time."""
    lattice = release.lattice
    n_leaves, n_cells = lattice.hierarchy.n_leaves, lattice.attributes.n_cells
    cells = _finest(release)
    work = cells.n_groups()
    if release.people is not None:
        work = work + cells.n_entities()
    upto = np.cumsum(work.reshape(n_leaves, n_cells).sum(axis=1))
    start = 0
    while start < n_leaves:
        done = int(upto[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(upto, done + ROWS_PER_PIECE, side="right")))
        here = slice(start * n_cells, stop * n_cells)
        yield _piece(release, cells.regions(here), here.start)
        start = stop


def _finest(release: Release) -> CountsBySize:
    """Counts by size of every leaf and combination of values."""
    lattice = release.lattice
    if release.margins is None:
        return release.counts.regions(lattice.hierarchy.level_slice(lattice.finest.level))
    return release.margins.at(lattice.rows_in_margins(lattice.finest))


def _piece(release: Release, counts: CountsBySize, first_cell: int) -> Piece:
    cell = np.repeat(counts.region_of_run() + first_cell, counts.count)
    size = np.repeat(counts.size, counts.count)
    nobody = np.zeros(0, dtype=np.int64)
    if release.people is None:
        return Piece(cell, size, nobody, nobody)
    member_of = np.repeat(np.arange(len(size)), size)
    lattice = release.lattice
    row_of_cell = lattice.rows_of_cells(release.people.people.family(lattice))
    return Piece(
        cell, size, member_of, deal_classes(row_of_cell[cell[member_of]], release.people.cells)
    )


def deal_classes(row: IntArray, table: IntArray) -> IntArray:
    """A class for each entity, so many of each as a table has in the entity's row, spread evenly
    over the row's entities.

    Entities of a row may stand anywhere; the rows of ``table`` that they are in have as many
    entities as stand there.
    """
    order = np.argsort(row, kind="stable")
    rows = np.unique(row)
    counts = table[rows]
    n_classes = table.shape[1]
    of_row, of_class = np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), n_classes)
    ends = np.cumsum(counts.ravel())
    rank = np.arange(len(of_row)) - np.repeat(ends - counts.ravel(), counts.ravel())
    spread = (rank + 0.5) / counts[of_row, of_class]
    dealt = np.empty(len(row), dtype=np.int64)
    dealt[order] = of_class[np.lexsort((of_class, spread, of_row))]
    return dealt


class _Columns:
    """The columns of both files, from pieces."""

    def __init__(self, release: Release) -> None:
        self.release, self.lattice = release, release.lattice
        tree = self.lattice.hierarchy
        self.paths = path_array(tree).slice(int(tree.level_starts[-2])).cast(pa.string())
        region = np.arange(tree.n_regions)[tree.level_slice(tree.n_levels - 1)]
        labels: list[Any] = []
        for _ in range(1, tree.n_levels):
            labels.append(pa.array(tree.labels[region], pa.string()).dictionary_encode())
            region = tree.parent[region]
        self.labels = labels[::-1]
        attributes = self.lattice.attributes.names
        classes = () if release.people is None else release.people.people.classes.names
        taken = ("group", "region", "size", "class", *attributes, *classes)
        levels = names_beside(tree.level_names[1:], taken)
        place = [("group", pa.int64()), ("region", NAME)]
        place += [(name, NAME) for name in (*levels, *attributes)]
        sized = [
            ("size", pa.int64()),
            *([("class", NAME)] if release.size_names is not None else []),
        ]
        self.groups = pa.schema([*place, *sized])
        self.entities = pa.schema([*place, *((name, NAME) for name in classes)])

    def batches(self, piece: Piece, *, first_group: int) -> list[pa.RecordBatch]:
        """Groups, then entities where there are classes."""
        number = first_group + np.arange(len(piece.cell))
        sizes = sized_columns(piece.size, self.release.size_names).values()
        found = [
            pa.record_batch(
                [pa.array(number), *self._place(piece.cell), *sizes], schema=self.groups
            )
        ]
        if self.release.people is not None:
            classes = self.release.people.people.classes
            places = np.unravel_index(piece.member_class, classes.shape)
            values = [
                pa.DictionaryArray.from_arrays(each.astype(np.int32), pa.array(known))
                for each, known in zip(places, classes.values)
            ]
            member = piece.member_of
            columns = [pa.array(number[member]), *self._place(piece.cell[member]), *values]
            found.append(pa.record_batch(columns, schema=self.entities))
        return found

    def _place(self, cell: IntArray) -> list[Any]:
        """Region, its labels, and the values of attributes."""
        leaf, combination = np.divmod(cell, self.lattice.attributes.n_cells)
        first = int(leaf.min(initial=0))
        count = int(leaf.max(initial=0)) - first + 1
        region = pa.DictionaryArray.from_arrays(
            (leaf - first).astype(np.int32), self.paths.slice(first, count)
        )
        labels = [column.take(pa.array(leaf)) for column in self.labels]
        slots = self.lattice.slots(self.lattice.finest.margin)[combination]
        return [region, *labels, *attribute_columns(self.lattice, slots)]
