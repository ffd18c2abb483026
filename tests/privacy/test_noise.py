"""Noise is exact: right distribution, same numbers however it is drawn, ties decided by more bits,
no overflow.
"""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tallytree.errors import RequestError
from tallytree.privacy.noise import (
    VALUE_LIMIT,
    DiscreteGaussian,
    DiscreteLaplace,
    Noise,
    add_noise,
    draw_noise,
)
from tallytree.privacy.randomness import KeyStream, Places
from tests.reference.probabilities import gaussian_probabilities, laplace_probabilities

N_DRAWS = 200_000


def draws_of(noise: Noise, n_draws: int = N_DRAWS, seed: int = 5) -> np.ndarray:
    stream = KeyStream.from_insecure_seed(seed)
    return draw_noise(noise, stream, level=1, query="test", offsets=np.array([0, n_draws]))


def p_value(draws: np.ndarray, probabilities: list[Decimal]) -> float:
    """Chi-square test of draws against P(X = x), x = 0 … n, with bins of at least 50 expected
    draws, signs apart.
    """
    n = len(probabilities) - 1
    mass = np.array([float(p) for p in [*probabilities[:0:-1], *probabilities]])
    edges, expected, waiting = [], [], 0.0
    for x, p in zip(range(-n, n + 1), mass * len(draws)):
        waiting += p
        if waiting >= 50:
            edges.append(x)
            expected.append(waiting)
            waiting = 0.0
    expected[-1] += len(draws) - sum(expected)
    observed = np.bincount(np.searchsorted(edges[:-1], draws, side="left"), minlength=len(edges))
    return float(stats.chisquare(observed, expected).pvalue)


def exact_probabilities(noise: Noise) -> list[Decimal]:
    if isinstance(noise, DiscreteLaplace):
        return laplace_probabilities(noise.scale, int(100 * noise.scale) + 10)
    return gaussian_probabilities(noise.sigma2, int(15 * noise.std) + 10)


def shrunk(noise: Noise) -> Noise:
    factor = Fraction(7, 10)
    if isinstance(noise, DiscreteLaplace):
        return DiscreteLaplace(noise.scale * factor)
    return DiscreteGaussian(noise.sigma2 * factor**2)


@pytest.mark.parametrize(
    "noise",
    [
        DiscreteLaplace(Fraction(1, 3)),
        DiscreteLaplace(Fraction(1)),
        DiscreteLaplace(Fraction(22, 7)),
        DiscreteLaplace(Fraction(40)),
        DiscreteGaussian(Fraction(1, 4)),
        DiscreteGaussian(Fraction(1)),
        DiscreteGaussian(Fraction(355, 113)),
        DiscreteGaussian(Fraction(900)),
    ],
    ids=str,
)
def test_distribution_is_right_and_thirty_percent_off_is_noticed(noise: Noise) -> None:
    probabilities = exact_probabilities(noise)
    assert p_value(draws_of(noise), probabilities) > 1e-4
    assert p_value(draws_of(shrunk(noise)), probabilities) < 1e-12


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(10**8))], ids=str
)
def test_draws_do_not_depend_on_how_regions_are_cut(noise: Noise) -> None:
    offsets = np.cumsum([0, 3, 0, 5, 1, 1, 40_000, 2, 0, 7])
    whole = draw_noise(
        noise, KeyStream.from_insecure_seed(9), level=2, query="cumulative", offsets=offsets
    )
    stream = KeyStream.from_insecure_seed(9)
    for region in reversed(range(len(offsets) - 1)):
        alone = draw_noise(
            noise,
            stream,
            level=2,
            query="cumulative",
            offsets=offsets[region : region + 2],
            first_region=region,
        )
        assert np.array_equal(alone, whole[offsets[region] : offsets[region + 1]])
    half, stream = np.array([0, 20_001]), KeyStream.from_insecure_seed(9)
    second_half = draw_noise(
        noise, stream, level=2, query="cumulative", offsets=half, first_region=5, first_draw=19_999
    )
    assert np.array_equal(second_half, whole[offsets[5] + 19_999 : offsets[6]])


