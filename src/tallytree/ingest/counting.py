"""The whole story of :func:`tallytree.ingest.read`: open the inputs, find the leaves, count, check,
put in order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import ibis
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import InputError
from tallytree.ingest.columns import Problem, identifier, require_columns, whole_number
from tallytree.ingest.engine import Session, open_session
from tallytree.ingest.filters import part_columns, rows_of_part
from tallytree.ingest.group_sizes import (
    ALTERED,
    Key,
    Rows,
    compacted,
    counts_of,
    leaves_of,
    people_of,
    rows_of,
    with_bounded_units,
    with_groups,
    with_keys,
)
from tallytree.ingest.problems import describe, missing_region, not_on_list
from tallytree.ingest.public import Declared
from tallytree.ingest.regions import (
    Regions,
    RegionTable,
    TotalsTable,
    by_attributes,
    cells_of,
    label_array,
    region_table,
    regions_from_leaves,
    regions_from_table,
    regions_from_totals,
    root_alone,
)
from tallytree.ingest.shapes import RowShape
from tallytree.ingest.sources import Source, Wanted, open_source
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import UNALTERED, Altered, ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs, sum_over_regions
from tallytree.model.facts import PublicFacts
from tallytree.model.limits import refuse_many_groups
from tallytree.model.part import Part
from tallytree.model.place import ANYWHERE, Place
from tallytree.model.unit import Unit

# Leaves that are counted in one pass over the rows.
LEAVES_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class Inputs:
    """The tables to read: the confidential one (of which ``where`` may keep one part), and the
    public ones beside it.
    """

    source: Any
    groups: Any = None
    hierarchy: Any = None
    group_totals: Any = None
    place: Place = ANYWHERE
    where: Part | None = None


@dataclass(frozen=True)
class Opened:
    """The same, open for reading and with their columns checked."""

    source: Source
    groups: Source | None
    hierarchy: RegionTable | None
    totals: TotalsTable | None = None
    part: Part | None = None

    @property
    def regions_name(self) -> str:
        """The input that says which regions there are, apart from a hierarchy table."""
        return self.source.name if self.groups is None else self.groups.name

    @property
    def regions_given(self) -> bool:
        """Whether a public table says which regions there are, so that data without any row are
        data like any other.
        """
        return any(table is not None for table in (self.groups, self.hierarchy, self.totals))


def count_groups(
    inputs: Inputs, shape: RowShape, *, root: str, public: Declared, entity: str | None
) -> ConfidentialCounts:
    """Read the inputs into exact counts by size per leaf."""
    with open_session() as session:
        opened, rows = open_inputs(session, inputs, shape, groups_private=not public.groups_public)
        rows, regions = find_regions(session, rows, opened, shape, root)
        runs = _runs(session, rows, regions, opened)
        people = _people(session, rows, regions, opened) if shape.people else None
    refuse_problem(pc.min(runs["problem"]).as_py(), opened, shape)
    altered = _altered(runs, shape, entity)
    columns = [runs[column] for column in ("leaf", "size", "n")]
    del runs  # each column goes when its numbers are taken
    leaf, size, count = (columns.pop(0).cast(pa.int64()).to_numpy() for _ in range(3))
    n_leaves, attributes = regions.hierarchy.n_leaves, regions.attributes
    cells = counts = counts_from_runs(leaf, size, count, n_leaves * attributes.n_cells)
    if opened.totals is not None:
        cells = counts = with_empty_groups(counts, totals_of(opened.totals, regions, shape))
    if attributes:
        counts = sum_over_regions(cells, np.arange(cells.n_regions) // attributes.n_cells, n_leaves)
    n_cells = n_leaves * attributes.n_cells
    return ConfidentialCounts(
        public=public_facts(regions, opened, shape, public=public, entity=entity),
        leaf_counts=counts,
        n_groups=counts.n_groups(),
        remarks=regions.remarks,
        cell_counts=cells if attributes else None,
        entity_counts=None if people is None else _entity_counts(people, n_cells, shape),
        altered=altered,
    )


def _altered(runs: pa.Table, shape: RowShape, entity: str | None) -> Altered:
    """What was done to rows to keep within the bounds on quantities and contributions."""
    sums = {name: pc.sum(runs[name]).as_py() or 0 for name in ALTERED if name in runs.column_names}
    altered = UNALTERED
    if "lowered" in sums:
        altered = altered.also(
            f"quantities above {shape.max_quantity:,}, lowered to it", int(sums["lowered"])
        )
    return altered.also_rows_of(unit_of(shape, entity), int(sums.get("left_out", 0)))


def _entity_counts(people: pa.Table, n_cells: int, shape: RowShape) -> IntArray:
    """Entities of each class per leaf, or per combination of values of each leaf."""
    counts = np.zeros((n_cells, shape.people.classes.n_cells), dtype=np.int64)
    leaf, place, n = (people[column].cast(pa.int64()).to_numpy() for column in ("leaf", "c", "n"))
    np.add.at(counts, (leaf, place), n)
    return counts


def totals_alone(table: Any, levels: tuple[str, ...], root: str) -> ConfidentialCounts:
    """A public table of group totals as counts of empty groups."""
    with open_session() as session:
        totals = _open_totals(session, table, levels)
    keyed = totals.labels.append_column("key", pa.array(range(len(totals.groups))))
    regions = regions_from_leaves(keyed, levels, root) if levels else root_alone(root)
    leaf = np.arange(len(totals.groups))
    counts = counts_from_runs(leaf, np.zeros_like(leaf), totals.groups, len(leaf))
    return ConfidentialCounts(PublicFacts(regions.hierarchy), counts, counts.n_groups())


def totals_of(totals: TotalsTable, regions: Regions, shape: RowShape) -> TotalsTable:
    """The public totals of every leaf, or of every combination of values of every leaf, none where
    the table has no row.
    """
    if not shape.by:
        return totals
    texts = totals.labels.column_names
    labels = [label_array(totals.labels[text]) for text in texts[: len(shape.levels)]]
    opens = np.zeros(len(totals.groups), dtype=bool)
    for column in labels:
        opens[1:] |= column[1:] != column[:-1]
    cell = cells_of(regions.attributes, totals.labels.select(texts[len(shape.levels) :]))
    groups = np.zeros(regions.hierarchy.n_leaves * regions.attributes.n_cells, dtype=np.int64)
    np.add.at(groups, np.cumsum(opens) * regions.attributes.n_cells + cell, totals.groups)
    return replace(totals, groups=groups)


def with_empty_groups(counts: CountsBySize, totals: TotalsTable) -> CountsBySize:
    """The counts with as many empty groups in each leaf as the public totals have more than the
    data.
    """
    empty = totals.groups - counts.n_groups()
    if np.any(empty < 0):
        raise InputError(
            f"The data has regions with more groups than {totals.name} says; a public total must "
            "hold."
        )
    leaf = np.arange(counts.n_regions)
    return counts_from_runs(
        np.concatenate([counts.region_of_run(), leaf]),
        np.concatenate([counts.size, np.zeros_like(leaf)]),
        np.concatenate([counts.count, empty]),
        counts.n_regions,
    )


def public_facts(
    regions: Regions, opened: Opened, shape: RowShape, *, public: Declared, entity: str | None
) -> PublicFacts:
    """What is public about counts, as it was declared."""
    return PublicFacts(
        regions.hierarchy,
        public.groups_public,
        shape.max_quantity,
        unit_of(shape, entity),
        least_size=shape.least_size
        if opened.groups is None and opened.totals is None
        else 0,  # public tables list groups without any row
        attributes=regions.attributes,
        people=shape.people.checked(regions.attributes),
        part=opened.part,
        scale=shape.scale,
        group=shape.group or "group",
        alone=_alone(opened, shape, public),
        groups_note=public.groups_note,
        regions_note=public.regions_note,
    )


def unit_of(shape: RowShape, entity: str | None) -> Unit:
    """What is protected."""
    return Unit(
        entity or ("row" if shape.rows_are_entities or shape.scale is not None else "entity"),
        shape.unit or "",
        shape.contributions,
        group=(shape.group or "group") if shape.whole_groups else "",
    )


def _alone(opened: Opened, shape: RowShape, public: Declared) -> str:
    """Where nobody may be alone, because public facts were read off rows that go with their unit.

    A row that is a group, or a region, stays when its last entity goes, but not where it is itself
    what is protected.
    """
    stays = not (shape.rows_are_entities or shape.whole_groups or shape.scale is not None)
    if stays or opened.groups is not None or opened.totals is not None:
        return ""
    groups = [f"a {shape.group}"] if public.groups_public else []
    regions = ["a region"] if shape.levels and opened.hierarchy is None else []
    return " or ".join(groups + regions)


def open_inputs(
    session: Session, inputs: Inputs, shape: RowShape, *, groups_private: bool
) -> tuple[Opened, Rows]:
    """Open the inputs, check their columns, and give them their meaning."""
    hierarchy = (
        None
        if inputs.hierarchy is None
        else open_hierarchy(session, inputs.hierarchy, shape.levels[0])
    )
    totals = (
        None
        if inputs.group_totals is None
        else _open_totals(session, inputs.group_totals, shape.labels)
    )
    filtered = part_columns(inputs.where)
    if inputs.groups is None:
        source = open_source(
            session, inputs.source, Wanted((*shape.columns, *filtered)), inputs.place
        )
        source = rows_of_part(source, inputs.where)
        rows = with_bounded_units(
            session, rows_of(source, shape), shape, source.name, groups_private=groups_private
        )
        return Opened(source, None, hierarchy, totals, inputs.where), rows
    public_columns = (str(shape.group), *shape.labels)
    groups = open_source(session, inputs.groups, Wanted(public_columns, filtered))
    if all(column in groups.columns for column in filtered):
        # Groups of other parts would count as empty; a table without the column is taken to list
        # those of the part.
        groups = rows_of_part(groups, inputs.where)
    bare = replace(shape, levels=(), by=())
    source = open_source(
        session, inputs.source, Wanted((*bare.columns, *filtered), shape.labels), inputs.place
    )
    source = rows_of_part(source, inputs.where)
    own_shape = shape if any(label in source.columns for label in shape.labels) else bare
    require_columns(own_shape.columns, source.columns, source.name, named=source.named)
    rows = with_bounded_units(
        session, rows_of(source, own_shape), own_shape, source.name, groups_private=False
    )
    if session.engine_of(rows.table) is not session.engine_of(groups.table):
        rows = replace(rows, table=session.bring(compacted(rows), source.name))
        groups = replace(
            groups, table=session.bring(groups.table.select(public_columns), groups.name)
        )
    return Opened(source, groups, hierarchy, part=inputs.where), with_groups(rows, groups, shape)


def open_hierarchy(session: Session, hierarchy: Any, region: str) -> RegionTable:
    """A separate table of regions, checked and in order; ``region`` is the column that names them."""
    source = open_source(session, hierarchy, Wanted())
    column = region if region in source.columns else source.columns[0]
    labels = {
        name: identifier(source.table, name, source.name).cast("string") for name in source.columns
    }
    regions = region_table(
        source.name, session.fetch(source.table.select(**labels), source.name), column
    )
    in_order = session.register(regions.labels).order_by(
        [f"t{level}" for level in range(len(regions.level_names))]
    )
    return replace(regions, labels=session.fetch(in_order, source.name))


def _open_totals(session: Session, table: Any, levels: tuple[str, ...]) -> TotalsTable:
    """A public table with one row per leaf: its labels, and in the column ``groups``, or the only
    other one, its groups.
    """
    source = open_source(session, table, Wanted())
    require_columns(levels, source.columns, source.name)
    others = [name for name in source.columns if name not in levels]
    column = "groups" if "groups" in others else others[0] if len(others) == 1 else None
    if column is None:
        raise InputError(
            f"{source.name} needs a column 'groups' with the number of groups of each region."
        )
    number, problem = whole_number(source.table, column, source.name, count=True)
    labels = {
        f"t{i}": identifier(source.table, name, source.name).cast("string")
        for i, name in enumerate(levels)
    }
    rows = session.fetch(source.table.select(**labels, groups=number, problem=problem), source.name)
    if len(rows) == 0 or pc.min(rows["problem"]).as_py() < 0:
        raise InputError(
            f"Column {column!r} of {source.name} holds whole numbers of at least 0, one row per "
            "region."
        )
    if labels:
        if any(rows[text].null_count for text in labels):
            raise InputError(
                f"{source.name} has missing values in {', '.join(levels)}; every region needs all "
                "its labels."
            )
        rows = rows.sort_by([(text, "ascending") for text in labels])
        if len(rows.group_by(list(labels)).aggregate([])) < len(rows):
            raise InputError(f"{source.name} names a region twice; it has one row per region.")
    elif len(rows) != 1:
        raise InputError(
            f"{source.name} has one row, the number of groups in all, where no levels are named."
        )
    groups = rows["groups"].cast(pa.int64()).to_numpy()
    refuse_many_groups(
        int(groups.astype(float).sum())
    )  # as floats, so that the sum cannot wrap around
    return TotalsTable(rows.drop_columns(["groups", "problem"]), groups, source.name)


def find_regions(
    session: Session, rows: Rows, opened: Opened, shape: RowShape, root: str
) -> tuple[Rows, Regions]:
    """The rows with the key of their leaf, and the regions with the number of each key."""
    if not shape.labels:
        return rows, root_alone(root)
    key, leaves = _leaves(session, rows, opened)
    if len(leaves) == 0 and (opened.groups is not None or not opened.regions_given):
        raise InputError(
            f"{opened.regions_name} has no rows, so that no region is known; name them in a public "
            "table."
        )
    for level, column in enumerate(shape.levels):
        if leaves[f"t{level}"].null_count:
            raise InputError(missing_region((column,), opened.regions_name))
    for place, column in enumerate(shape.attributes, len(shape.levels)):
        if leaves[f"t{place}"].null_count:
            raise InputError(not_on_list(column, opened.regions_name))

    def find(labels: pa.Table) -> Regions:
        if not shape.levels:
            return root_alone(root)
        if opened.hierarchy is not None:
            return regions_from_table(labels, opened.hierarchy, root)
        if opened.totals is not None:
            return regions_from_totals(
                labels, opened.totals.regions(len(shape.levels)), shape.levels, root
            )
        return regions_from_leaves(labels, shape.levels, root)

    if not shape.by:
        return with_keys(rows, key), find(leaves)
    listed = None if opened.totals is None else opened.totals.labels
    return with_keys(rows, key), by_attributes(leaves, shape, find, listed)


def _leaves(session: Session, rows: Rows, opened: Opened) -> tuple[Key, pa.Table]:
    """The leaves in the order of their labels, and the shortest key that tells them apart."""

    def fetch(key: Key) -> pa.Table:
        leaves = session.bring(leaves_of(rows, key), opened.regions_name)
        return session.fetch(
            leaves.order_by([f"t{level}" for level in range(rows.n_labels)]), opened.regions_name
        )

    engine = session.engine_of(rows.table).name
    if engine == "pyspark":
        leaves = fetch("spark hash")
        return (
            ("spark hash", leaves)
            if all_different(leaves["k0"].to_numpy())
            else ("labels", fetch("labels"))
        )
    if engine != "duckdb":
        return "labels", fetch("labels")
    leaves = fetch("hash")
    whole = leaves["k0"].to_numpy()
    half = (whole >> np.uint64(32)).astype(np.uint32)
    if all_different(half):
        return "half hash", leaves.set_column(0, "k0", pa.array(half))
    return ("hash", leaves) if all_different(whole) else ("labels", fetch("labels"))


def all_different(values: npt.NDArray[Any]) -> bool:
    """Whether no value occurs twice."""
    in_order = np.sort(values)
    return not bool(np.any(in_order[1:] == in_order[:-1]))


def _runs(session: Session, rows: Rows, regions: Regions, opened: Opened) -> pa.Table:
    """The counts with the number of their leaf, in its order.

    DuckDB needs some 100 bytes for each size of each leaf while it counts. Many leaves are counted
    in passes, some at a time; not where rows are put into groups first, which takes all rows at
    once.
    """
    leaf, columns = regions.leaf_of_key["leaf"], ("size", "n", "problem")
    own = session.engine_of(rows.table) is session.connection
    if len(leaf) <= LEAVES_AT_ONCE or rows.has_group or not own:
        return _numbered(session, counts_of(rows), rows, regions, opened, columns)
    parts = []
    n_passes, n_leaves = -(-len(leaf) // LEAVES_AT_ONCE), pc.max(leaf).as_py() + 1
    for start, stop in pairwise(n_leaves * place // n_passes for place in range(n_passes + 1)):
        here = pc.and_(pc.greater_equal(leaf, start), pc.less(leaf, stop))
        some = replace(regions, leaf_of_key=regions.leaf_of_key.filter(here))
        known = session.register(some.leaf_of_key.select(rows.keys))
        of_some = replace(rows, table=rows.table.semi_join(known, rows.keys))
        parts.append(_numbered(session, counts_of(of_some), of_some, some, opened, columns))
    return pa.concat_tables(parts)


def _people(session: Session, rows: Rows, regions: Regions, opened: Opened) -> pa.Table:
    """The numbers of entities by class with the number of their leaf, in its order."""
    if rows.some_unlabelled:
        raise InputError(
            "people= needs the columns of regions and attributes of groups in the table of "
            "entities itself; add them there."
        )
    return _numbered(session, people_of(rows), rows, regions, opened, ("c", "n"))


def _numbered(
    session: Session,
    query: Any,
    rows: Rows,
    regions: Regions,
    opened: Opened,
    columns: tuple[str, ...],
) -> pa.Table:
    """Rows of a query by the key of a leaf, with the number of the leaf in place of it."""
    found = session.bring(query, opened.source.name)
    if not rows.n_key_columns:
        return session.fetch(found.mutate(leaf=ibis.literal(0, "int64")), opened.source.name)
    numbered = found.left_join(session.register(regions.leaf_of_key), rows.keys)
    altered = [name for name in ALTERED if name in found.columns]
    in_order = numbered.order_by(["leaf", columns[0]]).select("leaf", *columns, *altered)
    return session.fetch(in_order, opened.source.name)


def refuse_problem(worst_code: int | None, opened: Opened, shape: RowShape) -> None:
    """Refuse rows whose worst problem is not none; where there are no rows at all, nothing is wrong
    with them.
    """
    worst = Problem.NONE if worst_code is None else Problem(worst_code)
    if worst is not Problem.NONE:
        groups = None if opened.groups is None else opened.groups.name
        raise InputError(describe(worst, shape, opened.source.name, groups))
