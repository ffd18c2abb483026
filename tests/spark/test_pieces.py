"""The pieces and the tasks without Spark: whatever the cut, the release is the local one."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.group_sizes.publish import release
from tallytree.group_sizes.release.release import Release
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tallytree.spark import counts as on_spark
from tallytree.spark import tasks
from tallytree.spark.pieces import choose_cut, cut_bounds, cut_piece
from tests.spark.in_process import in_this_process, running_on


def example(n_levels: int = 4, seed: int = 0) -> ConfidentialCounts:
    rng = np.random.default_rng(seed)
    leaves = sorted({tuple(str(rng.integers(4)) for _ in range(n_levels - 1)) for _ in range(40)})
    hierarchy = hierarchy_from_leaves([f"level {i}" for i in range(n_levels - 1)], leaves)
    n_runs = 300
    region, size = rng.integers(0, hierarchy.n_leaves, n_runs), rng.geometric(0.3, n_runs)
    counts = counts_from_runs(region, size, rng.integers(1, 6, n_runs), hierarchy.n_leaves)
    return ConfidentialCounts(PublicFacts(hierarchy), counts, counts.n_groups())


@pytest.fixture
def executors(monkeypatch: pytest.MonkeyPatch) -> list[ConfidentialCounts]:
    held: list[ConfidentialCounts] = []
    monkeypatch.setattr(on_spark, "run_on_rows", running_on(held))
    return held


def assert_equal(one: Release, other: Release) -> None:
    assert one.table().equals(other.table())
    assert one.manifest == other.manifest
    assert one.noisy is not None
    assert other.noisy is not None
    for mine, yours in zip(one.noisy.levels, other.noisy.levels):
        assert [query.name for query in mine.queries] == [query.name for query in yours.queries]
        for a, b in zip(mine.queries, yours.queries):
            assert (a.noise, a.offsets.tolist(), a.values.tolist()) == (
                b.noise,
                b.offsets.tolist(),
                b.values.tolist(),
            )


@pytest.mark.parametrize(
    "options",
    [
        {"view": "hybrid"},
        {"view": "sizes", "merge": "average"},
        {"view": "cumulative", "max_size": 12},
        {"view": ["naive", "cumulative", "hybrid", "sizes"]},
        {"mechanism": "bottom-up"},
        {"definition": "zcdp", "rho": 1, "epsilon": None, "mechanism": "matching"},
    ],
    ids=str,
)
def test_pieces_release_what_one_machine_does(
    executors: list[ConfidentialCounts], options: dict[str, Any]
) -> None:
    truth = example()
    executors.append(truth)
    options = {"epsilon": 1, "insecure_seed": 5, **options}
    local = release(truth, **options)
    for cut, n_pieces in ((0, 1), (1, 2), (2, 5)):
        assert_equal(release(in_this_process(truth, cut, n_pieces), **options), local)


@pytest.mark.parametrize("options", [{}, {"view": "hybrid"}], ids=str)
def test_confidential_numbers_of_groups_are_paid_for(
    executors: list[ConfidentialCounts], options: dict[str, Any]
) -> None:
    """The driver has none of them, and ends with the noisy ones of one machine."""
    truth = example().with_public(groups_public=False)
    executors.append(truth)
    options = {"epsilon": 1, "insecure_seed": 5, **options}
    local = release(truth, **options)
    for cut, n_pieces in ((0, 1), (1, 2), (2, 5)):
        held = in_this_process(truth, cut, n_pieces)
        private = replace(held.public, groups_public=False)
        there = replace(held, n_groups=np.zeros(0, int), public=private)
        made = release(there, **options)
        assert_equal(made, local)
        assert made.n_groups.tolist() == local.n_groups.tolist()


def test_the_root_alone_is_one_piece(executors: list[ConfidentialCounts]) -> None:
    counts = counts_from_runs(
        np.zeros(3, dtype=np.int64), np.array([1, 2, 9]), np.array([50, 20, 1]), 1
    )
    truth = ConfidentialCounts(
        PublicFacts(hierarchy_from_leaves([], [()])), counts, counts.n_groups()
    )
    executors.append(truth)
    assert choose_cut(truth.hierarchy, 8) == 0
    for mechanism in ("matching", "bottom-up"):
        options = {"epsilon": 1, "insecure_seed": 5, "mechanism": mechanism}
        assert_equal(release(in_this_process(truth, 0, 1), **options), release(truth, **options))


def test_other_mechanisms_are_refused_before_any_budget_is_spent() -> None:
    with pytest.raises(RequestError, match="Spark engine cannot run 'topdown'"):
        release(in_this_process(example(), 1, 2), epsilon=1, mechanism="topdown", max_size=5)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_pieces_cover_every_region_once(seed: int, parallelism: int) -> None:
    hierarchy: Hierarchy = example(seed=seed).hierarchy
    cut = choose_cut(hierarchy, parallelism)
    bounds = cut_bounds(hierarchy, cut, parallelism)
    bottom = hierarchy.n_levels - 1
    pieces = [cut_piece(hierarchy, cut, bottom, int(a), int(b)) for a, b in pairwise(bounds)]
    for level in range(cut, bottom + 1):
        covered = [
            region
            for piece in pieces
            for region in range(hierarchy.level_size(level))[piece.regions(level)]
        ]
        assert covered == list(range(hierarchy.level_size(level)))
        if level > cut:
            starts = hierarchy.level_starts
            parents = np.concatenate(
                [piece.parents(level) + piece.first[level - 1 - cut] for piece in pieces]
            )
            assert (
                parents + starts[level - 1] == hierarchy.parent[hierarchy.level_slice(level)]
            ).all()


def test_neither_counts_nor_key_show_themselves() -> None:
    held = in_this_process(example(), 1, 2)
    assert "values hidden" in repr(held)
    with pytest.raises(TypeError, match="cannot be pickled"):
        held.__reduce__()
    job = tasks.Job(None, b"secret" * 6, True, ())  # type: ignore[arg-type]
    assert "secret" not in repr(job)
