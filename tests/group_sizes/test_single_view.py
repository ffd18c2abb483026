"""Estimates from one view: exact totals, the fits of kuo2018 §4, the variances of §5.1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tallytree.errors import InputError
from tallytree.group_sizes.estimate import (
    Estimate,
    estimate_cumulative,
    estimate_naive,
    estimate_sizes,
)
from tallytree.group_sizes.kernels.distance import earth_movers_distance
from tallytree.kernels.isotonic import isotonic_l1, isotonic_l2_whole
from tallytree.kernels.tables.simplex import project_to_whole_simplex
from tallytree.model.arrays import offsets_from_lengths
from tallytree.model.count_of_counts import CountsBySize
from tests.reference.group_sizes import counts_from_lists, lists_from_counts

regions_with_totals = st.lists(
    st.tuples(st.lists(st.integers(-5, 12), min_size=1, max_size=8), st.integers(0, 9)), max_size=4
)


def flat(regions: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([v for region in regions for v in region], dtype=np.int64)
    return values, offsets_from_lengths(
        np.array([len(region) for region in regions], dtype=np.int64)
    )


def split(drawn: list[tuple[list[int], int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return *flat([region for region, _ in drawn]), np.array(
        [total for _, total in drawn], dtype=np.int64
    )


@given(regions_with_totals)
def test_naive_is_the_projection_of_every_region(drawn: list[tuple[list[int], int]]) -> None:
    values, offsets, n_groups = split(drawn)
    found = estimate_naive(values, offsets, n_groups, 8.0)
    assert_array_equal(found.n_groups(), n_groups)
    for region, (noisy, total) in enumerate(drawn):
        table = project_to_whole_simplex(noisy, np.array([0, len(noisy)]), [total])
        assert_array_equal(found.counts().region(region).dense(len(noisy) - 1)[0], table)
    assert_allclose(found.variance, 8.0 / found.count)


@pytest.mark.parametrize("norm", [1, 2])
@given(regions=st.lists(st.lists(st.integers(-5, 12), max_size=8), max_size=4))
def test_sizes_are_the_isotonic_fit_of_every_region(norm, regions: list[list[int]]) -> None:
    values, offsets = flat(regions)
    found = estimate_sizes(values, offsets, np.diff(offsets), 3.0, norm=norm)
    fit = isotonic_l1 if norm == 1 else isotonic_l2_whole
    assert lists_from_counts(found.counts()) == [
        fit(region, lower=0).tolist() for region in regions
    ]
    assert_allclose(found.variance, 3.0 / found.count)


@pytest.mark.parametrize("norm", [1, 2])
@given(drawn=regions_with_totals)
def test_cumulative_is_the_isotonic_fit_that_ends_in_all_groups(
    norm, drawn: list[tuple[list[int], int]]
) -> None:
    values, offsets, n_groups = split(drawn)
    found = estimate_cumulative(values, offsets, n_groups, 3.0, norm=norm)
    assert_array_equal(found.n_groups(), n_groups)
    fit = isotonic_l1 if norm == 1 else isotonic_l2_whole
    for region, (noisy, total) in enumerate(drawn):
        h_c = [*fit(noisy, lower=0, upper=total), total]
        assert_array_equal(found.counts().region(region).cumulative(len(noisy))[0], h_c)
    assert_allclose(found.variance, 6.0 / found.count)


def test_one_cell_and_no_groups() -> None:
    # K = 1: only H_c[0] is measured, everything else has size 1.
    one_cell = estimate_cumulative(np.array([2, -3]), np.array([0, 1, 2]), np.array([5, 0]), 1.0)
    assert lists_from_counts(one_cell.counts()) == [[0, 0, 1, 1, 1], []]
    empty = np.empty(0, dtype=np.int64)
    assert lists_from_counts(
        estimate_sizes(empty, np.array([0, 0]), np.array([0]), 1.0).counts()
    ) == [[]]
    assert estimate_naive(empty, np.array([0]), empty, 1.0).n_regions == 0


def test_refuses_what_does_not_fit() -> None:
    values, offsets = np.array([1, 2]), np.array([0, 2])
    with pytest.raises(InputError, match="one noisy value per group"):
        estimate_sizes(values, offsets, np.array([3]), 1.0)
    with pytest.raises(InputError, match="one group total per region"):
        estimate_cumulative(values, offsets, np.array([3, 3]), 1.0)
    with pytest.raises(InputError, match="at least 0"):
        estimate_cumulative(values, offsets, np.array([-3]), 1.0)
    with pytest.raises(InputError, match="one variance"):
        Estimate(np.array([0, 1]), np.array([1]), np.array([1]), np.array([-1.0]))


def noisy(values: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Double-geometric noise of scale 1/ε, good enough to measure errors with."""
    p = -np.expm1(-epsilon)
    return values + rng.geometric(p, len(values)) - rng.geometric(p, len(values))


@pytest.mark.data
@pytest.mark.proof
def test_taxi_root_from_cumulative_counts(data_folder) -> None:
    with np.load(data_folder / "kuo2018_coco" / "kuo2018_taxi2013.npz") as file:
        root = file["leaf_hist"].sum(axis=0)
    size = np.flatnonzero(root)
    truth = CountsBySize(np.array([0, len(size)]), size, root[size].astype(np.int64))
    max_size = 100_000
    h_c = truth.cumulative(max_size)[0, :max_size]
    rng = np.random.default_rng(2018)
    variance = 2 * np.exp(-1) / (1 - np.exp(-1)) ** 2
    errors = [
        earth_movers_distance(
            estimate_cumulative(
                noisy(h_c, 1.0, rng), np.array([0, max_size]), truth.n_groups(), variance
            ).counts(),
            truth,
        )[0]
        for _ in range(10)
    ]
    assert 2_600 < np.mean(errors) < 3_000


def test_errors_are_as_large_as_the_noise_says() -> None:
    # 400 groups of each size 0 … 19: every cell of H_c is off by about the noise, isotonic fits
    # change next to nothing.
    truth = counts_from_lists([[size for size in range(20) for _ in range(400)]] * 200)
    values = truth.cumulative(19)[:, :19].ravel()
    offsets = np.arange(201) * 19
    found = estimate_cumulative(
        noisy(values, 0.2, np.random.default_rng(5)), offsets, truth.n_groups(), 50.0
    )
    # E|double geometric| = 2p / (1 − p²) with p = e^{−ε}.
    expected = 19 * 2 * np.exp(-0.2) / (1 - np.exp(-0.4))
    assert earth_movers_distance(found.counts(), truth).mean() == pytest.approx(expected, rel=0.05)
