import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.group_sizes.kernels import steps as steps
from tallytree.group_sizes.kernels.curves import Blocks
from tallytree.group_sizes.kernels.steps import fit_steps, steps_log_likelihoods
from tests.reference import staircases as reference


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from([0.03, 0.1, 0.5]))
def test_all_ways_to_place_drops_are_summed(seed: int, n: int, chance: float) -> None:
    rng = np.random.default_rng(seed)
    widths = rng.integers(1, 4, n)
    level = np.sort(rng.integers(0, 100, n))[::-1]
    answers = widths * level + rng.integers(-8, 9, n)
    guesses = np.maximum(level, 3).astype(float)
    total, mean, variance = reference.stepped_curve(answers, widths, guesses, 16.0, chance)
    start = np.zeros((n, steps.DROP_PLACES + 1), dtype=np.int64)
    score, heights, within = (np.empty((n, steps.DROP_PLACES + 1)) for _ in range(3))
    found = steps._forward(
        answers / widths, widths**2 / 16.0, guesses, chance, start, score, heights, within
    )
    assert found - np.log(widths).sum() == pytest.approx(total)
    height, spread, dropping = np.empty(n), np.empty(n), np.empty(n + 1)
    steps._backward(start, score, heights, within, height, spread, dropping)
    np.testing.assert_allclose(height, mean, atol=1e-6)
    np.testing.assert_allclose(spread, variance, atol=1e-6)
    assert dropping[0] == pytest.approx(1)


def measured(curve: np.ndarray, ends: np.ndarray, std: float, seed: int) -> Blocks:
    sums = np.add.reduceat(curve, np.append(0, ends[:-1]))
    noise = np.random.default_rng(seed).laplace(0, std / np.sqrt(2), len(ends))
    return Blocks(np.array([0, len(ends)]), ends, np.rint(sums + noise).astype(np.int64), std**2)


def test_drops_are_found_inside_blocks() -> None:
    """Sizes 5, 10, 50 and 200 alone occur; blocks are wider than that from 20 on."""
    curve = np.repeat([9000, 5000, 2000, 300, 0], [5, 5, 40, 150, 40])
    ends = np.append(np.arange(1, 20), np.arange(24, 241, 6))
    blocks = measured(curve, ends, 10.0, seed=1)
    groups, first = np.array([9000]), curve[None].astype(float)
    fit = fit_steps(groups, blocks, first, 0.03)
    error = np.abs(fit.height[0] - curve)
    assert error.max() < 15
    # Blocks of six sizes around 50 and 200 level off 3000 and 300 groups: without looking inside,
    # this is thousands.
    assert error.sum() < 400
    smooth = np.rint(9000 * 0.97 ** np.arange(240)).astype(np.int64)
    likelihoods = [
        steps_log_likelihoods(
            measured(truth, ends, 10.0, seed=2), first, [0.03], np.zeros(1, dtype=np.int64)
        )[0]
        for truth in (curve, smooth)
    ]
    assert likelihoods[0] > likelihoods[1] + 100


def test_a_long_level_stretch_keeps_its_likeliest_places() -> None:
    """Far more blocks than places followed up: the mean over a stretch is as good as it should be."""
    curve = np.repeat([4000, 1000], 400)
    blocks = measured(curve, np.arange(1, 801), 20.0, seed=3)
    fit = fit_steps(np.array([4000]), blocks, curve[None].astype(float), 0.03)
    assert np.abs(fit.height[0] - curve).max() < 6
    assert fit.variance[0, 200] == pytest.approx(20.0**2 / 400, rel=0.5)
