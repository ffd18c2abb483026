"""Exact inversion: from a stream of random bits to a whole number with the stated probabilities.

Let U be uniform on [0, 1), its binary digits the random bits. K = the largest k with U < P(K >= k)
has the right distribution. A table holds floor(2**63 P(K >= k)); 63 bits of U decide K unless they
equal one of these, which includes the 0 at the table's end. Then more bits are drawn and compared
with more digits of the exact probability, until they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tallytree.model.arrays import IntArray, read_only
from tallytree.privacy.kernels import UNDECIDED, WordArray, invert
from tallytree.privacy.probabilities import (
    Enclosure,
    Survival,
    floor_of,
    survival_floor,
    survival_table,
)

DIGITS = 63
WORD_BITS = 64
LARGEST_VALUE = 1 << 62


@dataclass(frozen=True, eq=False)
class InversionTable:
    """The first 63 binary digits of every P(K >= k), with a guide from the leading bits of a draw
    to the part to search.
    """

    survival: Survival
    thresholds: WordArray
    bounds: npt.NDArray[np.int32]

    def look_up(
        self, words: WordArray, more: Callable[[int], Iterator[int]], values: IntArray
    ) -> None:
        """Write K of every draw, from the upper 63 bits of its word; ``more(draw)`` continues the
        bits of a draw.
        """
        if invert(words, self.thresholds, self.bounds, values):
            for draw in np.flatnonzero(values == UNDECIDED).tolist():
                values[draw] = self._decide(int(words[draw]) >> 1, more(draw))

    def _decide(self, u: int, more: Iterator[int]) -> int:
        """The value of a draw whose first 63 bits do not decide it, cut off where 64-bit integers
        would not hold it.
        """
        digits = DIGITS
        # Number of k >= 1 whose threshold lies above u: a lower bound of the answer.
        value = int(np.count_nonzero(self.thresholds[1:] > np.uint64(u)))
        while True:
            u, digits = u << WORD_BITS | next(more), digits + WORD_BITS
            value = self._largest_above(u, digits, value)
            if (
                value + 1 == self.survival.end
                or survival_floor(self.survival, value + 1, digits) < u
            ):
                return min(value, LARGEST_VALUE)

    def _largest_above(self, u: int, digits: int, low: int) -> int:
        """The largest k >= low with u < floor(2**digits P(K >= k)), given that it holds at ``low``."""
        step = 1
        while u < survival_floor(self.survival, low + step, digits):
            low, step = low + step, 2 * step
        while step > 1:
            step //= 2
            if u < survival_floor(self.survival, low + step, digits):
                low += step
        return low


def build_table(survival: Survival) -> InversionTable:
    """The table of a distribution."""
    thresholds = np.array(survival_table(survival, DIGITS), dtype=np.uint64)
    bits = min(max(len(thresholds).bit_length(), 12), 15)
    buckets = np.arange(1 << bits, dtype=np.uint64) << np.uint64(DIGITS - bits)
    rising = thresholds[:0:-1]
    bounds = np.zeros((1 << bits) + 1, dtype=np.int32)
    bounds[:-1] = len(rising) - np.searchsorted(rising, buckets, side="left")
    return InversionTable(survival, read_only(thresholds), read_only(bounds))


def bernoulli(
    probability: Callable[[int], Enclosure], u: int, digits: int, more: Iterator[int]
) -> bool:
    """Whether U < probability, for a U that starts with ``u`` of ``digits`` bits and goes on with
    ``more``.
    """
    while True:
        threshold = floor_of(probability, digits)
        if u != threshold:
            return u < threshold
        u, digits = u << WORD_BITS | next(more), digits + WORD_BITS
