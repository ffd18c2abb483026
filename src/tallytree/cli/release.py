"""``tallytree release``: from a table to a verified release on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallytree.cli.app import app, print_json, print_table, progress_bar, say
from tallytree.cli.commands import command
from tallytree.cli.paying import publish
from tallytree.cli.sources import SourceOrConfig, read_data
from tallytree.errors import RequestError
from tallytree.options.group_sizes import GroupSizesOutput, ReleaseOptions
from tallytree.options.groups import rows_to_read
from tallytree.options.reading import EngineOptions, ReadOptions

if TYPE_CHECKING:
    from tallytree.group_sizes.publish import HeldElsewhere
    from tallytree.group_sizes.release.release import Release
    from tallytree.group_sizes.release.written import WrittenRelease
    from tallytree.model.confidential import ConfidentialCounts
    from tallytree.releases.keeping import Keeping


@command(app)
def release(
    source: SourceOrConfig,
    where: GroupSizesOutput,
    data: ReadOptions,
    engine: EngineOptions,
    how: ReleaseOptions,
) -> None:
    """Release how many groups have each size, at every level.

    Example: tallytree release people.parquet --public groups --group household --levels
        state,county --epsilon 1.0 --out out
    Example: tallytree release people.parquet --public groups --group household --levels
        state,county --epsilon 1.0 --dry-run
    """
    from tallytree.group_sizes.publish import make_release
    from tallytree.group_sizes.release.release import load_release
    from tallytree.releases.keeping import check_copies

    data = replace(data, where=rows_to_read(data.where, how))
    if where.dry_run:
        show_preview(source, data, how, where)
        return
    if where.out is None:
        raise RequestError("--out is missing: the folder to write. To look only, say --dry-run.")
    if where.intervals:
        check_copies(where.intervals)  # before the data are read

    def make(keeping: Keeping) -> Release | WrittenRelease:
        with progress_bar() as progress:
            counts = read_data(source, data, engine)
            refuse_doubts(counts, where)
            return make_release(counts, how, keeping, progress)

    made, found = publish(how, where, make, load_release, intervals=where.intervals)
    if where.json:
        print_json({"out": where.out, "already_released": found, **summary(made)})
    else:
        say_summary(made, Path(str(where.out)))


def refuse_doubts(counts: ConfidentialCounts | HeldElsewhere, where: GroupSizesOutput) -> None:
    """Refuse, before noise, what public facts show to be wrong."""
    from tallytree.group_sizes.doubts import reversed_levels, single_groups
    from tallytree.ingest.regions import alike_labels

    tree, public = counts.hierarchy, counts.public
    totals = counts.n_groups if public.groups_public else None
    alike = alike_labels(tree, public.attributes)
    doubts = [*reversed_levels(tree), *single_groups(tree, totals), *alike]
    if doubts and not where.sure:
        raise RequestError(f"{' '.join(doubts)} Nothing was paid. If it is meant so, say --sure.")


def show_preview(
    source: str, data: ReadOptions, how: ReleaseOptions, where: GroupSizesOutput
) -> None:
    """Tell what is known about a release before it is paid for."""
    from tallytree.group_sizes.preview import preview

    with progress_bar() as progress:
        seen = preview(source, data, how, shape=where.shape, progress=progress)
    facts = seen.to_json()
    if where.json:
        print_json(facts)
        return
    say("Nothing was paid or written, and no size was read.")
    say(
        "Regions: "
        + ", ".join(f"{level['regions']:,} {level['name']}" for level in facts["levels"])
    )
    for name, note in facts["public"].items():
        say(f"Public, {name.replace('_', ' ')}: {note}.")
    for doubt in seen.doubts:
        say(f"Doubtful: {doubt}")
    for assumption in seen.assumptions:
        say(f"Assumed: {assumption}")
    if seen.prediction is None:
        say(
            "Errors: not tried, which would take as long as the release; `tallytree plan` predicts "
            "them."
        )
    else:
        levels = seen.prediction.levels
        rows = [
            [level.name, level.regions, level.emd, level.l1, level.count_error] for level in levels
        ]
        print_table(
            "Predicted mean error per region", ["level", "regions", "EMD", "L1", "one count"], rows
        )
        say(
            f"Tried on assumed data: {seen.seconds:,.1f} s of CPU time and "
            f"{seen.peak_bytes / 1e6:,.0f} MB of memory."
        )
    say(f"The release: {seen.cost.told()}.")


def summary(made: Release | WrittenRelease) -> dict[str, Any]:
    """What a release is, for people and programs."""
    privacy = made.manifest["privacy"]
    return {
        "levels": made.manifest["levels"],
        "mechanism": made.manifest["mechanism"]["name"],
        "private": privacy["private"],
        "statement": privacy["statement"],
        "public": made.manifest["public"],
        "rows": made.n_rows,
    }


def say_summary(made: Release | WrittenRelease, out: Path) -> None:
    """Tell what was released and what it assumes."""
    from tallytree.group_sizes.doubts import doubtful_levels
    from tallytree.group_sizes.release.region import one_size
    from tallytree.group_sizes.release.release import Release
    from tallytree.releases.notes import notes_of

    facts = summary(made)
    levels = ", ".join(f"{level['regions']:,} {level['name']}" for level in facts["levels"])
    say(f"Released {levels} ({facts['mechanism']}) to {out}")
    say(facts["statement"])
    notes = notes_of(facts)
    for name in ("hierarchy", "group_totals"):
        hidden = name in notes.confidential
        say(f"Note: {'the numbers of groups are ' if hidden else ''}{facts['public'][name]}.")
    if isinstance(made, Release):
        for remark in one_size(made.region(made.root)):
            say(f"Note: {remark}")
    for above, below in doubtful_levels(made.hierarchy):
        say(
            f"Note: most {above} regions hold a single {below}. --levels goes from the largest "
            "regions to the smallest."
        )
