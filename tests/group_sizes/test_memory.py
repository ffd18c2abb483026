from pathlib import Path

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.group_sizes.measure.views import measure_views
from tallytree.group_sizes.plan.costs import PROGRAM_BYTES, predicted_cost
from tallytree.group_sizes.plan.memory import (
    available_memory,
    cells_per_level,
    check_memory,
    most_sizes,
    predicted_bytes,
)
from tallytree.group_sizes.plan.plan import Plan, plan_release
from tallytree.group_sizes.plan.shapes import assumed_counts, named_shape
from tallytree.group_sizes.publish import release
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.privacy.randomness import KeyStream
from tests.reference.group_sizes import counts_from_lists

TREE = hierarchy_from_leaves(["leaf"], [("a",), ("b",), ("c",)])
COUNTS = counts_from_lists([[1, 2, 3] * 40, [2] * 500, [1]])
TRUTH = ConfidentialCounts(PublicFacts(TREE), COUNTS, COUNTS.n_groups())
N_GROUPS = TREE.sum_from_leaves(TRUTH.n_groups)
FACTS = PublicFacts(TREE, groups_public=True, max_quantity=1)


def plan(view: str, max_size: int = 20) -> Plan:
    return plan_release(ReleaseOptions(epsilon=1, view=view, max_size=max_size), FACTS)


@pytest.mark.parametrize("view", ["naive", "sizes", "cumulative"])
def test_predicted_numbers_are_those_that_are_measured(view: str) -> None:
    noisy = measure_views(TRUTH, plan(view), KeyStream.from_insecure_seed(0))
    measured = [sum(len(query.values) for query in level.queries) for level in noisy.levels]
    assert cells_per_level(plan(view), FACTS, N_GROUPS) == measured


@pytest.mark.parametrize("more", [0, 1000])
def test_hybrid_is_bounded_whatever_the_sizes(more: int) -> None:
    """Where all groups lie above the thresholds, each of them is listed, and that is what is
    predicted.
    """
    larger = CountsBySize(COUNTS.offsets, COUNTS.size + more, COUNTS.count)
    truth = ConfidentialCounts(PublicFacts(TREE), larger, larger.n_groups())
    noisy = measure_views(truth, plan("hybrid"), KeyStream.from_insecure_seed(0))
    measured = np.array(
        [sum(len(query.values) for query in level.queries) for level in noisy.levels]
    )
    predicted = np.array(cells_per_level(plan("hybrid"), FACTS, N_GROUPS))
    assert np.all(measured <= predicted)
    assert (measured.tolist() == predicted.tolist()) == (more > 0)


def test_too_large_a_release_is_refused_with_the_figure() -> None:
    big = plan("cumulative", 10**12)
    cells = cells_per_level(big, FACTS, N_GROUPS)
    assert predicted_bytes(big, cells) > 8 * 4 * 10**12
    with pytest.raises(
        RequestError,
        match=r"about 44,000\.0 GB .* 'cumulative' at level 'leaf' .* 16\.0 GB are free",
    ):
        check_memory(big, cells, 16 * 10**9)
    check_memory(plan("cumulative"), cells_per_level(plan("cumulative"), FACTS, N_GROUPS), 10**6)


def test_it_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(RequestError, match="no budget was spent"):
        release(TRUTH, epsilon=1, view="naive", max_size=10**15)


def test_available_memory_is_some() -> None:
    assert available_memory() > 10**8


def test_costs_are_predicted_within_a_factor(tmp_path: Path) -> None:
    """Numbers to measure and the folder on disk, of a tree of 3,000 leaves with some tens of groups
    each.
    """
    rng = np.random.default_rng(4)
    tree = hierarchy_from_leaves(
        ["state", "county"], [(f"s{i // 60:02}", f"c{i:04}") for i in range(3_000)]
    )
    n_groups = rng.poisson(rng.lognormal(3, 1, 3_000))
    counts = assumed_counts(tree, n_groups, named_shape("households"))
    facts = PublicFacts(tree, groups_public=True, max_quantity=1)
    asked = plan_release(ReleaseOptions(epsilon=1), facts)
    assert asked.mechanism == "adaptive"
    totals = tree.sum_from_leaves(n_groups)
    made = release(counts, epsilon=1, insecure_seed=2)
    measured = sum(len(query.values) for query in made.noisy.levels[-1].queries)
    assert 0.7 < cells_per_level(asked, facts, totals)[-1] / measured < 1.6
    on_disk = sum(file.stat().st_size for file in made.save(tmp_path / "out").iterdir())
    cost = predicted_cost(asked, facts, totals)
    assert 0.5 < cost.disk_bytes / on_disk < 3
    assert cost.memory_bytes > 8 * measured


def test_leaves_in_pieces_are_predicted_to_take_less_than_tables() -> None:
    """The same regions take less room as leaves, of which there are no tables, than above leaves."""
    wide = hierarchy_from_leaves(["a", "b"], [(f"{i // 1_000}", f"{i}") for i in range(20_000)])
    chain = hierarchy_from_leaves(["a", "b"], [(f"{i}", f"{i}") for i in range(10_000)])
    needed = []
    for tree in (wide, chain):
        facts = PublicFacts(tree, groups_public=True, max_quantity=1)
        totals = tree.sum_from_leaves(np.full(tree.n_leaves, 10))
        asked = plan_release(ReleaseOptions(epsilon=1), facts)
        needed.append(predicted_cost(asked, facts, totals).memory_bytes - PROGRAM_BYTES)
        assert most_sizes(facts.lattice) > 1_000
    assert needed[0] < 0.5 * needed[1]


@pytest.mark.parametrize(
    ("above", "leaves", "sizes"),
    [(300_000, 8_100_000, 74), (1 << 20, 8_100_000, 32), (1, 3_000, 22_362)],
)
def test_however_many_leaves_there_are_some_sizes_are_told_apart(
    above: int, leaves: int, sizes: int
) -> None:
    class Tree:
        n_regions, n_leaves = above + leaves, leaves

    class Tables:
        hierarchy, attributes, finest = Tree, (), None

        def n_rows(self, family: object) -> int:
            return leaves

    assert most_sizes(Tables()) == sizes  # type: ignore[arg-type]
