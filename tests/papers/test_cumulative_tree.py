"""Cumulative mechanisms: exact where they claim to be, consistent always."""

import numpy as np
import pytest

from tallytree.errors import InputError
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.papers.fioretto2021.cumulative_tree import (
    fit_cumulative_then_tree,
    fit_each_region,
    relax_cumulative,
)
from tallytree.papers.fioretto2021.joint_fit import fit_rows_on_tree, make_whole
from tests.reference.cost_tables import chain_tables, optimal_cost_of_model_1
from tests.reference.noisy_trees import breaks_of_tree, random_instance, squared_distance
from tests.reference.projections import isotonic, project_on_tree


def noisy_cumulative(rng: np.random.Generator, counts: np.ndarray) -> np.ndarray:
    spread = int(rng.choice([0, 1, 3, 10]))
    return np.cumsum(counts, axis=1) + rng.integers(-spread, spread + 1, counts.shape)


def test_both_steps_of_algorithm_2_are_exact_on_2000_random_instances() -> None:
    rng = np.random.default_rng(61)
    for _ in range(2000):
        instance = random_instance(rng, max_levels=3, max_total=7)
        noisy, total = noisy_cumulative(rng, instance.counts), instance.total
        single = fit_each_region(noisy, total)
        fitted = np.cumsum(single, axis=1)
        assert single.min() >= 0
        for row, target in zip(fitted, noisy):
            best = min(
                chain_tables(target.tolist(), [False] * (len(target) - 1), range(total + 1))[
                    -1
                ].values()
            )
            assert squared_distance(row, target) == best
        table = fit_cumulative_then_tree(instance.hierarchy, noisy, total)
        assert table.min() >= 0
        assert table[0].sum() == total
        assert breaks_of_tree(instance.hierarchy, table) == 0
        assert squared_distance(table, single) == optimal_cost_of_model_1(
            instance.hierarchy, single, total
        )


@pytest.mark.parametrize("setting", ["root", "regions"])
def test_the_joint_fit_made_whole_keeps_every_promise(setting: str) -> None:
    rng = np.random.default_rng(62)
    for _ in range(300):
        instance = random_instance(rng, max_total=40)
        totals = instance.totals if setting == "regions" else instance.total
        noisy = noisy_cumulative(rng, instance.counts)
        table = make_whole(
            instance.hierarchy, relax_cumulative(instance.hierarchy, noisy, totals).table, totals
        )
        assert table.min() >= 0
        assert breaks_of_tree(instance.hierarchy, table) == 0
        if setting == "regions":
            np.testing.assert_array_equal(table.sum(axis=1), instance.totals)
        else:
            assert table[0].sum() == instance.total


def test_the_joint_fit_converges_to_the_nearest_table() -> None:
    """Dykstra's alternating projections with dense twins, run until nothing moves, give the same
    table.
    """
    rng = np.random.default_rng(63)
    for _ in range(6):
        instance = random_instance(rng, max_levels=3, max_sizes=4)
        hierarchy = instance.hierarchy
        target = np.cumsum(instance.counts, axis=1) + rng.normal(0, 2, instance.counts.shape)
        weights = rng.uniform(0.5, 4.0, hierarchy.n_levels)

        def rising(table: np.ndarray) -> np.ndarray:
            return np.array([isotonic(row) for row in table])

        fit = fit_rows_on_tree(
            hierarchy, target, rising, weights=weights, max_rounds=3000, close_enough=1e-12
        )
        point, correction = target.copy(), np.zeros_like(target)
        for _ in range(3000):
            additive = project_on_tree(hierarchy, point, weights)
            before = point
            point = rising(additive + correction)
            correction += additive - point
            if np.abs(point - before).max() < 1e-12:
                break
        np.testing.assert_allclose(fit.table, point, atol=1e-5)


def test_one_size_leaves_nothing_to_fit() -> None:
    hierarchy = hierarchy_from_leaves(["leaf"], [("a",), ("b",)])
    totals = np.array([5, 2, 3])
    fit = relax_cumulative(hierarchy, np.array([[9], [9], [9]]), totals)
    np.testing.assert_array_equal(make_whole(hierarchy, fit.table, totals), totals[:, None])


def test_tables_and_totals_that_do_not_fit_are_refused() -> None:
    hierarchy = hierarchy_from_leaves(["leaf"], [("a",), ("b",)])
    with pytest.raises(InputError, match="one row for each of the 3 regions"):
        relax_cumulative(hierarchy, np.zeros((2, 4), dtype=np.int64), 3)
    with pytest.raises(InputError, match="at least 0"):
        relax_cumulative(hierarchy, np.zeros((3, 4), dtype=np.int64), -1)
