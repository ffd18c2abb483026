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
    over the root of their number, as kuo2018 §6 draws its error bars; None for what is computed
    exactly. ``ours`` is None where no data are at hand for what the paper prints. ``remark`` says
    what a reader must know to compare the two: another setting, a claim that does not hold and why.
    """

    table: str
    row: str
    column: str
    paper: float | None
    ours: float | None
    unit: str
    spread: float | None = None
    remark: str = ""


COLUMNS = ("table", "row", "column", "paper", "ours", "±", "unit", "remark")


def shown(cell: Cell) -> list[object]:
    """The line of a printed table, in the order of ``COLUMNS``."""
    numbers = ["–" if value is None else value for value in (cell.paper, cell.ours, cell.spread)]
    return [cell.table, cell.row, cell.column, *numbers, cell.unit, cell.remark]


def verdict(holds: bool, why: str) -> str:
    """The remark beside a claim that a paper makes in words.

    Examples
    --------
    >>> verdict(False, "other data")
    'does not hold: other data'
    """
    return f"{'holds' if holds else 'does not hold'}: {why}"


def verdict_below_one(ratio: float, spread: float | None, why: str) -> str:
    """The remark beside a claim that one error is below another: undecided where their ratio is
    within two standard deviations of 1.

    Examples
    --------
    >>> verdict_below_one(0.9, 0.1, "mean of 3 runs")
    'undecided, within two spreads of 1: mean of 3 runs'
    """
    if spread is not None and abs(ratio - 1) <= 2 * spread:
        return f"undecided, within two spreads of 1: {why}"
    return verdict(ratio < 1, why)


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


def ratio_of_means(above: Sequence[float], below: Sequence[float]) -> tuple[float, float | None]:
    """The ratio of two means over the same runs, and one standard deviation of it.

    To first order the ratio r = ā/b̄ is off by mean(aᵢ − r bᵢ)/b̄, so that its spread is that of the
    mean of (aᵢ − r bᵢ)/b̄; None for a single run.

    Examples
    --------
    >>> ratio_of_means([2.0, 6.0], [1.0, 3.0])
    (2.0, 0.0)
    """
    base = sum(below) / len(below)
    ratio = sum(above) / len(above) / base
    _, spread = mean_of_runs([(a - ratio * b) / base for a, b in zip(above, below)])
    return ratio, spread


def tables(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells by table, in the order in which they came."""
    grouped: dict[str, list[Cell]] = {}
    for cell in cells:
        grouped.setdefault(cell.table, []).append(cell)
    return grouped
