"""Released people: how many entities of each class every region has, by attributes of their groups
where asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError, VerificationError
from tallytree.group_sizes.release.region import Interval, disjoint_regions, slot_of
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.lattice import Lattice
from tallytree.model.people import People
from tallytree.releases.checks import Check, where_wrong
from tallytree.releases.questions import Question, Reply
from tallytree.releases.region_tables import (
    NAME,
    attribute_columns,
    path_array,
    region_numbers,
    slots_from_table,
)

PEOPLE_FILE = "people.parquet"


@dataclass(frozen=True, eq=False)
class PeopleCounts:
    """Entities by class, of every region and combination of values.

    Attributes
    ----------
    people
        The classes, and the attributes of groups beside them.
    groups
        The tables of groups by all attributes.
    slots
        Entities of every slot of every region: each value of each attribute and class, or all
        values. One row per region.
    """

    people: People
    groups: Lattice
    slots: IntArray

    @property
    def lattice(self) -> Lattice:
        """All tables of people: levels by subsets of attributes and classes."""
        return self.people.tables(self.groups)

    @cached_property
    def cells(self) -> IntArray:
        """Entities of the finest cells: leaf by leaf, a row per combination of values and a column
        per class.
        """
        found = self.slots.ravel()[self.lattice.rows_in_margins(self.lattice.finest)]
        return found.reshape(-1, self.people.classes.n_cells)

    def of(self, paths: Sequence[str], where: Sequence[str] = ()) -> int:
        """Entities of some regions together, of groups and classes with some values
        (``["tenure=rented", "age=child"]``).
        """
        slot = slot_of(self.lattice.attributes, where)
        return int(self.slots[disjoint_regions(self.groups.hierarchy, paths), slot].sum())

    def by_class(
        self, paths: Sequence[str], where: Sequence[str] = ()
    ) -> list[tuple[tuple[str, ...], int]]:
        """Entities of each class of some regions together; classes that ``where`` names have that
        value alone.
        """
        slot_of(self.lattice.attributes, where)  # refuses what is not there
        classes = self.people.classes
        named = {text.partition("=")[0]: text.partition("=")[2] for text in where}
        found = []
        for cell in range(classes.n_cells):
            labels = classes.labels_of(cell)
            if all(named.get(name, label) == label for name, label in zip(classes.names, labels)):
                rest = [text for text in where if text.partition("=")[0] not in classes.names]
                own = [f"{name}={label}" for name, label in zip(classes.names, labels)]
                found.append((labels, self.of(paths, [*rest, *own])))
        return found

    def table(self, by: Sequence[str]) -> pa.Table:
        """Level, region, the named attributes and classes, count; rows with count 0 left out."""
        lattice = self.lattice
        chosen = lattice.slots(lattice.attributes.chosen(by))
        region, place = np.nonzero(self.slots[:, chosen])
        values = attribute_columns(lattice, chosen[place])
        names = [name for name in lattice.attributes.names if name in by]
        kept = [values[lattice.attributes.names.index(name)].cast(pa.string()) for name in names]
        return pa.table(
            {
                "level": pa.array(lattice.hierarchy.level_of[region].astype(np.int32)),
                "region": path_array(lattice.hierarchy).take(pa.array(region)).cast(pa.string()),
                **dict(zip(names, kept)),
                "count": pa.array(self.slots[region, chosen[place]]),
            }
        )

    def reader(self, paths: pa.LargeStringArray) -> pa.RecordBatchReader:
        """Level, region, attributes, classes, count of every table, level by level; null stands for
        all values.
        """
        lattice = self.lattice
        columns = [pa.field(name, NAME) for name in lattice.attributes.names]
        schema = pa.schema(
            [("level", pa.int32()), ("region", NAME), *columns, ("count", pa.int64())]
        )

        def batches() -> Iterator[pa.RecordBatch]:
            at_once = max(1, (1 << 20) // lattice.n_slots)
            for start in range(0, lattice.hierarchy.n_regions, at_once):
                stop = min(start + at_once, lattice.hierarchy.n_regions)
                region, slot = np.nonzero(self.slots[start:stop])
                names = paths.slice(start, stop - start).cast(pa.string())
                filled = [
                    pa.array(lattice.hierarchy.level_of[start + region].astype(np.int32)),
                    pa.DictionaryArray.from_arrays(region.astype(np.int32), names),
                    *attribute_columns(lattice, slot),
                    pa.array(self.slots[start + region, slot]),
                ]
                yield pa.record_batch(filled, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def checks(self, sizes: CountsBySize) -> tuple[Check, ...]:
        """That people add up, and agree with the sizes (of every slot of every region of the tables
        of groups).
        """
        again = people_counts(self.people, self.groups, self.cells)
        tree = self.groups.hierarchy
        names = ", ".join(self.people.classes.names)
        apart = np.flatnonzero((again.slots != self.slots).any(axis=1))
        whole = Check("numbers of people are nonnegative integers", bool((self.slots >= 0).all()))
        sums = Check(
            f"every table of people by {names} adds up", not len(apart), where_wrong(tree, apart)
        )
        entities = sizes.n_entities().reshape(tree.n_regions, -1)
        told = self._groups_slots()
        wrong = np.flatnonzero((entities[:, told[0]] != self.slots[:, told[1]]).any(axis=1))
        agree = Check(
            "people add up to sizes times groups", not len(wrong), where_wrong(tree, wrong)
        )
        return whole, sums, agree

    def _groups_slots(self) -> tuple[IntArray, IntArray]:
        """Slots of tables of groups by the attributes that people are by, and those of people of
        all classes.
        """
        own, mine = self.groups.attributes, self.people.groups(self.groups)
        every = np.arange(mine.n_slots)
        values = mine.slot_values(every)
        of_groups = np.zeros(len(every), dtype=np.int64)
        for name, size in zip(own.names, own.shape):
            number = values[self.people.by.index(name)] + 1 if name in self.people.by else 0
            of_groups = of_groups * (size + 1) + number
        n_class_slots = int(np.prod([size + 1 for size in self.people.classes.shape]))
        return of_groups, every * n_class_slots


def people_counts(people: People, groups: Lattice, cells: IntArray) -> PeopleCounts:
    """All tables of people from those of the finest cells: one row per leaf and combination of
    values, a column per class.
    """
    tables = people.tables(groups)
    slots = np.zeros((groups.hierarchy.n_regions, tables.n_slots), dtype=np.int64)
    flat = slots.reshape(-1)
    for family in tables.families:
        flat[tables.rows_in_margins(family)] = tables.sums(family, cells.ravel())
    return PeopleCounts(people, groups, slots)


def people_from_table(people: People, groups: Lattice, table: pa.Table) -> PeopleCounts:
    """The people that a reader wrote; refuses fractions, unknown regions and values, and rows that
    are there twice.
    """
    tables = people.tables(groups)
    count = table["count"]
    if not pa.types.is_integer(count.type) or count.null_count:
        raise VerificationError(
            f"{PEOPLE_FILE}: column 'count' holds whole numbers.", (PEOPLE_FILE,)
        )
    row = region_numbers(path_array(groups.hierarchy), table["region"]) * tables.n_slots
    row = row + slots_from_table(tables, table)
    if len(np.unique(row)) < len(row):
        raise VerificationError(f"{PEOPLE_FILE} counts the same people twice.", (PEOPLE_FILE,))
    slots = np.zeros((groups.hierarchy.n_regions, tables.n_slots), dtype=np.int64)
    slots.reshape(-1)[row] = count.to_numpy()
    return PeopleCounts(people, groups, slots)


def refuse_people(found: PeopleCounts | None) -> PeopleCounts:
    """The people of a release, or an error where it counts none."""
    if found is None:
        raise RequestError(
            "The release counts no people by class; read the data with people= (--people)."
        )
    return found


def people_reply(
    counted: PeopleCounts,
    question: Question,
    root: str,
    intervals: Sequence[Interval] | None = None,
) -> Reply:
    """How many entities of each class some regions have, with intervals where they were simulated."""
    sizes = [
        part
        for part in question.asked()
        if part not in ("region", "where", "people", "confidence", "copies")
    ]
    if sizes:
        raise RequestError(
            f"people= asks about classes of entities alone; leave out {', '.join(sizes)}."
        )
    paths = question.paths(root)
    title = ", ".join([" + ".join(paths), *question.where])
    names = counted.people.classes.names
    found = counted.by_class(paths, question.where)
    rows: list[list[object]] = [[*labels, count] for labels, count in found]
    columns = [*names, "count"]
    if intervals is not None:
        rows = [[*row, one.std_error, one.low, one.high] for row, one in zip(rows, intervals)]
        columns += ["std_error", "low", "high"]
    told = [dict(zip(columns, row)) for row in rows]
    return Reply(title, tuple(columns), rows, {"region": title, "people": told})
