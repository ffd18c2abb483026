"""``tallytree report``: a release as one HTML file."""

from __future__ import annotations

from tallytree.cli.app import app, say
from tallytree.cli.commands import command
from tallytree.cli.sources import Folder
from tallytree.cli.truth import truth_of
from tallytree.options.asking import ReportOptions


@command(app)
def report(folder: Folder, where: ReportOptions) -> None:
    """Write one self-contained HTML file that opens offline: regions to click through, charts,
    budget, checks.

    Example: tallytree report out
    Example: tallytree report out --group-name household/households --shapes counties.json
        --shapes-id fips
    """
    from tallytree.kinds.showing import write_report

    evaluation = None
    if where.truth is not None:
        from tallytree.kinds.verbs import evaluate, kind_of, load

        release = load(folder)
        source, request = truth_of(where.truth, kind_of(release))
        evaluation = evaluate(release, source, **request)
    target = write_report(folder, where.out, evaluation=evaluation, look=where)
    n_bytes = target.stat().st_size
    shown = f"{n_bytes / 1e6:.1f} MB" if n_bytes > 1e5 else f"{n_bytes / 1e3:.0f} kB"
    say(f"Open {target} in a browser ({shown}, needs no network).")
