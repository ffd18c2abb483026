import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.kernels.trees.nonnegative import sum_leaves
from tallytree.kernels.trees.rounding import round_tree
from tests.kernels.test_tree_least_squares import regular_tree


@given(
    st.integers(1, 60), st.integers(2, 9), st.integers(0, 2**32), st.sampled_from([0.0, -3.0, 1e7])
)
def test_every_node_is_rounded_down_or_up_and_sums_hold(n_leaves, branching, seed, lowest):
    child_starts, _ = regular_tree(n_leaves, branching)
    leaves = lowest + np.random.default_rng(seed).uniform(0, 6, n_leaves)
    values = sum_leaves(leaves, child_starts, len(child_starts) - 1)
    whole = round_tree(values, child_starts)
    assert np.all(np.abs(whole - values) < 1 + 1e-6)
    np.testing.assert_array_equal(whole, sum_leaves(whole[-n_leaves:], child_starts, len(whole)))
    if lowest >= 0:
        assert np.all(whole >= 0)


def test_whole_values_stay_although_their_sums_carry_rounding_errors():
    child_starts, _ = regular_tree(9, 3)
    leaves = np.arange(9) + np.array([1e-9, -1e-9, 0] * 3)
    values = sum_leaves(leaves, child_starts, len(child_starts) - 1)
    np.testing.assert_array_equal(round_tree(values, child_starts)[-9:], np.arange(9))


def test_zeros_stay_zero_when_their_parent_is_rounded_down():
    whole = round_tree(np.array([0.4, 0.0, 0.4]), np.array([1, 3, 3, 3]))
    np.testing.assert_array_equal(whole, [0, 0, 0])


def test_the_largest_fractions_are_rounded_up():
    np.testing.assert_array_equal(
        round_tree(np.array([2.0, 0.7, 0.2, 1.1]), np.array([1, 4, 4, 4, 4])), [2, 1, 0, 1]
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_refuses_values_that_are_no_counts(bad):
    with pytest.raises(RequestError, match="finite values"):
        round_tree(np.array([bad, bad]), np.array([1, 2, 2]))
