"""Estimates of tables beside least squares by dense matrices, and whole numbers that add up."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.lattice.axes import Axis, even_axis, plain_axis
from tallytree.lattice.nonnegative import nonnegative_children
from tallytree.lattice.tables import Axes, TableKey
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.confidential_table import ConfidentialTable, PublicTable
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tallytree.model.values import Values
from tallytree.privacy.budget import Budget
from tallytree.privacy.randomness import KeyStream
from tallytree.tables.estimate import Estimates
from tallytree.tables.measure import NoisyTable, measure_table
from tallytree.tables.plan import TablePlan, plan_of_shares
from tallytree.tables.reconcile import whole_table

LEAVES = (("GA", "Cobb"), ("GA", "Fulton"), ("NY", "Kings"), ("OH", "a"), ("OH", "b"), ("OH", "c"))
TREE = hierarchy_from_leaves(["state", "county"], LEAVES, root="US")
EVEN = Axis(4, ((0,), (0, 2), (0, 1, 2, 3)))
AXES = (
    Axes((plain_axis(2), plain_axis(3))),
    Axes((EVEN, plain_axis(2))),
    Axes((plain_axis(3),)),
    Axes(()),
)


def values_of(axes: Axes) -> Values:
    names = tuple("abc"[: len(axes.axes)])
    return Values(names, tuple(tuple(map(str, range(n))) for n in axes.shape))


def plan(axes: Axes, keys: list[TableKey], tree: Hierarchy = TREE) -> TablePlan:
    facts = PublicTable(tree, values_of(axes))
    share = Fraction(1, len(keys))
    return plan_of_shares(facts, axes, Budget("pure", Fraction(1)), dict.fromkeys(keys, share))


def sums_matrix(axes: Axes, key: TableKey, tree: Hierarchy) -> FloatArray:
    """One row per number of a table, one column per cell of a leaf."""
    here = tree.level_slice(key.level)
    row = axes.row_of_cell(key.parts)
    matrix = np.zeros((tree.level_size(key.level), axes.n_rows(key.parts), tree.n_leaves, axes.n_cells))  # fmt: skip
    bounds = zip(tree.leaf_starts[here], tree.leaf_ends[here])
    for region, (first, last) in enumerate(bounds):
        for leaf in range(first, last):
            matrix[region, row, leaf, np.arange(axes.n_cells)] = 1
    return matrix.reshape(-1, tree.n_leaves * axes.n_cells)


def by_matrices(made: TablePlan, noisy: list[NoisyTable]) -> FloatArray:
    """The cells of the root by generalised least squares on all leaves at once."""
    rows, answers, weights = [], [], []
    for table, told in zip(made.tables, noisy):
        rows.append(sums_matrix(made.axes, table.key, made.facts.hierarchy))
        answers.append(told.values.ravel().astype(float))
        weights.append(np.full(told.values.size, 1 / table.noise.variance))
    matrix, weight = np.concatenate(rows), np.concatenate(weights)
    normal = matrix.T @ (weight[:, None] * matrix)
    leaves = np.linalg.lstsq(normal, matrix.T @ (weight * np.concatenate(answers)), rcond=None)[0]
    return leaves.reshape(made.facts.hierarchy.n_leaves, -1)


def counted(axes: Axes, counts: IntArray, tree: Hierarchy = TREE) -> ConfidentialTable:
    flat = counts.ravel()
    cell = np.flatnonzero(flat)
    return ConfidentialTable(PublicTable(tree, values_of(axes)), cell, flat[cell].astype(np.int64))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(range(len(AXES))))
def test_estimates_are_those_of_least_squares(seed: int, which: int) -> None:
    rng, axes = np.random.default_rng(seed), AXES[which]
    all_keys = [TableKey(level, parts) for level in range(3) for parts in axes.partitions]
    some = [key for key in all_keys if rng.random() < 0.5]
    made = plan(axes, sorted({*some, TableKey(2, axes.finest)}))
    counts = rng.integers(0, 50, (TREE.n_leaves, axes.n_cells))
    noisy = measure_table(counted(axes, counts), made, KeyStream.from_insecure_seed(seed))
    found = axes.restored(Estimates(made, noisy).of(0, 0, 1))
    np.testing.assert_allclose(
        found[0], by_matrices(made, list(noisy)).sum(axis=0), rtol=1e-6, atol=1e-4
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(range(len(AXES))))
def test_the_variance_is_that_of_least_squares(seed: int, which: int) -> None:
    rng, axes = np.random.default_rng(seed), AXES[which]
    all_keys = [TableKey(level, parts) for level in range(3) for parts in axes.partitions]
    some = [key for key in all_keys if rng.random() < 0.5]
    made = plan(axes, sorted({*some, TableKey(2, axes.finest)}))
    normal = np.zeros((TREE.n_leaves * axes.n_cells,) * 2)
    for table in made.tables:
        matrix = sums_matrix(axes, table.key, TREE)
        normal += matrix.T @ matrix / table.noise.variance
    chosen = [(rng.random(n) < 0.6).astype(float) for n in axes.shape]
    weights = np.ones(1)
    for one in chosen:
        weights = np.multiply.outer(weights, one).ravel()
    for region in range(TREE.n_regions):
        inside = np.zeros((TREE.n_leaves, 1))
        inside[TREE.leaf_starts[region] : TREE.leaf_ends[region]] = 1
        asked = (inside * weights).ravel()
        variance = asked @ np.linalg.solve(normal, asked)
        np.testing.assert_allclose(
            made.std_error(region, chosen), np.sqrt(variance), rtol=1e-5, atol=1e-6
        )


def test_uneven_classes_leave_estimates_unbiased_and_errors_no_smaller_than_they_are() -> None:
    axes = Axes((even_axis(11, (3,)),))
    made = plan(axes, [TableKey(0, (1,)), TableKey(1, (2,)), TableKey(2, (1,)), TableKey(2, (2,))])
    counts = np.arange(TREE.n_leaves * 11).reshape(-1, 11)
    table = counted(axes, counts)
    found = []
    for seed in range(300):
        noisy = measure_table(table, made, KeyStream.from_insecure_seed(seed))
        found.append(axes.restored(Estimates(made, noisy).of(0, 0, 1))[0])
    errors = np.array(found) - counts.sum(axis=0)
    chosen = [np.arange(11) < 7]
    stated = made.std_error(0, [chosen[0].astype(float)])
    actual = errors @ chosen[0]
    assert abs(actual.mean()) < 4 * stated / np.sqrt(300)
    assert 0.8 * stated < actual.std() < 1.1 * stated


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(range(len(AXES))))
def test_whole_numbers_are_not_negative_and_near_the_truth(seed: int, which: int) -> None:
    rng, axes = np.random.default_rng(seed), AXES[which]
    made = plan(axes, [TableKey(0, axes.finest), TableKey(2, axes.finest)])
    counts = rng.poisson(2000, (TREE.n_leaves, axes.n_cells))
    noisy = measure_table(counted(axes, counts), made, KeyStream.from_insecure_seed(seed))
    cell, n = whole_table(made, Estimates(made, noisy))
    assert np.all(n > 0)
    assert np.all(np.diff(cell) > 0)
    released = np.zeros(counts.size)
    released[cell] = n
    assert np.abs(released - counts.ravel()).max() < 60


def test_without_any_rows_all_counts_may_be_zero() -> None:
    axes = AXES[0]
    made = plan(axes, [TableKey(2, axes.finest)])
    empty = [np.zeros((TREE.n_leaves, axes.n_cells), dtype=np.int64)]
    noisy = [NoisyTable(made.tables[0].key, table) for table in empty]
    cell, n = whole_table(made, Estimates(made, noisy))
    assert len(cell) == len(n) == 0


@pytest.mark.parametrize("seed", range(5))
def test_children_are_nonnegative_and_keep_what_is_known_of_sums(seed: int) -> None:
    """Beside a quadratic program solved by projected gradients, slowly."""
    rng, axes = np.random.default_rng(seed), AXES[0]
    parents = rng.integers(0, 9, (1, axes.n_cells)).astype(float)
    precision = np.exp(rng.normal(0, 1, len(axes.partitions)))[axes.component]
    precision = np.tile(precision, (3, 1))
    target = rng.normal(0, 4, (3, axes.n_cells))
    target += (axes.transformed(parents) - target.sum(axis=0)) / 3
    offsets = np.array([0, 3])
    fit = nonnegative_children(axes, target, precision, offsets, parents, rounds=3000)
    slow = parents / 3 * np.ones((3, 1))
    step = 1 / precision.max()
    from tallytree.kernels.tables.children import project_children

    for _ in range(20_000):
        gradient = axes.restored(precision * (axes.transformed(slow) - target))
        slow = project_children(slow - step * gradient, offsets, parents)
    np.testing.assert_allclose(fit, slow, atol=1e-3)
