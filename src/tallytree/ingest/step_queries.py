"""The query that counts rows per step of a stream."""

from __future__ import annotations

from typing import Any

import ibis
import ibis.expr.datatypes as dt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import InputError
from tallytree.ingest.columns import Problem, identifier, is_nan, number, one_if
from tallytree.ingest.engine import open_session
from tallytree.ingest.kernels import spaced
from tallytree.ingest.sources import Source
from tallytree.ingest.value_queries import Column, left_out_of, sums_of
from tallytree.model.arrays import IntArray


def count_in_steps(
    where: Column, cuts: IntArray, *, dates: bool, min_gap: int | None = None
) -> tuple[IntArray, int, int]:
    """How many entities came from each cut up to, not including, the next; how many before all, and
    how many rows of units with too many were left out.

    Rows are added up by whole numbers, or days, where the table is, and all that come before or
    after the steps together; what is left is as short as the stream.
    """
    with open_session() as session:
        opened = where.open(session)
        moment, problem = (_day if dates else number)(opened.table, where.names[0], opened.name)
        missing = moment.isnull() | is_nan(moment)
        worse = ibis.cases(
            (missing & (problem == 0), ibis.literal(int(Problem.NUMBER_MISSING), "int8")),
            else_=problem,
        )
        early, late = float(cuts[0] - 1), float(cuts[-1])
        inside = ibis.cases(
            (missing | (moment >= late), late), (moment < early + 1, early), else_=moment
        )
        apart = min_gap is not None and where.unit is not None
        asked = (_by_unit if apart else _by_moment)(where, opened, inside.floor(), worse)
        rows = session.fetch(asked, opened.name)
    if dates and len(rows) and pc.min(rows["problem"]).as_py() == Problem.NUMBER_NOT_A_NUMBER:
        raise InputError(
            f"Column {where.names[0]!r} of {opened.name} has text that is not a date such as "
            "2025-01-31."
        )
    where.refuse(rows, opened)
    place = np.searchsorted(cuts, rows["x"].cast(pa.float64()).to_numpy(), side="right") - 1
    counted = (place >= 0) & (place < len(cuts) - 1)
    counts = np.zeros(len(cuts) - 1, dtype=np.int64)
    entities = rows["n"].cast(pa.int64()).to_numpy()
    if apart and min_gap is not None:
        units = rows["u"].cast(pa.int64()).to_numpy()
        order = np.lexsort((place, units))
        order = order[counted[order]]
        chosen = spaced(units[order], place[order], where.contributions, min_gap)
        np.add.at(counts, place[order][chosen], 1)
        left_out = int(entities[counted].sum()) - int(chosen.sum())
        return counts, int(entities[place < 0].sum()), left_out
    np.add.at(counts, place[counted], entities[counted])
    return (
        counts,
        int(entities[place < 0].sum()),
        left_out_of(rows.filter(pa.array(place < len(counts)))),
    )


def _by_moment(where: Column, opened: Source, moment: Any, problem: Any) -> Any:
    """How many entities came at each moment, and what is wrong with the worst row.

    Of a unit the first rows in time count. Rows that come later stand behind them and push none of
    them out; rows of one moment are alike, so it does not matter which of them count.
    """
    weight, weight_problem = where.weight(opened)
    columns = {"x": moment, "n": weight, "problem": ibis.least(problem, weight_problem)}
    if where.unit is not None:
        columns["u"] = identifier(opened.table, where.unit, opened.name)
    rows = opened.table.select(**columns)
    if where.unit is not None:
        place = ibis.row_number().over(group_by=rows.u, order_by=rows.x)
        rows = rows.mutate(
            n=ibis.cases((place < where.contributions, rows.n), else_=ibis.literal(0, "int64")),
            left_out=one_if(place >= where.contributions),
            problem=ibis.cases(
                (rows.u.isnull(), ibis.literal(int(Problem.UNIT_MISSING), "int8")),
                else_=rows.problem,
            ),
        )
    return rows.group_by("x").agg(**sums_of(rows))


def _by_unit(where: Column, opened: Source, moment: Any, problem: Any) -> Any:
    """How many rows of each unit came at each moment; units are numbered."""
    unit = identifier(opened.table, str(where.unit), opened.name)
    rows = opened.table.select(x=moment, problem=problem, name=unit)
    rows = rows.mutate(
        n=ibis.literal(1, "int64"),
        u=ibis.dense_rank().over(order_by=rows.name),
        problem=ibis.cases(
            (rows.name.isnull(), ibis.literal(int(Problem.UNIT_MISSING), "int8")),
            else_=rows.problem,
        ),
    )
    return rows.group_by(["u", "x"]).agg(**sums_of(rows))


def _day(table: Any, column: str, source: str) -> tuple[Any, Any]:
    """Days since 1970 of a column of dates or times, as ``(value, problem)``. Text must hold dates."""
    raw = table[column]
    kind = raw.type()
    bad = ibis.literal(0, "int8")
    if isinstance(kind, dt.String):
        day = raw.try_cast("date")
        bad = ibis.cases(
            (raw.notnull() & day.isnull(), int(Problem.NUMBER_NOT_A_NUMBER)), else_=0
        ).cast("int8")
    elif isinstance(kind, dt.Timestamp) and kind.timezone is not None:
        # On which day it lies would depend on the zone of whoever asks, and a row must never move
        # to another step.
        raise InputError(
            f"Column {column!r} of {source} has a time zone; give dates, or times of the zone that "
            "you mean."
        )
    elif isinstance(kind, (dt.Date, dt.Timestamp)):
        day = raw.cast("date")
    else:
        raise InputError(
            f"Column {column!r} of {source} has type {kind}; dates or times are needed."
        )
    return day.epoch_days().cast("float64"), bad
