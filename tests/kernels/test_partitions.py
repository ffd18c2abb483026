import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.boxes.kernels.squared_parts import SquaredParts
from tallytree.errors import RequestError
from tallytree.kernels.partitions import (
    box_deviations,
    cheapest_cut,
    deviations_from,
    merge_by_squares,
)
from tests.reference.partitions import (
    absolute_deviations,
    all_partitions,
    all_tilings,
    rounded_squares,
    squares_cost,
)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.integers(-9, 9), min_size=1, max_size=9), price=st.integers(0, 40))
def test_the_partition_is_the_cheapest_of_all(values, price):
    edges = merge_by_squares(np.array(values, dtype=float), price)
    best = min(squares_cost(values, edges, price) for edges in all_partitions(len(values)))
    assert squares_cost(values, edges.tolist(), price) == pytest.approx(best, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(counts=st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_deviations_are_those_of_the_best_constant(counts):
    found = deviations_from(np.array(counts))
    assert found.tolist() == [absolute_deviations(counts[:q]) for q in range(1, len(counts) + 1)]


def test_steps_are_found_and_ten_thousand_bins_are_no_trouble():
    values = np.repeat([5.0, 50.0, 20.0], [4000, 1000, 5000]) + np.random.default_rng(1).normal(
        size=10_000
    )
    assert merge_by_squares(values, 20.0).tolist() == [0, 4000, 5000, 10_000]


def test_too_many_bins_are_refused():
    with pytest.raises(RequestError, match="32,768"):
        merge_by_squares(np.zeros(100_000), 1.0)


@settings(max_examples=60, deadline=None)
@given(prices=st.lists(st.integers(-9, 9), min_size=13, max_size=13))
def test_the_tiling_is_the_cheapest_of_all(prices):
    # A root of three, of which the first has four children, the second two with two below one of
    # them, the third none.
    starts = [1, 4, 8, 10, *[10] * 5, 12, 12, 13, 13, 13]
    chosen = np.flatnonzero(cheapest_cut(np.array(prices), np.array(starts)))
    assert tuple(chosen) in set(all_tilings(starts))
    assert sum(prices[node] for node in chosen) == min(
        sum(prices[node] for node in nodes) for nodes in all_tilings(starts)
    )


def test_where_prices_are_alike_the_larger_node_is_taken():
    assert cheapest_cut(np.array([2, 1, 1]), np.array([1, 3, 3, 3])).tolist() == [1, 0, 0]
    assert cheapest_cut(np.array([3, 1, 1]), np.array([1, 3, 3, 3])).tolist() == [0, 1, 1]


@settings(max_examples=40, deadline=None)
@given(parts=st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), min_size=1, max_size=5))
def test_deviations_of_stretches_are_those_of_the_best_constant(parts):
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    found = box_deviations(np.concatenate(parts), starts)
    assert found.tolist() == [absolute_deviations(part) for part in parts]


@settings(max_examples=40, deadline=None)
@given(counts=st.lists(st.integers(0, 30), min_size=2, max_size=7), data=st.data())
def test_last_cuts_complete_the_best_partitions_before_them(counts, data):
    n_parts = data.draw(st.integers(1, len(counts) - 1))
    end = data.draw(st.integers(n_parts + 1, len(counts)))
    found = SquaredParts.of(np.array(counts), n_parts).last_cuts(n_parts, end)
    wanted = [
        min(
            rounded_squares(counts, edges)
            for edges in all_partitions(cut)
            if len(edges) == n_parts + 1
        )
        + rounded_squares(counts, (cut, end))
        for cut in range(n_parts, end)
    ]
    assert found.tolist() == wanted


def test_squared_parts_take_the_largest_counts_exactly():
    counts = np.array([2**18, 0] * 2048)
    assert SquaredParts.of(counts, 1).table[0, -1] == 4096 * 2**34
    for wrong, n_parts in (([2**18 + 1], 1), ([-1], 1), ([1], 2), ([0] * 4097, 1)):
        with pytest.raises(RequestError):
            SquaredParts.of(np.array(wrong), n_parts)
