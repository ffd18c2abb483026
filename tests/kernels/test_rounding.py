"""Largest-remainder rounding against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tallytree.errors import InputError
from tallytree.kernels.rounding import raise_largest, round_to_totals
from tallytree.model.arrays import offsets_from_lengths
from tests.reference import sums as twin

# Quarters are exact in floating point, so that ties are ties.
quarters = st.lists(st.integers(0, 30), min_size=1, max_size=9)


@given(st.lists(quarters, max_size=4), st.data())
def test_largest_fractions_go_up(regions: list[list[int]], data: st.DataObject) -> None:
    offsets = offsets_from_lengths(np.array([len(region) for region in regions], dtype=np.int64))
    totals = [
        data.draw(st.integers(sum(q // 4 for q in region), sum(-(-q // 4) for q in region)))
        for region in regions
    ]
    rounded = round_to_totals([q / 4 for region in regions for q in region], offsets, totals)
    for r, region in enumerate(regions):
        expected = twin.round_to_total([Fraction(q, 4) for q in region], totals[r])
        assert rounded[offsets[r] : offsets[r + 1]].tolist() == expected


@given(quarters, st.integers(0, 400))
def test_any_total_is_reached_without_going_below_zero(region: list[int], total: int) -> None:
    rounded = round_to_totals([q / 4 for q in region], np.array([0, len(region)]), [total])
    assert rounded.sum() == total
    assert (rounded >= 0).all()


@given(st.lists(st.integers(0, 5), max_size=12), st.data())
def test_raise_largest_takes_the_first_of_ties(keys: list[int], data: st.DataObject) -> None:
    n_raised = data.draw(st.integers(0, len(keys)))
    whole = np.zeros(len(keys), dtype=np.int64)
    raise_largest(np.array(keys, dtype=np.int64), n_raised, whole)
    chosen = sorted(range(len(keys)), key=lambda i: (-keys[i], i))[:n_raised]
    assert_array_equal(np.flatnonzero(whole), sorted(chosen))


def test_a_float_just_below_a_whole_number_is_that_number() -> None:
    assert round_to_totals([0.1 + 0.2 + 0.7 - 1e-12, 1.5], np.array([0, 2]), [2]).tolist() == [1, 1]


def test_refuses_negative_values_and_totals_without_values() -> None:
    with pytest.raises(InputError, match="at least 0"):
        round_to_totals([-1.0], np.array([0, 1]), [0])
    with pytest.raises(InputError, match="total 0 where"):
        round_to_totals([], np.array([0, 0]), [3])
