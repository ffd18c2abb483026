"""Intervals for every setting: what scales the noise is carried into the copies, and nothing public
is contradicted.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tallytree import ConfidentialCounts, Release, release, with_intervals
from tallytree.errors import RequestError
from tallytree.group_sizes.accuracy import data_like
from tallytree.group_sizes.estimate.siblings import Differences
from tallytree.group_sizes.intervals import copies as copying
from tallytree.group_sizes.intervals.answers import answer
from tallytree.group_sizes.intervals.bands import count_band, cumulative_band
from tallytree.group_sizes.intervals.copies import copy_release, public_bounds
from tallytree.group_sizes.intervals.intervals import count_intervals
from tallytree.group_sizes.plan.shapes import assumed_counts, named_shape
from tallytree.group_sizes.release.questions import (
    ENTITIES,
    GROUPS,
    MEAN,
    groups_of_at_least,
    groups_of_size,
    kth_largest,
)
from tallytree.model.confidential import AssumedCounts
from tallytree.model.count_of_counts import counts_at, counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.unit import Unit

TREE = hierarchy_from_leaves(
    ["region", "town"], [(f"r{leaf // 8}", f"t{leaf}") for leaf in range(24)]
)
TRUTH = assumed_counts(
    TREE, np.linspace(60, 900, 24).astype(np.int64), named_shape("households"), seed=1
)
UNIT = {"unit": Unit("row", "person", 10)}
MATCHING = {"epsilon": 1, "mechanism": "matching"}
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "k=1": ({}, MATCHING),
    "k=10": (UNIT, MATCHING),
    "z=10": ({"max_quantity": 10}, MATCHING),
    "private groups": ({"groups_public": False}, MATCHING),
    "k=10, zCDP": (UNIT, {"rho": "1/2", "definition": "zcdp", "mechanism": "matching"}),
    "k=10, adaptive": (UNIT, {"epsilon": 1}),
}
LEAST = 0.90


def coverage_in(setting: str) -> float:
    facts, options = SETTINGS[setting]
    return coverage(TRUTH.with_public(**facts), options)


def coverage(truth: AssumedCounts, options: dict[str, Any]) -> float:
    """Share of the 95 % intervals of a few seeded releases that hold the truth."""
    held = []
    for seed in range(5):
        made = release(truth, insecure_seed=seed, **options)
        found = count_intervals(copy_release(made, copies=10, seed=100 * seed))
        true = counts_at(truth.counts_on_levels, made.counts.region_of_run(), made.counts.size)
        held.append((found.low <= true) & (true <= found.high))
    return float(np.concatenate(held).mean())


@pytest.mark.parametrize("setting", SETTINGS)
def test_intervals_cover_the_truth_in_every_setting(setting: str) -> None:
    assert LEAST < coverage_in(setting) < 0.99


def without(**facts: Any) -> Callable[[Release], ConfidentialCounts]:
    return lambda earlier: data_like(earlier).with_public(**facts)


@pytest.mark.parametrize(
    ("setting", "lost"),
    [
        ("k=10", {"unit": Unit()}),
        ("k=10, zCDP", {"unit": Unit()}),
        ("k=10, adaptive", {"unit": Unit()}),
        ("z=10", {"max_quantity": 1}),
        ("private groups", {"groups_public": True}),
    ],
)
def test_what_is_not_carried_shows(
    monkeypatch: pytest.MonkeyPatch, setting: str, lost: dict[str, Any]
) -> None:
    monkeypatch.setattr(copying, "data_like", without(**lost))
    assert coverage_in(setting) < LEAST


def unlike_towns() -> AssumedCounts:
    """Towns whose shares of sizes differ by more than chance, of which whole groups are protected."""
    rng = np.random.default_rng(3)
    shape = named_shape("households")[1:9]
    table = np.stack(
        [rng.multinomial(2000, rng.dirichlet(200 * shape)) for _ in range(TREE.n_leaves)]
    )
    town, place = np.nonzero(table)
    counts = counts_from_runs(town, place + 1, table[town, place], TREE.n_leaves)
    unit = Unit(group="household")
    return AssumedCounts(
        PublicFacts(TREE, groups_public=False, unit=unit, least_size=1), counts, counts.n_groups()
    )


def test_intervals_of_whole_groups_know_that_regions_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At a small ε towns lean on the shape of their region; a possible truth must not."""
    options = {"epsilon": "0.1", "max_size": 8}
    assert LEAST < coverage(unlike_towns(), options) < 0.99
    monkeypatch.setattr(copying, "differences_from_json", lambda _: Differences(0.0, 0.0))
    assert coverage(unlike_towns(), options) < LEAST


def test_an_earlier_release_is_assumed_with_all_that_scales_its_noise() -> None:
    truth = TRUTH.with_public(groups_public=False, max_quantity=4, **UNIT)
    assumed = data_like(release(truth, epsilon=1, insecure_seed=1))
    facts = ("groups_public", "max_quantity", "unit")
    assert [getattr(assumed.public, fact) for fact in facts] == [False, 4, UNIT["unit"]]


