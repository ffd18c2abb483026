"""``tallytree demo``: the whole journey on synthetic data."""

from __future__ import annotations

import shutil
from pathlib import Path

from tallytree.cli.app import app, print_table, progress_bar, say
from tallytree.cli.commands import command
from tallytree.errors import StorageError
from tallytree.options.finishing import DemoOptions

LEVELS = ("state", "county")


@command(app)
def demo(how: DemoOptions) -> None:
    """Make a US-like housing data set, release it, verify it, measure its error and write its
    report.

    Example: tallytree demo --out demo
    """
    from tallytree.group_sizes.evaluate import evaluate
    from tallytree.group_sizes.publish import release
    from tallytree.ingest.read import read
    from tallytree.kinds.showing import write_report
    from tallytree.kinds.verbs import load, verify
    from tallytree.papers.housing import housing_counts, write_people

    out, households = Path(how.out), how.households
    people, groups, target = out / "people.parquet", out / "households.parquet", out / "release"
    _prepare(out, overwrite=how.overwrite)
    with progress_bar() as progress:
        progress(0, 4, "making synthetic households")
        n_people = write_people(housing_counts(households), people, groups)
        progress(1, 4, "counting")
        counts = read(
            people, group="household", levels=LEVELS, groups=groups, root="US", entity="person"
        )
        made = release(counts, epsilon=how.epsilon, progress=progress)
        made.save(target)
        verify(target).raise_if_failed()
        page = write_report(target)
    say(f"{n_people:,} synthetic people in {households:,} households: {people}")
    say(f"Released to {target}; every check passed (tallytree verify {target}).")
    say(made.manifest["privacy"]["statement"])
    say("How far the release is from the truth (which only the owner of the data can tell):")
    errors = evaluate(load(target), counts)
    rows = [[level.name, level.regions, level.emd, level.l1] for level in errors.levels]
    print_table("Mean error per region", ["level", "regions", "EMD", "L1"], rows)
    say(f"Look at it: open {page} in a browser.")
    say(f"Ask it: tallytree query {target} --region US/Georgia --at-least 7")


def _prepare(out: Path, *, overwrite: bool) -> None:
    if out.exists():
        if not overwrite:
            raise StorageError(f"{out} already exists. Choose another folder, or pass --overwrite.")
        if any(out.iterdir()) and not (out / "people.parquet").exists():
            raise StorageError(
                f"{out} does not hold an earlier demo, so it is not overwritten. Choose another "
                "folder."
            )
        shutil.rmtree(out)
    try:
        out.mkdir(parents=True)
    except OSError as error:
        raise StorageError(
            f"Cannot write to {out}: {error.strerror}. Choose another folder."
        ) from None
