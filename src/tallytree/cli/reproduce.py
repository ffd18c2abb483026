"""``tallytree reproduce``: the papers' tables and figures, theirs beside ours."""

from __future__ import annotations

import importlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tallytree.cli.app import app, print_table, progress_bar, say
from tallytree.cli.commands import command
from tallytree.options.finishing import ReproduceOptions


class Paper(StrEnum):
    """Papers that can be reproduced; each is a folder of :mod:`tallytree.papers`."""

    kuo2018 = "kuo2018"
    qardaji2013 = "qardaji2013"
    slides = "slides"
    hay2010 = "hay2010"
    fioretto2021 = "fioretto2021"
    dpbench = "dpbench"


@command(app)
def reproduce(
    paper: Annotated[Paper, typer.Argument(help="Which paper.")], how: ReproduceOptions
) -> None:
    """Print a paper's figures beside ours.

    Example: tallytree reproduce kuo2018 --quick --json kuo2018.json
    """
    from tallytree.papers.cells import COLUMNS, shown, tables, write_cells
    from tallytree.papers.plots import write_plots

    data, quick = None if how.data is None else Path(how.data), how.quick
    module = importlib.import_module(f"tallytree.papers.{paper.value}.reproduce")
    with progress_bar() as progress:
        cells = module.reproduce(data=data, quick=quick, progress=progress)
    settings = {
        "paper": paper.value,
        "quick": quick,
        **({"cut": module.CUTS} if quick else {}),
        "data": "built-in, synthetic" if data is None else str(data),
        "noise": getattr(module, "SEEDS", "insecure seeds 0, 1, 2, …, one per run"),
    }
    # With the tables, so that a file that they are sent to says how they came about.
    print_table("settings", ["setting", "value"], list(settings.items()))
    for name, rows in tables(cells).items():
        print_table(name, COLUMNS, [shown(cell) for cell in rows])
    if how.json is not None:
        write_cells(cells, Path(how.json), settings)
        say(f"Wrote {len(cells)} cells to {how.json}")
    if how.plots is not None:
        say(f"Wrote {len(write_plots(cells, Path(how.plots)))} plots to {how.plots}")
