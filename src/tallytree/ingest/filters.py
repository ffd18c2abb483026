"""Keeping the rows of one part, before anything else is done with a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tallytree.ingest.columns import identifier, require_columns
from tallytree.ingest.sources import Source
from tallytree.model.part import Part


def part_columns(part: Part | None) -> Sequence[str]:
    """The column that a filter reads."""
    return () if part is None else (part.column,)


def rows_of_part(opened: Source, part: Part | None) -> Source:
    """The input with the rows of a part alone, filtered by the engine that holds them; all of it
    where there is no part.

    A label is compared as text and exactly. Rows without a label are in no part, so that each row
    is in at most one.
    """
    if part is None:
        return opened
    require_columns([part.column], opened.columns, opened.name, named=opened.named)
    labels = identifier(opened.table, part.column, opened.name).cast("string")
    return replace(opened, table=opened.table.filter(labels == part.value))
