"""``tallytree compare``: two releases side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallytree.cli.app import app, print_json, print_table, progress_bar, say
from tallytree.cli.commands import command
from tallytree.cli.sources import Folder
from tallytree.exporting.files import write_table, writing
from tallytree.kinds.verbs import compare as compare_releases
from tallytree.kinds.verbs import load
from tallytree.options.asking import CompareOptions
from tallytree.released.group_sizes.comparison import COMPOSITION

Second = Annotated[Path, typer.Argument(help="Folder of the other release.", metavar="DIR")]


@command(app)
def compare(folder: Folder, second: Second, how: CompareOptions) -> None:
    """Compare two releases: differences with intervals, and which of them are clear of noise.

    Example: tallytree compare out2012 out2014 --out changes.csv
    """
    with progress_bar() as progress:
        found = compare_releases(load(folder), load(second), rate=how.rate, copies=how.copies, progress=progress)
    if how.out is not None:
        with writing(how.out, folder=False, overwrite=True) as place:
            write_table(place, found.table)
    if how.json:
        print_json({"first": str(folder), "second": str(second), **found.to_json()})
        return
    rows = [[one.level, one.counts, one.clear_alone, one.clear] for one in found.levels]
    head = ["level", "counts", "clear on their own", "clear among all"]
    print_table(f"Changes from {folder} to {second}", head, rows)
    say(f"Of the changes that are clear among all counts of a level, at most {how.rate:.0%} are expected to be noise.")
    if found.left_out:
        say(f"{found.left_out:,} regions are in one of the releases only and were left out.")
    say(COMPOSITION)
