"""What the page of a table of values shows, as JSON-ready facts, from a release alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.report import left_out_of_page
from tallytree.group_sizes.values.release import ValuesRelease
from tallytree.group_sizes.values.statistics import QUANTILES
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize
from tallytree.options.asking import PageOptions
from tallytree.releases.report.facts import USE, common_facts, interleave, levels_paid, named
from tallytree.releases.report.html import MOST_BYTES, framed, packed, without_evaluation
from tallytree.releases.report.outlined import outlines_of, with_names
from tallytree.releases.report.words import counted, level_words, plural

# Bars of the distribution: equal classes up to the value that few rows exceed, and one beyond.
_BARS, _FEW = 50, 0.02
_TITLES = {"rows": "rows", "sum": "sum", "mean": "mean", "gini": "Gini coefficient"} | {
    "top_tenth_share": "share of the sum that the top tenth has"
}
# What maps and tables of regions show, in this order; then everything else.
_FIRST = ("median", "mean")


def values_payload(
    release: ValuesRelease, look: PageOptions | None = None, *, n_levels: int | None = None
) -> dict[str, Any]:
    """The page of a table of values, down to ``n_levels`` levels."""
    look = look or PageOptions()
    if look.group_name:
        raise RequestError(
            "--group-name goes with groups; what a row is called is said when it is released "
            "(--entity)."
        )
    tree, scale = release.hierarchy, release.scale
    shown = tree.n_levels if n_levels is None else n_levels
    n_regions = int(tree.level_starts[shown])
    edges = bar_edges(release)
    names = [f"{number:,.6g}" for number in np.asarray(scale.values(edges), float).tolist()]
    outlines = outlines_of(release.hierarchy, look, n_regions)
    labels = with_names(tree.labels[:n_regions].tolist(), outlines)
    rows, called = plural(release.manifest), level_words(look.level_names, tree.level_names)
    levels = ", ".join(
        counted(tree.level_size(level), called[name])
        for level, name in enumerate(tree.level_names)
        if level
    )
    left_out = left_out_of_page([called[name][1] for name in tree.level_names[shown:]])
    drawn = f"A bar shows for how many {rows} the {scale.name} lies in its range."
    title = f"{scale.name.capitalize()} in {tree.labels[0]}"
    counts = release.in_steps.counts.at(np.arange(n_regions))
    return {
        **common_facts(release.manifest, release.verify().checks, called=called, groups=rows),
        **named(look, release.manifest, title, drawn),
        "lead": f"How {scale.name} is distributed in {tree.labels[0]}"
        + (f" and its parts: {levels}." if levels else "."),
        "words": {
            "groups": rows,
            "size": scale.name,
            "largest": "",
            "bin": [f"{low} to {high}" for low, high in pairwise(names)],
            "edges": names,
            "axis": scale.name,
        },
        "statistics": _statistics(release, n_regions),
        "regions": {
            "labels": labels,
            "parent": tree.parent[:n_regions].tolist(),
            "runs": _runs(counts, edges),
        },
        **_by_attributes(release, n_regions, edges),
        **outlines,
        "budget": levels_paid(release.manifest, called),
        "use": [*USE, *([left_out] if left_out else [])],
    }


def bar_edges(release: ValuesRelease) -> IntArray:
    """Steps at which the classes of the distribution begin, and the end of the last."""
    counts, n_steps = release.in_steps.counts.region(0), release.scale.n_steps
    if not len(counts.size):
        return np.array([0, n_steps + 1])
    upto = np.cumsum(counts.count) / counts.count.sum()
    few = int(counts.size[np.searchsorted(upto, 1 - _FEW)])
    least = int(counts.size[np.searchsorted(upto, _FEW)])
    width = max(1, -(-(few - least) // _BARS))
    power = 10 ** (len(str(width)) - 1)
    wide = next(times * power for times in (1, 2, 5, 10) if times * power >= width)
    first = max(0, least // wide * wide)
    inner = np.arange(first, few + wide, wide)
    return np.unique(np.concatenate([[0], inner[inner <= n_steps], [n_steps + 1]]))


def _runs(counts: CountsBySize, edges: IntArray) -> list[list[float]]:
    """Rows in each class of every region, in turns: the class, and how many."""
    found = np.zeros((counts.n_regions, len(edges) - 1), dtype=np.int64)
    place = np.searchsorted(edges, counts.size, side="right") - 1
    np.add.at(found, (counts.region_of_run(), place), counts.count)
    return [interleave(np.flatnonzero(row), row[row > 0]) for row in found]


def _statistics(release: ValuesRelease, n_regions: int) -> dict[str, Any]:
    """Statistics of every region, and the ends of their intervals; None where there is none."""
    own = release.statistics
    order = sorted(
        range(len(own.names)),
        key=lambda place: [*_FIRST, own.names[place]].index(own.names[place]),
    )
    rows = np.arange(n_regions) * release.lattice.n_slots

    def shown(table: Any) -> list[list[float | None]]:
        return [
            [None if np.isnan(number) else float(f"{number:.6g}") for number in row]
            for row in table[rows][:, order].tolist()
        ]

    titles = _TITLES | {f"quantile_{q:g}": f"{q:.0%} have at most" for q in QUANTILES}
    return {
        "names": [titles.get(own.names[place], own.names[place]) for place in order],
        "values": shown(own.value),
        **{end: shown(own.errors[end]) for end in ("low", "high") if end in own.errors},
    }


def _by_attributes(release: ValuesRelease, n_regions: int, edges: IntArray) -> dict[str, Any]:
    """Classes of values by each attribute alone; nothing where there are none."""
    margins, lattice = release.in_steps.margins, release.lattice
    if margins is None:
        return {}
    runs = []
    for place in range(len(release.attributes.names)):
        slots = lattice.slots((place,))
        rows = (np.arange(n_regions)[:, None] * lattice.n_slots + slots).ravel()
        of_rows = _runs(margins.at(rows), edges)
        runs.append(
            [of_rows[start : start + len(slots)] for start in range(0, len(rows), len(slots))]
        )
    values = [list(known) for known in release.attributes.values]
    return {"by": {"names": list(release.attributes.names), "values": values, "runs": runs}}


def values_page(
    release: ValuesRelease, evaluation: object = None, look: PageOptions | None = None
) -> str:
    """The page of a table of values: as many levels as fit, from the root down."""
    without_evaluation(evaluation, release)
    for n_levels in range(release.hierarchy.n_levels, 0, -1):
        title, data = packed(values_payload(release, look, n_levels=n_levels))
        if len(data) <= MOST_BYTES:
            break
    return framed(title, data)
