"""What the page of a report shows, as JSON-ready facts, from a release alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from tallytree.degree_sequences.release import DegreeSequence
from tallytree.errors import RequestError
from tallytree.group_sizes.evaluate import Evaluation
from tallytree.group_sizes.intervals.zero_cells import REACHES
from tallytree.group_sizes.release.region import one_size
from tallytree.group_sizes.release.release import CountIntervals, Release
from tallytree.model.classes import OPEN, SizeClasses, SizesUpTo
from tallytree.model.count_of_counts import CountsBySize
from tallytree.options.asking import PageOptions
from tallytree.privacy.budget import written_fraction
from tallytree.privacy.guarantee import budget_of
from tallytree.ranges.release import RangeHistogram
from tallytree.releases.notes import notes_of
from tallytree.releases.report.words import (
    check_in_words,
    citation,
    counted,
    group_names,
    in_full,
    level_words,
    note_sentences,
    plural,
    protection,
    reading,
    units,
)
from tallytree.shapes.drawing import draw_outlines
from tallytree.shapes.matching import read_shaped_level
from tallytree.strategies.density import Density
from tallytree.streams.release import StreamRelease

CONFIDENTIAL = "CONFIDENTIAL: this copy shows true errors, computed from the confidential data. Do not publish it."
# The standard errors of all ranges are n (n + 1) / 2 numbers; above this many bins a page asks the
# reader to use `query`.
_MOST_BINS_WITH_ERRORS = 128
BUDGET_NOTE = "Boxes of one step do not overlap; every cell pays for the steps that asked about it, the whole budget at most."
USE = (
    "Every number contains noise, so small differences mean nothing.",
    "Numbers of larger regions are relatively more exact; prefer them where you can.",
    "Parts add up to the whole, so no number needs adjusting before it is added to another.",
    "Do not try to find single people: the noise hides whether any one of them is in the data.",
)


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
    outlines = _outlines(release, look, n_regions)
    regions["labels"] = _with_names(regions["labels"], outlines)
    protected = release.manifest["privacy"]["unit"]["group"]
    entities = plural(release.manifest)
    group, groups = group_names(look.group_name or protected)
    called = level_words(look.level_names, hierarchy.level_names)
    left_out = _left_out([called[name][1] for name in hierarchy.level_names[shown:]])
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
        "budget": _budget(release.manifest, called),
        "use": [*USE, *one_size(release.region(release.root)), *([left_out] if left_out else [])],
    }


def named(
    look: PageOptions,
    manifest: dict[str, Any],
    title: str,
    drawn: str,
    *,
    whiskers: bool = False,
    adds_up: bool = True,
) -> dict[str, Any]:
    """What a page is called, how to read it and how to cite it: as it was told, else in words of
    its own.

    ``drawn`` says what its first picture shows.
    """
    called = look.title or title
    return {
        "title": called,
        "read": reading(drawn, units(manifest), whiskers=whiskers, adds_up=adds_up),
        "notes": list(look.notes),
        "source": f"Source: {look.source_note}" if look.source_note else "",
        "citation": citation(called, look.source_note, manifest),
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


def _with_names(labels: list[str], outlines: dict[str, Any]) -> list[str]:
    """Labels, with the names that outlines give to codes before them: ``Mohave (04015)``."""
    if not outlines:
        return labels
    drawn = outlines["outlines"]
    for region, name in zip(drawn["members"], drawn.pop("names")):
        labels[region] = labels[region] if name == labels[region] else f"{name} ({labels[region]})"
    return labels


def _outlines(release: Release, look: PageOptions, n_regions: int) -> dict[str, Any]:
    """The outlines of one level, on a grid of whole numbers, where a file of them was named."""
    if look.shapes is None:
        return {}
    found = read_shaped_level(look, release.hierarchy)
    if found.regions[-1] >= n_regions:
        raise RequestError(
            "The level of the outlines does not fit into this page; name outlines of a level above "
            "it."
        )
    return {
        "outlines": {
            **draw_outlines(found).to_json(),
            "members": found.regions.tolist(),
            "names": list(found.names),
        }
    }


def histogram_payload(histogram: RangeHistogram, look: PageOptions | None = None) -> dict[str, Any]:
    """The page of a range histogram: one region, its bins as sizes."""
    look = look or PageOptions()
    names, edges = histogram.bins.categories, [f"{edge:g}" for edge in histogram.bins.edges]
    labels = (
        list(names) if names is not None else [f"{low} to {high}" for low, high in pairwise(edges)]
    )
    answers = histogram.bin_answers()
    bounds = [
        [i, max(0, low), max(0, high)]
        for i, (low, high) in enumerate(zip(answers.low.tolist(), answers.high.tolist()))
    ]
    total = histogram.total()
    regions: dict[str, Any] = {
        "labels": ["all"],
        "parent": [-1],
        "runs": [
            _interleave(np.flatnonzero(histogram.counts), histogram.counts[histogram.counts != 0])
        ],
        "bounds": [bounds],
    }
    if names is None and len(labels) <= _MOST_BINS_WITH_ERRORS:
        regions["errors"] = _range_errors(histogram)
    entities = plural(histogram.manifest)
    drawn = f"A bar shows how many {entities} fall into it."
    return {
        **common_facts(histogram.manifest, histogram.verify().checks),
        **named(
            look, histogram.manifest, f"Histogram of {len(labels):,} bins", drawn, whiskers=True
        ),
        "lead": f"How many {entities} fall into each of {len(labels):,} bins"
        + ("." if names is not None else f" from {edges[0]} to {edges[-1]}."),
        "words": {
            "groups": entities,
            "size": "bin",
            "largest": "",
            "bin": labels,
            "edges": None if names is not None else edges,
            "axis": "value",
        },
        "facts": [
            [f"{entities} in all", f"{total.estimate:,.6g}"],
            ["standard error of that", f"{total.std_error:,.3g}"],
            ["bins", f"{len(labels):,}"],
            ["fullest bin", labels[int(np.argmax(histogram.counts))]],
            *([] if names is not None else [["median", f"{histogram.quantile(0.5).value:.4g}"]]),
        ],
        "regions": regions,
        **(
            steps_paid(histogram.manifest)
            if histogram.plan is None
            else {"budget": _budget(histogram.manifest)}
        ),
        "use": [
            *USE[:1],
            "A range is the sum of its bins, but its error is smaller than the sum of theirs.",
            *too_fine(histogram.density),
        ],
    }


def _range_errors(histogram: RangeHistogram) -> list[list[float]]:
    """Standard error of every range, by its first bin and its length."""
    edges, n_bins = histogram.bins.edges, histogram.bins.n_bins
    errors = [
        histogram.ranges([(edges[first], high) for high in edges[first + 1 :]]).std_error
        for first in range(n_bins)
    ]
    return [row.round(3).tolist() for row in errors]


def degrees_payload(sequence: DegreeSequence, look: PageOptions | None = None) -> dict[str, Any]:
    """The page of a degree sequence: one region, degrees as sizes."""
    look = look or PageOptions()
    _, nodes = group_names(look.group_name or "node/nodes")
    drawn = (
        f"A bar shows how many {nodes} have that degree, which is how many connections they have."
    )
    return {
        **common_facts(sequence.manifest, sequence.verify().checks),
        **named(look, sequence.manifest, "Degree sequence", drawn, adds_up=False),
        "lead": f"How many of {len(sequence.degrees):,} {nodes} have each degree, without saying "
        "which is which.",
        "words": {
            "groups": nodes,
            "total": "sum of degrees",
            "size": "degree",
            "largest": "Largest degrees",
        },
        "regions": {
            "labels": ["all"],
            "parent": [-1],
            "runs": [_interleave(*np.unique(sequence.degrees, return_counts=True))],
        },
        "budget": [],
        "use": [USE[0], USE[3]],
    }


def stream_payload(release: StreamRelease, look: PageOptions | None = None) -> dict[str, Any]:
    """The page of a stream: one region, steps as bins, with the counts so far."""
    look = look or PageOptions()
    answers, total, entities = release.step_answers(), release.total(), plural(release.manifest)
    labels = [str(release.steps.name(step)) for step in range(release.n_steps)]
    ends = zip(answers.low.tolist(), answers.high.tolist())
    drawn = f"A bar shows how many {entities} had come by the end of that step, from the start on."
    return {
        **common_facts(release.manifest, release.verify().checks),
        **named(
            look,
            release.manifest,
            f"Stream of {release.n_steps:,} steps",
            drawn,
            whiskers=True,
            adds_up=False,
        ),
        "lead": f"How many {entities} came so far, after each of {release.n_steps:,} steps from "
        f"{labels[0]} to {labels[-1]}.",
        "words": {
            "groups": f"{entities} so far",
            "size": "step",
            "largest": "",
            "bin": labels,
            "edges": None,
            "axis": "step",
        },
        "facts": [
            [f"{entities} so far", f"{total.estimate:,.6g}"],
            ["standard error of that", f"{total.std_error:,.3g}"],
            ["steps", f"{release.n_steps:,}"],
        ],
        "regions": {
            "labels": ["all"],
            "parent": [-1],
            "runs": [
                _interleave(np.flatnonzero(release.counts), release.counts[release.counts != 0])
            ],
            "bounds": [[[step, low, high] for step, (low, high) in enumerate(ends)]],
        },
        "budget": _budget(release.manifest),
        "use": [
            *USE[:1],
            "Counts may fall a little from one step to the next: each has noise of its own.",
        ],
    }


def common_facts(
    manifest: dict[str, Any],
    checks: Any,
    *,
    watermark: str = "",
    called: Mapping[str, tuple[str, str]] | None = None,
    groups: str = "groups",
) -> dict[str, Any]:
    """What every page says: what is protected, warnings, checks, what is public and how it was
    made.

    ``called`` and ``groups`` say what levels and groups are called.
    """
    privacy = manifest["privacy"]
    if not privacy["private"]:
        watermark = (
            watermark or "NOT PRIVATE: made with an insecure seed, for tests and experiments only."
        )
    versions = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    notes = notes_of(manifest)
    return {
        "protection": protection(privacy) if privacy["private"] else "",
        "statement": in_full(privacy) if privacy["private"] else [],
        "watermark": watermark,
        "checks": [
            {
                "name": check_in_words(check.name, called or {}, groups),
                "passed": check.passed,
                "detail": check.detail,
            }
            for check in checks
        ],
        "public": note_sentences(notes.public, groups),
        "confidential": note_sentences(notes.confidential, groups),
        "counting": note_sentences(notes.counting, groups),
        "made": f"Mechanism: {manifest['mechanism']['name']}. Made with {versions}.",
    }


def too_fine(density: Density | None) -> list[str]:
    """A sentence where a flat release has bins that are far too fine."""
    return [str(density)] if density is not None and density.far_too_fine else []


def steps_paid(manifest: dict[str, Any]) -> dict[str, Any]:
    """Share of the privacy loss per step, as a bar each; a cell pays for the steps that asked about
    it.
    """
    loss = budget_of(manifest["privacy"]).symbol
    bars = [
        {
            "name": step["query"],
            "share": float(written_fraction(step["share"])),
            "detail": f"{loss} = {float(written_fraction(step[loss])):.4g}, {step['boxes']:,} "
            "boxes, "
            f"{step.get('noise') or step.get('mechanism')}",
        }
        for step in manifest["privacy"]["steps"]
    ]
    return {"budget": bars, "budgetNote": BUDGET_NOTE}


def _budget(
    manifest: dict[str, Any], called: Mapping[str, tuple[str, str]] | None = None
) -> list[dict[str, Any]]:
    """Share of the privacy loss per level and side query, as a bar each; ``called`` says what
    levels are called.
    """
    privacy = manifest["privacy"]
    budget = budget_of(privacy)
    loss, total = budget.symbol, budget.total
    parts = [
        (level.get("name", f"tree level {level['level']}"), level) for level in privacy["levels"]
    ]
    parts += [(f"people, {table['name']}", table) for table in privacy.get("people", [])]
    parts += [
        (f"{query['query']} {query.get('level', '')}".strip(), query)
        for query in privacy.get("side_queries", [])
    ]
    return [
        {
            "name": called[name][1] if called and name in called else name,
            "share": float(written_fraction(part[loss]) / total),
            "detail": f"{loss} = {part[loss]}, {part.get('noise', 'nothing measured')}",
        }
        for name, part in parts
    ]


def _runs(counts: CountsBySize, n_regions: int) -> list[list[int]]:
    ends = counts.offsets[1:n_regions] * 2
    last = counts.offsets[n_regions]
    both = np.stack([counts.size[:last], counts.count[:last]], axis=1).ravel()
    return [part.tolist() for part in np.split(both, ends)]


def _interleave(keys: Any, values: Any) -> list[float]:
    return np.stack([keys, values], axis=1).ravel().tolist()


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


def _left_out(names: list[str]) -> str:
    return (
        f"Left out of this page because of its size, but in counts.parquet: {', '.join(names)}."
        if names
        else ""
    )
