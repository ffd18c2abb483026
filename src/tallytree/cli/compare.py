"""``tallytree compare``: two releases side by side, or a release and a published table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tallytree.cli.app import app, print_json, print_table, progress_bar, say
from tallytree.cli.commands import command
from tallytree.cli.sources import Folder
from tallytree.options.asking import CompareOptions
from tallytree.options.reading import ReadOptions

Second = Annotated[
    str,
    typer.Argument(
        help="Folder of the other release, or a table of published numbers.", metavar="OTHER"
    ),
]


@command(app)
def compare(folder: Folder, second: Second, how: CompareOptions, data: ReadOptions) -> None:
    """Compare two releases, or a release and a published table: differences with intervals, and
    which are clear of noise.

    Example: tallytree compare out2012 out2014 --out changes.csv --page changes.html
    Example: tallytree compare out published.csv --size size --count n --levels state,county
        --root US
    """
    from tallytree.kinds.verbs import compare as compare_releases
    from tallytree.kinds.verbs import load
    from tallytree.storage.folder import MANIFEST

    is_release = (Path(second) / MANIFEST).exists()
    other: Any = load(second) if is_release else second
    with progress_bar() as progress:
        found = compare_releases(
            load(folder), other, rate=how.rate, copies=how.copies, progress=progress, **data.given()
        )
    if how.out is not None:
        from tallytree.releases.export.files import write_table, writing

        with writing(how.out, folder=False, overwrite=True) as place:
            write_table(place, found.table)
    if how.page is not None:
        from tallytree.group_sizes.changes import changes_page
        from tallytree.model.notebook import write_shown

        write_shown(how.page, changes_page(found, Path(folder).name, Path(second).name))
    if how.json:
        print_json({"first": str(folder), "second": str(second), **found.to_json()})
        return
    rows = [[one.level, one.counts, one.clear_alone, one.clear] for one in found.levels]
    head = ["level", "counts", "clear on their own", "clear among all"]
    print_table(f"Changes from {folder} to {second}", head, rows)
    say(
        f"Of the changes that are clear among all counts of a level, at most {how.rate:.0%} are "
        "expected to be noise."
    )
    if found.left_out:
        say(f"{found.left_out:,} regions are in one of the two only and were left out.")
    say(found.note)