def test_possible_totals_spread_like_noisy_ones() -> None:
    made = release(TRUTH.with_public(groups_public=False), insecure_seed=1, **MATCHING)
    copies = copy_release(made, copies=60)
    truths = np.stack([truth.n_groups() for truth in copies.truths])
    copied = np.stack([copy.n_groups() for copy in copies.copies])
    # Truths are two draws away from the release, copies one from their truths.
    ratio = (truths - made.n_groups).std(axis=0)[4:].mean() / (copied - truths).std(axis=0)[
        4:
    ].mean()
    assert 1.1 < ratio < 1.8
    public = copy_release(release(TRUTH, insecure_seed=1, **MATCHING), copies=3)
    assert all((truth.n_groups() == public.release.n_groups).all() for truth in public.truths)


def test_regions_that_seem_empty_may_have_groups_like_those_around_them() -> None:
    tree = hierarchy_from_leaves(["town"], [("a",), ("b",)])
    counts = counts_from_runs(np.array([0, 0]), np.array([2, 5]), np.array([300, 100]), 2)
    truth = ConfidentialCounts(PublicFacts(tree, groups_public=False), counts, counts.n_groups())
    tried = (release(truth, insecure_seed=seed, **MATCHING) for seed in range(20))
    made = next(one for one in tried if one.n_groups[2] == 0)
    possible = [table.region(2) for table in copy_release(made, copies=12).truths]
    assert any(table.n_groups()[0] for table in possible)
    released = set(made.counts.size.tolist())
    assert any(released & set(table.size.tolist()) for table in possible)


@pytest.mark.parametrize(
    "options", [MATCHING, {"epsilon": 1}, {"epsilon": 1, "mechanism": "tree-dp", "max_size": 12}]
)
def test_no_interval_leaves_what_is_public(options: dict[str, Any]) -> None:
    tree = hierarchy_from_leaves(["county"], [(f"c{leaf}",) for leaf in range(6)])
    n_groups = np.array([39, 5, 1, 80, 200, 10])
    truth = assumed_counts(tree, n_groups, named_shape("households"))
    truth = truth.with_public(unit=Unit("row", "p", 3))
    for seed in range(2):
        made = release(truth, insecure_seed=seed, **options)
        copies = copy_release(made, copies=6, seed=50 * seed)
        bounds = public_bounds(made)
        totals = truth.hierarchy.sum_from_leaves(truth.n_groups)
        kept = options.get("mechanism") != "tree-dp"
        assert np.array_equal(bounds.most_groups, totals if kept else np.full(7, totals[0]))
        found = count_intervals(copies)
        most = bounds.most_groups[made.counts.region_of_run()]
        assert ((found.low >= 0) & (found.low <= found.high) & (found.high <= most)).all()
        for region, path in enumerate(map(str, tree.paths)):
            for band in (count_band, cumulative_band):
                _, low, high = band(copies, path)
                assert ((low >= 0) & (low <= high) & (high <= bounds.most_groups[region])).all()
            for question in (groups_of_size(1 + 8 * seed), groups_of_at_least(2), GROUPS):
                one = answer(copies, path, question)
                assert 0 <= one.low <= one.high <= bounds.most_groups[region]
            for question in (kth_largest(1), MEAN, ENTITIES) if made.region(path).n_groups else ():
                most_sizes = bounds.most_groups[region] if question is ENTITIES else 1
                one = answer(copies, path, question)
                assert one.low >= 0
                assert one.high <= bounds.max_size * int(most_sizes)
    assert bounds.max_size == options.get("max_size", copying.UNKNOWN)


def test_a_public_largest_size_bounds_counts_and_bands() -> None:
    made = release(TRUTH, epsilon=1, view="cumulative", max_size=4, insecure_seed=1)
    copies = copy_release(made, copies=4)
    with pytest.raises(RequestError, match=r"4\+"):
        answer(copies, "total", groups_of_size(5))
    assert answer(copies, "total", kth_largest(1)).high <= 4
    widened = with_intervals(
        replace(made, manifest={**made.manifest, "mechanism": {"name": "x", "max_size": 2}}),
        copies=2,
    )
    assert widened.intervals is not None
    assert (widened.intervals.high[made.counts.size > 2] == 0).all()


def test_private_numbers_of_groups_bound_nothing_and_have_intervals() -> None:
    truth = TRUTH.with_public(groups_public=False)
    made = release(truth, insecure_seed=2, **MATCHING)
    copies = copy_release(made, copies=12)
    assert (public_bounds(made).most_groups == copying.UNKNOWN).all()
    groups = answer(copies, "total", GROUPS)
    assert groups.low < groups.value < groups.high
    assert abs(groups.value - int(truth.n_groups.sum())) < 8 * groups.std_error
    # Some copies have fewer groups than are asked for: those that are not there count as 0.
    last = answer(copies, "total/r0/t3", kth_largest(made.region("total/r0/t3").n_groups))
    assert 0 <= last.low <= last.high
