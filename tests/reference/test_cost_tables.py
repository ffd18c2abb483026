"""The twins against the worked examples of fioretto2021: Examples 3 to 6, Tables 5 and 6."""

import itertools

import numpy as np

from tallytree.model.hierarchy import hierarchy_from_leaves
from tests.reference.cost_tables import (
    add_own_cost,
    best_split,
    chain_tables,
    leaf_table,
    optimal_cost_of_model_1,
    table_merge,
)
from tests.reference.noisy_trees import random_instance, squared_distance, sum_up

DOMAIN = range(5)
GA = leaf_table(3, DOMAIN)
NY = leaf_table(0, DOMAIN)


def test_table_5() -> None:
    assert GA == {0: 9, 1: 4, 2: 1, 3: 0, 4: 1}
    assert NY == {0: 0, 1: 1, 2: 4, 3: 9, 4: 16}
    us = add_own_cost({v: best_split([GA, NY], v)[0] for v in DOMAIN}, 2)  # type: ignore[index]
    assert us == {0: 4 + 9, 1: 1 + 4, 2: 0 + 1, 3: 1 + 0, 4: 4 + 1}
    # The starred row, though 2 costs as much in this subtree: the root's total decides (Example 3,
    # G = 6).
    assert best_split([GA, NY], 3) == (0, (3, 0))


def test_examples_4_and_5_by_table_merge() -> None:
    phi = table_merge([NY, GA], range(8))
    assert phi[3] == 0
    assert phi[4] == 1
    assert phi[5] == 2
    us = add_own_cost(phi, 2)
    assert (us[3], us[4], us[5]) == (1, 5, 11)


def test_table_merge_equals_the_definition() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        tables = [
            leaf_table(int(rng.integers(-4, 9)), range(int(rng.integers(1, 6))))
            for _ in range(rng.integers(1, 4))
        ]
        reachable = range(sum(len(table) - 1 for table in tables) + 1)
        merged = table_merge(tables, reachable)
        for v in reachable:
            assert merged[v] == best_split(tables, v)[0]  # type: ignore[index]


def test_example_3_sizes_meet_at_the_dummy_root() -> None:
    # Figure 1 and Table 4 with the noisy counts of the first size as in Figure 3 and the other
    # sizes exact.
    hierarchy = hierarchy_from_leaves(["state"], [("GA",), ("NY",)], root="US")
    exact = np.array([[3, 1, 2, 0, 0], [2, 0, 1, 0, 0], [1, 1, 1, 0, 0]])
    noisy = exact.copy()
    noisy[:, 0] = [2, 3, 0]
    assert exact[0].sum() == 6
    # Size 1 takes its starred values (3, 0; together 3), which cost 1; all other sizes cost
    # nothing.
    assert optimal_cost_of_model_1(hierarchy, noisy, 6) == 1


def test_table_6_and_example_6() -> None:
    ga, ny, us = chain_tables([3, 3, 2], [False, True], DOMAIN)
    assert ga == {0: 9, 1: 4, 2: 1, 3: 0, 4: 1}
    assert ny == {0: 18, 1: 8, 2: 2, 3: 0, 4: 1}
    assert us == {0: 22, 1: 9, 2: 2, 3: 1, 4: 5}
    assert min(us, key=lambda v: us[v]) == 3


def test_model_1_by_tables_equals_enumeration() -> None:
    rng = np.random.default_rng(6)
    for _ in range(40):
        instance = random_instance(rng, max_levels=3, max_children=2, max_sizes=2, max_total=3)
        hierarchy, noisy, total = instance.hierarchy, instance.noisy, instance.total
        shape = (hierarchy.n_leaves, noisy.shape[1])
        costs = [
            squared_distance(sum_up(hierarchy, np.reshape(leaves, shape)), noisy)
            for leaves in itertools.product(range(total + 1), repeat=shape[0] * shape[1])
            if sum(leaves) == total
        ]
        assert optimal_cost_of_model_1(hierarchy, noisy, total) == min(costs)
