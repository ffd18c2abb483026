import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.planning.group_sizes.memory import available_memory, cells_per_level, check_memory, predicted_bytes
from tallytree.planning.group_sizes.plan import Plan, PublicFacts, plan_release
from tallytree.privacy.randomness import KeyStream
from tallytree.publish.group_sizes import measure_all, release
from tests.reference.group_sizes import counts_from_lists

TREE = hierarchy_from_leaves(["leaf"], [("a",), ("b",), ("c",)])
COUNTS = counts_from_lists([[1, 2, 3] * 40, [2] * 500, [1]])
TRUTH = ConfidentialCounts(TREE, COUNTS, COUNTS.n_groups())
N_GROUPS = TREE.sum_from_leaves(TRUTH.n_groups)
FACTS = PublicFacts(TREE, groups_public=True, max_quantity=1)


def plan(view: str, max_size: int = 20) -> Plan:
    return plan_release(ReleaseOptions(epsilon=1, view=view, max_size=max_size), FACTS)


@pytest.mark.parametrize("view", ["naive", "sizes", "cumulative"])
def test_predicted_numbers_are_those_that_are_measured(view: str) -> None:
    noisy = measure_all(TRUTH, plan(view), KeyStream.from_insecure_seed(0))
    measured = [sum(len(query.values) for query in level.queries) for level in noisy.levels]
    assert cells_per_level(plan(view), FACTS, N_GROUPS) == measured


def test_hybrid_is_predicted_closely() -> None:
    noisy = measure_all(TRUTH, plan("hybrid"), KeyStream.from_insecure_seed(0))
    measured = [sum(len(query.values) for query in level.queries) for level in noisy.levels]
    np.testing.assert_allclose(cells_per_level(plan("hybrid"), FACTS, N_GROUPS), measured, rtol=0.6)


def test_too_large_a_release_is_refused_with_the_figure() -> None:
    big = plan("cumulative", 10**12)
    cells = cells_per_level(big, FACTS, N_GROUPS)
    assert predicted_bytes(big, cells) > 8 * 4 * 10**12
    with pytest.raises(RequestError, match=r"about 44,000\.0 GB .* 'cumulative' at level 'leaf' .* 16\.0 GB are free"):
        check_memory(big, cells, 16 * 10**9)
    check_memory(plan("cumulative"), cells_per_level(plan("cumulative"), FACTS, N_GROUPS), 10**6)


def test_it_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(RequestError, match="no budget was spent"):
        release(TRUTH, epsilon=1, view="naive", max_size=10**15)


def test_available_memory_is_some() -> None:
    assert available_memory() > 10**8
