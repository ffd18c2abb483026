"""The samplers behind the noise distributions, one per parameter and kept for reuse: tables cost milliseconds to build.

Small parameters take one table of magnitudes and one random word per draw. Large ones would need long tables, so a
large discrete Laplace draws the digits of its magnitude from several short tables, and a large discrete Gaussian draws
a block of magnitudes by table and accepts or rejects a place within it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol

import numpy as np

from tallytree.kernels.sampling import (
    REJECTED,
    UNDECIDED,
    AcceptanceTables,
    WordArray,
    accept_within_block,
)
from tallytree.model.arrays import IntArray
from tallytree.privacy.inversion import InversionTable, bernoulli, build_table
from tallytree.privacy.probabilities import GaussianMagnitude, GeometricDigit, LaplaceMagnitude, enclose_exp, floor_of
from tallytree.privacy.randomness import BitSource, Places

LARGEST_DRAW = 1 << 62

_DIRECT_SCALE = 1 << 10
_DIRECT_SIGMA2 = 1 << 20
_DIGIT_BITS = 12


class Sampler(Protocol):
    """Draws from one distribution."""

    def draw(self, source: BitSource, places: Places, start: int, stop: int) -> IntArray:
        """Draws number ``start`` to ``stop`` of the places, cut off at ±2**62."""


@dataclass(frozen=True, eq=False)
class TableSampler:
    """A symmetric distribution by one table of magnitudes: one word per draw, of which one bit is the sign."""

    magnitude: InversionTable

    def draw(self, source: BitSource, places: Places, start: int, stop: int) -> IntArray:
        """Draws number ``start`` to ``stop`` of the places."""
        words = source.block(places, start, stop, 1)
        return with_sign(self.magnitude.look_up(words, 0, 1, continuation(source, places, start, 0)), words)


@dataclass(frozen=True, eq=False)
class DigitSampler:
    """A large discrete Laplace: X = 0 or |X| - 1 in base 2**12, the leading digits by one table, each of the others by its own.

    |X| - 1 given X != 0 is geometric, so its digits are independent (see GeometricDigit). One word per table.
    """

    leading: InversionTable
    digits: tuple[InversionTable, ...]

    def draw(self, source: BitSource, places: Places, start: int, stop: int) -> IntArray:
        """Draws number ``start`` to ``stop`` of the places."""
        per_draw = 1 + len(self.digits)
        words = source.block(places, start, stop, per_draw)
        leading = self.leading.look_up(words, 0, per_draw, continuation(source, places, start, 0))
        # Beyond the cut-off the digits no longer matter, and the product must not overflow.
        above = np.minimum(leading - 1, LARGEST_DRAW >> (_DIGIT_BITS * len(self.digits)))
        for word, table in enumerate(self.digits, start=1):
            digit = table.look_up(words, word, per_draw, continuation(source, places, start, word))
            above = (above << _DIGIT_BITS) + digit
        magnitude = np.where(leading == 0, 0, np.minimum(above + 1, LARGEST_DRAW))
        return with_sign(magnitude, words[::per_draw])


@dataclass(frozen=True, eq=False)
class BlockSampler:
    """A large discrete Gaussian: |X| = m q + r, q by table, r uniform below m = 2**shift, both accepted or both rejected.

    q has the half Gaussian weights exp(-(m q)**2 / (2 sigma2)). The pair is accepted with probability exp(-(2 m q r
    + r**2) / (2 sigma2)), the ratio of the wanted weight exp(-|X|**2 / (2 sigma2)) to that of q, and turned down where
    the sign is negative and |X| = 0, so that 0 counts once. Two words per attempt: the first for q and the sign, the
    second for r and the comparison. Attempts fail less than once in fifty.
    """

    sigma2: Fraction
    shift: int
    block: InversionTable
    acceptance: AcceptanceTables

    def draw(self, source: BitSource, places: Places, start: int, stop: int) -> IntArray:
        """Draws number ``start`` to ``stop`` of the places."""
        magnitude = np.full(stop - start, REJECTED, dtype=np.int64)
        sign_words = np.empty(stop - start, dtype=np.uint64)
        pending = np.arange(stop - start)
        words = source.block(places, start, stop, 2).reshape(-1, 2)
        attempt = 0
        while True:
            magnitude[pending] = self._propose(source, places, start + pending, words, attempt)
            sign_words[pending] = words[:, 0]
            pending = np.flatnonzero(magnitude == REJECTED)
            if len(pending) == 0:
                return with_sign(magnitude, sign_words)
            attempt += 1
            words = source.attempt(places, start + pending, attempt)

    def _propose(self, source: BitSource, places: Places, draws: IntArray, words: WordArray, attempt: int) -> IntArray:
        def more(word: int) -> Callable[[int], Iterator[int]]:
            return lambda which: source.extension(places, int(draws[which]), word, attempt)

        blocks = self.block.look_up(words.reshape(-1), 0, 2, more(0))
        magnitude = accept_within_block(blocks, words, self.shift, self.acceptance)
        for which in np.flatnonzero(magnitude == UNDECIDED).tolist():
            magnitude[which] = self._decide(int(blocks[which]), int(words[which, 1]), more(1)(which))
        magnitude[(magnitude == 0) & (words[:, 0] & np.uint64(1) == 1)] = REJECTED
        return np.minimum(magnitude, LARGEST_DRAW)

    def _decide(self, block: int, word: int, more: Iterator[int]) -> int:
        digits = 64 - self.shift
        place = word >> digits
        exponent = Fraction(place * (2 * (block << self.shift) + place)) / (2 * self.sigma2)
        accepted = place == 0 or bernoulli(
            lambda bits: enclose_exp(exponent, bits), word & ((1 << digits) - 1), digits, more
        )
        return min((block << self.shift) + place, LARGEST_DRAW) if accepted else REJECTED


@lru_cache(maxsize=64)
def laplace_sampler(scale: Fraction) -> Sampler:
    """The sampler of the discrete Laplace distribution with this scale."""
    n_digits = 0
    while scale > _DIRECT_SCALE << (_DIGIT_BITS * n_digits):
        n_digits += 1
    if n_digits == 0:
        return TableSampler(build_table(LaplaceMagnitude(scale)))
    base = 1 << _DIGIT_BITS
    digits = [build_table(GeometricDigit(scale / base**place, base)) for place in reversed(range(n_digits))]
    return DigitSampler(build_table(LaplaceMagnitude(scale, step=base**n_digits)), tuple(digits))


@lru_cache(maxsize=64)
def gaussian_sampler(sigma2: Fraction) -> Sampler:
    """The sampler of the discrete Gaussian distribution with this parameter."""
    if sigma2 <= _DIRECT_SIGMA2:
        return TableSampler(build_table(GaussianMagnitude(sigma2)))
    # 2**(shift + 6) <= sigma < 2**(shift + 7): blocks of 1/128 to 1/64 of sigma.
    shift = ((sigma2.numerator // sigma2.denominator).bit_length() - 1) // 2 - 6
    block = build_table(GaussianMagnitude(sigma2 / 4**shift, half=True))
    return BlockSampler(sigma2, shift, block, acceptance_tables(sigma2, shift, len(block.thresholds)))


def acceptance_tables(sigma2: Fraction, shift: int, n_blocks: int) -> AcceptanceTables:
    """The constants of :func:`accept_within_block`, all rounded down exactly."""
    rate = 1 / (2 * sigma2)
    exponent = 0
    while rate * (1 << exponent) < 1 << 63:
        exponent += 1
    before = 64 - ((2 * n_blocks + 1) << (2 * shift)).bit_length()
    exponentials = [floor_of(partial(enclose_exp, Fraction(i, 1 << 12)), 63) for i in range(1 << 10)]
    return AcceptanceTables(
        rate=np.uint64(int(rate * (1 << exponent))),
        before=np.uint64(before),
        after=np.uint64(exponent + before - 127),
        n_blocks=n_blocks,
        exponentials=np.array(exponentials, dtype=np.uint64),
    )


def with_sign(magnitude: IntArray, words: WordArray) -> IntArray:
    """Magnitudes with the sign that the lowest bit of each word gives."""
    negative = -(words & np.uint64(1)).view(np.int64)
    return (magnitude ^ negative) - negative


def continuation(source: BitSource, places: Places, start: int, word: int) -> Callable[[int], Iterator[int]]:
    """How to get further bits for word ``word`` of the draws that follow ``start``."""
    return lambda draw: source.extension(places, start + draw, word, 0)
