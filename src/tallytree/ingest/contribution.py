"""Bounding what one unit adds: of all rows of a unit at most ``contributions`` are counted.

Which rows these are depends on nothing but the rows of the unit themselves: they are put in the
order of an MD5 digest of their contents, and the first ones count. So the result does not depend on
the order of the table, nor on the engine (but for how it writes fractional numbers), and removing
one unit removes its counted rows and changes nothing else: the sensitivities of
:mod:`tallytree.privacy.sensitivity` hold with k = ``contributions``. The digest serves as a fair
draw among a unit's rows; it hides nothing and needs no secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import ibis

from tallytree.ingest.columns import Problem, one_if
from tallytree.ingest.engine import Session

ENGINES_WITH_MD5 = ("duckdb", "postgres", "pyspark", "snowflake", "mysql")


@ibis.udf.scalar.builtin(name="md5", signature=(("string",), "string"))
def _md5(text: Any) -> Any:
    """Never called: Ibis only writes its SQL."""


def with_kept(
    session: Session, table: Any, identity: Sequence[str], contributions: int, source: str
) -> Any:
    """The rows with a column ``kept``: 1 for those that count, 0 for the others.

    Parameters
    ----------
    table
        Has the unit of each row as ``u``, which is left out of the result, and ``problem``. Moved
        into our own DuckDB where its engine has no MD5.
    identity
        The columns that make up a row; rows that agree on all of them are alike, and it does not
        matter which one counts.
    """
    if session.engine_of(table).name not in ENGINES_WITH_MD5:
        table = session.bring(table, source)
    parts = [table[column].cast("string").fill_null("") for column in ("u", *identity)]
    digest = _md5(reduce(add, [part + ibis.literal("\x1f") for part in parts]))
    order = [digest, *(table[column] for column in identity)]
    place = ibis.row_number().over(group_by=table.u, order_by=order)
    marked = table.mutate(
        kept=one_if(place < contributions),
        problem=ibis.cases(
            (table.u.isnull(), ibis.literal(int(Problem.UNIT_MISSING), "int8")), else_=table.problem
        ),
    )
    return marked.drop("u")
