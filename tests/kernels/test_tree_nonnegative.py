import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.kernels.trees.least_squares import tree_least_squares, variances_from_below
from tallytree.kernels.trees.nonnegative import (
    nonnegative_least_squares,
    split_downwards,
    sum_leaves,
    zero_subtrees,
)
from tests.kernels.test_tree_least_squares import noisy_trees, regular_tree
from tests.reference import trees as slow


def assert_adds_up(values, child_starts):
    for node in np.flatnonzero(np.diff(child_starts) > 0):
        children = values[child_starts[node] : child_starts[node + 1]]
        np.testing.assert_allclose(values[node], children.sum(), rtol=1e-9, atol=1e-9)


@given(noisy_trees())
def test_exact_nonnegative_least_squares(tree):
    noisy, variances, child_starts, level_starts = tree
    fast = nonnegative_least_squares(noisy, variances, child_starts, level_starts)
    expected = slow.nonnegative_least_squares(noisy, variances, child_starts)
    assert np.all(fast >= 0)
    np.testing.assert_allclose(fast, expected, rtol=1e-8, atol=1e-8)


@given(noisy_trees())
def test_nonnegative_least_squares_changes_nothing_where_nothing_is_negative(tree):
    noisy, variances, child_starts, level_starts = tree
    free = tree_least_squares(noisy + 1e4, variances, child_starts)
    bound = nonnegative_least_squares(noisy + 1e4, variances, child_starts, level_starts)
    if np.all(free >= 0):
        np.testing.assert_allclose(bound, free, rtol=1e-9)


@given(noisy_trees())
def test_splitting_downwards_keeps_the_total_and_adds_up(tree):
    noisy, variances, child_starts, _ = tree
    weights = variances_from_below(variances, child_starts)
    free = tree_least_squares(noisy, variances, child_starts)
    split = split_downwards(free, weights, child_starts)
    assert np.all(split >= 0)
    assert_adds_up(split, child_starts)
    np.testing.assert_allclose(split[0], max(free[0], 0))
    if np.all(free >= 0):
        np.testing.assert_allclose(split, free, rtol=1e-9, atol=1e-9)


@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=6), st.integers(0, 8), st.integers(0, 2**32)
)
def test_splitting_one_parent_is_the_best_split(targets, total, seed):
    weights = np.random.default_rng(seed).uniform(0.2, 3, len(targets))
    n = len(targets)
    child_starts = np.concatenate([[1], np.full(n + 1, n + 1)])
    fast = split_downwards(
        np.array([total, *targets], float), np.concatenate([[1], weights]), child_starts
    )
    np.testing.assert_allclose(
        fast[1:], slow.share_out(np.array(targets, float), weights, total), atol=1e-9
    )


def test_splitting_keeps_children_that_are_known_exactly():
    split = split_downwards(
        np.array([10.0, 4, 3, 5]), np.array([1.0, 0, 1, 1]), np.array([1, 4, 4, 4, 4])
    )
    np.testing.assert_allclose(split, [10, 4, 2, 4])


@given(noisy_trees())
def test_zeroing_subtrees(tree):
    noisy, variances, child_starts, _ = tree
    free = tree_least_squares(noisy, variances, child_starts)
    np.testing.assert_array_equal(
        zero_subtrees(free, child_starts), slow.zero_subtrees(free, child_starts)
    )


def test_sums_of_leaves():
    child_starts, level_starts = regular_tree(11, 3)
    values = np.arange(11)
    np.testing.assert_array_equal(
        sum_leaves(values, child_starts, level_starts[-1]),
        slow.leaf_membership(child_starts) @ values,
    )


def test_refuses_leaves_on_two_levels():
    with pytest.raises(RequestError, match="last level"):
        nonnegative_least_squares(
            np.zeros(4), np.ones(4), np.array([1, 3, 3, 4, 4]), np.array([0, 1, 3, 4])
        )


def test_refuses_leaves_without_a_count():
    with pytest.raises(RequestError, match="finite ones for leaves"):
        nonnegative_least_squares(
            np.zeros(3), np.array([1, np.inf, 1]), np.array([1, 3, 3, 3]), np.array([0, 1, 3])
        )
