"""A part of a table: the rows whose column has one label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


def kept_rows(part: Part | None) -> dict[str, Any]:
    """The filter that the data were read with, as manifests name it; nothing where all rows were
    read.
    """
    return {} if part is None else {"where": part.to_json()}


def part_of(manifest: Mapping[str, Any]) -> Part | None:
    """The rows of its source that a release was made from; None for all of them."""
    where = manifest.get("where")
    return None if where is None else Part(str(where["column"]), str(where["value"]))
