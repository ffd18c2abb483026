"""Distances on runs against lists of groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tallytree.errors import InputError
from tallytree.group_sizes.kernels.distance import (
    distinct_sizes,
    earth_movers_distance,
    l1_distance,
    l2_squared,
)
from tests.reference import distances as twin
from tests.reference.group_sizes import counts_from_lists

lists = st.lists(st.integers(0, 15), max_size=8)


@given(st.lists(st.tuples(lists, lists), min_size=1, max_size=5))
def test_distances_are_their_definitions(pairs: list[tuple[list[int], list[int]]]) -> None:
    a, b = (
        counts_from_lists([one for one, _ in pairs]),
        counts_from_lists([other for _, other in pairs]),
    )
    assert_array_equal(
        earth_movers_distance(a, b), [twin.earth_movers_distance(*pair) for pair in pairs]
    )
    differences = [twin.count_differences(*pair) for pair in pairs]
    assert_array_equal(l1_distance(a, b), [sum(map(abs, d)) for d in differences])
    assert_array_equal(l2_squared(a, b), [sum(x * x for x in d) for d in differences])
    assert_array_equal(distinct_sizes(a), [len(set(one)) for one, _ in pairs])


@given(
    st.lists(st.integers(0, 15), min_size=6, max_size=6),
    st.lists(st.integers(0, 15), min_size=6, max_size=6),
)
def test_emd_is_the_distance_of_cumulative_counts(one: list[int], other: list[int]) -> None:
    # kuo2018 Lemma 1.
    a, b = counts_from_lists([one]), counts_from_lists([other])
    assert_array_equal(
        earth_movers_distance(a, b), np.abs(a.cumulative(15) - b.cumulative(15)).sum(axis=1)
    )


def test_refuses_other_regions() -> None:
    with pytest.raises(InputError, match="same regions"):
        earth_movers_distance(counts_from_lists([[1]]), counts_from_lists([[1], [2]]))
