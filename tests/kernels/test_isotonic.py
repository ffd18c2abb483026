"""Isotonic kernels against their twins, region by region."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tallytree.errors import InputError
from tallytree.kernels import isotonic
from tallytree.kernels.isotonic import (
    cumulative_runs,
    isotonic_l1,
    isotonic_l2,
    isotonic_l2_whole,
    isotonic_runs,
)
from tallytree.model.arrays import offsets_from_lengths
from tests.reference import isotonic as twin

small = st.integers(-6, 12)
rows = st.lists(st.lists(small, max_size=9), max_size=5)


def flat(regions: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([v for region in regions for v in region], dtype=np.int64)
    return values, offsets_from_lengths(
        np.array([len(region) for region in regions], dtype=np.int64)
    )


@given(rows)
def test_l2_is_the_min_max_formula(regions: list[list[int]]) -> None:
    values, offsets = flat(regions)
    fit = isotonic_l2(values, offsets)
    for region, (a, b) in zip(regions, itertools.pairwise(offsets)):
        assert_allclose(fit[a:b], twin.isotonic_l2(region), atol=1e-9)


@given(st.lists(st.tuples(small, st.integers(1, 5)), max_size=10))
def test_weighted_l2_is_the_min_max_formula(pairs: list[tuple[int, int]]) -> None:
    values, weights = [v for v, _ in pairs], [w for _, w in pairs]
    assert_allclose(
        isotonic_l2(values, weights=weights), twin.isotonic_l2(values, weights), atol=1e-9
    )
    tiny = 1e-170 * np.array(weights)
    assert_allclose(
        isotonic_l2(values, weights=tiny), isotonic_l2(values, weights=weights), atol=1e-9
    )


@given(rows, st.integers(-3, 3), st.integers(0, 6))
def test_whole_l2_is_optimal_among_whole_numbers(
    regions: list[list[int]], lower: int, span: int
) -> None:
    values, offsets = flat(regions)
    fit = isotonic_l2_whole(values, offsets, lower=lower, upper=lower + span)
    for region, (a, b) in zip(regions, itertools.pairwise(offsets)):
        assert (np.diff(fit[a:b]) >= 0).all()
        assert ((fit[a:b] >= lower) & (fit[a:b] <= lower + span)).all()
        assert ((fit[a:b] - region) ** 2).sum() == twin.best_whole_l2_cost(
            region, lower, lower + span
        )


@given(rows, st.integers(-3, 3), st.integers(0, 6))
def test_l1_is_optimal(regions: list[list[int]], lower: int, span: int) -> None:
    values, offsets = flat(regions)
    fit = isotonic_l1(values, offsets, lower=lower, upper=lower + span)
    for region, (a, b) in zip(regions, itertools.pairwise(offsets)):
        assert (np.diff(fit[a:b]) >= 0).all()
        assert ((fit[a:b] >= lower) & (fit[a:b] <= lower + span)).all()
        cost = np.abs(fit[a:b] - np.array(region, dtype=np.int64)).sum()
        assert cost == pytest.approx(twin.least_l1_cost(region, lower, lower + span))


@given(st.lists(small, max_size=40))
def test_l1_is_halfway_between_the_lowest_and_the_highest_best_fit(values: list[int]) -> None:
    assert isotonic_l1(values).tolist() == twin.isotonic_l1(values)
    cost = sum(abs(x - v) for x, v in zip(twin.isotonic_l1(values), values))
    assert cost == sum(abs(x - v) for x, v in zip(twin.lowest_l1(values), values))


def scratch(n: int) -> tuple[np.ndarray, ...]:
    return tuple(np.empty(n + 1, dtype=np.int64) for _ in range(4))


@given(st.lists(small, min_size=1, max_size=40), st.data())
def test_the_heap_takes_over_from_the_stack_anywhere(
    values: list[int], data: st.DataObject
) -> None:
    v = np.array(values, dtype=np.int64)
    done = data.draw(st.integers(0, len(v)))
    lowest, highest, kink, times = scratch(len(v))
    isotonic._edges_by_stack(v, lowest, highest, kink, times)
    low, high, kink, times = scratch(len(v))
    _, top = isotonic._edges_by_stack(v[:done], low, high, kink, times)
    isotonic._edges_by_heap(v, low, high, done, isotonic._spread_kinks(kink, times, top, len(v)))
    assert_array_equal(low[:-1], lowest[:-1])
    assert_array_equal(high[:-1], highest[:-1])


def test_l1_of_values_in_wild_disorder() -> None:
    # Far from the edge, so that the heap does most of the work.
    values = np.random.default_rng(1).integers(0, 10**9, 20_000)
    assert isotonic._edges_by_stack(values, *scratch(len(values)))[0] < len(values)
    assert_array_equal(isotonic_l1(values), twin.isotonic_l1(values.tolist()))


@pytest.mark.parametrize("norm", [1, 2])
@given(regions=rows)
def test_runs_are_the_fit(norm: int, regions: list[list[int]]) -> None:
    values, offsets = flat(regions)
    run_offsets, value, length = isotonic_runs(values, offsets, norm=norm)
    fit = isotonic_l1(values, offsets) if norm == 1 else isotonic_l2_whole(values, offsets)
    assert_array_equal(np.repeat(value, length), fit)
    for region, (a, b) in enumerate(itertools.pairwise(run_offsets)):
        assert (np.diff(value[a:b]) > 0).all()
        assert length[a:b].sum() == len(regions[region])


@pytest.mark.parametrize("norm", [1, 2])
@given(regions=rows, data=st.data())
def test_cumulative_runs_are_the_steps_of_the_fit(
    norm: int, regions: list[list[int]], data: st.DataObject
) -> None:
    values, offsets = flat(regions)
    n_groups = np.array([data.draw(st.integers(0, 9)) for _ in regions], dtype=np.int64)
    run_offsets, size, count = cumulative_runs(values, offsets, n_groups, norm=norm)
    fitted = isotonic_l1 if norm == 1 else isotonic_l2_whole
    for region, (a, b) in enumerate(itertools.pairwise(run_offsets)):
        h_c = [*fitted(regions[region], lower=0, upper=int(n_groups[region])), n_groups[region]]
        h = np.diff(h_c, prepend=0)
        assert_array_equal(size[a:b], np.flatnonzero(h))
        assert_array_equal(count[a:b], h[h > 0])


def test_means_that_end_in_one_half_go_up() -> None:
    assert_array_equal(isotonic_l2_whole([1, 0]), [1, 1])
    assert_array_equal(isotonic_l2_whole([-1, -2]), [-1, -1])


def test_bounds_per_region() -> None:
    fit = isotonic_l2([5.0, -1.0, 7.0], np.array([0, 1, 2, 3]), lower=[0, 0, 0], upper=[3, 3, 9])
    assert_array_equal(fit, [3, 0, 7])


def test_no_regions_and_empty_regions() -> None:
    assert len(isotonic_l2([], np.array([0]))) == 0
    assert len(isotonic_l1([], np.array([0, 0, 0]))) == 0
    run_offsets, size, count = cumulative_runs([], np.array([0, 0, 0]), np.array([0, 4]), norm=1)
    assert_array_equal(run_offsets, [0, 0, 1])
    assert (size.tolist(), count.tolist()) == ([0], [4])


def test_refuses_what_does_not_fit() -> None:
    with pytest.raises(InputError, match="Offsets must rise"):
        isotonic_l2([1.0, 2.0], np.array([0, 1]))
    with pytest.raises(InputError, match="positive weight"):
        isotonic_l2([1.0, 2.0], weights=[1.0, 0.0])


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=40))
def test_real_fits_never_fall_by_a_last_digit(values: list[float]) -> None:
    assert (np.diff(isotonic_l2(values)) >= 0).all()
