"""The whole story of :func:`tallytree.ingest.read`: open the inputs, find the leaves, count, check, put in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ibis
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import InputError
from tallytree.ingest.columns import Problem, identifier, require_columns
from tallytree.ingest.engine import Session, open_session
from tallytree.ingest.group_sizes import (
    Key,
    Rows,
    compacted,
    counts_of,
    leaves_of,
    rows_of,
    with_bounded_units,
    with_groups,
    with_keys,
)
from tallytree.ingest.problems import describe, missing_region
from tallytree.ingest.regions import (
    Regions,
    RegionTable,
    region_table,
    regions_from_leaves,
    regions_from_table,
    root_alone,
)
from tallytree.ingest.shapes import RowShape
from tallytree.ingest.sources import Source, Wanted, open_source
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_runs


@dataclass(frozen=True)
class Inputs:
    """The tables to read: the confidential one, and the public ones beside it."""

    source: Any
    groups: Any = None
    hierarchy: Any = None
    table: str | None = None
    sql: str | None = None


@dataclass(frozen=True)
class Opened:
    """The same, open for reading and with their columns checked."""

    source: Source
    groups: Source | None
    hierarchy: RegionTable | None

    @property
    def regions_name(self) -> str:
        """The input that says which regions there are, apart from a hierarchy table."""
        return self.source.name if self.groups is None else self.groups.name


def count_groups(
    inputs: Inputs, shape: RowShape, *, root: str, groups_private: bool, entity: str | None
) -> ConfidentialCounts:
    """Read the inputs into exact counts by size per leaf."""
    with open_session() as session:
        opened, rows = open_inputs(session, inputs, shape, groups_private=groups_private)
        rows, regions = find_regions(session, rows, opened, shape, root)
        runs = _runs(session, rows, regions, opened)
    refuse_problem(pc.min(runs["problem"]).as_py(), opened, shape)
    leaf, size, count = (runs[column].cast(pa.int64()).to_numpy() for column in ("leaf", "size", "n"))
    counts = counts_from_runs(leaf, size, count, regions.hierarchy.n_leaves)
    return ConfidentialCounts(
        hierarchy=regions.hierarchy,
        leaf_counts=counts,
        n_groups=counts.n_groups(),
        remarks=regions.remarks,
        **description(opened, shape, groups_private=groups_private, entity=entity),
    )


def description(opened: Opened, shape: RowShape, *, groups_private: bool, entity: str | None) -> dict[str, Any]:
    """What is public about the counts besides their regions; names as in :class:`ConfidentialCounts`."""
    return {
        "groups_public": not groups_private,
        "groups_note": _groups_note(opened, groups_private),
        "regions_note": _regions_note(opened),
        "max_quantity": shape.max_quantity,
        "entity": entity or ("row" if shape.size is None else "entity"),
        "group": shape.group or "group",
        "unit": shape.unit or "",
        "contributions": shape.contributions,
        "whole_groups": shape.whole_groups,
        "least_size": shape.least_size if groups_private else 0,
    }


def open_inputs(session: Session, inputs: Inputs, shape: RowShape, *, groups_private: bool) -> tuple[Opened, Rows]:
    """Open the inputs, check their columns, and give them their meaning."""
    hierarchy = None if inputs.hierarchy is None else _open_hierarchy(session, inputs.hierarchy, shape.levels[0])
    place = {"table": inputs.table, "sql": inputs.sql}
    if inputs.groups is None:
        source = open_source(session, inputs.source, Wanted(shape.columns), **place)
        rows = with_bounded_units(session, rows_of(source, shape), shape, source.name, groups_private=groups_private)
        return Opened(source, None, hierarchy), rows
    public_columns = (str(shape.group), *shape.levels)
    groups = open_source(session, inputs.groups, Wanted(public_columns))
    bare = replace(shape, levels=())
    source = open_source(session, inputs.source, Wanted(bare.columns, shape.levels), **place)
    own_shape = shape if any(level in source.columns for level in shape.levels) else bare
    require_columns(own_shape.columns, source.columns, source.name)
    rows = with_bounded_units(session, rows_of(source, own_shape), own_shape, source.name, groups_private=False)
    if session.engine_of(rows.table) is not session.engine_of(groups.table):
        rows = replace(rows, table=session.bring(compacted(rows), source.name))
        groups = replace(groups, table=session.bring(groups.table.select(public_columns), groups.name))
    return Opened(source, groups, hierarchy), with_groups(rows, groups, shape)


def _open_hierarchy(session: Session, hierarchy: Any, region: str) -> RegionTable:
    source = open_source(session, hierarchy, Wanted())
    column = region if region in source.columns else source.columns[0]
    labels = {name: identifier(source.table, name, source.name).cast("string") for name in source.columns}
    regions = region_table(source.name, session.fetch(source.table.select(**labels), source.name), column)
    in_order = session.register(regions.labels).order_by([f"t{level}" for level in range(len(regions.level_names))])
    return replace(regions, labels=session.fetch(in_order, source.name))


def find_regions(session: Session, rows: Rows, opened: Opened, shape: RowShape, root: str) -> tuple[Rows, Regions]:
    """The rows with the key of their leaf, and the regions with the number of each key."""
    if not shape.levels:
        return rows, root_alone(root)
    key, leaves = _leaves(session, rows, opened)
    if len(leaves) == 0:
        raise InputError(f"{opened.regions_name} has no rows; there is nothing to count.")
    for level, column in enumerate(shape.levels):
        if leaves[f"t{level}"].null_count:
            raise InputError(missing_region((column,), opened.regions_name))
    if opened.hierarchy is not None:
        return with_keys(rows, key), regions_from_table(leaves, opened.hierarchy, root)
    return with_keys(rows, key), regions_from_leaves(leaves, shape.levels, root)


def _leaves(session: Session, rows: Rows, opened: Opened) -> tuple[Key, pa.Table]:
    """The leaves in the order of their labels, and the shortest key that tells them apart."""

    def fetch(key: Key) -> pa.Table:
        leaves = session.bring(leaves_of(rows, key), opened.regions_name)
        return session.fetch(leaves.order_by([f"t{level}" for level in range(rows.n_levels)]), opened.regions_name)

    if session.engine_of(rows.table).name != "duckdb":
        return "labels", fetch("labels")
    leaves = fetch("hash")
    whole = leaves["k0"].to_numpy()
    half = (whole >> np.uint64(32)).astype(np.uint32)
    if _all_different(half):
        return "half hash", leaves.set_column(0, "k0", pa.array(half))
    return ("hash", leaves) if _all_different(whole) else ("labels", fetch("labels"))


def _all_different(values: npt.NDArray[Any]) -> bool:
    in_order = np.sort(values)
    return not bool(np.any(in_order[1:] == in_order[:-1]))


def _runs(session: Session, rows: Rows, regions: Regions, opened: Opened) -> pa.Table:
    """The counts with the number of their leaf, in its order."""
    counts = session.bring(counts_of(rows), opened.source.name)
    if not rows.n_key_columns:
        return session.fetch(counts.mutate(leaf=ibis.literal(0, "int64")), opened.source.name)
    numbered = counts.left_join(session.register(regions.leaf_of_key), rows.keys)
    return session.fetch(numbered.order_by(["leaf", "size"]).select("leaf", "size", "n", "problem"), opened.source.name)


def refuse_problem(worst_code: int | None, opened: Opened, shape: RowShape) -> None:
    """Refuse rows whose worst problem is not none; None where there are no rows at all."""
    if worst_code is None:
        raise InputError(f"{opened.regions_name} has no rows; there is nothing to count.")
    worst = Problem(worst_code)
    if worst is not Problem.NONE:
        groups = None if opened.groups is None else opened.groups.name
        raise InputError(describe(worst, shape, opened.source.name, groups))


def _groups_note(opened: Opened, groups_private: bool) -> str:
    if groups_private:
        return "the number of groups per region is confidential; the release spends budget on it"
    if opened.groups is not None:
        return "the number of groups per region is public: a public table of groups was given"
    return "the number of groups per region is assumed public (no groups table was given)"


def _regions_note(opened: Opened) -> str:
    if opened.hierarchy is not None:
        return "the regions are those of a public hierarchy table"
    if opened.groups is not None:
        return "the regions are those of the public table of groups"
    return "the regions that occur in the data are assumed public (no hierarchy or groups table was given)"
