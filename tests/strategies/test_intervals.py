from fractions import Fraction

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace, draw_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.strategies.intervals import half_widths, whole_half_widths
from tallytree.strategies.noise_moments import fourth_cumulant


def draws(noise, shape, seed=1):
    n = int(np.prod(shape))
    stream = KeyStream.from_insecure_seed(seed)
    return draw_noise(noise, stream, level=0, query="test", offsets=np.array([0, n])).reshape(shape)


def law_of_one_draw(noise, reach=4000):
    values = np.arange(-reach, reach + 1)
    if isinstance(noise, DiscreteLaplace):
        weights = np.exp(-np.abs(values) / float(noise.scale))
    else:
        weights = np.exp(-(values**2) / (2 * float(noise.sigma2)))
    return values, weights / weights.sum()


@pytest.mark.parametrize(
    "noise",
    [
        DiscreteLaplace(Fraction(1, 3)),
        DiscreteLaplace(Fraction(5)),
        DiscreteGaussian(Fraction(1, 4)),
        DiscreteGaussian(Fraction(9)),
    ],
    ids=str,
)
def test_fourth_cumulants(noise):
    values, law = law_of_one_draw(noise)
    second, fourth = (values**2 * law).sum(), (values**4 * law).sum()
    assert fourth_cumulant(noise) == pytest.approx(fourth - 3 * second**2, rel=1e-6, abs=1e-9)
    assert noise.variance == pytest.approx(second, rel=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize(
    "coefficients", [[1], [1, 1], [1, 0.5, 0.25], [1] * 10, [3, 0.1, 0.1]], ids=str
)
def test_intervals_hold_sums_of_laplace_noise_at_their_level(coefficients, level):
    noise = DiscreteLaplace(Fraction(40))
    sums = np.array(coefficients) @ draws(noise, (len(coefficients), 40_000))
    variance = np.array([noise.variance * np.square(coefficients).sum()])
    cumulant = np.array([fourth_cumulant(noise) * np.power(coefficients, 4.0).sum()])
    inside = np.mean(np.abs(sums) <= half_widths(variance, cumulant, level))
    assert inside == pytest.approx(level, abs=0.01)


def test_normal_intervals_would_be_too_narrow_for_one_draw():
    """The test above has power: without the fourth cumulant 99 % intervals hold 97.4 %."""
    noise = DiscreteLaplace(Fraction(40))
    narrow = half_widths(np.array([noise.variance]), np.zeros(1), 0.99)
    assert np.mean(np.abs(draws(noise, 40_000)) <= narrow) < 0.98


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(1)), DiscreteGaussian(Fraction(2))], ids=str
)
def test_whole_widths_are_the_smallest_that_hold_the_sum(noise):
    values, law = law_of_one_draw(noise, reach=60)
    several = law
    for n_draws in (1, 2, 3):
        reach = (len(several) - 1) // 2
        tail = np.array([several[reach - w : reach + w + 1].sum() for w in range(reach)])
        width = int(whole_half_widths(noise, np.array([n_draws]), 0.95)[0])
        assert tail[width] >= 0.95 > tail[width - 1]
        several = np.convolve(several, law)
    assert len(values) == len(law)


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, float("nan"), True, "0.95"])
def test_refuses_levels_that_are_none(level):
    with pytest.raises(RequestError, match="between 0 and 1"):
        half_widths(np.ones(1), np.ones(1), level)
    with pytest.raises(RequestError, match="between 0 and 1"):
        whole_half_widths(DiscreteLaplace(Fraction(1)), np.array([1]), level)
