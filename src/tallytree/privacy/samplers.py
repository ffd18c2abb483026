"""The samplers behind the noise distributions, one per parameter and kept for reuse: tables cost
milliseconds to build.

Small parameters take one table of magnitudes and one random word per draw. Large ones would need
long tables, so a large discrete Laplace draws the digits of its magnitude from several short
tables, and a large discrete Gaussian draws a block of magnitudes by table and accepts or rejects a
place within it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol

import numpy as np

from tallytree.model.arrays import IntArray
from tallytree.privacy.inversion import InversionTable, bernoulli, build_table
from tallytree.privacy.kernels import (
    REJECTED,
    UNDECIDED,
    AcceptanceTables,
    WordArray,
    accept_within_block,
    sign_in_place,
)
from tallytree.privacy.probabilities import (
    GaussianMagnitude,
    GeometricDigit,
    LaplaceMagnitude,
    enclose_exp,
    floor_of,
)
from tallytree.privacy.randomness import BitSource, Places

LARGEST_DRAW = 1 << 62
# Marks an attempt that failed; no draw, since it lies beyond the cut-off.
_REJECTED_DRAW = -(1 << 63)

# Up to here one table does: some 45 scale or 9.3 sigma entries.
_DIRECT_SCALE = 1 << 10
_DIRECT_SIGMA2 = 1 << 20
_DIGIT_BITS = 12
# A table of the block sampler's exponentials reaches up to exponents of 1/4.
_EXPONENTIALS = 1 << 10


class Sampler(Protocol):
    """Draws from one distribution."""

    @property
    def words_per_draw(self) -> int:
        """Random words that a draw takes at first."""

    def draw(self, source: BitSource, places: Places, start: int, values: IntArray) -> None:
        """Fill ``values`` with the draws that follow number ``start`` of the places, cut off at
        ±2**62.
        """


@dataclass(frozen=True, eq=False)
class TableSampler:
    """A symmetric distribution by one table of magnitudes: one word per draw, of which one bit is
    the sign.
    """

    magnitude: InversionTable
    words_per_draw: int = 1

    def draw(self, source: BitSource, places: Places, start: int, values: IntArray) -> None:
        """Fill ``values`` with the draws that follow number ``start``."""
        words = source.block(places, start, start + len(values), 1)
        self.magnitude.look_up(words, continuation(source, places, start, 0), values)
        sign_in_place(values, words)


@dataclass(frozen=True, eq=False)
class DigitSampler:
    """A large discrete Laplace: X = 0 or |X| - 1 in base 2**12, leading digits by one table, each
    of the others by its own.

    |X| - 1 given X != 0 is geometric, so its digits are independent (see GeometricDigit). One word per table, and the
    lowest bit of the first is the sign.
    """

    leading: InversionTable
    digits: tuple[InversionTable, ...]

    @property
    def words_per_draw(self) -> int:
        """One word for each table."""
        return 1 + len(self.digits)

    def draw(self, source: BitSource, places: Places, start: int, values: IntArray) -> None:
        """Fill ``values`` with the draws that follow number ``start``."""
        words = source.block(places, start, start + len(values), self.words_per_draw).reshape(
            len(values), -1
        )
        leading = np.empty_like(values)
        self.leading.look_up(words[:, 0], continuation(source, places, start, 0), leading)
        # Beyond the cut-off the digits no longer matter, and the product must not overflow.
        above = np.minimum(leading - 1, LARGEST_DRAW >> (_DIGIT_BITS * len(self.digits)))
        for word, table in enumerate(self.digits, start=1):
            table.look_up(words[:, word], continuation(source, places, start, word), values)
            above = (above << _DIGIT_BITS) + values
        values[:] = np.where(leading == 0, 0, np.minimum(above + 1, LARGEST_DRAW))
        sign_in_place(values, words[:, 0])


@dataclass(frozen=True, eq=False)
class BlockSampler:
    """A large discrete Gaussian: |X| = m q + r, q by table, r uniform below m = 2**shift, both
    accepted or both rejected.

    q has the half Gaussian weights exp(-(m q)**2 / (2 sigma2)). The pair is accepted with
    probability exp(-(2 m q r + r**2) / (2 sigma2)), the ratio of the wanted weight exp(-|X|**2 / (2
    sigma2)) to that of q, and turned down where the sign is negative and |X| = 0, so that 0 counts
    once. Two words per attempt: the first for q and the sign, the second for r and the comparison.
    Attempts fail less than once in fifty.
    """

    sigma2: Fraction
    shift: int
    block: InversionTable
    acceptance: AcceptanceTables
    words_per_draw: int = 2

    def draw(self, source: BitSource, places: Places, start: int, values: IntArray) -> None:
        """Fill ``values`` with the draws that follow number ``start``."""
        words = source.block(places, start, start + len(values), 2).reshape(-1, 2)
        pending = np.arange(start, start + len(values))
        attempt = 0
        while len(pending):
            proposed = self._propose(source, places, pending, words, attempt)
            values[pending - start] = proposed
            pending = pending[proposed == _REJECTED_DRAW]
            attempt += 1
            words = source.attempt(places, pending, attempt)

    def _propose(
        self, source: BitSource, places: Places, draws: IntArray, words: WordArray, attempt: int
    ) -> IntArray:
        """One attempt at each draw, ``_REJECTED_DRAW`` where it fails."""

        def more(word: int) -> Callable[[int], Iterator[int]]:
            return lambda which: source.extension(places, int(draws[which]), word, attempt)

        blocks = np.empty(len(draws), dtype=np.int64)
        self.block.look_up(words[:, 0], more(0), blocks)
        magnitudes = np.empty(len(draws), dtype=np.int64)
        if accept_within_block(blocks, words, self.shift, self.acceptance, magnitudes):
            for which in np.flatnonzero(magnitudes == UNDECIDED).tolist():
                magnitudes[which] = self._decide(
                    int(blocks[which]), int(words[which, 1]), more(1)(which)
                )
        rejected = (magnitudes == REJECTED) | (
            (magnitudes == 0) & (words[:, 0] & np.uint64(1) == 1)
        )
        sign_in_place(magnitudes, words[:, 0])
        magnitudes[rejected] = _REJECTED_DRAW
        return magnitudes

    def _decide(self, block: int, word: int, more: Iterator[int]) -> int:
        """The exact comparison where the bits of the second word do not decide, or the block lies
        beyond the tables.
        """
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
    digits = [
        build_table(GeometricDigit(scale / base**place, base))
        for place in reversed(range(n_digits))
    ]
    return DigitSampler(build_table(LaplaceMagnitude(scale, step=base**n_digits)), tuple(digits))


@lru_cache(maxsize=64)
def gaussian_sampler(sigma2: Fraction) -> Sampler:
    """The sampler of the discrete Gaussian distribution with this parameter."""
    if sigma2 <= _DIRECT_SIGMA2:
        return TableSampler(build_table(GaussianMagnitude(sigma2)))
    # 2**(shift + 6) <= sigma < 2**(shift + 7): blocks of 1/128 to 1/64 of sigma.
    shift = ((sigma2.numerator // sigma2.denominator).bit_length() - 1) // 2 - 6
    block = build_table(GaussianMagnitude(sigma2 / 4**shift, half=True))
    return BlockSampler(
        sigma2, shift, block, acceptance_tables(sigma2, shift, len(block.thresholds))
    )


def acceptance_tables(sigma2: Fraction, shift: int, n_blocks: int) -> AcceptanceTables:
    """The constants of :func:`accept_within_block`, all rounded down exactly.

    The largest exponent of a block is (2 n_blocks + 1) 4**shift / (2 sigma2), about 9.3 * 2**shift
    / sigma <= 0.15.
    """
    if (2 * n_blocks + 1) * 4**shift >= sigma2 / 2:
        raise ValueError("these blocks are too wide for the table of exponentials")
    rate = 1 / (2 * sigma2)
    exponent = 0
    while rate * (1 << exponent) < 1 << 63:
        exponent += 1
    before = 64 - ((2 * n_blocks + 1) << (2 * shift)).bit_length()
    exponentials = [
        floor_of(partial(enclose_exp, Fraction(i, 1 << 12)), 63) for i in range(_EXPONENTIALS)
    ]
    return AcceptanceTables(
        rate=np.uint64(int(rate * (1 << exponent))),
        before=np.uint64(before),
        after=np.uint64(exponent + before - 127),
        n_blocks=n_blocks,
        exponentials=np.array(exponentials, dtype=np.uint64),
    )


def continuation(
    source: BitSource, places: Places, start: int, word: int
) -> Callable[[int], Iterator[int]]:
    """How to get further bits for word ``word`` of the draws that follow ``start``."""
    return lambda draw: source.extension(places, start + draw, word, 0)
