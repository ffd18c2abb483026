import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.group_sizes.kernels import curves as curves
from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.kernels.curves import (
    Blocks,
    final_fits,
    first_fits,
    fit_falling,
    log_likelihoods,
)
from tallytree.group_sizes.kernels.shapes import shapes, smoothed
from tests.reference import staircases as reference


def case(rng: np.random.Generator, n_sizes: int) -> tuple[np.ndarray, Prior, Blocks]:
    fall = rng.uniform(0, 0.6, (1, n_sizes))
    prior = Prior(
        fall, rng.uniform(0, 0.01, (1, n_sizes)), np.ones((1, n_sizes)), np.zeros(1, dtype=np.int64)
    )
    ends = np.unique(np.append(rng.integers(1, n_sizes, n_sizes // 2), n_sizes))
    answers = rng.integers(0, 200, len(ends))
    return np.array([100]), prior, Blocks(np.array([0, len(ends)]), ends, answers, 4.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 14))
def test_the_smoother_conditions_a_gaussian(seed: int, n_sizes: int) -> None:
    groups, prior, blocks = case(np.random.default_rng(seed), n_sizes)
    state, kept, noise = np.empty((n_sizes, 10)), np.empty(n_sizes), np.empty(n_sizes)
    arguments = (groups[0], prior.fall[0], prior.fall_variance[0], np.ones(n_sizes), 0.2)
    found = curves._filter(
        *arguments, blocks.ends, blocks.answers, blocks.noise_variance, state, kept, noise
    )
    height, variance = np.empty(n_sizes), np.empty(n_sizes)
    curves._smooth(blocks.ends, state, kept, height, variance)
    mean, covariance, likelihood = reference.smoothed_curve(
        groups[0], kept, noise, blocks.ends, blocks.answers, blocks.noise_variance
    )
    np.testing.assert_allclose(height, mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-4, atol=1e-5)
    assert found == pytest.approx(likelihood, rel=1e-8)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 14), st.integers(0, 14))
def test_a_curve_ends_where_an_empty_tail_is_likelier(seed: int, n_sizes: int, n_full: int) -> None:
    rng = np.random.default_rng(seed)
    groups, prior, blocks = case(rng, n_sizes)
    answers = np.where(
        np.arange(len(blocks.ends)) < n_full, blocks.answers, rng.integers(-4, 5, len(blocks.ends))
    )
    state, kept, noise = np.empty((n_sizes, 10)), np.empty(n_sizes), np.empty(n_sizes)
    arguments = (groups[0], prior.fall[0], prior.fall_variance[0], np.ones(n_sizes), 0.2)
    curves._filter(*arguments, blocks.ends, answers, 4.0, state, kept, noise)

    def smooth(n_blocks: int) -> float:
        """Log-likelihood of the first answers if the curve goes on."""
        if n_blocks == 0:
            return 0.0
        last = blocks.ends[n_blocks - 1]
        seen = blocks.ends[:n_blocks], answers[:n_blocks]
        return float(reference.smoothed_curve(groups[0], kept[:last], noise[:last], *seen, 4.0)[2])

    n_blocks = len(answers)
    gains = [
        -0.5 * (np.log(4.0) + answers[first:] ** 2 / 4.0).sum() - (smooth(n_blocks) - smooth(first))
        for first in range(n_blocks)
    ]
    expected = n_blocks if max(gains) <= curves.EMPTY_TAIL else int(np.argmax(gains))
    assert curves._blocks_with_groups(blocks.ends, answers, state, 4.0) == expected


