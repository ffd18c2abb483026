"""Plots of reproduced figures as Vega-Lite specifications: one JSON file per figure, with its
numbers inside.

A table whose name begins with "Figure" is plotted if its columns read ``name = number``: the number
goes across, the value up, one line per row of the table. Vega-Lite files open in any Vega viewer
and need no plotting library here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallytree.papers.cells import Cell, tables

COLUMN = re.compile(r"^(?P<name>.+) = (?P<number>-?[\d.]+(?:e-?\d+)?)$")
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


def write_plots(cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Write one specification per figure and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, rows in tables(cells).items():
        spec = line_chart(name, rows)
        if spec is None:
            continue
        file = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.vl.json"
        file.write_text(json.dumps(spec, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        written.append(file)
    return written


def line_chart(name: str, rows: Sequence[Cell]) -> dict[str, Any] | None:
    """The specification of one figure, or None where a table is no figure of numbers against
    numbers.
    """
    places = [COLUMN.match(cell.column) for cell in rows]
    if not name.startswith("Figure") or not all(places):
        return None
    points = [
        {
            "x": float(place["number"]),
            "y": value,
            "method": cell.row + (" (paper)" if which == "paper" else ""),
        }
        | ({"spread": cell.spread} if which == "ours" and cell.spread is not None else {})
        for cell, place in zip(rows, places)
        if place is not None
        for which, value in (("paper", cell.paper), ("ours", cell.ours))
        if value is not None
    ]
    across = places[0]["name"] if places[0] is not None else ""
    up = {"field": "y", "type": "quantitative", "title": rows[0].unit, "scale": {"type": "log"}}
    line = {"mark": {"type": "line", "point": True}, "encoding": {"y": up}}
    # One standard deviation up and down, where there are several runs.
    bars = {
        "transform": [{"filter": "datum.spread > 0"}],
        "mark": "errorbar",
        "encoding": {"y": up, "yError": {"field": "spread"}},
    }
    return {
        "$schema": SCHEMA,
        "title": name,
        "data": {"values": points},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": across, "scale": {"type": "log"}},
            "color": {"field": "method", "type": "nominal", "title": None},
        },
        "layer": [line, bars],
    }