def test_draws_in_threads_are_those_of_the_pieces() -> None:
    laplace, n = DiscreteLaplace(Fraction(2)), 600_000
    whole = draw_noise(
        laplace, KeyStream.from_insecure_seed(4), level=0, query="q", offsets=np.array([0, n])
    )
    stream = KeyStream.from_insecure_seed(4)
    piece = np.array([0, n // 6])
    pieces = [
        draw_noise(laplace, stream, level=0, query="q", offsets=piece, first_draw=i * n // 6)
        for i in range(6)
    ]
    assert np.array_equal(whole, np.concatenate(pieces))


def test_values_come_back_in_their_shape() -> None:
    stream = KeyStream.from_insecure_seed(2)
    table = np.arange(12, dtype=np.int32).reshape(3, 4)
    noisy = add_noise(
        table,
        DiscreteLaplace(Fraction(1)),
        stream,
        level=0,
        query="q",
        offsets=np.array([0, 4, 8, 12]),
    )
    assert noisy.shape == (3, 4)
    stream = KeyStream.from_insecure_seed(2)
    row = add_noise(
        table[1], DiscreteLaplace(Fraction(1)), stream, level=0, query="q", first_region=1
    )
    assert np.array_equal(noisy[1], row)


def test_floats_and_wrong_offsets_are_refused() -> None:
    stream = KeyStream.from_insecure_seed(2)
    with pytest.raises(TypeError, match="integers"):
        add_noise(np.zeros(3), DiscreteLaplace(Fraction(1)), stream, level=0, query="q")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="4 draws, but there are 3 values"):
        add_noise(
            np.arange(3),
            DiscreteLaplace(Fraction(1)),
            stream,
            level=0,
            query="q",
            offsets=np.array([0, 4]),
        )
    with pytest.raises(TypeError, match="float64"):
        draw_noise(
            DiscreteLaplace(Fraction(1)), stream, level=0, query="q", offsets=np.array([0.0, 4.5])
        )  # type: ignore[arg-type]


def test_parameters_out_of_range_are_refused() -> None:
    for scale in (Fraction(0), Fraction(-1), Fraction((1 << 40) + 1)):
        with pytest.raises(RequestError, match="scale above 0 and of at most"):
            DiscreteLaplace(scale)
    for sigma2 in (Fraction(0), Fraction(-1), Fraction(1 << 62)):
        with pytest.raises(RequestError, match="sigma2 above 0 and below"):
            DiscreteGaussian(sigma2)
    with pytest.raises(TypeError, match="Fraction"):
        DiscreteLaplace(0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Fraction"):
        DiscreteGaussian(2)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", ["1/1000000", "1/500", "1/30", "1/2", "1", "3", "9", "11", "200"])
def test_variance(size: str) -> None:
    for noise in (DiscreteLaplace(Fraction(size)), DiscreteGaussian(Fraction(size))):
        if isinstance(noise, DiscreteLaplace):
            probabilities = laplace_probabilities(noise.scale, int(60 * noise.scale) + 10)
        else:
            probabilities = gaussian_probabilities(noise.sigma2, int(12 * noise.sigma2**0.5) + 10)
        variance = float(2 * sum(x * x * p for x, p in enumerate(probabilities)))
        assert noise.variance == pytest.approx(variance, rel=1e-9, abs=1e-200)
        assert noise.variance > 0
        assert noise.std == pytest.approx(variance**0.5, rel=1e-9, abs=1e-100)


def test_sums_are_cut_off_instead_of_wrapping() -> None:
    stream, same = KeyStream.from_insecure_seed(3), KeyStream.from_insecure_seed(3)
    largest, smallest = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    values = np.array([largest, VALUE_LIMIT, VALUE_LIMIT - 1, 0, -VALUE_LIMIT, smallest] * 200)
    noise = DiscreteLaplace(Fraction(1 << 40))
    noisy = add_noise(values, noise, stream, level=0, query="q")
    draws = draw_noise(noise, same, level=0, query="q", offsets=np.array([0, len(values)]))
    wide = [min(max(int(v), -VALUE_LIMIT), VALUE_LIMIT) + int(x) for v, x in zip(values, draws)]
    assert noisy.tolist() == [min(max(w, -VALUE_LIMIT), VALUE_LIMIT) for w in wide]


class Script:
    """A bit source that gives the words it is told to, and counts what was asked of the extensions."""

    def __init__(self, words: list[int], more: list[int]) -> None:
        self.words, self.more, self.n_extended = words, more, 0

    def claim(self, places: Places) -> None:
        """Scripts may be asked again."""

    def block(self, places: Places, start: int, stop: int, words_per_draw: int) -> np.ndarray:
        return np.array(self.words, dtype=np.uint64)[start * words_per_draw : stop * words_per_draw]

    def attempt(self, places: Places, draws: np.ndarray, attempt: int) -> np.ndarray:
        raise AssertionError("no second attempt in this script")

    def extension(self, places: Places, draw: int, word: int, attempt: int) -> Iterator[int]:
        self.n_extended += 1
        yield from self.more


def scripted(
    noise: Noise, first_bits: list[int], more: list[int], sign: int = 0
) -> tuple[Any, int]:
    script = Script([u << 1 | sign for u in first_bits], more)
    drawn = draw_noise(noise, script, level=0, query="q", offsets=np.array([0, len(first_bits)]))
    return drawn.tolist(), script.n_extended


def digits_of_survival(probabilities: list[Decimal], k: int, digits: int) -> int:
    from tests.reference.probabilities import survival_floors

    return survival_floors(probabilities, digits)[k]


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(5, 3)), DiscreteGaussian(Fraction(7, 2))], ids=str
)
def test_a_tie_is_decided_by_further_digits(noise: Noise) -> None:
    probabilities = exact_probabilities(noise)
    for k in (1, 2, 6):
        digits = digits_of_survival(probabilities, k, 63 + 128)
        first, second, third = digits >> 128, (digits >> 64) % 2**64, digits % 2**64
        # Neighbours of the threshold are decided at once, in opposite ways.
        assert scripted(noise, [first - 1, first + 1], []) == ([k, k - 1], 0)
        # On the threshold, the next word decides; where that agrees too, the one after it.
        assert scripted(noise, [first], [second - 1]) == ([k], 1)
        assert scripted(noise, [first], [second + 1], sign=1) == ([-(k - 1)], 1)
        assert scripted(noise, [first], [second, third - 1]) == ([k], 1)
        assert scripted(noise, [first], [second, third + 1]) == ([k - 1], 1)


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(1, 2)), DiscreteGaussian(Fraction(3))], ids=str
)
def test_all_zero_bits_reach_beyond_the_table(noise: Noise) -> None:
    probabilities = exact_probabilities(noise)
    wanted = sum(
        digits_of_survival(probabilities, k, 127) > 12345 for k in range(1, len(probabilities))
    )
    assert scripted(noise, [0], [12345]) == ([wanted], 1)
    (huge,), _ = scripted(noise, [0], [0, 0, 1])
    assert huge > wanted
