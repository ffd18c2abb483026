"""Columns by their meaning: identifiers as they are, and numbers that must be whole and not
negative.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import ibis
import ibis.expr.datatypes as dt
from ibis.expr import operations as ops

from tallytree.errors import InputError
from tallytree.ingest.headers import may_be_values
from tallytree.model.limits import LARGEST_NUMBER, MOST_ENTITIES


class Problem(IntEnum):
    """What can be wrong with a row; travels as a number with the aggregation, so that no scan of
    its own is needed.

    The smallest one wins where several meet.
    """

    NONE = 0
    GROUP_IN_TWO_LEAVES = -1
    GROUP_LISTED_TWICE = -2
    GROUP_NOT_IN_GROUPS = -3
    GROUPS_LISTED_TWICE = -4
    COUNT_FRACTIONAL = -5
    COUNT_NEGATIVE = -6
    COUNT_NOT_A_NUMBER = -7
    COUNT_MISSING = -8
    NUMBER_FRACTIONAL = -9
    NUMBER_NEGATIVE = -10
    NUMBER_NOT_A_NUMBER = -11
    NUMBER_MISSING = -12
    REGION_MISSING = -13
    GROUP_MISSING = -14
    UNIT_MISSING = -15


def require_columns(
    wanted: Sequence[str], present: Sequence[str], source: str, *, named: bool = True
) -> None:
    """Refuse a column that is not there, naming those that are, but for what may be values of a
    first row.

    ``named`` is false where a look at the rows has shown that the first one is none of names.
    """
    sure = any(column in present for column in wanted) and wanted is not present
    hidden = not sure and (not named or may_be_values(present))
    for column in wanted:
        if not column:
            raise InputError(f"A column of {source} without a name cannot be used; name it first.")
        if present.count(column) > 1:
            several = (
                "twice the same in its first row"
                if hidden
                else f"several columns called {column!r}"
            )
            raise InputError(
                f"{source} has {several}; name its columns so that each name is unique."
            )
        if column not in present and hidden:
            raise InputError(
                f"{source} has no column {column!r}. Its first row looks like data, so it is not "
                "shown here: give the file a "
                "first line with the names of its columns. Where that is what it has, ask for one "
                "of these names as it stands."
            )
        if column not in present:
            close = difflib.get_close_matches(
                column.lower(), [name.lower() for name in present], n=1
            )
            meant = [name for name in present if close and name.lower() == close[0]]
            hint = f" Did you mean {meant[0]!r}?" if meant else ""
            shown = ", ".join(repr(name) for name in present[:30]) + (
                ", …" if len(present) > 30 else ""
            )
            raise InputError(
                f"{source} has no column {column!r}; its columns are {shown or 'none'}.{hint}"
            )
    _refuse_alike(wanted, source)


def _refuse_alike(columns: Sequence[str], source: str) -> None:
    """Refuse two columns whose names many databases, ours too, take for one."""
    first: dict[str, str] = {}
    for column in columns:
        other = first.setdefault(column.lower(), column)
        if other != column:
            raise InputError(
                f"The columns {other!r} and {column!r} of {source} differ by capital letters "
                "alone, which databases do not tell apart; rename one of them."
            )


def identifier(table: Any, column: str, source: str) -> Any:
    """A column of group or region identifiers, missing values as null.

    Text and integers stay as they are. Floats are how some tools write integers with gaps: whole
    ones become integers, all others count as missing.
    """
    values = table[column]
    kind = values.type()
    if isinstance(kind, dt.Floating):
        nothing = ibis.null("int64")
        too_large = is_nan(values) | (values.abs() > LARGEST_NUMBER)
        return ibis.cases(
            (too_large, nothing), (values == values.floor(), values.cast("int64")), else_=nothing
        )
    if isinstance(kind, (dt.Boolean, dt.UUID, dt.Decimal)):
        return values.cast("string")
    if isinstance(kind, dt.String):
        return letter_by_letter(values)
    if isinstance(kind, (dt.Integer, dt.Date, dt.Timestamp)):
        return values
    raise InputError(
        f"Column {column!r} of {source} has type {kind}, which cannot name groups or regions; use "
        "text or integers."
    )


@ibis.udf.scalar.builtin(name="convert_to", signature=(("string", "string"), "binary"))
def _bytes_of(text: Any, encoding: Any) -> Any:
    """Never called: Ibis only writes its SQL."""


@ibis.udf.scalar.builtin(name="convert_from", signature=(("binary", "string"), "string"))
def _text_of(written: Any, encoding: Any) -> Any:
    """Never called: Ibis only writes its SQL."""


def letter_by_letter(values: Any) -> Any:
    """The same text, compared exactly: a column may have a collation that takes ``a`` for ``A``,
    and would make one unit, group or region of two.
    """
    engine = values.get_backend().name
    if engine == "postgres":  # what a function makes of bytes has the default collation: exact
        return _text_of(_bytes_of(values.cast("string"), "UTF8"), "UTF8")
    return values + "" if engine == "sqlite" else values  # an expression has no column's collation


def is_nan(values: Any) -> Any:
    """Where floats are NaN; nowhere on engines that store NaN as null."""
    return values.isnan() if values.get_backend().has_operation(ops.IsNan) else ibis.literal(False)


def whole_number(table: Any, column: str, source: str, *, count: bool = False) -> tuple[Any, Any]:
    """A column of whole numbers of at least 0, as ``(value, problem)``; those beyond
    :mod:`tallytree.model.limits` saturate.

    Values that are something else become 0 and say in ``problem`` what they are, so that a column
    of a million fractions does not come back as a million sizes.
    """
    shift = Problem.COUNT_MISSING - Problem.NUMBER_MISSING if count else 0
    raw = table[column]
    kind = raw.type()
    number = raw.try_cast("float64") if isinstance(kind, dt.String) else raw
    checks = [(raw.isnull(), Problem.NUMBER_MISSING)]
    if isinstance(kind, dt.Floating):
        checks.append((is_nan(number), Problem.NUMBER_MISSING))
    elif isinstance(kind, dt.String):
        checks.append((number.isnull() | is_nan(number), Problem.NUMBER_NOT_A_NUMBER))
    elif not isinstance(kind, (dt.Integer, dt.Decimal)):
        raise InputError(
            f"Column {column!r} of {source} has type {kind}; whole numbers of at least 0 are "
            "needed."
        )
    # Numbers are cast to whole ones, also to see whether they are: what is cast fits, whatever the
    # number is.
    bounded = at_most(
        number.cast("float64") if isinstance(kind, dt.Decimal) else number,
        MOST_ENTITIES if count else LARGEST_NUMBER,
    )
    checks.append((number < 0, Problem.NUMBER_NEGATIVE))
    if not isinstance(kind, dt.Integer):
        checks.append((bounded != bounded.floor(), Problem.NUMBER_FRACTIONAL))
    problem = ibis.cases(
        *((test, ibis.literal(what + shift, "int8")) for test, what in checks),
        else_=ibis.literal(0, "int8"),
    )
    value = ibis.cases((problem == 0, bounded.cast("int64")), else_=ibis.literal(0, "int64"))
    return value, problem


def one_if(condition: Any) -> Any:
    """1 where a condition holds and 0 elsewhere: PostgreSQL makes no long integer of a Boolean."""
    return ibis.cases((condition, ibis.literal(1, "int64")), else_=ibis.literal(0, "int64"))


def at_most(value: Any, largest: int) -> Any:
    """The value, or the largest that is taken: sums saturate instead of wrapping around."""
    bound = ibis.literal(largest, "uint64" if value.type().is_uint64() else "int64")
    return ibis.cases((value > largest, bound), else_=value)


def number(table: Any, column: str, source: str) -> tuple[Any, Any]:
    """A column of any numbers, as ``(value, problem)``: floats, missing ones as null or NaN. Text
    must hold numbers.
    """
    raw = table[column]
    kind = raw.type()
    if isinstance(kind, dt.String):
        value = raw.try_cast("float64")
        bad = ibis.cases(
            (raw.notnull() & value.isnull(), int(Problem.NUMBER_NOT_A_NUMBER)), else_=0
        )
        return value, bad.cast("int8")
    if not isinstance(kind, (dt.Integer, dt.Decimal, dt.Floating)):
        raise InputError(f"Column {column!r} of {source} has type {kind}; numbers are needed.")
    return raw.cast("float64"), ibis.literal(0, "int8")
