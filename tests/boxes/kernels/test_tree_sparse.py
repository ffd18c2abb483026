import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.boxes.kernels.sparse import MOST_FITTED, split_sparsely
from tallytree.errors import RequestError
from tallytree.kernels.trees.least_squares import (
    combined_from_below,
    tree_least_squares,
    variances_from_below,
)
from tallytree.kernels.trees.nonnegative import split_downwards, sum_leaves
from tests.kernels.test_tree_least_squares import noisy_trees, regular_tree
from tests.kernels.test_tree_nonnegative import assert_adds_up
from tests.reference import sparse_trees as slow


def split(noisy, variances, child_starts, layer_starts, how=split_sparsely):
    from_below = variances_from_below(variances, child_starts)
    combined = combined_from_below(noisy, variances, child_starts, from_below)
    total = tree_least_squares(noisy, variances, child_starts)[0]
    return how(total, combined, from_below, child_starts, layer_starts)


@settings(max_examples=25)
@given(noisy_trees())
def test_equals_numerical_integration(tree):
    fast, expected = split(*tree), split(*tree, how=slow.split_sparsely)
    np.testing.assert_allclose(fast, expected, rtol=1e-5, atol=1e-5 * max(1.0, fast[0]))


@given(noisy_trees())
def test_is_nonnegative_and_adds_up_to_the_total(tree):
    found = split(*tree)
    assert np.all(found >= 0)
    assert_adds_up(found, tree[2])
    np.testing.assert_allclose(found[0], max(0.0, tree_least_squares(*tree[:3])[0]))


@given(st.floats(-50, 50), st.floats(1e-6, 1e4), st.floats(1e-3, 1e3))
def test_one_child_holds_what_its_parent_holds(noisy, total, variance):
    found = split_sparsely(
        total,
        np.array([0.0, noisy]),
        np.full(2, variance),
        np.array([1, 2, 2]),
        np.array([0, 1, 2]),
    )
    np.testing.assert_allclose(found, total)


def sparse_tree(rng, n_full):
    """A perfect quadtree of 4**6 leaves, some of them holding 1,000; every node is counted with the
    same noise.
    """
    child_starts, level_starts = regular_tree(4**6, 4)
    leaves = np.zeros(4**6)
    leaves[rng.choice(4**6, n_full, replace=False)] = 1000.0
    truth = sum_leaves(leaves, child_starts, len(child_starts) - 1)
    noisy = truth + rng.laplace(0, 50, len(truth))
    return truth, (noisy, np.full(len(truth), 5000.0), child_starts, level_starts)


@pytest.mark.parametrize(("n_full", "gain"), [(1, 3.0), (40, 1.8), (4**6, 0.97)])
def test_gains_where_data_are_sparse_and_loses_nothing_where_they_are_dense(n_full, gain):
    errors = np.zeros(2)
    for seed in range(3):
        truth, tree = sparse_tree(np.random.default_rng(seed), n_full)
        free = tree_least_squares(*tree[:3])
        plain = split_downwards(free, variances_from_below(*tree[1:3]), tree[2])
        errors += [np.mean((found - truth) ** 2) for found in (plain, split(*tree))]
    assert errors[0] > gain * errors[1]


def test_children_known_exactly_stay():
    found = split_sparsely(
        10.0,
        np.array([10.0, 4, 3, 5]),
        np.array([1.0, 0, 1, 1]),
        np.array([1, 4, 4, 4, 4]),
        np.array([0, 1, 4]),
    )
    assert found[1] == 4
    np.testing.assert_allclose(found[1:].sum(), 10)


def test_a_wide_layer_is_fitted_from_some_of_its_nodes():
    child_starts, level_starts = regular_tree(4 * MOST_FITTED, 4)
    rng = np.random.default_rng(1)
    variances = np.where(np.arange(len(child_starts) - 1) >= level_starts[-2], 2.0, np.inf)
    found = split(
        np.where(np.isinf(variances), 0, rng.poisson(5, len(variances))),
        variances,
        child_starts,
        level_starts,
    )
    assert np.all(found >= 0)
    assert_adds_up(found, child_starts)


def test_refuses_what_is_not_a_tree():
    with pytest.raises(RequestError, match="one variance per"):
        split_sparsely(1.0, np.ones(3), np.ones(2), np.array([1, 3, 3, 3]), np.array([0, 1, 3]))
