"""A manifest written again from the little that nothing else vouches for, and compared with the one
that is there.

Most of what a manifest says follows from the rest of it and from the tables: what was measured from
the request, noise from the budget, numbers of regions from the table of regions. Whoever changes
such a value by hand is found, by whoever looks. What remains is told and believed: names, words
about the data, versions of libraries. For that a ledger or a signature vouches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from tallytree.boxes.manifest import planned_manifest, published_way
from tallytree.boxes.tables import axes_of_folder
from tallytree.degree_sequences.release import PlannedQuery, degrees_manifest
from tallytree.group_sizes.manifest import (
    attributes_of,
    bins_of,
    facts_of,
    group_sizes_manifest,
    people_of,
    with_bins,
    with_split,
)
from tallytree.group_sizes.plan.plan import plan_release, with_bins_asked, with_shares
from tallytree.group_sizes.plan.size_bins import single_sizes
from tallytree.group_sizes.release.tables import regions_of_folder
from tallytree.model.arrays import IntArray
from tallytree.model.attributes import Attributes
from tallytree.model.classes import SizeClasses, classes_from
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.part import Part
from tallytree.model.people import People
from tallytree.model.unit import Unit
from tallytree.options.choices import MapMethod
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.options.maps import MethodOptions
from tallytree.privacy.accounting import measurements, record_from_json
from tallytree.privacy.budget import Budget, noise_for, written_fraction
from tallytree.privacy.guarantee import budget_of, in_words_of_today, unit_from_json
from tallytree.ranges.manifest import (
    asks_boxes,
    box_histogram_manifest,
    histogram_manifest,
    plan_from_manifest,
)
from tallytree.ranges.tables import rows_from_table
from tallytree.releases.checks import Check
from tallytree.storage.folder import Folder, Manifest
from tallytree.streams.manifest import steps_of, stream_manifest, stream_plan
from tallytree.streams.plan import usual_epochs

FOLLOWS = "the manifest follows from what it asks for"
# What a map may promise about counts below 0: none are left, by one of these rules, or nothing is
# done about them.
_MAP_RULES = (True, False, "least-squares", "subtree", "evenly")
# Told and believed, in manifests of all kinds. The words of the promise follow from its figures,
# which is checked by itself.
_TOLD = (
    ("versions",),
    ("estimated_from",),
    ("intervals",),
    ("privacy", "ledger"),
    ("privacy", "adds"),
    ("privacy", "alone"),
    ("privacy", "statement"),
    # Releases of the first format that were saved again have none of these.
    ("public", "least_size"),
    ("public", "max_size"),
)


def check_written(folder: Folder, again: Callable[[Folder], Manifest]) -> tuple[Check, ...]:
    """Whether a manifest is the one that is written again; those of the first format were written
    by other rules.
    """
    if folder.version == 1:
        return ()
    privacy = folder.manifest["privacy"]
    stated = {
        **folder.manifest,
        "privacy": in_words_of_today(privacy, unit_from_json(privacy["unit"])),
    }
    expected = json.loads(json.dumps(_with_told(again(folder), stated)))
    differ = sorted(differences(expected, stated))
    shown = ", ".join(differ[:5]) + (" …" if len(differ) > 5 else "")
    return (Check(FOLLOWS, not differ, f"{shown} differ." if differ else ""),)


def told_once(checks: Collection[Check]) -> tuple[Check, ...]:
    """Checks without the one of the whole manifest where another one failed, which tells more about
    the same.
    """
    others = [check for check in checks if check.name != FOLLOWS]
    return tuple(checks if all(check.passed for check in others) else others)


def differences(expected: Any, stated: Any, where: str = "") -> Iterator[str]:
    """The ways to all values in which two JSON values differ."""
    if type(expected) is not type(stated):
        yield where
    elif isinstance(expected, dict):
        for name in expected.keys() | stated.keys():
            way = f"{where}.{name}" if where else str(name)
            if name in expected and name in stated:
                yield from differences(expected[name], stated[name], way)
            else:
                yield way
    elif isinstance(expected, list) and len(expected) == len(stated):
        for number, (one, other) in enumerate(zip(expected, stated)):
            yield from differences(one, other, f"{where}.{number}")
    elif expected != stated:
        yield where


def _with_told(expected: Manifest, stated: Manifest) -> Manifest:
    """What is told put into a manifest that was written again."""
    made = {**expected, **{name: dict(expected[name]) for name in ("privacy", "public")}}
    for *above, name in _TOLD:
        to, source = (made[above[0]], stated[above[0]]) if above else (made, stated)
        to.pop(name, None)
        if name in source:
            to[name] = source[name]
    return made


def _part(manifest: Manifest) -> Part | None:
    where = manifest.get("where")
    return None if where is None else Part(str(where["column"]), str(where["value"]))


@dataclass(frozen=True)
class _Counts:
    """What is public about group sizes, by their manifest; see
    :class:`tallytree.model.confidential.Description`.
    """

    hierarchy: Hierarchy
    n_groups: IntArray
    groups_public: bool
    groups_note: str
    regions_note: str
    max_quantity: int
    group: str
    unit: Unit
    part: Part | None
    least_size: int
    classes: SizeClasses | None
    attributes: Attributes
    people: People
    alone: str = ""


def group_sizes_again(folder: Folder) -> Manifest:
    """The manifest of group sizes. Told: the request, notes on what is public, shares and bins
    chosen after a look, the fit.
    """
    manifest = folder.manifest
    public, mechanism = manifest["public"], manifest["mechanism"]
    hierarchy, n_groups = regions_of_folder(folder)
    facts = facts_of(manifest, hierarchy)
    plan = plan_release(ReleaseOptions.told(manifest["request"]), facts)
    counts = _Counts(
        hierarchy,
        n_groups,
        facts.groups_public,
        str(public["group_totals"]),
        str(public["hierarchy"]),
        facts.max_quantity,
        "",
        unit_from_json(manifest["privacy"]["unit"]),
        _part(manifest),
        facts.least_size,
        classes_from(manifest["classes"]) if "classes" in manifest else None,
        attributes_of(manifest),
        people_of(manifest),
    )
    again = group_sizes_manifest(plan, counts, secure=manifest["privacy"]["private"] is True)
    if plan.mechanism == "adaptive":
        shares = [written_fraction(level["share"]) for level in manifest["privacy"]["levels"]]
        again = with_split(
            again, with_shares(plan, facts, shares) if plan.awaits_look else plan, counts
        )
    elif plan.mechanism == "size-bins":
        bins = bins_of(manifest)
        if plan.first_look is None and plan.max_size is not None:
            bins = single_sizes(plan.max_size, least_size=facts.least_size, gaussian=plan.gaussian)
        again = with_bins(again, with_bins_asked(plan, facts, bins), counts, bins)
    if "fit" in mechanism:
        again["mechanism"] = {**again["mechanism"], "fit": mechanism["fit"]}
    return again


@dataclass(frozen=True)
class _Histogram:
    """What is public about a histogram, by its manifest."""

    unit: Unit
    note: str
    part: Part | None


def histogram_again(folder: Folder) -> Manifest:
    """The manifest of a histogram. Told: the strategy and why it was chosen, how values outside the
    bins count.
    """
    manifest, rows = folder.manifest, None
    if asks_boxes(manifest):
        return box_histogram_manifest(map_again(folder), str(manifest["mechanism"]["reason"]))
    if folder.has("strategy.parquet"):
        rows = rows_from_table(folder.table("strategy.parquet"), int(manifest["mechanism"]["bins"]))
    histogram = _Histogram(
        unit_from_json(manifest["privacy"]["unit"]),
        str(manifest["public"]["outside"]),
        _part(manifest),
    )
    return histogram_manifest(
        plan_from_manifest(manifest, rows),
        histogram,
        published={**manifest["published"], "integers": _whole_numbers(folder, "count")},
        reason=str(manifest["mechanism"]["reason"]),
        secure=manifest["privacy"]["private"] is True,
    )


def _whole_numbers(folder: Folder, column: str) -> bool:
    """Whether the counts of a folder are of a type of whole numbers."""
    return bool(np.issubdtype(folder.table("counts.parquet")[column].to_numpy().dtype, np.integer))


@dataclass(frozen=True)
class _Sizes:
    """What is public about a degree sequence, by its manifest."""

    unit: Unit
    fixed: str | None
    n_groups: int | None
    max_quantity: int
    note: str
    part: Part | None
    alone: str = ""


def degrees_again(folder: Folder) -> Manifest:
    """The manifest of a degree sequence. Told: the method, which questions were asked and what each
    cost, what is public.
    """
    manifest = folder.manifest
    privacy, public, asked = manifest["privacy"], manifest["public"], manifest["mechanism"]
    budget = budget_of(privacy)
    queries = [
        PlannedQuery(
            leaf.query,
            leaf.sensitivity,
            noise_for(Budget(budget.definition, leaf.stated), leaf.sensitivity),
            leaf.stated,
        )
        for leaf in measurements(record_from_json(privacy["composition"]))
    ]
    sizes = _Sizes(
        unit_from_json(privacy["unit"]),
        "; ".join(privacy["fixed"]) or None,
        None if public["groups"] is None else int(public["groups"]),
        1 if queries[-1].query == "edge degrees" else int(public["max_quantity"]),
        str(public["note"]),
        _part(manifest),
    )
    promised = {"name": str(asked["name"]), "graphical": bool(asked["graphical"])}
    return degrees_manifest(
        sizes, budget, queries, mechanism=promised, secure=privacy["private"] is True
    )


@dataclass(frozen=True)
class _Grid:
    """What is public about a map, by its manifest."""

    columns: tuple[str, ...]
    box: tuple[tuple[float, float], ...]
    shape: tuple[int, ...]
    unit: Unit
    note: str
    crs: str
    part: Part | None


def map_again(folder: Folder) -> Manifest:
    """The manifest of a map. Told: the method and its parameters, the box, every step but what it
    cost and how many boxes it was about, and what standard errors include.
    """
    manifest = folder.manifest
    privacy, asked, published = manifest["privacy"], manifest["mechanism"], manifest["published"]
    options = MethodOptions.told({**asked, "mechanism": asked["asked_for"]})
    axes = axes_of_folder(folder)
    ends = manifest["box"] if axes is None else [(axis.edges[0], axis.edges[-1]) for axis in axes]
    grid = _Grid(
        tuple(map(str, manifest["columns"])),
        tuple((float(low), float(high)) for low, high in ends),
        tuple(map(int, manifest["resolution"])),
        unit_from_json(privacy["unit"]),
        str(manifest["public"]["outside"]),
        str(manifest.get("crs", "")),
        _part(manifest),
    )
    rule = published["nonnegative"] if published["nonnegative"] in _MAP_RULES else None
    plain = {"nonnegative": rule is not None and rule, "integers": _whole_numbers(folder, "count")}
    again = planned_manifest(
        grid, budget_of(privacy), options, published=plain, secure=privacy["private"] is True
    )
    method = options.mechanism
    if method == "auto":  # one of the methods was chosen, which one is told
        method = asked["name"] if asked["name"] in get_args(MapMethod) else method
    steps = privacy["steps"]
    if folder.has("noisy.parquet"):
        steps = _with_boxes(steps, folder)
    way = published_way(method, plain["nonnegative"])
    # Of the first format: maps were not smoothed, and grids say why their strategy was chosen.
    if "smoothed" not in published:
        del way["smoothed"]
    # Histograms of boxes say so, and why.
    more = {name: asked[name] for name in ("reason", "kind") if name in asked}
    return again | {
        "mechanism": {"name": method, **again["mechanism"], **more},
        "published": plain | way,
        "privacy": {**again["privacy"], "steps": steps},
        "public": {**again["public"], "box": str(manifest["public"]["box"])},
        "uniformity": manifest["uniformity"],
    }


def _with_boxes(steps: list[dict[str, Any]], folder: Folder) -> list[dict[str, Any]]:
    """Steps that counted boxes with the query and the number of boxes that the table of answers
    has.
    """
    table = folder.table("noisy.parquet")
    _, first, boxes = np.unique(table["step"].to_numpy(), return_index=True, return_counts=True)
    counted = iter(
        [
            (table["query"][place].as_py(), n_boxes)
            for place, n_boxes in zip(first.tolist(), boxes.tolist())
        ]
    )
    found = []
    for step in steps:
        query, n_boxes = (
            next(counted, ("", 0)) if "noise" in step else (step["query"], step["boxes"])
        )
        found.append({**step, "query": query, "boxes": n_boxes})
    return found


def stream_again(folder: Folder) -> Manifest:
    """The manifest of a stream. Told: its horizon and tree, the steps, and what the rows are."""
    manifest = folder.manifest
    mechanism = manifest["mechanism"]
    manifest = {
        **manifest,
        "mechanism": {**mechanism, "epochs": list(usual_epochs(mechanism["horizon"]))},
    }
    steps, n_steps = steps_of(manifest)
    return stream_manifest(
        stream_plan(manifest),
        steps,
        n_steps,
        unit_from_json(manifest["privacy"]["unit"]),
        note=str(manifest["public"]["rows"]),
        part=_part(manifest),
        secure=manifest["privacy"]["private"] is True,
    )
