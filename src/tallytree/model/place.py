"""Which rows of a source are meant, and how its text is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """What is said of a source besides its name.

    Attributes
    ----------
    table, sql
        Of a database: a table, ``schema.table`` where it is in another schema than the usual one,
        or a query.
    encoding
        Of text files: how characters are written, such as ``windows-1252``; found where it is not
        said.
    """

    table: str | None = None
    sql: str | None = None
    encoding: str | None = None


ANYWHERE = Place()
"""Where nothing is said: all of a file or table, in an encoding that is found."""
