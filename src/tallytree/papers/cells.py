"""Figures of a paper beside ours: the common form of every reproduction."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cell:
    """One figure: where it stands in the paper, what the paper prints (None where it prints none),
    what we got.

    ``spread`` is one standard deviation of ours, where it is a mean of several runs: that of a run
    over the root of their number, as kuo2018 §6 draws its error bars. ``ours`` is None where no
    data are at hand for what the paper prints.
    """

    table: str
    row: str
    column: str
    paper: float | None
    ours: float | None
    unit: str
    spread: float | None = None


def write_cells(cells: Sequence[Cell], file: Path, settings: Mapping[str, object]) -> None:
    """Write cells as JSON: ``{"settings": {…}, "cells": […]}``, each cell with the names of its
    fields.
    """
    facts = {"settings": dict(settings), "cells": [asdict(cell) for cell in cells]}
    file.write_text(json.dumps(facts, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def mean_of_runs(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean of runs, and one standard deviation of it; None for a single run.

    Examples
    --------
    >>> mean_of_runs([1.0, 3.0]), mean_of_runs([5.0])
    ((2.0, 1.0), (5.0, None))
    """
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, None
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))


def tables(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells by table, in the order in which they came."""
    grouped: dict[str, list[Cell]] = {}
    for cell in cells:
        grouped.setdefault(cell.table, []).append(cell)
    return grouped
