"""Large parameters: digits of a discrete Laplace, blocks of a discrete Gaussian; and their rare
paths by script.
"""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from tallytree.privacy.inversion import build_table
from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace, draw_noise
from tallytree.privacy.probabilities import (
    GaussianMagnitude,
    LaplaceMagnitude,
    enclose_exp,
    floor_of,
    survival_floor,
)
from tallytree.privacy.randomness import KeyStream, Places
from tallytree.privacy.samplers import (
    BlockSampler,
    DigitSampler,
    Sampler,
    TableSampler,
    acceptance_tables,
    gaussian_sampler,
    laplace_sampler,
)

N_DRAWS = 200_000


def draws_from(sampler: Sampler, n: int = N_DRAWS) -> np.ndarray:
    values = np.empty(n, dtype=np.int64)
    sampler.draw(KeyStream.from_insecure_seed(11), Places(0, "q", np.array([0, n])), 0, values)
    return values


def laplace_cdf(x: np.ndarray, scale: float) -> np.ndarray:
    """P(X <= x) for whole x."""
    tail = np.exp(-(np.abs(x) + (x >= 0)) / scale) / (1 + np.exp(-1 / scale))
    return np.where(x >= 0, 1 - tail, tail)


@pytest.mark.parametrize(
    "scale", [Fraction(5000, 3), Fraction(10**9, 7), Fraction(1 << 40)], ids=str
)
def test_large_laplace_is_right_and_thirty_percent_off_is_noticed(scale: Fraction) -> None:
    sampler = laplace_sampler(scale)
    assert isinstance(sampler, DigitSampler)
    draws = draws_from(sampler)
    size = float(scale)
    edges = np.unique(np.round(size * np.linspace(-6, 6, 61))).astype(np.int64)

    def p_value(scale: float) -> float:
        expected = len(draws) * np.diff(laplace_cdf(edges, scale), prepend=0, append=1)
        return float(
            stats.chisquare(
                np.bincount(np.searchsorted(edges, draws), minlength=62), expected
            ).pvalue
        )

    assert p_value(size) > 1e-4
    assert p_value(1.3 * size) < 1e-12
    # The last digit is uniform but for a hair: no digit table is stuck or skewed.
    digits = np.bincount(np.abs(draws) % 64, minlength=64)
    assert stats.chisquare(digits).pvalue > 1e-4


@pytest.mark.parametrize(
    "sigma2", [Fraction(3 << 20), Fraction(10**9, 7), Fraction(2**62 - 1)], ids=str
)
def test_large_gaussian_is_right_and_thirty_percent_off_is_noticed(sigma2: Fraction) -> None:
    sampler = gaussian_sampler(sigma2)
    assert isinstance(sampler, BlockSampler)
    draws = draws_from(sampler)
    edges = np.linspace(-4, 4, 61)

    def p_value(sigma: float) -> float:
        # Half a step apart the sum over whole numbers and the integral agree to far more digits
        # than the test can see.
        scaled = (draws + 0.5) / sigma
        expected = len(draws) * np.diff(stats.norm.cdf(edges), prepend=0, append=1)
        return float(
            stats.chisquare(
                np.bincount(np.searchsorted(edges, scaled), minlength=62), expected
            ).pvalue
        )

    assert p_value(float(sigma2) ** 0.5) > 1e-4
    assert p_value(1.3 * float(sigma2) ** 0.5) < 1e-12
    assert stats.chisquare(np.bincount(np.abs(draws) % 32, minlength=32)).pvalue > 1e-4


