import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.group_sizes.kernels.curves import Blocks, Curves
from tallytree.group_sizes.kernels.sums import (
    Sums,
    as_answered,
    bias_log_likelihoods,
    find_bias,
    sum_children,
)
from tests.reference import staircases as reference


def test_answers_move_curves_block_by_block() -> None:
    blocks = Blocks(np.array([0, 2, 3]), np.array([1, 3, 2]), np.array([12, 14, 9]), 4.0)
    curves = Curves(
        np.array([[10.0, 8.0, 4.0, 1.0], [6.0, 5.0, 2.0, 1.0]]), np.ones((2, 4)), np.empty((0, 0))
    )
    found = as_answered(blocks, curves)
    np.testing.assert_allclose(found.height, [[12, 9, 5, 1], [5, 4, 2, 1]])
    np.testing.assert_allclose(found.variance, [[4, 2, 2, np.inf], [2, 2, np.inf, np.inf]])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7))
def test_sums_are_generalised_least_squares(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 50, n)
    height, variance = rng.normal(20, 10, (n, 2)), rng.uniform(0.5, 30, (n, 2))
    fitted = rng.uniform(0, 1, (n, 2)) * groups[:, None]
    found = sum_children(groups, Sums(height, variance), fitted, np.array([0, n]))
    for size in range(2):
        expected = reference.summed_children(
            groups, height[:, size], variance[:, size], fitted[:, size]
        )
        np.testing.assert_allclose(
            (found.height[0, size], found.variance[0, size]), expected, rtol=1e-6, atol=1e-6
        )


def test_how_unlike_children_are_taken_to_be() -> None:
    """Worked out by hand: of a child of 100 groups a share of 0.4 deviates with variance 24 by
    chance, and 24² beyond it.
    """
    groups = np.array([100, 100])
    known = Sums(np.array([[30.0], [50.0]]), np.array([[25.0], [400.0]]))
    found = sum_children(groups, known, np.array([[35.0], [45.0]]), np.array([0, 2]))
    # b = 600/625 and 600/1000; ŝ = (100·30/625 + 100·50/1000) / (100²/625 + 100²/1000) = 9.8/26 per
    # group, of 4 and 40 groups.
    assert found.height[0, 0] == pytest.approx(0.96 * 30 + 0.6 * 50 + 44 * 9.8 / 26)
    # Weights (600 + 100 · 44/26) / 625 and / 1000 are 16/13 and 10/13.
    by_chance = 600 * ((16 / 13 - 1) ** 2 + (10 / 13 - 1) ** 2)
    assert found.variance[0, 0] == pytest.approx(
        by_chance + 25 * (16 / 13) ** 2 + 400 * (10 / 13) ** 2
    )


def test_sums_of_children_alike_are_plain_and_empty_children_add_no_noise() -> None:
    groups = np.array([30, 30, 0])
    known = Sums(np.array([[11.0], [17.0], [5.0]]), np.full((3, 1), 4.0))
    found = sum_children(groups, known, np.array([[15.0], [15.0], [0.0]]), np.array([0, 3]))
    assert found.height[0, 0] == pytest.approx(28, rel=1e-6)
    assert found.variance[0, 0] == pytest.approx(8, rel=1e-6)


def test_sums_are_unknown_where_a_child_with_groups_is() -> None:
    known = Sums(np.array([[11.0, 3.0], [17.0, 2.0]]), np.array([[4.0, np.inf], [4.0, 4.0]]))
    fitted = np.array([[15.0, 4.0], [15.0, 4.0]])
    assert np.isinf(
        sum_children(np.array([30, 30]), known, fitted, np.array([0, 2])).variance
    ).tolist() == [[False, True]]
    assert np.isfinite(
        sum_children(np.array([0, 30]), known, fitted, np.array([0, 2])).variance
    ).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from([1e-4, 0.03, 0.5]))
def test_bias_conditions_a_gaussian(seed: int, n_sizes: int, bias_variance: float) -> None:
    rng = np.random.default_rng(seed)
    groups = np.array([200])
    fitted = np.sort(rng.uniform(1, 199, (1, n_sizes)))[:, ::-1].copy()
    variance = np.where(rng.random((1, n_sizes)) < 0.2, np.inf, rng.uniform(1, 50, (1, n_sizes)))
    sums = Sums(fitted + rng.normal(0, 8, (1, n_sizes)), variance)
    mean, spread, likelihood = reference.bias_of_sums(
        200, fitted[0], sums.height[0], variance[0], bias_variance
    )
    found = find_bias(groups, fitted, sums, bias_variance)
    np.testing.assert_allclose(found.height[0], mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.variance[0], spread, rtol=1e-6, atol=1e-8)
    likelihoods = bias_log_likelihoods(groups, fitted, sums, [bias_variance])
    assert likelihoods == pytest.approx([likelihood], rel=1e-8)
