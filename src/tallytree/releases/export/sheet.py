"""A release as one flat table whose columns say what they are: what every format is written from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.releases.published import Published
from tallytree.releases.reliability import RULE, reliability

READING = (
    "Every number contains noise. Differences smaller than a few standard errors mean nothing."
)

Role = Literal["key", "label", "value", "error", "flag"]

# A cube holds every combination of its keys, so that a zero is a number and not a gap; a larger one
# is of no use to anyone.
MOST_CELLS = 20_000_000

FLAG = "reliability"


@dataclass(frozen=True)
class Column:
    """A column of a sheet.

    Attributes
    ----------
    name
        As in the table.
    role
        ``key``: with the other keys it names the row; ``label``: follows from the keys; ``value``:
        a released number; ``error``: how uncertain the first value is; ``flag``: how far it can be
        relied on.
    title
        What the column holds, in words.
    """

    name: str
    role: Role
    title: str


@dataclass(frozen=True, eq=False)
class Codes:
    """What a key may be, in order.

    Attributes
    ----------
    values
        As they stand in the table.
    labels
        How people call them.
    parent
        Place of the code above each, -1 for none; None where codes are not nested.
    """

    values: Sequence[Any]
    labels: Sequence[str]
    parent: IntArray | None = None


@dataclass(frozen=True, eq=False)
class Sheet:
    """A flat table and what its columns mean.

    Attributes
    ----------
    name
        Short, for files and identifiers.
    title, about
        What the table is, in words; and sentences on privacy and on how to read it.
    table
        The rows.
    columns
        One per column of the table, in its order.
    codes
        Per key what it may be.
    rows_left_out_are_zero
        Whether combinations of keys without a row count as 0.
    partition
        Columns by which large tables are split into files.
    regions
        The regions that rows name, one row each, where there are any.
    beside
        Further tables of the same release, each with other rows; they name the same regions.
    """

    name: str
    title: str
    about: tuple[str, ...]
    table: pa.Table
    columns: tuple[Column, ...]
    codes: Mapping[str, Codes] = field(default_factory=dict)
    rows_left_out_are_zero: bool = False
    partition: tuple[str, ...] = ()
    regions: pa.Table | None = None
    beside: tuple[Sheet, ...] = ()

    def __post_init__(self) -> None:
        if [column.name for column in self.columns] != self.table.column_names:
            raise RequestError("A sheet describes every column of its table, in order.")
        if set(self.codes) != set(self.names("key")):
            raise RequestError("A sheet lists the codes of each of its keys.")

    def names(self, *roles: Role) -> list[str]:
        """Names of the columns with these roles."""
        return [column.name for column in self.columns if column.role in roles]

    def title_of(self, name: str) -> str:
        """What a column holds, in words."""
        return next(column.title for column in self.columns if column.name == name)

    def places(self, key: str) -> IntArray:
        """Place of every row's key among its codes."""
        codes = self.codes[key]
        column = self.table[key]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return np.asarray(
            pc.index_in(column, value_set=pa.array(codes.values, column.type)), dtype=np.int64
        )

    def cells(self) -> IntArray:
        """Place of every row in the cube of all combinations of keys, the last key running fastest."""
        shape = [len(self.codes[key].values) for key in self.names("key")]
        n_cells = int(np.prod(np.array(shape, dtype=object)))
        if n_cells > MOST_CELLS:
            raise RequestError(
                f"A cube of {' x '.join(f'{n:,}' for n in shape)} cells is too large for this "
                "format. Take csv, parquet or "
                "frictionless, which leave empty cells out."
            )
        places = [self.places(key) for key in self.names("key")]
        return (
            np.ravel_multi_index(places, shape)
            if shape
            else np.zeros(len(self.table), dtype=np.int64)
        )


def with_errors(
    table: dict[str, Any],
    columns: list[Column],
    value: str,
    errors: Mapping[str, FloatArray | IntArray],
    note: str,
) -> tuple[dict[str, Any], list[Column]]:
    """A table and its columns with standard errors, ends of intervals and the flag that follows
    from them.
    """
    titles = {
        "std_error": f"standard error of {value}{note}",
        "low": f"lower end of the interval of {value}",
        "high": f"upper end of the interval of {value}",
    }
    if not errors:
        return table, columns
    more = {name: errors[name] for name in titles if name in errors}
    flags = reliability(
        np.asarray(table[value], dtype=np.float64),
        np.asarray(errors["std_error"], dtype=np.float64),
    )
    return (
        {**table, **more, FLAG: pa.array(flags)},
        [
            *columns,
            *(Column(name, "error", titles[name]) for name in more),
            Column(FLAG, "flag", RULE),
        ],
    )


def with_counts(
    rows: dict[str, Any], columns: list[Column], made: pa.Table, std_error: Any
) -> tuple[dict[str, Any], list[Column]]:
    """Count, unbiased estimate and standard error behind the columns that say of what."""
    rows = {**rows, "count": made["count"], "estimate": made["estimate"]}
    columns = [
        *columns,
        Column("count", "value", "published count"),
        Column("estimate", "value", "unbiased estimate behind the count; may be negative"),
    ]
    return with_errors(rows, columns, "count", {"std_error": std_error}, ", of the noise alone")


def about_release(release: Published) -> tuple[str, ...]:
    """What every copy of a release says: the guarantee, or that there is none, and how to read
    numbers.
    """
    privacy = release.manifest["privacy"]
    warning = (
        ()
        if privacy["private"]
        else ("NOT PRIVATE: made with an insecure seed, for tests and experiments only.",)
    )
    return (*warning, privacy["statement"], READING)
