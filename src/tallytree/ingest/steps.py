"""Reading how many rows came in each step of a stream. The engine is loaded when the first table is
read.
"""

from __future__ import annotations

from typing import Any

from tallytree.errors import RequestError
from tallytree.ingest.shapes import checked_unit
from tallytree.model.confidential import UNALTERED
from tallytree.model.confidential_stream import ConfidentialArrivals
from tallytree.model.part import Part
from tallytree.model.place import Place
from tallytree.model.steps import Steps
from tallytree.model.unit import ENTITY, unit_from

NOTE = "rows before the first step are left out, those after the last one are not counted yet"


def read_steps(
    source: Any,
    column: str,
    steps: Steps,
    n_steps: int,
    *,
    count: str | None = None,
    unit: str = ENTITY,
    contributions: int = 1,
    min_gap: int | None = None,
    entity: str = "row",
    where: Part | None = None,
    **place: str | None,
) -> ConfidentialArrivals:
    """Count the rows of each of the first ``n_steps`` steps, inside the engine that holds the
    table.

    Parameters
    ----------
    source, count, place, where
        As for :func:`tallytree.ingest.values.read_values`.
    column
        When a row came: the number of its step (of fractional numbers the whole part), or a date or
        time of day without a zone.
    unit, contributions
        The column that names the protected unit, of whose rows the first ``contributions`` count:
        the first ones by ``column``, and not just any, so that the rows that count stay the same
        when more of them come. Without a unit, how many rows one unit has at most, on trust.
    min_gap
        Of a unit's rows those alone count that come at least so many steps after the last one that
        counted: what counts follows from earlier rows, and stays the same when more of them come.

    Examples
    --------
    >>> import pyarrow as pa
    >>> visits = pa.table({"day": [1, 1, 3, 9]})
    >>> read_steps(visits, "day", Steps(), 3).counts.tolist()
    [2, 0, 1]
    """
    if unit != ENTITY and count is not None:
        raise RequestError(
            "unit= goes with rows that are entities; with count= a row stands for several of them."
        )
    from tallytree.ingest.step_queries import count_in_steps  # loads Ibis and DuckDB
    from tallytree.ingest.value_queries import Column

    protected = unit_from(unit, entity, contributions, counted=count is not None, min_gap=min_gap)
    bound = checked_unit(unit, contributions) if unit != ENTITY else (None, 1)
    where_from = Column(source, column, count, Place(**place), *bound, where=where)
    counts, n_early, n_left_out = count_in_steps(
        where_from, steps.cuts(n_steps), dates=steps.every is not None, min_gap=min_gap
    )
    note = (
        NOTE
        if unit == ENTITY
        else f"{NOTE}; of one {protected.column} the first rows by {column} count"
        + (f" that are at least {min_gap:,} steps apart" if min_gap else "")
    )
    altered = UNALTERED.also_rows_of(protected, n_left_out).also(
        "entities before the first step, left out", n_early
    )
    return ConfidentialArrivals(counts, note, protected, where, altered)
