from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.strategies.hats import COLUMN_SUM, HatLevel, Hats, optimised_hats
from tallytree.strategies.matrix_mechanism import expected_error
from tallytree.strategies.optimised import OptimisedHats, optimised_strategy
from tallytree.strategies.optimised_tree import optimised_tree
from tallytree.strategies.workloads import AllRanges
from tests.reference.hats import dense_rows, straight_hats

LEVELS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 15000)), min_size=1, max_size=4)


def some_hats(n_bins: int, levels: list[tuple[int, int]], crowding: int) -> Hats | None:
    try:
        return Hats(
            n_bins, tuple(HatLevel(*level) for level in sorted(levels, reverse=True)), crowding
        )
    except RequestError:
        return None


@given(st.integers(1, 60), LEVELS, st.integers(0, 15))
def test_variances_equal_those_of_dense_least_squares(
    n_bins: int, levels: list[tuple[int, int]], crowding: int
) -> None:
    hats = some_hats(n_bins, levels, crowding)
    if hats is None:
        return
    rows = dense_rows(hats)
    np.testing.assert_array_equal(rows.sum(axis=0), COLUMN_SUM)
    assert rows.min() >= 0
    spread = np.linalg.inv(rows.T.astype(float) @ rows)
    bins, prefixes, total = hats.variances()
    np.testing.assert_allclose(bins, np.diag(spread), rtol=1e-8)
    np.testing.assert_allclose(
        prefixes, [spread[:end, :end].sum() for end in range(n_bins + 1)], rtol=1e-8
    )
    assert total == pytest.approx((spread * AllRanges(n_bins).gram()).sum(), rel=1e-8)


@given(st.integers(1, 200), LEVELS, st.integers(0, 15), st.integers(0, 2**32))
def test_answers_are_those_of_the_rows(
    n_bins: int, levels: list[tuple[int, int]], crowding: int, seed: int
) -> None:
    hats = some_hats(n_bins, levels, crowding)
    if hats is not None:
        counts = np.random.default_rng(seed).integers(0, 10**9, n_bins)
        np.testing.assert_array_equal(hats.answers(counts), dense_rows(hats) @ counts)


@pytest.mark.parametrize(
    ("n_bins", "spacings"), [(400, (100, 20)), (1000, (300, 70, 15)), (97, (10,))]
)
def test_coefficients_are_hats_between_peaks(n_bins: int, spacings: tuple[int, ...]) -> None:
    hats = Hats(n_bins, tuple(HatLevel(spacing, 10_000) for spacing in spacings), 6)
    assert (
        np.abs(dense_rows(hats)[n_bins:] - straight_hats(hats)).max() <= 1
    )  # rounded to whole numbers


def test_peaks_crowd_near_the_peaks_above() -> None:
    hats = Hats(1000, (HatLevel(250, 10_000), HatLevel(25, 10_000)), 8)
    assert hats.peaks[0].tolist() == [
        84,
        346,
        654,
        916,
    ]  # at t = 1/8, 3/8 …: 1/8 − ½·(1/8)(7/8)(3/4) = 0.084
    gaps = np.diff(hats.peaks[1])
    between = np.searchsorted(hats.peaks[1], 352), np.searchsorted(hats.peaks[1], 500)
    assert gaps[between[0]] < 0.75 * gaps[between[1]]


@pytest.mark.parametrize(
    ("n_bins", "levels", "crowding"),
    [
        (0, ((5, 5),), 0),
        (10**12, ((5, 5),), 0),
        (10, (), 0),
        (10, ((5, 5),), 16),
        (10, ((5, 5),), -1),
        (10, ((0, 5),), 0),
        (10, ((5, 0),), 0),
        (10, ((5, 40_000), (2, 30_000)), 0),
        (10, ((5, 5), (1, 5)), 15),
    ],
)
def test_what_are_no_hats_is_refused(
    n_bins: int, levels: tuple[tuple[int, int], ...], crowding: int
) -> None:
    with pytest.raises(RequestError, match="Hats"):
        Hats(n_bins, tuple(HatLevel(*level) for level in levels), crowding)


# The best H_b^c, as in qardaji2013's tables, goes on: 261.97 and 615.67.
@pytest.mark.parametrize(
    ("n_bins", "best_tree", "reach"), [(4096, 261.97, 204.6), (65_536, 615.67, 467.5)]
)
def test_hats_are_well_below_every_tree(n_bins: int, best_tree: float, reach: float) -> None:
    _, error = optimised_hats(n_bins)
    assert 2 * error < reach < 0.85 * best_tree


def test_many_bins_get_hats() -> None:
    found = optimised_strategy(AllRanges(5000))
    assert isinstance(found, OptimisedHats)
    assert found.error < 0.85 * optimised_tree(AllRanges(5000)).error
    assert not isinstance(optimised_strategy(AllRanges(5000), noise="gaussian"), OptimisedHats)


def test_the_error_is_that_of_the_matrix() -> None:
    hats, error = optimised_hats(700)
    assert 2 * error == pytest.approx(expected_error(dense_rows(hats), AllRanges(700)))
    with pytest.raises(RequestError, match="at least"):
        optimised_hats(100)
