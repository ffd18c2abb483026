import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.group_sizes.kernels import rows as staircase_rows
from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.kernels.curves import Blocks, Curves
from tallytree.group_sizes.kernels.rows import Rows, finish_with_rows, hidden_excess


def flat_prior(n_sizes: int, n_regions: int = 1) -> Prior:
    """Every size is as likely as any other."""
    fall = 1 / np.arange(n_sizes + 1, 1, -1)[None]
    return Prior(fall, np.zeros_like(fall), np.ones_like(fall), np.zeros(n_regions, dtype=np.int64))


@settings(max_examples=60, deadline=None)
@given(st.floats(3, 40), st.floats(0.5, 6), st.integers(0, 1000))
def test_a_row_is_spread_over_the_sizes_it_may_have(row: float, scale: float, seed: int) -> None:
    n_sizes, first = 30, 3
    masses = np.random.default_rng(seed).uniform(0.1, 1, n_sizes)
    exactly, variance = np.zeros(n_sizes + 1), np.zeros(n_sizes)
    staircase_rows._add_row(row, first, masses, scale, 1.0, 0.0, exactly, variance)
    # Bayes' rule size by size, with the sizes past the last as likely as the last.
    sizes = np.arange(first, 2000)
    likely = np.append(masses, np.full(2000, masses[-1]))[sizes] * np.exp(
        -np.abs(sizes - row) / scale
    )
    likely /= likely.sum()
    assert exactly.sum() == pytest.approx(1)
    np.testing.assert_allclose(exactly[first:n_sizes], likely[: n_sizes - first], atol=1e-4)
    assert exactly[n_sizes] == pytest.approx(likely[n_sizes - first :].sum(), abs=1e-4)
    larger = 1 - np.cumsum(exactly[:n_sizes])
    np.testing.assert_allclose(variance[first:], (larger * (1 - larger))[first:], atol=1e-3)


def test_a_row_snaps_to_the_sizes_that_the_shape_has() -> None:
    fall = np.zeros((1, 60))
    fall[0, [10, 20, 50]] = 0.5, 0.5, 1.0
    masses = np.empty(60)
    staircase_rows._expected_masses(fall[0], masses)
    exactly, variance = np.zeros(61), np.zeros(60)
    staircase_rows._add_row(23.0, 5, masses, 1.5, 1.0, 0.0, exactly, variance)
    assert exactly[20] > 0.8
    assert masses.min() > 0  # but no size is ruled out


@pytest.mark.parametrize(("row", "counted"), [(17.3, 0), (17.5, 1)])
def test_rows_that_nobody_expects_count_where_they_stand_clear_of_noise(
    row: float, counted: int
) -> None:
    """Of one row, with noise of scale 2 past size 10: clear from 10 + 2 (ln 2 + 3) = 17.39 on."""
    masses, exactly, variance = np.full(30, 1 / 30), np.zeros(31), np.zeros(30)
    assert (
        staircase_rows._add_clear_rows(10, np.array([row]), 0.0, masses, 2.0, exactly, variance)
        == counted
    )
    assert exactly.sum() == pytest.approx(counted)


def test_rows_continue_the_curve() -> None:
    height, variance = np.zeros((1, 30)), np.zeros((1, 30))
    height[0, :5] = 2.0
    blocks = Blocks(np.array([0, 1]), np.array([5]), np.array([10]), 0.02)
    rows = np.array([25.0, 10.0, 5.0, 5.0])
    largest = Rows(np.array([0, 4]), rows, np.array([2.0]), np.array([0.0]), 0.02)
    finish_with_rows(Curves(height, variance, variance), flat_prior(30), blocks, largest)
    np.testing.assert_allclose(height[0, [6, 9, 12, 24, 26]], [2, 2, 1, 1, 0], atol=1e-2)
    assert (np.diff(height[0]) <= 1e-9).all()
    assert (variance[0, 5:] > 0).all()


def test_hidden_groups_at_the_top_share_what_rows_hold_in_all_regions() -> None:
    """Two groups are left in each of 50 regions, and rows show three entities each beyond the
    block, below their noise.
    """
    n_regions = 50
    blocks = Blocks(np.arange(n_regions + 1), np.full(n_regions, 5), np.full(n_regions, 10), 8.0)
    none_seen = Rows(
        np.arange(n_regions + 1) * 2,
        np.full(2 * n_regions, 5.0),
        np.full(n_regions, 2.0),
        np.full(n_regions, 6.0),
        8.0,
    )

    def finished(rows: Rows) -> np.ndarray:
        curves = Curves(
            np.full((n_regions, 30), 2.0), np.full((n_regions, 30), 0.1), np.empty((0, 0))
        )
        excess = hidden_excess(curves, blocks, rows)
        finish_with_rows(curves, flat_prior(30, n_regions), blocks, rows, excess)
        return curves.height

    found = finished(none_seen)
    assert found[:, 5:].sum(axis=1) == pytest.approx(6.0, abs=0.1)
    # A single region's sum is within its noise: nothing is made of it.
    assert (
        finished(none_seen._replace(hidden=np.append(6.0, np.zeros(n_regions - 1))))[:, 5:] == 0
    ).all()
