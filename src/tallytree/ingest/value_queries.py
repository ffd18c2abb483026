"""The queries that count values per bin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import InputError
from tallytree.ingest.columns import Problem, at_most, identifier, is_nan, number, whole_number
from tallytree.ingest.contribution import with_kept
from tallytree.ingest.engine import Session, open_session
from tallytree.ingest.filters import part_columns, rows_of_part
from tallytree.ingest.on_executors import counted_between, counted_by_name
from tallytree.ingest.problems import describe_number, missing_unit
from tallytree.ingest.sources import Source, Wanted, open_source
from tallytree.ingest.values import BinnedValues
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.limits import MOST_ENTITIES
from tallytree.model.part import Part
from tallytree.model.place import ANYWHERE, Place


@dataclass(frozen=True)
class Column:
    """One column (or several, for points) of an input, with the column of how many entities a row
    stands for, or with the column of the protected unit, of which at most ``contributions`` rows
    count. ``where`` keeps the rows of one part.
    """

    source: Any
    column: str | tuple[str, ...]
    count: str | None = None
    place: Place = ANYWHERE
    unit: str | None = None
    contributions: int = 1
    where: Part | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of values."""
        return (self.column,) if isinstance(self.column, str) else self.column

    def open(self, session: Session) -> Source:
        """Open the input, with its columns checked and the rows of the part alone."""
        others = [column for column in (self.count, self.unit) if column is not None]
        wanted = Wanted([*self.names, *others, *part_columns(self.where)])
        return rows_of_part(open_source(session, self.source, wanted, self.place), self.where)

    def weight(self, opened: Source) -> tuple[Any, Any]:
        """How many entities a row stands for, and what is wrong with that number."""
        if self.count is None:
            return ibis.literal(1, "int64"), ibis.literal(0, "int8")
        return whole_number(opened.table, self.count, opened.name, count=True)

    def rows(self, session: Session, opened: Source, values: dict[str, Any], problem: Any) -> Any:
        """The rows as a table: the values, how many entities each stands for (``n``), what is wrong
        (``problem``), and with a unit which ones do not count (``left_out``).
        """
        weight, weight_problem = self.weight(opened)
        columns = {**values, "n": weight, "problem": ibis.least(problem, weight_problem)}
        if self.unit is None:
            return opened.table.select(**columns)
        table = opened.table.select(**columns, u=identifier(opened.table, self.unit, opened.name))
        marked = with_kept(session, table, list(values), self.contributions, opened.name)
        return marked.mutate(n=marked.n * marked.kept, left_out=1 - marked.kept).drop("kept")

    def refuse(self, rows: pa.Table, opened: Source) -> None:
        """Refuse the rows of a result if one of them has a problem."""
        if len(rows) == 0:
            return  # A table without rows is a table like any other: the bins are public.
        worst = Problem(pc.min(rows["problem"]).as_py())
        if worst is Problem.UNIT_MISSING:
            raise InputError(missing_unit(str(self.unit), opened.name))
        if worst is not Problem.NONE:
            is_count = worst >= Problem.COUNT_MISSING
            columns = [str(self.count)] if is_count else list(self.names)
            raise InputError(describe_number(worst, columns, opened.name, whole=is_count))


def count_in_edges(where: Column, edges: FloatArray) -> BinnedValues:
    """Count numbers between edges.

    Equal values are added up first, where the table is; then each finds its bin by an as-of join in
    our own DuckDB, which is exact for any edges and as fast as sorting. On Spark values find their
    bins on the executors.
    """
    with open_session() as session:
        opened = where.open(session)
        value, problem = number(opened.table, where.names[0], opened.name)
        listed = where.rows(session, opened, {"x": value}, problem)
        rows = _on_executors(session, listed, opened, counted_between, edges)
        if rows is None:
            rows = _between(session, listed, edges, opened.name)
    where.refuse(rows, opened)
    return binned(rows, (len(edges) - 1,), opened.name)


