import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tallytree import re_estimate, release
from tallytree.group_sizes.measure import levels as group_sizes
from tallytree.group_sizes.measure.levels import (
    Place,
    measure_group_totals,
    measure_largest_size,
    measure_level,
    measure_regions,
)
from tallytree.group_sizes.plan.plan import Plan, plan_release
from tallytree.group_sizes.reconcile.totals import consistent_totals
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.privacy.randomness import KeyStream
from tests.reference.group_sizes import counts_from_lists

TREE = hierarchy_from_leaves(["leaf"], [("a",), ("b",)])
SIZES = [[0, 1, 1, 3, 40], [2, 2, 7]]


def truth(**facts: object) -> ConfidentialCounts:
    counts = counts_from_lists(SIZES)
    return ConfidentialCounts(PublicFacts(TREE, **facts), counts, counts.n_groups())


def plan(view: str, epsilon: object = 10_000, **facts: object) -> Plan:
    given = {"groups_public": True, "max_quantity": 1, **facts}
    return plan_release(
        ReleaseOptions(epsilon=epsilon, view=view, max_size=50), PublicFacts(TREE, **given)
    )


def measured(view: str, level: int) -> dict[str, list[list[int]]]:
    """Answers under so large a budget that the noise is 0."""
    stream = KeyStream.from_insecure_seed(1)
    n_groups = TREE.sum_from_leaves(truth().n_groups)[TREE.level_slice(level)]
    noisy = measure_level(truth(), plan(view).levels[level], n_groups, 50, stream)
    return {
        query.name: [part.tolist() for part in np.split(query.values, query.offsets[1:-1])]
        for query in noisy.queries
    }


def test_counts_and_cumulative() -> None:
    groups = SIZES[0] + SIZES[1]
    assert measured("naive", 0)["counts"] == [[groups.count(i) for i in range(51)]]
    assert measured("cumulative", 0)["cumulative"] == [
        [sum(s <= i for s in groups) for i in range(50)]
    ]
    assert measured("sizes", 1)["sizes"] == [sorted(SIZES[0]), sorted(SIZES[1])]


def test_hybrid_parts_meet_at_the_threshold() -> None:
    answers = measured("hybrid", 1)
    for sizes, below, tail in zip(SIZES, answers["cumulative"], answers["tail"]):
        threshold = len(below)
        assert below == [sum(s <= i for s in sizes) for i in range(threshold)]
        large = [s for s in sizes if s >= threshold]
        assert sorted(large) == tail[len(tail) - len(large) :]
        assert set(tail[: len(tail) - len(large)]) <= {threshold}


def test_totals_and_largest_size() -> None:
    private = plan("cumulative", groups_public=False)
    stream = KeyStream.from_insecure_seed(2)
    assert measure_group_totals(
        truth(groups_public=False), private.group_totals, stream
    ).tolist() == [8, 5, 3]
    auto = plan_release(
        ReleaseOptions(epsilon=10**6, view="cumulative"),
        PublicFacts(TREE, groups_public=True, max_quantity=1),
    )
    assert auto.largest_size is not None
    assert 40 <= measure_largest_size(truth(), auto.largest_size, stream) <= 42


def test_the_bound_lies_five_standard_deviations_above_the_noisy_largest_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kuo2018 footnote 6: below the largest size about once in 1,500 releases for Laplace noise
    (e^(-5√2)/2).
    """
    auto = plan_release(
        ReleaseOptions(epsilon=1, view="cumulative"),
        PublicFacts(TREE, groups_public=True, max_quantity=1),
    )
    query = auto.largest_size
    assert query is not None
    monkeypatch.setattr(
        group_sizes, "add_noise", lambda exact, *_, **__: exact - 3
    )  # as if -3 had been drawn
    bound = measure_largest_size(truth(), query, KeyStream.from_insecure_seed(2))
    assert bound == 40 - 3 + math.ceil(5 * math.sqrt(query.noise.variance))
    assert bound > 40


@pytest.mark.parametrize("view", ["naive", "sizes", "cumulative", "hybrid"])
def test_regions_are_measured_alike_in_any_parts(
    view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = plan(view, epsilon=1).levels[1]
    n_groups = truth().n_groups
    whole = measure_level(truth(), level, n_groups, 50, KeyStream.from_insecure_seed(3))
    stream = KeyStream.from_insecure_seed(3)
    monkeypatch.setattr(group_sizes, "CELLS_PER_BLOCK", 1)
    for first in (0, 1):
        alone = counts_from_lists([SIZES[first]])
        part = measure_regions(
            alone, level, n_groups[first : first + 1], 50, Place(stream, first, 2)
        )
        for together, apart in zip(whole.queries, part.queries):
            here = slice(together.offsets[first], together.offsets[first + 1])
            assert together.values[here].tolist() == apart.values.tolist()


def test_raw_noisy_totals_are_kept_and_give_the_numbers_of_groups(tmp_path: Path) -> None:
    """kuo2018 footnote 5: what was paid for is in the release, and all else follows from it."""
    counts = truth(groups_public=False)
    made = release(counts, epsilon=1, insecure_seed=3)
    made.save(tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "noisy.parquet").to_pylist()
    of_groups = {row["region"]: row for row in rows if row["query"] == "groups"}
    paths = made.hierarchy.paths.tolist()
    assert sorted(of_groups) == sorted(paths)
    noisy = np.array([of_groups[path]["value"] for path in paths])
    exact = counts.hierarchy.sum_from_leaves(counts.n_groups)
    assert not np.array_equal(noisy, exact)
    plan = plan_release(ReleaseOptions(epsilon=1), counts.public)
    variances = [query.noise.variance for query in plan.group_totals]
    found = consistent_totals(counts.hierarchy, noisy, variances)
    assert found.tolist() == made.n_groups.tolist()
    again = re_estimate(tmp_path / "out")
    assert again.counts.count.tolist() == made.counts.count.tolist()
    assert [level["groups"].values.tolist() for level in again.noisy.totals] == [
        noisy[counts.hierarchy.level_slice(level)].tolist()
        for level in range(counts.hierarchy.n_levels)
    ]
    asked = {query.name for level in again.noisy.levels for query in level.queries}
    assert "groups" not in asked
    again.save(tmp_path / "again")
    kept = pq.read_table(tmp_path / "again" / "noisy.parquet").to_pylist()
    assert kept == rows


def test_public_totals_are_not_measured(tmp_path: Path) -> None:
    made = release(truth(), epsilon=1, insecure_seed=3)
    made.save(tmp_path / "out")
    queries = set(pq.read_table(tmp_path / "out" / "noisy.parquet")["query"].to_pylist())
    assert "groups" not in queries
