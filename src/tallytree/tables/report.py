"""What the page of a table shows, as JSON-ready facts, from a release alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallytree.model.attributes import OTHER
from tallytree.options.asking import PageOptions
from tallytree.releases.report.facts import USE, common_facts, levels_paid, named
from tallytree.releases.report.html import (
    MOST_BYTES,
    framed,
    packed,
    plain_look,
    without_evaluation,
)
from tallytree.releases.report.outlined import outlines_of, with_names
from tallytree.releases.report.words import counted, level_words, plural
from tallytree.tables.release import TableRelease

# Values of an attribute above which a page does not show another one beside them.
MOST_BESIDE = 60


def table_payload(
    release: TableRelease, look: PageOptions | None = None, *, n_levels: int | None = None
) -> dict[str, Any]:
    """The page of a table, down to ``n_levels`` levels: one attribute as bars, the others beside
    it.
    """
    look, tree = look or PageOptions(), release.hierarchy
    shown = tree.n_levels if n_levels is None else n_levels
    n_regions = int(tree.level_starts[shown])
    first = first_attribute(release)
    rows = plural(release.manifest)
    names = release.attributes.names
    bins = [rows] if first is None else list(release.attributes.values[first])
    called = level_words(look.level_names, tree.level_names)
    levels = ", ".join(
        counted(tree.level_size(level), called[name])
        for level, name in enumerate(tree.level_names)
        if level
    )
    regions: dict[str, Any] = {
        "labels": tree.labels[:n_regions].tolist(),
        "parent": tree.parent[:n_regions].tolist(),
        "runs": _runs(release, shown, first),
        "bounds": _bounds(release, n_regions, first),
    }
    outlines = outlines_of(tree, look, n_regions)
    regions["labels"] = with_names(regions["labels"], outlines)
    by = "" if first is None else f" by {names[first]}"
    left_out = [called[name][1] for name in tree.level_names[shown:]]
    more = (
        [
            "Left out of this page because of its size, but in counts.parquet: "
            f"{', '.join(left_out)}."
        ]
        if left_out
        else []
    )
    title = f"{rows.capitalize()}{by} in {tree.labels[0]}"
    drawn = f"A bar shows how many {rows} have that value."
    return {
        **common_facts(release.manifest, release.verify().checks, called=called, groups=rows),
        **named(look, release.manifest, title, drawn, whiskers=True),
        "lead": f"How many {rows} there are{by} in {tree.labels[0]}"
        + (f" and its parts: {levels}." if levels else "."),
        "words": {
            "groups": rows,
            "size": "value" if first is None else names[first],
            "largest": "",
            "bin": bins,
            "listed": first is None or names[first] not in release.attributes.ordered,
        },
        "regions": regions,
        **_beside(release, shown, first),
        **outlines,
        "budget": levels_paid(release.manifest),
        "use": [*USE, *more],
    }


def first_attribute(release: TableRelease) -> int | None:
    """The attribute that bars stand for: the ordered one with most values, else the first one."""
    values = release.attributes
    in_order = [values.names.index(name) for name in values.ordered]
    if in_order:
        return max(in_order, key=lambda place: len(values.values[place]))
    return 0 if values.names else None


def _counts(release: TableRelease, shown: int, margin: tuple[int, ...]) -> Any:
    """Counts of all regions that are shown by some attributes, a row per region."""
    tree = release.hierarchy
    n_rows = int(np.prod([len(release.attributes.values[place]) for place in margin], dtype=int))
    tables = []
    for level in range(shown):
        cells = release.margin(level, margin)
        counts = np.zeros(tree.level_size(level) * n_rows, dtype=np.int64)
        counts[cells.cell] = cells.n
        tables.append(counts.reshape(-1, n_rows))
    return np.concatenate(tables)


def _runs(release: TableRelease, shown: int, first: int | None) -> list[list[int]]:
    """Value and count in turns, of each region."""
    return _in_turns(_counts(release, shown, () if first is None else (first,)))


def _in_turns(counts: Any) -> list[list[int]]:
    return [
        np.stack([np.flatnonzero(row), row[row != 0]], axis=1).ravel().tolist() for row in counts
    ]


def _bounds(release: TableRelease, n_regions: int, first: int | None) -> list[list[list[int]]]:
    """Value, low and high end of each count of a region."""
    name = None if first is None else release.attributes.names[first]
    values = () if first is None else release.attributes.values[first]
    wheres = [{}] if name is None else [{name: value} for value in values]
    found = []
    for path in release.hierarchy.paths[:n_regions]:
        answers = release.answers_of([path], wheres)
        ends = zip(range(len(wheres)), answers.low.tolist(), answers.high.tolist())
        found.append([list(end) for end in ends])
    return found


def _beside(release: TableRelease, shown: int, first: int | None) -> dict[str, Any]:
    """The first attribute by each value of every other one; and which two values a population
    pyramid has on its sides.
    """
    values = release.attributes
    others = [
        place
        for place in range(len(values.names))
        if place != first and len(values.values[place]) <= MOST_BESIDE
    ]
    if first is None or not others:
        return {}
    runs = []
    for place in others:
        margin = tuple(sorted((first, place)))
        shape = [len(values.values[one]) for one in margin]
        table = _counts(release, shown, margin).reshape(-1, *shape)
        table = table if margin[0] == place else table.swapaxes(1, 2)
        runs.append([_in_turns(region) for region in table])
    found = {
        "names": [values.names[place] for place in others],
        "values": [list(values.values[place]) for place in others],
        "runs": runs,
    }
    return {"by": found, **_pyramid(release, first, others)}


def _pyramid(release: TableRelease, first: int, others: list[int]) -> dict[str, Any]:
    """The attribute with two values beside an ordered one: the two sides of a pyramid."""
    values = release.attributes
    if values.names[first] not in values.ordered:
        return {}
    for number, place in enumerate(others):
        sides = [value for value in values.values[place] if value != OTHER]
        if len(sides) == 2:
            places = [values.values[place].index(side) for side in sides]
            return {"pyramid": {"by": number, "sides": places}}
    return {}


def table_page(
    release: TableRelease, evaluation: object = None, look: PageOptions | None = None
) -> str:
    """The page of a table: as many levels as fit, from the root down."""
    release = without_evaluation(evaluation, release)
    look = plain_look(look, "group_name")
    for n_levels in range(release.hierarchy.n_levels, 0, -1):
        title, data = packed(table_payload(release, look, n_levels=n_levels))
        if len(data) <= MOST_BYTES:
            break
    return framed(title, data)