def _between(session: Session, listed: Any, edges: FloatArray, source: str) -> pa.Table:
    values = session.bring(_by_value(listed), source)
    bins = session.register(pa.table({"lower": edges[:-1], "bin": np.arange(len(edges) - 1)}))
    found = values.asof_join(bins, values.x >= bins.lower)
    missing = found.x.isnull() | is_nan(found.x)
    outside = ~missing & ((found.x < edges[0]) | (found.x > edges[-1]))
    place = ibis.cases((missing, -1), else_=ibis.coalesce(found["bin"], 0))
    return session.fetch(_by_bin(found, place, outside), source)


def count_in_categories(where: Column, categories: list[str]) -> BinnedValues:
    """Count values by the category that is written as they are."""
    with open_session() as session:
        opened = where.open(session)
        value = identifier(opened.table, where.names[0], opened.name).cast("string")
        listed = where.rows(session, opened, {"x": value}, ibis.literal(0, "int8"))
        rows = _on_executors(session, listed, opened, counted_by_name, categories)
        if rows is None:
            rows = _by_name(session, listed, categories, opened.name)
    where.refuse(rows, opened)
    return binned(rows, (len(categories),), opened.name)


def _by_name(session: Session, listed: Any, categories: list[str], source: str) -> pa.Table:
    values = session.bring(_by_value(listed), source)
    bins = session.register(pa.table({"category": categories, "bin": np.arange(len(categories))}))
    found = values.left_join(bins, values.x == bins.category)
    place = ibis.cases((found.x.isnull(), -1), (found["bin"].isnull(), -2), else_=found["bin"])
    return session.fetch(_by_bin(found, place, ibis.literal(False)), source)


def _on_executors(
    session: Session,
    listed: Any,
    opened: Source,
    count: Callable[[Any, Any, Any, str], pa.Table],
    bins: Any,
) -> pa.Table | None:
    """Counts per bin from Spark, where there may be far more values than bins, and none of them is
    to leave it.
    """
    engine = session.engine_of(listed)
    return count(engine, listed, bins, opened.name) if engine.name == "pyspark" else None


def _by_value(rows: Any) -> Any:
    return rows.group_by("x").agg(**sums_of(rows))


def _by_bin(found: Any, place: Any, outside: Any) -> Any:
    placed = found.select(*sums_of(found), place=place.cast("int64"), outside=outside)
    return placed.group_by(["place", "outside"]).agg(**sums_of(placed))


def sums_of(rows: Any) -> dict[str, Any]:
    """How many entities rows stand for together, where sums saturate, their worst problem, and how
    many were left out.
    """
    sums = {"n": at_most(rows.n.sum(), MOST_ENTITIES).cast("int64"), "problem": rows.problem.min()}
    return sums | (
        {"left_out": rows.left_out.sum().cast("int64")} if "left_out" in rows.columns else {}
    )


def left_out_of(rows: pa.Table) -> int:
    """How many rows of a result were left out."""
    return int(pc.sum(rows["left_out"]).as_py() or 0) if "left_out" in rows.column_names else 0


def binned(rows: pa.Table, shape: tuple[int, ...], source: str) -> BinnedValues:
    """Counts per bin from rows (``place``, ``outside``, ``n``); place -1 stands for missing, -2 for
    not listed.
    """
    place, outside = rows["place"].to_numpy(), rows["outside"].to_numpy().astype(bool)
    count = rows["n"].cast(pa.int64()).to_numpy()
    tables: list[IntArray] = []
    for chosen in (~outside & (place >= 0), outside & (place >= 0)):
        counts = np.zeros(int(np.prod(shape)), dtype=np.int64)
        np.add.at(counts, place[chosen], count[chosen])
        tables.append(counts.reshape(shape))
    n_missing, n_unlisted = (int(count[place == code].sum()) for code in (-1, -2))
    return BinnedValues(tables[0], tables[1], n_unlisted, n_missing, source, left_out_of(rows))
