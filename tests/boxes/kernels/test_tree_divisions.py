import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.boxes.kernels import divisions
from tallytree.boxes.kernels.divisions import (
    ANY,
    EVERYTHING,
    NOTHING,
    SPREADS,
    divide,
    even_prior,
    fit_divisions,
)
from tests.reference import divisions as slow


def made_up(first_sides, totals, *, variance, seed=1):
    rng = np.random.default_rng(seed)
    noisy = first_sides + rng.normal(0, np.sqrt(variance), len(totals))
    return (
        noisy,
        np.full(len(totals), float(variance)),
        totals.astype(float),
        np.full(len(totals), 0.5),
    )


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(-0.5, 1.5), st.floats(0.01, 10), st.floats(1, 1000), st.floats(0.1, 0.9)
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([1.0, 2.0, 16.0]),
)
def test_equals_the_slow_twin(given_divisions, agreeing):
    # The noise is at least a tenth of the total's square root and at most ten times it, where
    # quadrature is exact.
    total = np.array([one[2] for one in given_divisions])
    variance = total * np.array([one[1] for one in given_divisions])
    share = np.array([one[3] for one in given_divisions])
    noisy = np.clip(
        total * np.array([one[0] for one in given_divisions]),
        -4 * np.sqrt(variance),
        total + 4 * np.sqrt(variance),
    )
    weights = fit_divisions(noisy, variance, total, share, even_prior())
    rows = list(zip(noisy, variance, total, share))
    np.testing.assert_allclose(weights, slow.fit(rows, even_prior()), rtol=1e-6)
    found = divide(noisy, variance, total, share, weights, agreeing)
    expected = [slow.expected(*one, weights, agreeing) for one in rows]
    np.testing.assert_allclose(found / total, expected / total, rtol=1e-6, atol=1e-6)
    assert np.all((found >= 0) & (found <= total))


def test_constants_are_those_of_the_twin():
    assert tuple(SPREADS) == slow.SPREADS


@pytest.mark.parametrize(
    ("first_share", "likely"),
    [
        (lambda rng, n: np.full(n, 0.5), [0, 1]),
        (lambda rng, n: 0.5 + 0.16 * rng.normal(size=n), [4, 5, 6]),
        (lambda rng, n: rng.integers(0, 2, n).astype(float), [NOTHING, EVERYTHING]),
        (lambda rng, n: rng.random(n), [6, ANY]),
    ],
)
def test_the_mixture_finds_how_counts_divide(first_share, likely):
    rng = np.random.default_rng(3)
    totals = np.full(2000, 1000)
    data = made_up(totals * np.clip(first_share(rng, len(totals)), 0, 1), totals, variance=400)
    assert fit_divisions(*data, even_prior())[likely].sum() > 0.9


def test_even_counts_are_drawn_to_even_shares_and_rough_ones_left_alone():
    rng = np.random.default_rng(5)
    totals = np.full(1000, 1000)
    for shares, gain in ((np.full(1000, 0.5), 0.35), (0.5 + 0.3 * (rng.random(1000) - 0.5), 1.05)):
        noisy, variance, total, area = made_up(totals * shares, totals, variance=2500)
        found = divide(
            noisy, variance, total, area, fit_divisions(noisy, variance, total, area, even_prior())
        )
        truth = totals * shares
        assert np.mean((found - truth) ** 2) < gain * np.mean((noisy - truth) ** 2)


def test_sides_that_are_added_up_are_drawn_less():
    totals = np.full(50, 1000)
    data = made_up(totals * 0.6, totals, variance=2500)
    weights = np.eye(divisions.N_KINDS)[3]
    alone, together = (divide(*data, weights, agreeing) for agreeing in (1.0, 16.0))
    assert np.all(np.abs(alone - 500) < np.abs(together - 500))


def test_a_long_list_is_fitted_by_evenly_spaced_divisions():
    n = 2 * divisions.MOST_FITTED + 10
    shares = np.where(np.arange(n) % 3 == 0, 0.0, 0.5)  # every third is what gets fitted
    weights = fit_divisions(*made_up(100 * shares, np.full(n, 100), variance=25), even_prior())
    assert weights[NOTHING] > 0.9


def test_roughness_of_single_kinds():
    assert divisions.roughness(np.eye(divisions.N_KINDS)[0]) == 0
    assert divisions.roughness(np.eye(divisions.N_KINDS)[5]) == pytest.approx(0.16)
    assert divisions.roughness(np.eye(divisions.N_KINDS)[ANY]) == pytest.approx(12**-0.5)
    assert divisions.roughness(np.eye(divisions.N_KINDS)[EVERYTHING]) == 0.5
