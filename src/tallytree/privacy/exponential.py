"""The exponential mechanism, sampled exactly: choose a candidate with probability proportional to
exp(rate · score).

Scores are whole numbers and the rate is a fraction, so every weight is exp of a fraction, which
:mod:`tallytree.privacy.probabilities` encloses as narrowly as asked for. A draw is a uniform number
U, known bit by bit; the chosen candidate is the one whose part of the running sum of weights holds
U times the total. With 64 bits of U and weights rounded down to 2**-31 that is nearly always
certain; where it is not, further bits and digits are taken until it is. No floating point decides
anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.confidential import Fact
from tallytree.privacy.budget import Budget, pure_loss
from tallytree.privacy.probabilities import enclose, enclose_exp, floor_of
from tallytree.privacy.randomness import BitSource, Places, answer_once

WORD_BITS = 64
# Quick decisions take weights in units of 2**-31, lags in digits of 11 bits: products and running
# sums fit 64 bits.
UNIT_BITS = 31
DIGIT_BITS = 11
DIGIT_MASK = (1 << DIGIT_BITS) - 1
MOST_CANDIDATES = 1 << 24
LARGEST_SCORE = 1 << 61


def exponential_rate(part: Budget, sensitivity: int) -> Fraction:
    """The rate that makes one choice cost this part of the budget, for scores that one unit changes
    by ``sensitivity``.

    Pure: rate = ε/(2Δ) costs ε. zCDP: a choice that costs ε in the pure sense costs at most ε²/8
    (Cesar and Rogers 2021, Lemma 3.2), so ε = √(8ρ), rounded down to a fraction of at least 2**-30
    relative precision.
    """
    if sensitivity < 1:
        raise RequestError(f"A sensitivity is at least 1, got {sensitivity}.")
    return pure_loss(part, rate=8) / (2 * sensitivity)


def choose_candidates(
    scores: IntArray,
    offsets: IntArray,
    rate: Fraction,
    source: BitSource,
    *,
    level: int,
    query: str,
    question: Iterable[Fact] = (),
) -> IntArray:
    """One candidate for each list of scores, higher scores being likelier.

    Parameters
    ----------
    scores
        Scores of all lists, one after the other.
    offsets
        List ``i`` is ``scores[offsets[i]:offsets[i + 1]]``; none is empty.
    rate
        P(candidate) is proportional to exp(rate · score); see :func:`exponential_rate`.
    level, query
        The place in the stream; list ``i`` takes the bits of region ``i``.
    question
        As of :func:`tallytree.privacy.noise.add_noise`.

    Returns
    -------
    IntArray
        Number of the chosen candidate within each list.

    Examples
    --------
    >>> from tallytree.privacy.randomness import KeyStream
    >>> stream = KeyStream.from_insecure_seed(1)
    >>> choose_candidates(np.array([-90, 0, -80]), np.array([0, 3]), Fraction(1), stream, level=0, query="cut")
    array([1])
    """
    lengths = np.diff(offsets)
    if len(lengths) and (lengths.min() < 1 or lengths.max() > MOST_CANDIDATES):
        raise RequestError(f"A choice is among 1 to {MOST_CANDIDATES:,} candidates.")
    if rate <= 0:
        raise RequestError(f"The rate of a choice must be greater than 0, got {rate}.")
    places = Places(level, query, np.arange(len(lengths) + 1, dtype=np.int64))
    choose = partial(_choices, scores, offsets, rate, source, places)
    return answer_once(source, places, len(lengths), choose, [repr(rate), offsets, *question])


def _choices(
    scores: IntArray, offsets: IntArray, rate: Fraction, source: BitSource, places: Places
) -> IntArray:
    words = source.block(places, 0, places.n_draws, 1)
    tables = weight_tables(rate)
    chosen = np.empty(places.n_draws, dtype=np.int64)
    for i, word in enumerate(words.tolist()):
        # Cut off like noisy values: whatever the counts are, nothing wraps around. A contraction,
        # so sensitivities hold.
        row = np.clip(scores[offsets[i] : offsets[i + 1]], -LARGEST_SCORE, LARGEST_SCORE)
        lag = row.max() - row
        found = _choose_quickly(lag, tables, word)
        chosen[i] = (
            found
            if found is not None
            else choose_exactly(lag, rate, word, source.extension(places, i, 0, 0))
        )
    return chosen


@dataclass(frozen=True, eq=False)
class WeightTables:
    """exp(-rate · lag) in units of 2**-31 for any lag: the product of one table entry per digit of
    the lag.

    Attributes
    ----------
    digits
        Row ``t``, column ``k``: floor(2**31 · exp(-rate · k · 2**(11 t))).
    end
        A lag from which on the weight is below one unit.
    slack
        Weights are too small by less than this many units. An entry is too small by less than 1; a
        product of numbers of at most 1, each too small by a and b units, by less than a + b, and
        its rounding by less than 1.
    """

    digits: IntArray
    end: int
    slack: int

    def weights(self, lag: IntArray) -> IntArray:
        """Lower bounds of the weights, in units; each true weight is less than ``slack`` units
        above.
        """
        rest = np.minimum(lag, self.end)
        product = self.digits[0][rest & DIGIT_MASK]
        for table in self.digits[1:]:
            rest = rest >> DIGIT_BITS
            product = product * table[rest & DIGIT_MASK] >> UNIT_BITS
        return np.where(lag >= self.end, 0, product)


@lru_cache(maxsize=64)
def weight_tables(rate: Fraction) -> WeightTables:
    """The tables of a rate; a few milliseconds."""
    # e**-22 < 2**-31. The lag is cut off where 64-bit integers would not hold it.
    end = min(math.ceil(22 / rate), 2 * LARGEST_SCORE)
    n_digits = max(1, -(-end.bit_length() // DIGIT_BITS))
    tables = [_digit_table(rate * (1 << (DIGIT_BITS * place))) for place in range(n_digits)]
    return WeightTables(read_only(np.array(tables, dtype=np.int64)), end, 2 * n_digits - 1)


def _digit_table(step: Fraction) -> list[int]:
    """floor(2**31 · exp(-k · step)) for every digit k, by repeated products that are checked to be
    narrow enough.
    """
    bits = UNIT_BITS + 80
    ratio, power = enclose_exp(step, bits), enclose(1, bits)
    table = []
    for k in range(DIGIT_MASK + 1):
        found = power.floor(UNIT_BITS)
        table.append(
            floor_of(partial(enclose_exp, k * step), UNIT_BITS) if found is None else found
        )
        power = power.times(ratio)
    return table


def _choose_quickly(lag: IntArray, tables: WeightTables, word: int) -> int | None:
    """The candidate if 64 bits and weights of 31 digits settle it, None where they do not."""
    n_candidates = len(lag)
    if n_candidates == 1:
        return 0
    below = np.cumsum(tables.weights(lag))
    total, slack = int(below[-1]), tables.slack
    # U lies in [word, word + 1) / 2**64, and the running sum up to candidate j in [below[j],
    # below[j] + (j + 1) slack).
    low = word * total >> WORD_BITS
    high = -(-(word + 1) * (total + n_candidates * slack) >> WORD_BITS)
    place = min(int(np.searchsorted(below, high)), n_candidates - 1)
    if place > 0 and below[place - 1] + place * slack > low:
        return None
    return place if high <= below[place] or place == n_candidates - 1 else None


def choose_exactly(lag: IntArray, rate: Fraction, word: int, more: Iterator[int]) -> int:
    """The candidate, with as many bits and digits as it takes; equal lags are worked out once."""
    distinct, which = np.unique(lag, return_inverse=True)
    digits = 2 * WORD_BITS
    u, n_bits = word, WORD_BITS
    while True:
        u, n_bits = u << WORD_BITS | next(more), n_bits + WORD_BITS
        weights = [enclose_exp(rate * int(value), digits) for value in distinct.tolist()]
        low, high = [0], [0]
        for number in which.tolist():
            low.append(low[-1] + weights[number].low)
            high.append(high[-1] + weights[number].high)
        # U times the total, in units of 2**-(digits + n_bits).
        least, most = u * low[-1], (u + 1) * high[-1]
        for candidate in range(len(lag)):
            # U is below 1, so the last candidate has no upper end to stay below.
            if most <= low[candidate + 1] << n_bits or candidate == len(lag) - 1:
                if high[candidate] << n_bits <= least:
                    return candidate
                break
        digits += WORD_BITS
