"""Programs through an open solver: exact against full tables and enumeration, and an oracle for the
fast ones.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip(
    "highspy", reason="SKIPPED LOUDLY: install the extra 'solvers' to test the solver programs"
)
pytest.importorskip(
    "osqp", reason="SKIPPED LOUDLY: install the extra 'solvers' to test the solver programs"
)

from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.papers.fioretto2021.cost_tables import CostTable, SplitProgram, solve_by_cost_tables
from tallytree.papers.fioretto2021.counts_tree import relax_counts
from tallytree.papers.fioretto2021.cumulative_tree import relax_cumulative
from tallytree.papers.fioretto2021.joint_fit import make_whole
from tallytree.papers.fioretto2021.kernels.allocation import allocate_over_tree
from tallytree.papers.fioretto2021.solver_programs import (
    Program,
    _solve,
    counts_program,
    cumulative_program,
    relax_by_solver,
    solve_counts,
    solve_cumulative,
)
from tests.reference.cost_tables import optimal_cost_of_model_1
from tests.reference.noisy_trees import (
    Instance,
    breaks_of_tree,
    random_instance,
    squared_distance,
    sum_up,
)


def check(instance: Instance, table: np.ndarray, *, all_totals: bool) -> None:
    assert table.min() >= 0
    assert breaks_of_tree(instance.hierarchy, table) == 0
    assert table[0].sum() == instance.total
    if all_totals:
        np.testing.assert_array_equal(table.sum(axis=1), instance.totals)


def test_model_1_is_exact() -> None:
    rng = np.random.default_rng(81)
    for _ in range(100):
        instance = random_instance(rng)
        solved = solve_counts(instance.hierarchy, instance.noisy, instance.total)
        check(instance, solved.table, all_totals=False)
        assert solved.optimal
        assert solved.objective == squared_distance(solved.table, instance.noisy)
        assert solved.objective == optimal_cost_of_model_1(
            instance.hierarchy, instance.noisy, instance.total
        )


def tables_of(
    leaf_totals: np.ndarray, n_sizes: int
) -> "itertools.product[tuple[tuple[int, ...], ...]]":
    """All whole leaf tables with the given row sums."""
    rows = [
        [row for row in itertools.product(range(total + 1), repeat=n_sizes) if sum(row) == total]
        for total in leaf_totals
    ]
    return itertools.product(*rows)


@pytest.mark.parametrize("cumulative", [False, True])
def test_every_regions_total_is_exact_by_enumeration(cumulative: bool) -> None:
    rng = np.random.default_rng(82)
    for _ in range(40):
        instance = random_instance(rng, max_levels=3, max_children=2, max_sizes=3, max_total=4)
        hierarchy = instance.hierarchy
        noisy = np.cumsum(instance.noisy, axis=1) if cumulative else instance.noisy
        solved = (solve_cumulative if cumulative else solve_counts)(
            hierarchy, noisy, instance.totals
        )
        check(instance, solved.table, all_totals=True)
        leaf_totals = instance.totals[hierarchy.level_slice(hierarchy.n_levels - 1)]
        costs = []
        for leaves in tables_of(leaf_totals, noisy.shape[1]):
            table = sum_up(hierarchy, np.array(leaves, dtype=np.int64))
            if cumulative:
                costs.append(squared_distance(np.cumsum(table, axis=1)[:, :-1], noisy[:, :-1]))
            else:
                costs.append(squared_distance(table, noisy))
        assert solved.optimal
        assert solved.objective == min(costs)


def test_model_2_with_the_roots_total_is_no_worse_than_any_other_whole_table() -> None:
    rng = np.random.default_rng(83)
    for _ in range(25):
        instance = random_instance(rng, max_levels=3, max_children=2, max_sizes=2, max_total=3)
        hierarchy, noisy = instance.hierarchy, np.cumsum(instance.noisy, axis=1)
        solved = solve_cumulative(hierarchy, noisy, instance.total)
        check(instance, solved.table, all_totals=False)
        shape = (hierarchy.n_leaves, noisy.shape[1])
        best = min(
            squared_distance(np.cumsum(sum_up(hierarchy, np.reshape(leaves, shape)), axis=1), noisy)
            for leaves in itertools.product(range(instance.total + 1), repeat=shape[0] * shape[1])
            if sum(leaves) == instance.total
        )
        assert solved.objective == best


def test_larger_instances_agree_with_the_fast_allocation() -> None:
    rng = np.random.default_rng(84)
    leaves = [(f"b{b}", f"z{z:02}") for b in range(4) for z in range(3 + 5 * b)]
    hierarchy = hierarchy_from_leaves(["borough", "zone"], leaves)
    for weights in (None, np.array([5, 2, 1])):
        counts = sum_up(hierarchy, rng.poisson(3, (hierarchy.n_leaves, 12)))
        noisy = counts + np.rint(rng.laplace(0, 8, counts.shape)).astype(np.int64)
        total = int(counts[0].sum())
        solved = solve_counts(hierarchy, noisy, total, weights=weights)
        fast = allocate_over_tree(hierarchy, noisy, total, weights=weights)
        per_level = np.ones(3, dtype=np.int64) if weights is None else weights
        assert solved.optimal
        assert solved.objective == int(
            (per_level[hierarchy.level_of][:, None] * (fast - noisy) ** 2).sum()
        )


def test_our_relaxations_agree_with_the_quadratic_solver() -> None:
    rng = np.random.default_rng(85)
    leaves = [(f"b{b}", f"z{z:02}") for b in range(3) for z in range(3 + 2 * b)]
    hierarchy = hierarchy_from_leaves(["borough", "zone"], leaves)
    counts = sum_up(hierarchy, rng.poisson(2, (hierarchy.n_leaves, 8)))
    noisy = counts + np.rint(rng.laplace(0, 5, counts.shape)).astype(np.int64)
    totals = counts.sum(axis=1)
    for public in (int(totals[0]), totals):
        program = counts_program(hierarchy, noisy, public, None)
        ours = relax_counts(hierarchy, noisy, public)
        np.testing.assert_allclose(ours, relax_by_solver(program).reshape(noisy.shape), atol=0.05)
        cumulative = np.cumsum(counts, axis=1) + np.rint(rng.laplace(0, 3, counts.shape)).astype(
            np.int64
        )
        if np.ndim(public):
            cumulative[:, -1] = public
        program = cumulative_program(hierarchy, cumulative, public, None)
        fit = relax_cumulative(hierarchy, cumulative, public).table
        np.testing.assert_allclose(fit, relax_by_solver(program).reshape(noisy.shape), atol=0.15)


def test_the_repair_stays_close_to_the_exact_optimum_of_model_2() -> None:
    rng = np.random.default_rng(86)
    ratios = []
    for _ in range(30):
        instance = random_instance(rng, max_levels=3, max_sizes=4, max_total=20)
        noisy = np.cumsum(instance.counts, axis=1) + np.rint(
            rng.laplace(0, 3, instance.counts.shape)
        ).astype(np.int64)
        exact = solve_cumulative(instance.hierarchy, noisy, instance.totals)
        repaired = make_whole(
            instance.hierarchy,
            relax_cumulative(instance.hierarchy, noisy, instance.totals).table,
            instance.totals,
        )
        cost = squared_distance(np.cumsum(repaired, axis=1)[:, :-1], noisy[:, :-1])
        assert cost >= exact.objective
        ratios.append(cost / max(exact.objective, 1))
    assert np.mean(ratios) < 1.05


def test_cost_tables_with_a_program_per_entry_are_exact_and_widen_their_windows() -> None:
    rng = np.random.default_rng(87)
    widened = 0
    for _ in range(50):
        instance = random_instance(rng, max_levels=3, max_sizes=3)
        solved = solve_by_cost_tables(instance.hierarchy, instance.noisy, instance.total, 2)
        check(instance, solved.table, all_totals=False)
        assert solved.optimal
        assert solved.objective == optimal_cost_of_model_1(
            instance.hierarchy, instance.noisy, instance.total
        )
        widened += solved.detail["windows widened"]
    # A window of the paper's kind would have been wrong this often.
    assert widened > 0


def test_cost_tables_out_of_time_return_a_table_that_adds_up_and_is_not_called_optimal() -> None:
    instance = random_instance(np.random.default_rng(3), max_levels=3, max_sizes=3)
    in_time = solve_by_cost_tables(instance.hierarchy, instance.noisy, instance.total, 2)
    solved = solve_by_cost_tables(
        instance.hierarchy, instance.noisy, instance.total, 2, time_limit=0
    )
    check(instance, solved.table, all_totals=False)
    assert in_time.optimal
    assert not solved.optimal
    assert solved.detail["programs"] == 0 < in_time.detail["programs"]
    assert solved.objective >= in_time.objective


def test_one_entry_of_table_5() -> None:
    georgia, new_york = (
        CostTable(0, np.array([9.0, 4, 1, 0, 1])),
        CostTable(0, np.array([0.0, 1, 4, 9, 16])),
    )
    split = SplitProgram([georgia, new_york])
    assert split.solve(3) == (0.0, [3, 0])
    assert split.solve(4) in ((1.0, [4, 0]), (1.0, [3, 1]))
    assert split.solve(9) is None


def test_whole_numbers_are_asked_for_where_the_linear_program_stays_between_them() -> None:
    """Of three unknowns near 1 no two may be 1: without whole numbers all are 1/2, on chords that
    are all there already.
    """
    pairs = sp.csr_matrix(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))
    ones = np.ones(3, dtype=np.int64)
    program = Program(ones, 3 * ones, ones, pairs, np.full(3, -np.inf), np.ones(3))
    solved = _solve(program, np.zeros((1, 3), dtype=np.int64), 20.0)
    assert solved.optimal
    assert solved.objective == 6
    assert sorted(solved.table.ravel().tolist()) == [0, 0, 1]
    assert solved.detail["rounds"] <= 3
