"""``tallytree report``: a release as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallytree.cli import sources
from tallytree.cli.app import app, say
from tallytree.kinds.verbs import evaluate, load, write_report


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a release.", metavar="DIR")],
    out: Annotated[Path | None, typer.Option(help="File to write; DIR/report.html when left out.")] = None,
    truth: Annotated[
        str | None,
        typer.Option(help="For the owner: the confidential data, to show true errors. NOT PRIVATE.", metavar="SOURCE"),
    ] = None,
    group: sources.Group = None,
    levels: sources.Levels = None,
    size: sources.Size = None,
    count: sources.Count = None,
    root: sources.Root = "total",
) -> None:
    """Write one self-contained HTML file that opens offline: regions to click through, charts, budget, checks.

    Example: tallytree report out
    """
    evaluation = None
    if truth is not None:
        data = sources.DataOptions(
            source=truth, group=group, levels=levels, size=size, count=count, root=root, public="groups"
        )
        evaluation = evaluate(load(folder), data.read())
    target = write_report(folder, out, evaluation=evaluation)
    n_bytes = target.stat().st_size
    shown = f"{n_bytes / 1e6:.1f} MB" if n_bytes > 1e5 else f"{n_bytes / 1e3:.0f} kB"
    say(f"Open {target} in a browser ({shown}, needs no network).")
