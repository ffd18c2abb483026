"""The aggregation: from rows to the number of groups of each size per leaf, as one query.

Everything that can be wrong with a row rides along in that query as a
:class:`~tallytree.ingest.columns.Problem`.

A leaf is named inside the query by its *key*. On DuckDB that is a hash of its labels, which makes
grouping and the check that no group lies in two leaves cheap. The leaves that exist are found and
their hashes compared beforehand: the key is half a hash where that tells all leaves apart, else the
whole one, and if two ever agree the labels themselves. Spark has a hash of its own: it keeps the
least and the largest number of a group in a hash table, but sorts all rows for those of text. On
other engines the key is always the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import or_
from typing import Any, Literal

import ibis
import ibis.expr.datatypes as dt

from tallytree.ingest.columns import Problem, at_most, identifier, one_if, whole_number
from tallytree.ingest.contribution import with_kept
from tallytree.ingest.engine import Session
from tallytree.ingest.scaled import steps_of
from tallytree.ingest.shapes import RowShape
from tallytree.ingest.sources import Source
from tallytree.model.attributes import OTHER, Attributes
from tallytree.model.limits import LARGEST_NUMBER, MOST_GROUPS

Key = Literal["half hash", "hash", "spark hash", "labels"]
ALTERED = ("lowered", "left_out")
"""Columns that mark rows which were changed to keep within public bounds."""


@dataclass(frozen=True)
class Rows:
    """Rows of the input with columns of known meaning.

    ``table`` has, where they apply: ``g`` (group), ``l0``, ``l1`` … (labels of regions, then of
    attributes), ``size`` and ``n`` (groups), ``c`` (number of an entity's class), ``problem``,
    ``kept`` (0 on entities that do not count, where a group exists through those that do),
    ``lowered`` and ``left_out`` (1 on rows with which that was done), and from a groups table
    ``listed`` (1 on its rows, 0 on others). ``some_unlabelled`` where the regions of the other rows
    are left to the groups table.
    """

    table: Any
    n_labels: int
    has_group: bool
    rows_are_entities: bool
    some_unlabelled: bool = False
    n_key_columns: int = 0

    @property
    def labels(self) -> list[str]:
        """Names of the label columns."""
        return [f"l{place}" for place in range(self.n_labels)]

    @property
    def keys(self) -> list[str]:
        """Names of the columns that make up the key of a leaf."""
        return [f"k{place}" for place in range(self.n_key_columns)]


def rows_of(source: Source, shape: RowShape) -> Rows:
    """Give the columns of the input the meaning that the request gives them."""
    table, name = source.table, source.name
    columns = label_columns(source, shape)
    if shape.group is not None:
        columns["g"] = identifier(table, shape.group, name)
    number = shape.size or shape.quantity
    if shape.scale is not None:
        columns["size"] = steps_of(table, shape.scale, name)
        columns["problem"] = _code(Problem.NONE)
    elif number is not None:
        columns["size"], columns["problem"] = whole_number(table, number, name)
    if shape.quantity is not None:
        columns["lowered"] = one_if(columns["size"] > shape.max_quantity)
        columns["size"] = ibis.least(columns["size"], ibis.literal(shape.max_quantity, "int64"))
    if shape.count is not None:
        columns["n"], count_problem = whole_number(table, shape.count, name, count=True)
        columns["problem"] = ibis.least(columns["problem"], count_problem)
    if shape.unit is not None:
        columns["u"] = identifier(table, shape.unit, name)
    elif shape.whole_groups and shape.people:
        columns["u"] = columns["g"]
    if shape.people:
        columns["c"] = _class_of(source, shape.people.classes)
    made = _long(source, shape, columns) if shape.sizes else table.select(**columns)
    if shape.scale is not None:
        made = made.filter(made["size"].notnull())
    return Rows(made, len(shape.labels), shape.group is not None, shape.rows_are_entities)


def _class_of(source: Source, classes: Attributes) -> Any:
    """Number of the class of an entity: a value that is missing, or stands on no list, counts as
    other.
    """
    number = ibis.literal(0, "int64")
    for name, values in zip(classes.names, classes.values):
        text = identifier(source.table, name, source.name).cast("string")
        known = [
            (text == value, ibis.literal(place, "int64"))
            for place, value in enumerate(values)
            if value != OTHER
        ]
        other = ibis.literal(values.index(OTHER), "int64")
        number = number * len(values) + (ibis.cases(*known, else_=other) if known else other)
    return number


def label_columns(source: Source, shape: RowShape) -> dict[str, Any]:
    """Where a group is counted: its regions as they are, its attributes as text of which a public
    list may tell some.
    """
    columns = [identifier(source.table, column, source.name) for column in shape.levels]
    for name, values in shape.by:
        text = identifier(source.table, name, source.name).cast("string")
        if values is not None:
            text = ibis.cases((text.isin(list(values)), text), else_=ibis.null("string"))
        columns.append(text if name in shape.closed else text.fill_null(OTHER))
    return {f"l{place}": column for place, column in enumerate(columns)}


def _long(source: Source, shape: RowShape, labels: dict[str, Any]) -> Any:
    """A wide table as rows of labels, size and number of groups: one row per column of numbers."""
    parts = []
    for column, size in shape.sizes:
        n, problem = whole_number(source.table, column, source.name, count=True)
        parts.append(
            source.table.select(**labels, size=ibis.literal(size, "int64"), n=n, problem=problem)
        )
    return ibis.union(*parts) if len(parts) > 1 else parts[0]


def with_bounded_units(
    session: Session, rows: Rows, shape: RowShape, source: str, *, groups_private: bool
) -> Rows:
    """The rows, of which at most ``shape.contributions`` per unit add to the size of their group.

    Where groups are public the others stay as rows that add nothing: a group does not go when its
    rows are left out. Where groups are private a group exists through the entities that count, so
    these are marked.
    """
    if "u" not in rows.table.columns:
        return rows
    table = rows.table
    if shape.quantity is None and shape.scale is None:
        table = table.mutate(size=ibis.literal(1, "int64"), problem=_code(Problem.NONE))
    own = [] if shape.scale is not None else ["g"]
    identity = [*own, *rows.labels, "size", *_class_column(table)]
    marked = with_kept(session, table, identity, shape.contributions, source)
    if shape.scale is not None:
        return replace(rows, table=marked.mutate(n=marked.kept, left_out=1 - marked.kept))
    counted = marked.mutate(size=marked["size"] * marked.kept, left_out=1 - marked.kept)
    if "lowered" in counted.columns:
        counted = counted.mutate(lowered=counted.lowered * counted.kept)
    return replace(rows, table=counted if groups_private else counted.drop("kept"))


def compacted(rows: Rows) -> Any:
    """The rows with the entities of a group added up already, where that loses nothing; for moving
    them elsewhere.
    """
    table = rows.table
    if not rows.rows_are_entities:
        return table
    by_group = table.group_by(["g", *rows.labels, *_class_column(table)])
    if "size" in table.columns:
        return by_group.agg(
            size=_sum_of_sizes(table), problem=table.problem.min(), **_altered(table)
        )
    return by_group.agg(size=table.count()).mutate(problem=_code(Problem.NONE))


def with_groups(rows: Rows, groups: Source, shape: RowShape) -> Rows:
    """The rows together with those of the public table of groups, which add nothing to the size of
    their group.

    Rows without level columns get their regions from there.
    """
    regions_in_rows = rows.n_labels == len(shape.labels)
    rows = replace(rows, n_labels=len(shape.labels), some_unlabelled=not regions_in_rows)
    public = groups.table.select(
        g=identifier(groups.table, str(shape.group), groups.name),
        **label_columns(groups, shape),
    ).mutate(
        size=ibis.literal(0, "int64"),
        problem=ibis.literal(0, "int8"),
        listed=ibis.literal(1, "int64"),
    )
    own = rows.table
    if _class_column(own):
        public = public.mutate(c=ibis.literal(0, "int64"))
    if "size" not in own.columns:
        own = own.mutate(size=ibis.literal(1, "int64"), problem=ibis.literal(0, "int8"))
    own = own.mutate(listed=ibis.literal(0, "int64"))
    public = public.mutate(**{name: ibis.literal(0, "int64") for name in _altered(own)})
    if not regions_in_rows:
        own = own.mutate(**{label: ibis.null(public[label].type()) for label in rows.labels})
    elif rows.labels:
        missing = reduce(or_, [own[label].isnull() for label in rows.labels])
        own = own.mutate(
            problem=ibis.cases((missing, _code(Problem.REGION_MISSING)), else_=own.problem)
        )
    own, public = _same_types(own, public, public.columns)
    return replace(rows, table=ibis.union(own.select(public.columns), public))


def _same_types(one: Any, other: Any, columns: Sequence[str]) -> tuple[Any, Any]:
    for column in columns:
        if one[column].type() != other[column].type():
            both_whole = one[column].type().is_integer() and other[column].type().is_integer()
            kind = "int64" if both_whole else "string"
            one, other = (
                one.mutate(one[column].cast(kind).name(column)),
                other.mutate(other[column].cast(kind).name(column)),
            )
    return one, other


def with_keys(rows: Rows, key: Key) -> Rows:
    """The rows with the key of their leaf (``k0``, ``k1`` …)."""
    columns = _key_columns(rows.table, rows.labels, key)
    if rows.some_unlabelled and key != "labels":
        labelled = rows.table[rows.labels[-1]].notnull()
        columns = {
            "k0": ibis.cases((labelled, columns["k0"]), else_=ibis.null(columns["k0"].type()))
        }
    return replace(rows, table=rows.table.mutate(**columns), n_key_columns=len(columns))


def _key_columns(table: Any, labels: Sequence[str], key: Key) -> dict[str, Any]:
    if not labels or key == "labels":
        return {f"k{place}": table[label] for place, label in enumerate(labels)}
    if key == "spark hash":
        whole = ibis.literal(0, "int64")
        for label in labels:
            whole = _hash_with(table[label].type(), "xxhash64", dt.int64)(whole, table[label])
        return {"k0": whole}
    whole = ibis.literal(0, "uint64")
    for label in labels:
        whole = _hash_with(table[label].type(), "hash", dt.uint64)(whole, table[label])
    return {"k0": whole if key == "hash" else (whole >> 32).cast("uint32")}


@cache
def _hash_with(label_type: Any, function: str, number: Any) -> Any:
    """The engine's own hash of the hash above and a label."""

    def combine(above: Any, label: Any) -> Any:
        """Never called: Ibis only writes its SQL."""

    return ibis.udf.scalar.builtin(combine, name=function, signature=((number, label_type), number))


def leaves_of(rows: Rows, key: Key) -> Any:
    """Query for the distinct leaves: their keys, and their labels as text (``t0``, ``t1`` …)."""
    table = rows.table
    if "listed" in table.columns:
        table = table.filter(table.listed == 1)
    distinct = table.select(*rows.labels).distinct()
    text = {f"t{level}": distinct[label].cast("string") for level, label in enumerate(rows.labels)}
    return distinct.select(**_key_columns(distinct, rows.labels, key), **text)


def counts_of(rows: Rows) -> Any:
    """Query for the number of groups ``n`` of each ``size`` per leaf key, with the worst
    ``problem`` among them, and how many rows were lowered or left out.
    """
    table = _one_row_per_group(rows) if rows.has_group else rows.table
    n = _sum_of_groups(table) if "n" in table.columns else table.count()
    return table.group_by([*rows.keys, "size"]).agg(
        n=n, problem=table.problem.min(), **_altered(table)
    )


def people_of(rows: Rows) -> Any:
    """Query for the number of entities ``n`` of each class ``c`` per leaf key, those that do not
    count left out.
    """
    table = rows.table
    n = _sum_of_sizes(table) if "size" in table.columns else table.count()
    return table.group_by([*rows.keys, "c"]).agg(n=n)


def _class_column(table: Any) -> list[str]:
    return ["c"] if "c" in table.columns else []


def _one_row_per_group(rows: Rows) -> Any:
    table = rows.table
    summed, listed = "size" in table.columns, "listed" in table.columns
    sums = {"size": _sum_of_sizes(table) if summed else table.count(), **_altered(table)}
    for key in rows.keys:
        sums |= {key: table[key].min(), f"{key}_last": table[key].max()}
    if summed:
        sums["problem"] = table.problem.min()
    if listed:
        sums["n_listed"] = table.listed.sum()
    if "kept" in table.columns:
        sums["n"] = one_if(table.kept.sum() > 0)
    if not rows.rows_are_entities:
        sums["n_rows"] = table.count() - (table.listed.sum() if listed else 0)
    grouped = table.group_by("g").agg(**sums)
    checks = [(grouped.g.isnull(), Problem.GROUP_MISSING)]
    if summed:
        checks.append((grouped.problem < 0, grouped.problem))
    if listed:
        checks.append((grouped.n_listed > 1, Problem.GROUPS_LISTED_TWICE))
        checks.append((grouped.n_listed == 0, Problem.GROUP_NOT_IN_GROUPS))
    if not rows.rows_are_entities:
        checks.append((grouped.n_rows > 1, Problem.GROUP_LISTED_TWICE))
    checks += [
        (grouped[key] != grouped[f"{key}_last"], Problem.GROUP_IN_TWO_LEAVES) for key in rows.keys
    ]
    problem = ibis.cases(*((test, _code(what)) for test, what in checks), else_=_code(Problem.NONE))
    further = [*(["n"] if "kept" in table.columns else []), *_altered(table)]
    return grouped.select(*rows.keys, "size", *further, problem=problem)


def _altered(table: Any) -> dict[str, Any]:
    """Sums of the rows that were lowered or left out, where some may be."""
    return {name: table[name].sum().cast("int64") for name in ALTERED if name in table.columns}


def _sum_of_sizes(table: Any) -> Any:
    return at_most(table["size"].sum(), LARGEST_NUMBER).cast("int64")


def _sum_of_groups(table: Any) -> Any:
    """Groups of one size; one more than are counted stands for all larger numbers, which are
    refused.
    """
    return at_most(at_most(table.n, MOST_GROUPS + 1).sum(), MOST_GROUPS + 1).cast("int64")


def _code(what: Any) -> Any:
    return ibis.literal(int(what), "int8") if isinstance(what, Problem) else what
