"""Rounding under a whole parent: each column is optimal, and nothing that must hold ever breaks."""

import numpy as np

from tallytree.kernels.trees.rounding_down import round_down_tree
from tallytree.model.hierarchy import hierarchy_from_leaves
from tests.reference.noisy_trees import random_instance
from tests.reference.projections import nearest_whole_with_sum


def test_each_column_is_the_nearest_whole_solution_after_the_one_before() -> None:
    rng = np.random.default_rng(31)
    for _ in range(300):
        n = int(rng.integers(1, 5))
        hierarchy = hierarchy_from_leaves(["leaf"], [(f"r{i}",) for i in range(n)])
        bound = np.concatenate([[0], rng.integers(0, 5, n)])
        bound[0] = bound[1:].sum()
        root = np.sort(rng.integers(0, bound[0] + 1, 3))
        target = rng.normal(2, 2, (n + 1, 3)).round(1)
        table = round_down_tree(hierarchy, target, root, bound)
        before = np.zeros(n, dtype=np.int64)
        for column in range(3):
            now = table[1:, column]
            assert now.sum() == root[column]
            assert (now >= before).all()
            assert (now <= bound[1:]).all()
            best = nearest_whole_with_sum(target[1:, column], before, bound[1:], int(root[column]))
            np.testing.assert_allclose(((now - target[1:, column]) ** 2).sum(), best, atol=1e-9)
            before = now


def test_whole_consistent_tables_come_back_unchanged() -> None:
    rng = np.random.default_rng(32)
    for _ in range(100):
        instance = random_instance(rng, max_total=40)
        cumulative = np.cumsum(instance.counts, axis=1)
        table = round_down_tree(
            instance.hierarchy,
            cumulative.astype(float),
            cumulative[0],
            instance.totals.astype(np.int64),
        )
        np.testing.assert_array_equal(table, cumulative)


def test_targets_far_from_the_parent_still_add_up() -> None:
    rng = np.random.default_rng(33)
    hierarchy = hierarchy_from_leaves(["leaf"], [(f"r{i:03}",) for i in range(200)])
    bound = np.full(201, 10_000)
    bound[0] = 200 * 10_000
    root = np.sort(rng.integers(0, bound[0], 50))
    table = round_down_tree(hierarchy, rng.normal(0, 30, (201, 50)), root, bound)
    np.testing.assert_array_equal(table[1:].sum(axis=0), root)
    assert (np.diff(table, axis=1) >= 0).all()
