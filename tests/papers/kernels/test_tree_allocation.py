"""Exact integer allocation over the tree: every result is an optimum of Model 1, at any depth and
weight.
"""

import numpy as np
import pytest

from tallytree.errors import InputError
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tallytree.papers.fioretto2021.kernels.allocation import allocate_over_tree, relax_over_tree
from tests.reference.cost_tables import optimal_cost_of_model_1
from tests.reference.noisy_trees import breaks_of_tree, random_instance, squared_distance


def test_exact_optimum_on_2000_random_instances() -> None:
    rng = np.random.default_rng(11)
    for _ in range(2000):
        instance = random_instance(rng)
        table = allocate_over_tree(instance.hierarchy, instance.noisy, instance.total)
        assert table.min() >= 0
        assert table[0].sum() == instance.total
        assert breaks_of_tree(instance.hierarchy, table) == 0
        best = optimal_cost_of_model_1(instance.hierarchy, instance.noisy, instance.total)
        assert squared_distance(table, instance.noisy) == best


def test_exact_optimum_with_weights() -> None:
    rng = np.random.default_rng(12)
    for _ in range(200):
        instance = random_instance(rng)
        weights = rng.integers(1, 8, instance.hierarchy.n_levels)
        table = allocate_over_tree(
            instance.hierarchy, instance.noisy, instance.total, weights=weights
        )
        per_region = ((table - instance.noisy) ** 2).sum(axis=1)
        best = optimal_cost_of_model_1(
            instance.hierarchy, instance.noisy, instance.total, weights.tolist()
        )
        assert int((per_region * weights[instance.hierarchy.level_of]).sum()) == best


def improving_moves(hierarchy: Hierarchy, table: np.ndarray, noisy: np.ndarray) -> int:
    """Moves of one unit between two leaves, or two sizes, that lower the objective (none at an
    optimum).
    """
    add = 2 * (table - noisy) + 1
    save = np.where(table > 0, 2 * (table - noisy) - 1, -(10**12))
    found = 0
    for level in range(hierarchy.n_levels - 1, 0, -1):
        here = hierarchy.level_slice(level)
        starts = hierarchy.child_starts[hierarchy.level_slice(level - 1)] - here.start
        cheapest = np.minimum.reduceat(add[here], starts, axis=0)
        dearest = np.maximum.reduceat(save[here], starts, axis=0)
        found += int((dearest > cheapest).sum())
        add[hierarchy.level_slice(level - 1)] += cheapest
        save[hierarchy.level_slice(level - 1)] += dearest
    return found + int(save[0].max() > add[0].min())


@pytest.mark.parametrize("spread", [2, 50, 4000])
def test_large_tables_leave_no_improving_move(spread: int) -> None:
    rng = np.random.default_rng(spread)
    leaves = [
        (f"s{s:02}", f"c{c:02}", f"t{t}")
        for s in range(9)
        for c in range(1 + s)
        for t in range(1 + (s * c) % 5)
    ]
    hierarchy = hierarchy_from_leaves(["state", "county", "tract"], leaves)
    noisy = np.rint(rng.laplace(0, spread, (hierarchy.n_regions, 60))).astype(np.int64)
    noisy[:, :5] += 10 ** rng.integers(3, 8, 5)
    total = int(noisy[0].clip(0).sum())
    table = allocate_over_tree(hierarchy, noisy, total)
    assert breaks_of_tree(hierarchy, table) == 0
    assert table[0].sum() == total
    assert improving_moves(hierarchy, table, noisy) == 0


def test_relaxation_is_optimal_and_below_the_integer_optimum() -> None:
    rng = np.random.default_rng(13)
    for _ in range(300):
        instance = random_instance(rng, max_total=30)
        real = relax_over_tree(instance.hierarchy, instance.noisy, instance.total)
        whole = allocate_over_tree(instance.hierarchy, instance.noisy, instance.total)
        assert real.min() >= 0
        np.testing.assert_allclose(real[0].sum(), instance.total, atol=1e-9)
        for level in range(1, instance.hierarchy.n_levels):
            children = instance.hierarchy.sum_to_parents(
                level, real[instance.hierarchy.level_slice(level)]
            )  # type: ignore[arg-type]
            np.testing.assert_allclose(
                children, real[instance.hierarchy.level_slice(level - 1)], atol=1e-9
            )
        # The gradient at an optimum makes no feasible point closer: here towards the integer
        # optimum.
        gradient = real - instance.noisy
        assert float((gradient * (whole - real)).sum()) >= -1e-7


def test_chunks_in_threads_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(14)
    hierarchy = hierarchy_from_leaves(
        ["a", "b"], [(f"a{a}", f"b{b}") for a in range(5) for b in range(4)]
    )
    noisy = np.rint(rng.laplace(3, 20, (hierarchy.n_regions, 80))).astype(np.int64)
    alone = allocate_over_tree(hierarchy, noisy, 1000)
    for module in ("prices", "allocation"):
        monkeypatch.setattr(
            f"tallytree.papers.fioretto2021.kernels.{module}.sizes_per_chunk", lambda _: 1
        )
    np.testing.assert_array_equal(allocate_over_tree(hierarchy, noisy, 1000), alone)


def test_ties_are_spread_over_siblings() -> None:
    hierarchy = hierarchy_from_leaves(["county"], [(f"c{c}",) for c in range(10)])
    noisy = np.zeros((11, 100), dtype=np.int64)
    noisy[0] = 3
    table = allocate_over_tree(hierarchy, noisy, 300)
    assert (table[0] == 3).all()
    per_county = table[1:].sum(axis=1)
    assert per_county.min() >= 25
    assert per_county.max() <= 35


def test_wrong_input_is_refused() -> None:
    hierarchy = hierarchy_from_leaves(["county"], [("a",), ("b",)])
    with pytest.raises(InputError, match="one row for each of the 3 regions"):
        allocate_over_tree(hierarchy, np.zeros((2, 4), dtype=np.int64), 1)
    with pytest.raises(InputError, match="2\\^44"):
        allocate_over_tree(hierarchy, np.full((3, 1), 2**50), 1)
    with pytest.raises(InputError, match="one whole weight"):
        allocate_over_tree(hierarchy, np.zeros((3, 1), dtype=np.int64), 1, weights=np.array([1, 0]))
