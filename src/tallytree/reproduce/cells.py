"""Figures of a paper beside ours: the common form of every reproduction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cell:
    """One figure: where it stands in the paper, what the paper prints (None where it prints none), what we got."""

    table: str
    row: str
    column: str
    paper: float | None
    ours: float | None
    unit: str


def write_cells(cells: Sequence[Cell], file: Path, settings: Mapping[str, object]) -> None:
    """Write cells as JSON: ``{"settings": {…}, "cells": [{"table", "row", "column", "paper", "ours", "unit"}, …]}``."""
    facts = {"settings": dict(settings), "cells": [asdict(cell) for cell in cells]}
    file.write_text(json.dumps(facts, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def tables(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells by table, in the order in which they came."""
    grouped: dict[str, list[Cell]] = {}
    for cell in cells:
        grouped.setdefault(cell.table, []).append(cell)
    return grouped
