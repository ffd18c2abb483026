"""A part of a table: the rows whose column has one label."""

from __future__ import annotations

from dataclasses import dataclass

from tallytree.errors import RequestError


@dataclass(frozen=True)
class Part:
    """The rows whose column has exactly this label, compared as text: case, spaces and accents
    count.
    """

    column: str
    value: str

    def to_json(self) -> dict[str, str]:
        """As manifests hold it."""
        return {"column": self.column, "value": self.value}

    def __str__(self) -> str:
        return f"{self.column}={self.value}"


def part_from(where: object, option: str = "where") -> Part | None:
    """The part that ``"COLUMN=VALUE"``, a pair ``(column, value)`` or a :class:`Part` names; None
    for all rows.

    Examples
    --------
    >>> part_from("state=Georgia")
    Part(column='state', value='Georgia')
    """
    if where is None or isinstance(where, Part):
        return where
    column, value = "", ""
    if isinstance(where, str):
        column, _, value = where.partition("=")
    elif isinstance(where, tuple) and len(where) == 2:
        column, value = where
    if not (isinstance(column, str) and isinstance(value, str) and column and value):
        raise RequestError(
            f"{option} is {where!r}; write it as COLUMN=VALUE, such as state=Georgia."
        )
    return Part(column, value)