def test_digits_and_one_table_have_the_same_distribution() -> None:
    """At a scale where both work: the split against exact probabilities near 0, where a mistake in
    the zero would show.
    """
    scale = Fraction(1100)
    draws = draws_from(laplace_sampler(scale), 2_000_000)
    one_table = TableSampler(build_table(LaplaceMagnitude(scale)))
    p = float(np.exp(-1 / 1100))
    near = np.abs(draws) <= 8
    observed = np.append(np.bincount(draws[near] + 8, minlength=17), (~near).sum())
    mass = (1 - p) / (1 + p) * p ** np.abs(np.arange(-8, 9))
    assert stats.chisquare(observed, len(draws) * np.append(mass, 1 - mass.sum())).pvalue > 1e-4
    assert stats.ks_2samp(draws[:100_000], draws_from(one_table, 100_000)).pvalue > 1e-4


def test_blocks_count_zero_once() -> None:
    """A Gaussian in blocks against exact probabilities near 0, on a small parameter made to use
    blocks.
    """
    sigma2, shift = Fraction(1 << 20) + 1, 4
    draws = draws_from(gaussian_sampler(sigma2), 4_000_000)
    assert gaussian_sampler(sigma2).shift == shift  # type: ignore[attr-defined]
    x = np.arange(-40, 41)
    mass = np.exp(-(x**2) / (2 * float(sigma2))) / np.sqrt(2 * np.pi * float(sigma2))
    near = np.abs(draws) <= 40
    observed = np.append(np.bincount(draws[near] + 40, minlength=81), (~near).sum())
    assert stats.chisquare(observed, len(draws) * np.append(mass, 1 - mass.sum())).pvalue > 1e-4


class Script:
    """Words as told; every extension starts with ``more``; second attempts give ``again``."""

    def __init__(self, words: list[int], more: list[int], again: list[int] | None = None) -> None:
        self.words, self.more, self.again = words, more, again
        self.asked = SimpleNamespace(extensions=[], attempts=[])

    def claim(self, places: Places) -> None:
        """Scripts may be asked again."""

    def block(self, places: Places, start: int, stop: int, words_per_draw: int) -> np.ndarray:
        return np.array(self.words, dtype=np.uint64)

    def attempt(self, places: Places, draws: np.ndarray, attempt: int) -> np.ndarray:
        self.asked.attempts += [(int(draw), attempt) for draw in draws]
        return np.array([self.again] * len(draws), dtype=np.uint64).reshape(-1, 2)

    def extension(self, places: Places, draw: int, word: int, attempt: int) -> Iterator[int]:
        self.asked.extensions.append((draw, word, attempt))
        return itertools.chain(self.more, itertools.repeat(0))


def test_ties_in_each_digit_are_decided_apart() -> None:
    scale = Fraction(10**6)
    sampler = laplace_sampler(scale)
    assert isinstance(sampler, DigitSampler)
    leading, digit = sampler.leading.survival, sampler.digits[0].survival
    top, bottom = survival_floor(leading, 2, 127), survival_floor(digit, 9, 127)
    first = [2 * (top >> 64), 2 * (bottom >> 64)]
    for word, (below, above) in enumerate([((2, 9), (1, 9)), ((2, 9), (2, 8))]):
        other = 1 - word
        words = [f - 2 if w == other else f for w, f in enumerate(first)]
        threshold = (top, bottom)[word] % 2**64
        for offset, (k, d) in ((-1, below), (1, above)):
            script = Script(words, [threshold + offset])
            drawn = draw_noise(
                DiscreteLaplace(scale), script, level=0, query="q", offsets=np.array([0, 1])
            )
            assert drawn.tolist() == [1 + 4096 * (k - 1) + d]
            assert script.asked.extensions == [(0, word, 0)]


def test_the_last_digit_value_needs_no_digit_beyond_it() -> None:
    """A digit of all zero bits is the largest value: the next probability is exactly 0, so the draw
    is decided.
    """
    scale = Fraction(10**6)
    top = survival_floor(LaplaceMagnitude(scale, step=4096), 1, 63)
    script = Script([2 * (top - 1), 0], [])
    drawn = draw_noise(DiscreteLaplace(scale), script, level=0, query="q", offsets=np.array([0, 1]))
    assert drawn.tolist() == [4096]


