"""Group totals that add up: whole, nonnegative, and nearest to what was measured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from tallytree.errors import RequestError
from tallytree.group_sizes.reconcile.totals import consistent_totals
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tests.reference.group_sizes import hierarchies


@given(hierarchies(), st.data())
def test_totals_are_the_nonnegative_least_squares_rounded(
    hierarchy: Hierarchy, data: st.DataObject
) -> None:
    noisy = np.array([data.draw(st.integers(-20, 60)) for _ in range(hierarchy.n_regions)])
    variances = [data.draw(st.sampled_from([0.5, 1.0, 4.0])) for _ in range(hierarchy.n_levels)]
    totals = consistent_totals(hierarchy, noisy, variances)
    assert totals.dtype == np.int64
    assert (totals >= 0).all()
    assert_array_equal(
        totals, hierarchy.sum_from_leaves(totals[hierarchy.level_slice(hierarchy.n_levels - 1)])
    )
    # Every region is a sum of leaves; scipy solves for the leaves.
    sums = np.stack(
        [hierarchy.sum_from_leaves(unit) for unit in np.eye(hierarchy.n_leaves)], axis=1
    )
    scale = 1 / np.sqrt(np.array(variances)[hierarchy.level_of])
    best = sums @ nnls(sums * scale[:, None], noisy * scale)[0]
    assert_allclose(totals, best, rtol=0, atol=1 + 1e-6)


@given(hierarchies(), st.data())
def test_exact_totals_stay(hierarchy: Hierarchy, data: st.DataObject) -> None:
    leaf_totals = np.array([data.draw(st.integers(0, 10**8)) for _ in range(hierarchy.n_leaves)])
    totals = hierarchy.sum_from_leaves(leaf_totals)
    for variance in (2.0, 0.0):
        assert_array_equal(
            consistent_totals(hierarchy, totals, [variance] * hierarchy.n_levels), totals
        )


def test_a_level_without_noise_decides() -> None:
    tree = hierarchy_from_leaves(["a"], [("x",), ("y",)])
    assert consistent_totals(tree, np.array([10, 3, 3]), [0.0, 5.0]).tolist() == [10, 5, 5]


def test_refuses_arrays_of_another_shape() -> None:
    with pytest.raises(RequestError, match="3 regions"):
        consistent_totals(
            hierarchy_from_leaves(["a"], [("x",), ("y",)]), np.array([1, 2]), [1.0, 1.0]
        )


def test_more_groups_than_can_be_counted_are_scaled_down_by_one_factor() -> None:
    tree = hierarchy_from_leaves(["a"], [("x",), ("y",), ("z",)])
    assert consistent_totals(
        tree, np.array([80, 40, 20, 20]), [1.0, 1.0], most_groups=41
    ).tolist() == [40, 20, 10, 10]
    assert consistent_totals(
        tree, np.array([40, 20, 10, 10]), [1.0, 1.0], most_groups=41
    ).tolist() == [40, 20, 10, 10]
