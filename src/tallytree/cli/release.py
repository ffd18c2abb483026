"""``tallytree release``: from a table to a verified release on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tallytree.cli.app import app, print_json, progress_bar, say
from tallytree.cli.commands import command
from tallytree.cli.paying import publish
from tallytree.cli.sources import SourceOrConfig, read_data
from tallytree.model.hierarchy import Hierarchy
from tallytree.options.group_sizes import GroupSizesOutput, ReleaseOptions
from tallytree.options.groups import rows_to_read
from tallytree.options.reading import EngineOptions, ReadOptions
from tallytree.publish.copies import check_copies
from tallytree.publish.group_sizes import release as release_counts
from tallytree.publish.intervals import refuse_attributes, with_intervals
from tallytree.released.group_sizes.release import Release


@command(app, needs=("out",))
def release(
    source: SourceOrConfig,
    where: GroupSizesOutput,
    data: ReadOptions,
    engine: EngineOptions,
    how: ReleaseOptions,
) -> None:
    """Release how many groups have each size, at every level.

    Example: tallytree release people.parquet --public groups --group household --levels state,county --epsilon 1.0 --out out
    """

    data = replace(data, where=rows_to_read(data.where, how))
    if where.intervals:
        check_copies(where.intervals)  # before anything is paid for
        refuse_attributes(data.by)

    def make() -> Release:
        with progress_bar() as progress:
            made = release_counts(read_data(source, data, engine), how, progress=progress)
            return with_intervals(made, copies=where.intervals, progress=progress) if where.intervals else made

    made, found = publish(how, where, make)
    if where.json:
        print_json({"out": where.out, "already_released": found, **summary(made)})
    else:
        say_summary(made, Path(str(where.out)))


def summary(made: Release) -> dict[str, Any]:
    """What a release is, for people and programs."""
    privacy = made.manifest["privacy"]
    return {
        "levels": made.manifest["levels"],
        "mechanism": made.manifest["mechanism"]["name"],
        "private": privacy["private"],
        "statement": privacy["statement"],
        "public": made.manifest["public"],
        "rows": len(made.counts.size),
    }


def say_summary(made: Release, out: Path) -> None:
    """Tell what was released and what it assumes."""
    facts = summary(made)
    levels = ", ".join(f"{level['regions']:,} {level['name']}" for level in facts["levels"])
    say(f"Released {levels} ({facts['mechanism']}) to {out}")
    say(facts["statement"])
    for assumption in ("hierarchy", "group_totals"):
        say(f"Note: {facts['public'][assumption]}.")
    for above, below in doubtful_levels(made.hierarchy):
        say(
            f"Note: most {above} regions hold a single {below}. --levels goes from the largest regions to the smallest."
        )


def doubtful_levels(hierarchy: Hierarchy) -> list[tuple[str, str]]:
    """Pairs of levels that may stand in the wrong order: most regions of the upper one hold a single region of the lower."""
    doubtful = []
    for level in range(1, hierarchy.n_levels - 1):
        below = hierarchy.parent[hierarchy.level_slice(level + 1)]
        if np.mean(np.unique(below, return_counts=True)[1] == 1) > 0.5:
            doubtful.append((hierarchy.level_names[level], hierarchy.level_names[level + 1]))
    return doubtful
