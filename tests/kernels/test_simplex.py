"""Projections onto given sums, against sorting and against fractions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tallytree.errors import InputError
from tallytree.kernels.tables.simplex import project_to_simplex, project_to_whole_simplex
from tallytree.model.arrays import offsets_from_lengths
from tests.reference import sums as twin

regions_and_totals = st.lists(
    st.tuples(st.lists(st.integers(-9, 15), min_size=1, max_size=9), st.integers(0, 40)), max_size=4
)


def flat(regions: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([v for region in regions for v in region], dtype=np.int64)
    return values, offsets_from_lengths(
        np.array([len(region) for region in regions], dtype=np.int64)
    )


@given(regions_and_totals)
def test_real_projection_is_the_sorted_one(drawn: list[tuple[list[int], int]]) -> None:
    values, offsets = flat([region for region, _ in drawn])
    fit = project_to_simplex(values / 3, offsets, [total for _, total in drawn])
    for r, (region, total) in enumerate(drawn):
        here = fit[offsets[r] : offsets[r + 1]]
        assert_allclose(here, twin.project_to_simplex([v / 3 for v in region], total), atol=1e-9)
        assert here.sum() == pytest.approx(total)


@given(regions_and_totals)
def test_whole_projection_rounds_the_exact_one(drawn: list[tuple[list[int], int]]) -> None:
    values, offsets = flat([region for region, _ in drawn])
    fit = project_to_whole_simplex(values, offsets, [total for _, total in drawn])
    for r, (region, total) in enumerate(drawn):
        here = fit[offsets[r] : offsets[r + 1]].tolist()
        exact = twin.project_exactly(region, total)
        assert sum(here) == total
        assert all(math.floor(x) <= whole <= math.ceil(x) for x, whole in zip(exact, here))
        # All fractions are tied, so any choice of the right number of cells is a largest-remainder
        # rounding.
        expected = twin.round_to_total(exact, total)
        cost = sum((x - whole) ** 2 for x, whole in zip(exact, here))
        assert cost == sum((x - whole) ** 2 for x, whole in zip(exact, expected))


def test_cells_rounded_up_are_spread() -> None:
    # Four cells of 1 share 2: every second one keeps its 1.
    fit = project_to_whole_simplex([1, 1, 1, 1], np.array([0, 4]), [2])
    assert fit.tolist() == [1, 0, 1, 0]


def test_empty_regions_and_total_zero() -> None:
    assert project_to_whole_simplex([5, -5, 7], np.array([0, 0, 2, 3]), [0, 0, 7]).tolist() == [
        0,
        0,
        7,
    ]
    assert project_to_simplex([5, -5], np.array([0, 0, 2]), [0, 0]).tolist() == [0.0, 0.0]


def test_refuses_impossible_totals() -> None:
    with pytest.raises(InputError, match="total 0 where a region has no values"):
        project_to_simplex([], np.array([0, 0]), [1])
    with pytest.raises(InputError, match="at least 0"):
        project_to_whole_simplex([1], np.array([0, 1]), [-1])
    with pytest.raises(InputError, match="Whole numbers"):
        project_to_whole_simplex([0.5], np.array([0, 1]), [1])


def test_a_cell_that_floats_put_on_the_threshold_does_not_make_the_loop_swing() -> None:
    fit = project_to_simplex(
        [0.7200000000000002, 11.72, 10.72, 1.7200000000000002], np.array([0, 4]), [22]
    )
    np.testing.assert_allclose(fit, [0, 11, 10, 1], atol=1e-12)