def test_draws_beyond_the_limit_are_cut_off() -> None:
    sampler = DigitSampler(StuckTable(1 << 62), (StuckTable(4095),) * 3)  # type: ignore[arg-type]
    values = np.empty(2, dtype=np.int64)
    sampler.draw(Script([0] * 4 + [1] * 4, []), Places(0, "q", np.array([0, 2])), 0, values)
    assert values.tolist() == [1 << 62, -(1 << 62)]


class StuckTable:
    def __init__(self, value: int) -> None:
        self.value = value

    def look_up(self, words: np.ndarray, more: object, values: np.ndarray) -> None:
        values[:] = self.value


def gaussian_words(sigma2: Fraction, block: int, place: int, u: int, sign: int = 0) -> list[int]:
    sampler = gaussian_sampler(sigma2)
    assert isinstance(sampler, BlockSampler)
    inside = survival_floor(GaussianMagnitude(sigma2 / 4**sampler.shift, half=True), block, 63) - 1
    return [2 * inside + sign, place << (64 - sampler.shift) | u]


def test_acceptance_on_the_threshold_takes_more_bits() -> None:
    sigma2 = Fraction(10**8)
    sampler = gaussian_sampler(sigma2)
    assert isinstance(sampler, BlockSampler)
    digits, block, place = 64 - sampler.shift, 30, 77
    magnitude = (block << sampler.shift) + place
    exponent = Fraction(magnitude**2 - (block << sampler.shift) ** 2) / (2 * sigma2)
    threshold = floor_of(lambda bits: enclose_exp(exponent, bits), digits + 64)
    words = gaussian_words(sigma2, block, place, threshold >> 64, sign=1)
    for offset, wanted, attempts in ((-1, -magnitude, []), (1, 5, [(0, 1)])):
        script = Script(words, [threshold % 2**64 + offset], again=gaussian_words(sigma2, 0, 5, 0))
        drawn = draw_noise(
            DiscreteGaussian(sigma2), script, level=0, query="q", offsets=np.array([0, 1])
        )
        assert drawn.tolist() == [wanted]
        assert script.asked.extensions == [(0, 1, 0)]
        assert script.asked.attempts == attempts


def test_minus_zero_is_drawn_again() -> None:
    sigma2 = Fraction(10**8)
    again = gaussian_words(sigma2, 2, 0, 0)
    for sign, wanted in ((0, 0), (1, 2 << 7)):
        script = Script(gaussian_words(sigma2, 0, 0, 99, sign=sign), [], again=again)
        drawn = draw_noise(
            DiscreteGaussian(sigma2), script, level=0, query="q", offsets=np.array([0, 1])
        )
        assert drawn.tolist() == [wanted]


def test_a_block_beyond_the_tables_is_decided_exactly() -> None:
    sigma2 = Fraction(10**8)
    sampler = gaussian_sampler(sigma2)
    assert isinstance(sampler, BlockSampler)
    # All zero bits for the block: the extension places it far out, where only exact arithmetic can
    # accept.
    script = Script([0, 3 << (64 - sampler.shift)], [1])
    drawn = draw_noise(
        DiscreteGaussian(sigma2), script, level=0, query="q", offsets=np.array([0, 1])
    )
    assert drawn[0] > len(sampler.block.thresholds) << sampler.shift
    assert drawn[0] % (1 << sampler.shift) == 3


def test_blocks_end_where_the_table_of_exponentials_does() -> None:
    """Ten blocks of 2¹ have exponents of up to 21 · 4 / (2 σ²); the table reaches up to 1/4, so
    that σ² = 168 is too small.
    """
    with pytest.raises(ValueError, match="too wide"):
        acceptance_tables(Fraction(168), 1, 10)
    tables = acceptance_tables(Fraction(169), 1, 10)
    assert tables.n_blocks == 10
    assert len(tables.exponentials) / 2**12 > 21 * 4 / (2 * 169)
