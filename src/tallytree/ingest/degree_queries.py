"""The query that counts nodes by degree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import InputError
from tallytree.ingest.columns import Problem, identifier
from tallytree.ingest.engine import Session, open_session
from tallytree.ingest.filters import part_columns, rows_of_part
from tallytree.ingest.group_sizes import Rows, compacted, counts_of, with_groups
from tallytree.ingest.shapes import RowShape
from tallytree.ingest.sources import Source, Wanted, open_source
from tallytree.model.confidential import ConfidentialDegrees
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.part import Part
from tallytree.model.place import ANYWHERE, Place


@dataclass(frozen=True)
class EdgeList:
    """A table of edges, and the public table of nodes beside it."""

    source: Any
    src: str
    dst: str
    nodes: Any = None
    place: Place = ANYWHERE
    where: Part | None = None


def count_degrees(edges: EdgeList, *, directed: bool) -> ConfidentialDegrees:
    """Count the nodes of each degree; each node is a group, and its edges are what is counted."""
    with open_session() as session:
        wanted = Wanted([edges.src, edges.dst, *part_columns(edges.where)])
        opened = open_source(session, edges.source, wanted, edges.place)
        opened = rows_of_part(opened, edges.where)
        pairs = _pairs(edges, opened)
        _refuse_missing_nodes(session, pairs, edges, opened)
        rows = Rows(
            _ends(pairs, directed=directed), n_labels=0, has_group=True, rows_are_entities=True
        )
        nodes = None if edges.nodes is None else _open_nodes(session, edges)
        if nodes is not None:
            if session.engine_of(rows.table) is not session.engine_of(nodes.table):
                rows = Rows(
                    session.bring(compacted(rows), opened.name),
                    0,
                    has_group=True,
                    rows_are_entities=True,
                )
                nodes = Source(session.bring(nodes.table, nodes.name), nodes.columns, nodes.name)
            rows = with_groups(rows, nodes, RowShape(group="node", levels=()))
        runs = session.fetch(counts_of(rows), opened.name)
    _refuse_problems(runs, opened, nodes)
    size, count = (runs[column].cast(pa.int64()).to_numpy() for column in ("size", "n"))
    return ConfidentialDegrees(
        counts=counts_from_runs(np.zeros(len(runs), dtype=np.int64), size, count, 1),
        directed=directed,
        nodes_note="the nodes are those of a public table"
        if nodes is not None
        else "the nodes that have edges are assumed public (no table of nodes was given)",
        part=edges.where,
    )


def _pairs(edges: EdgeList, opened: Source) -> Any:
    a, b = (identifier(opened.table, column, opened.name) for column in (edges.src, edges.dst))
    if a.type() != b.type():
        a, b = a.cast("string"), b.cast("string")
    return opened.table.select(a=a, b=b)


def _refuse_missing_nodes(session: Session, pairs: Any, edges: EdgeList, opened: Source) -> None:
    missing = (pairs.a.isnull() | pairs.b.isnull()).sum()
    n_rows, n_missing = (
        session.fetch(pairs.agg(n=pairs.count(), missing=missing), opened.name)
        .to_pylist()[0]
        .values()
    )
    if n_rows == 0 and edges.nodes is None:
        raise InputError(
            f"{opened.name} has no rows, so that no node is known; name them in a public table."
        )
    if n_missing:
        raise InputError(
            f"Column {edges.src!r} or {edges.dst!r} of {opened.name} has missing values; every "
            "edge needs two nodes, so "
            "fill or drop them."
        )


def _ends(pairs: Any, *, directed: bool) -> Any:
    """One row per node and edge, with what the edge adds to the degree of the node."""
    proper = pairs.filter(pairs.a != pairs.b)
    if not directed:
        proper = proper.select(
            a=ibis.least(proper.a, proper.b), b=ibis.greatest(proper.a, proper.b)
        )
    proper = proper.distinct()
    # Nodes that occur only in edges to themselves, or only as targets, are nodes all the same.
    own = pairs.select(g=pairs.a, size=ibis.literal(0, "int64"))
    other = pairs.select(g=pairs.b, size=ibis.literal(0, "int64"))
    ends = [own, other, proper.select(g=proper.a, size=ibis.literal(1, "int64"))]
    if not directed:
        ends.append(proper.select(g=proper.b, size=ibis.literal(1, "int64")))
    return ibis.union(*ends).mutate(problem=ibis.literal(0, "int8"))


def _open_nodes(session: Session, edges: EdgeList) -> Source:
    opened = open_source(session, edges.nodes, Wanted())
    column = edges.src if edges.src in opened.columns else opened.columns[0]
    return Source(
        opened.table.select(node=identifier(opened.table, column, opened.name)),
        ("node",),
        opened.name,
    )


def _refuse_problems(runs: pa.Table, opened: Source, nodes: Source | None) -> None:
    name = "" if nodes is None else nodes.name
    match Problem(pc.min(runs["problem"]).as_py()):
        case Problem.GROUP_MISSING:
            raise InputError(
                f"{name} has missing values; every node needs a name, so fill or drop them."
            )
        case Problem.GROUPS_LISTED_TWICE:
            raise InputError(f"A node is listed twice in {name}; list each node once.")
        case Problem.GROUP_NOT_IN_GROUPS:
            raise InputError(
                f"A node of {opened.name} is missing from {name}, which must list all of them."
            )
