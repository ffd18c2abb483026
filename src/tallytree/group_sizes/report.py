"""What the page of a report shows, as JSON-ready facts, from a release alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallytree.group_sizes.evaluate import Evaluation
from tallytree.group_sizes.intervals.zero_cells import REACHES
from tallytree.group_sizes.release.region import one_size
from tallytree.group_sizes.release.release import CountIntervals, Release
from tallytree.model.classes import OPEN, SizeClasses, SizesUpTo
from tallytree.model.count_of_counts import CountsBySize
from tallytree.options.asking import PageOptions
from tallytree.releases.report.facts import USE, common_facts, levels_paid, named
from tallytree.releases.report.html import MOST_BYTES, framed, packed
from tallytree.releases.report.outlined import outlines_of, with_names
from tallytree.releases.report.words import counted, group_names, level_words, plural

CONFIDENTIAL = "CONFIDENTIAL: this copy shows true errors, computed from the confidential data. Do not publish it."


def group_sizes_payload(
    release: Release,
    evaluation: Evaluation | None = None,
    look: PageOptions | None = None,
    *,
    n_levels: int | None = None,
) -> dict[str, Any]:
    """The page of a release of group sizes, down to ``n_levels`` levels; with ``evaluation`` it is
    confidential.
    """
    hierarchy, classes, look = release.hierarchy, release.classes, look or PageOptions()
    sizes = release.size_names
    shown = hierarchy.n_levels if n_levels is None else n_levels
    n_regions = int(hierarchy.level_starts[shown])
    regions: dict[str, Any] = {
        "labels": hierarchy.labels[:n_regions].tolist(),
        "parent": hierarchy.parent[:n_regions].tolist(),
        "runs": _runs(release.counts, n_regions),
    }
    intervals = release.region_intervals
    if intervals is not None:
        regions["bounds"] = _bounds(release.counts, intervals, n_regions)
        regions["zeros"] = _zeros(release, intervals)
        regions["totals"] = {
            "steps": intervals.totals.to_json(),
            "mean": release.manifest["totals"]["source"] == "public",
        }
    if evaluation is not None and evaluation.emd is not None:
        regions["emd"] = evaluation.emd[:n_regions].tolist()
    outlines = outlines_of(hierarchy, look, n_regions)
    regions["labels"] = with_names(regions["labels"], outlines)
    protected = release.manifest["privacy"]["unit"]["group"]
    entities = plural(release.manifest)
    group, groups = group_names(look.group_name or protected)
    called = level_words(look.level_names, hierarchy.level_names)
    left_out = left_out_of_page([called[name][1] for name in hierarchy.level_names[shown:]])
    levels = ", ".join(
        counted(hierarchy.level_size(level), called[name])
        for level, name in enumerate(hierarchy.level_names)
        if level
    )
    title = f"{group.capitalize()} sizes of {hierarchy.labels[0]}"
    drawn = f"A bar shows how many {groups} have so many {entities}."
    return {
        **common_facts(
            release.manifest,
            release.verify().checks,
            watermark=CONFIDENTIAL if evaluation is not None else "",
            called=called,
            groups=groups,
        ),
        **named(look, release.manifest, title, drawn, whiskers=release.intervals is not None),
        "lead": f"How many {groups} have how many {entities}, in {hierarchy.labels[0]}"
        + (f" and its parts: {levels}." if levels else "."),
        "words": {
            "groups": groups,
            "total": entities,
            "size": "size",
            "largest": f"Largest {groups}",
        }
        | (_told(group, groups, release.manifest) if look.group_name else {})
        | (
            {}
            if classes is None
            else {"largest": "", "bin": list(classes.labels), "spans": _spans(classes)}
        )
        | ({"open": sizes.last} if isinstance(sizes, SizesUpTo) else {}),
        "regions": regions,
        **_by_attributes(release, n_regions),
        **outlines,
        "budget": levels_paid(release.manifest, called),
        "use": [*USE, *one_size(release.region(release.root)), *([left_out] if left_out else [])],
    }


def _told(group: str, groups: str, manifest: dict[str, Any]) -> dict[str, str]:
    """Words for sizes where a page was told what a group is called: a household has people, not a
    size.
    """
    one, many = str(manifest["privacy"]["unit"]["entity"]), plural(manifest)
    return {
        "one": one,
        "measure": f"number of {many}",
        "mean": f"{many} per {group}",
        "largest": f"{groups.capitalize()} with the most {many}",
    }


def _by_attributes(release: Release, n_regions: int) -> dict[str, Any]:
    """Sizes by each attribute alone, and people by all classes together, of every region; nothing
    where there are none.
    """
    found: dict[str, Any] = {}
    lattice = release.lattice
    if release.margins is not None:
        runs = []
        for place in range(len(release.attributes.names)):
            slots = lattice.slots((place,))
            rows = (np.arange(n_regions)[:, None] * lattice.n_slots + slots).ravel()
            of_rows = _runs(release.margins.at(rows), len(rows))
            runs.append(
                [of_rows[start : start + len(slots)] for start in range(0, len(rows), len(slots))]
            )
        values = [list(known) for known in release.attributes.values]
        found["by"] = {"names": list(release.attributes.names), "values": values, "runs": runs}
    if release.people is not None:
        classes, tables = release.people.people.classes, release.people.lattice
        slots = tables.slots(tables.attributes.chosen(classes.names))
        labels = [list(classes.labels_of(cell)) for cell in range(classes.n_cells)]
        counts = release.people.slots[:n_regions, slots].tolist()
        found["people"] = {"names": list(classes.names), "rows": labels, "counts": counts}
    return found


def _spans(classes: SizeClasses) -> list[list[int | None]]:
    """First and last size of every class; None for a last one without an end."""
    return [[low, None if high == OPEN else high] for low, high in zip(classes.lows, classes.highs)]


def _runs(counts: CountsBySize, n_regions: int) -> list[list[int]]:
    ends = counts.offsets[1:n_regions] * 2
    last = counts.offsets[n_regions]
    both = np.stack([counts.size[:last], counts.count[:last]], axis=1).ravel()
    return [part.tolist() for part in np.split(both, ends)]


def _bounds(
    counts: CountsBySize, intervals: CountIntervals, n_regions: int
) -> list[list[list[int]]]:
    last = counts.offsets[n_regions]
    rows = np.stack([counts.size[:last], intervals.low[:last], intervals.high[:last]], axis=1)
    return [part.tolist() for part in np.split(rows, counts.offsets[1:n_regions])]


def _zeros(release: Release, intervals: CountIntervals) -> dict[str, Any]:
    """Upper ends of counts that are 0, and whose number of groups bounds them."""
    totals = release.manifest["totals"]
    most = None
    if totals["source"] == "public":
        most = "region" if totals["kept"] == "every region" else "root"
    return {"steps": intervals.zeros.to_json(), "reaches": REACHES, "most": most}


def left_out_of_page(names: list[str]) -> str:
    """A sentence about levels that do not fit into a page."""
    return (
        f"Left out of this page because of its size, but in counts.parquet: {', '.join(names)}."
        if names
        else ""
    )


def group_sizes_page(
    release: Release, evaluation: Evaluation | None = None, look: PageOptions | None = None
) -> str:
    """The page of a release of group sizes: as many levels as fit, from the root down."""
    for n_levels in range(release.hierarchy.n_levels, 0, -1):
        title, data = packed(group_sizes_payload(release, evaluation, look, n_levels=n_levels))
        if len(data) <= MOST_BYTES:
            break
    return framed(title, data)