def test_bounded_sizes_end_and_tails_go_on() -> None:
    n_sizes, noise = 30, 10.0
    fall = np.full((1, n_sizes), 0.2)
    prior = Prior(fall, np.full_like(fall, 0.001), np.ones_like(fall), np.zeros(1, dtype=np.int64))
    groups, ends = np.array([10_000]), np.arange(1, n_sizes + 1)
    tail = 10_000 * 0.8 ** np.arange(1, n_sizes + 1)
    bounded = np.where(ends <= 8, tail, 0)
    for truth, is_bounded in ((bounded, True), (tail, False)):
        drawn = truth + np.random.default_rng(1).laplace(0, noise / np.sqrt(2), n_sizes)
        blocks = Blocks(np.array([0, n_sizes]), ends, np.rint(drawn).astype(np.int64), noise**2)
        first = first_fits(groups, prior, blocks)
        fit = final_fits(groups, prior, blocks, 0.2, first, keep_falls=False, empty_tails=True)
        assert (fit.height[0, 8:] == 0).all() == is_bounded
        assert np.abs(fit.height[0] - truth).max() < 4 * noise


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-10, 10), min_size=1, max_size=12), st.integers(0, 1000))
def test_fit_falling_is_the_isotonic_fit(values: list[float], seed: int) -> None:
    weights = np.random.default_rng(seed).uniform(0.1, 3, len(values))
    fit = np.array(values)
    fit_falling(fit, weights, -np.inf, np.inf)
    # The minimax formula of isotonic regression, read backwards.
    n = len(values)
    means = [
        [
            np.average(values[a : b + 1], weights=weights[a : b + 1]) if a <= b else np.nan
            for b in range(n)
        ]
        for a in range(n)
    ]
    expected = [min(max(means[a][b] for b in range(i, n)) for a in range(i + 1)) for i in range(n)]
    np.testing.assert_allclose(fit, expected, atol=1e-9)


def test_fits_recover_a_curve_better_than_its_noise() -> None:
    rng = np.random.default_rng(1)
    n_sizes, n_regions, noise = 40, 200, 30.0
    fall = np.full((1, n_sizes), 0.08)
    prior = Prior(
        fall, np.zeros_like(fall), np.ones_like(fall), np.zeros(n_regions, dtype=np.int64)
    )
    groups = np.full(n_regions, 2000)
    true = np.stack([_thinned(rng, 2000, fall[0]) for _ in range(n_regions)])
    ends = np.tile(np.arange(1, n_sizes + 1), n_regions)
    answers = (true + np.rint(rng.laplace(0, noise, true.shape))).astype(np.int64).ravel()
    blocks = Blocks(np.arange(n_regions + 1) * n_sizes, ends, answers, 2 * noise**2)
    first = first_fits(groups, prior, blocks)
    assert (np.diff(first, axis=1) <= 1e-9).all()
    fit = final_fits(groups, prior, blocks, 0.1, first.copy(), keep_falls=True)
    error = fit.height - true
    assert np.abs(error).mean() < 0.6 * noise
    # The stated variance is honest.
    assert 0.7 < (error**2 / fit.variance).mean() < 1.4
    sample = np.arange(n_regions)
    rough = log_likelihoods(groups, prior, blocks, (0.1, 0.8), first, sample)
    assert rough[0] > rough[1]


def _thinned(rng: np.random.Generator, n: int, fall: np.ndarray) -> list[int]:
    heights = []
    for share in fall:
        n -= int(rng.binomial(n, share))
        heights.append(n)
    return heights


def test_smoothing_a_prior_keeps_what_is_smooth() -> None:
    flat = np.full((1, 20), 0.1)
    prior = Prior(flat, np.full_like(flat, 0.01), np.ones_like(flat), np.zeros(1, dtype=np.int64))
    found = smoothed(prior, 2.0)
    np.testing.assert_allclose(found.fall, 0.1)
    assert (found.fall_variance[0, 5:] < 0.01).all()
    assert smoothed(prior, 1.0) is prior


def test_shapes_of_an_exact_curve() -> None:
    heights = reference.heights([1, 1, 2, 5], 4)
    exact = curves.Curves(
        np.array([heights], dtype=float), np.zeros((1, 4)), np.full((1, 4), np.inf)
    )
    fall, variance, excess = shapes(np.array([4]), exact, np.array([1.0]))
    np.testing.assert_allclose(fall[0], [0, 0.5, 0.5, 0])
    assert (variance == 0).all()
    # Cells from column 1 on (2 + 1 + 1 below size 4, and 1 beyond), over the groups of at least one
    # entity.
    assert excess[0, 1] == pytest.approx((2 + 1 + 1 + 1) / 4)
