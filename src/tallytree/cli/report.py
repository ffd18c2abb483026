"""``tallytree report``: a release as one HTML file."""

from __future__ import annotations

from tallytree.cli.app import app, say
from tallytree.cli.commands import command
from tallytree.cli.sources import Folder
from tallytree.group_sizes.kind import read_truth
from tallytree.kinds.showing import write_report
from tallytree.kinds.verbs import evaluate, load
from tallytree.options.asking import ReportOptions
from tallytree.options.reading import ReadOptions


@command(app)
def report(folder: Folder, where: ReportOptions, data: ReadOptions) -> None:
    """Write one self-contained HTML file that opens offline: regions to click through, charts,
    budget, checks.

    Example: tallytree report out Example: tallytree report out --group-name household/households
    --shapes counties.json --shapes-id fips
    """
    evaluation = None
    if where.truth is not None:
        evaluation = evaluate(load(folder), read_truth(where.truth, data))
    target = write_report(folder, where.out, evaluation=evaluation, look=where)
    n_bytes = target.stat().st_size
    shown = f"{n_bytes / 1e6:.1f} MB" if n_bytes > 1e5 else f"{n_bytes / 1e3:.0f} kB"
    say(f"Open {target} in a browser ({shown}, needs no network).")
