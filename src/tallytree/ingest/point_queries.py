"""The query that counts points per cell of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

import ibis

from tallytree.ingest.columns import is_nan, number
from tallytree.ingest.engine import open_session
from tallytree.ingest.value_queries import Column, binned, sums_of
from tallytree.ingest.values import BinnedValues
from tallytree.model.frame import Frame


def count_in_grid(where: Column, frame: Frame) -> BinnedValues:
    """Count points per cell; those outside the box in the cell that is nearest in every dimension."""
    box, shape = frame.box, frame.shape
    with open_session() as session:
        opened = where.open(session)
        columns: dict[str, Any] = {}
        problem = ibis.literal(0, "int8")
        for axis, name in enumerate(where.names):
            columns[f"x{axis}"], axis_problem = number(opened.table, name, opened.name)
            problem = ibis.least(problem, axis_problem)
        points = where.rows(session, opened, columns, problem)
        axes = [points[f"x{axis}"] for axis in range(len(shape))]
        missing = reduce(or_, [_is_no_number(x) for x in axes])
        outside = reduce(or_, [(x < low) | (x > high) for x, (low, high) in zip(axes, box)])
        cell = ibis.literal(0, "int64")
        for axis, (x, (low, high), n_cells) in enumerate(zip(axes, box, shape)):
            own = (
                _cell(x, low, high, n_cells)
                if frame.axes is None
                else _bin(x, frame.axes[axis].edges[1:-1].tolist())
            )
            cell = cell * n_cells + own
        placed = points.select(
            *sums_of(points),
            place=ibis.cases((missing, ibis.literal(-1, "int64")), else_=cell),
            outside=ibis.cases((missing, False), else_=outside),
        )
        query = placed.group_by(["place", "outside"]).agg(**sums_of(placed))
        rows = session.fetch(query, opened.name)
    where.refuse(rows, opened)
    return binned(rows, tuple(shape), opened.name)


def _is_no_number(x: Any) -> Any:
    return x.isnull() | is_nan(x) | (x == math.inf) | (x == -math.inf)


def _cell(x: Any, low: float, high: float, n_cells: int) -> Any:
    # Engines may work out all branches of a case, so what is cast to a whole number must fit one,
    # whatever x is.
    safe = ibis.cases((_is_no_number(x) | (x <= low), low), (x >= high, high), else_=x)
    inside = ((safe - low) * n_cells / (high - low)).floor().cast("int64")
    return ibis.cases(
        (x <= low, ibis.literal(0, "int64")),
        (x >= high, ibis.literal(n_cells - 1, "int64")),
        else_=ibis.least(inside, ibis.literal(n_cells - 1, "int64")),
    )


def _bin(x: Any, inner: Sequence[float], first: int = 0) -> Any:
    """The bin of x by halves: how many of the edges between the first and the last are at most x."""
    if not inner:
        return ibis.literal(first, "int64")
    middle = len(inner) // 2
    below, above = _bin(x, inner[:middle], first), _bin(x, inner[middle + 1 :], first + middle + 1)
    return ibis.cases((x < inner[middle], below), else_=above)
