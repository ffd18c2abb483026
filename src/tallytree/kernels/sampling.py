"""Kernels of the exact samplers: counters for the keyed stream, and inversion of 63-bit draws by table.

No randomness here: random words arrive as an array. Arithmetic is on unsigned 64-bit integers throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tallytree.kernels.jit import serial
from tallytree.model.arrays import IntArray

WordArray = npt.NDArray[np.uint64]

# A draw that its bits do not decide.
UNDECIDED = -1
# A proposal that was turned down.
REJECTED = -2


def fill_counters(
    offsets: IntArray, first_region: int, first_draw: int, start: int, stop: int, words_per_draw: int
) -> WordArray:
    """The 128-bit counters (region, block within region) that hold the words of draws ``start:stop``, two words a counter.

    Draws are numbered from 0 over the regions of ``offsets``; regions do not share counters. Returned flat, region
    first.
    """
    counters = np.empty(2 * ((stop - start) * words_per_draw + 1), dtype=np.uint64)
    n_counters = _fill_counters(offsets, first_region, first_draw, start, stop, words_per_draw, counters)
    return counters[: 2 * n_counters]


@serial
def _fill_counters(offsets, first_region, first_draw, start, stop, words_per_draw, counters):  # type: ignore[no-untyped-def]
    position = offsets[0] + start
    end = offsets[0] + stop
    row = np.searchsorted(offsets, position, side="right") - 1
    n_counters = 0
    while position < end:
        skipped = first_draw if row == 0 else 0
        last = min(offsets[row + 1], end)
        if last > position:
            first_block = (position - offsets[row] + skipped) * words_per_draw >> 1
            last_block = ((last - offsets[row] + skipped) * words_per_draw - 1) >> 1
            for block in range(first_block, last_block + 1):
                counters[2 * n_counters] = first_region + row
                counters[2 * n_counters + 1] = block
                n_counters += 1
        position = last
        row += 1
    return n_counters


def gather_words(
    offsets: IntArray,
    first_region: int,
    first_draw: int,
    start: int,
    stop: int,
    words_per_draw: int,
    blocks: WordArray,
) -> WordArray:
    """Drop the words of encrypted counters (in the order of :func:`fill_counters`) that belong to no draw of the span."""
    words = np.empty((stop - start) * words_per_draw, dtype=np.uint64)
    _gather_words(offsets, first_draw, start, stop, words_per_draw, blocks, words)
    return words


@serial
def _gather_words(offsets, first_draw, start, stop, words_per_draw, blocks, words):  # type: ignore[no-untyped-def]
    position = offsets[0] + start
    end = offsets[0] + stop
    row = np.searchsorted(offsets, position, side="right") - 1
    source = 0
    target = 0
    while position < end:
        skipped = first_draw if row == 0 else 0
        last = min(offsets[row + 1], end)
        if last > position:
            source += (position - offsets[row] + skipped) * words_per_draw & 1
            for _ in range((last - position) * words_per_draw):
                words[target] = blocks[source]
                source += 1
                target += 1
            source += source & 1
        position = last
        row += 1


def invert(
    words: WordArray, word: int, words_per_draw: int, thresholds: WordArray, bounds: npt.NDArray[np.int32]
) -> tuple[IntArray, int]:
    """Look up each draw in a table of survival probabilities.

    Parameters
    ----------
    words
        Random words, ``words_per_draw`` for each draw, of which number ``word`` is used: its upper 63 bits are ``u``.
    thresholds
        ``floor(2**63 * P(K >= k))`` for k = 0, 1, …, nonincreasing, up to and including the first 0.
    bounds
        ``bounds[b]`` is the number of k >= 1 with ``thresholds[k] >= b << (63 - bits)``, for b = 0 … 2**bits.

    Returns
    -------
    values
        The number of k >= 1 with ``u < thresholds[k]``, or ``UNDECIDED`` where ``u`` equals a threshold.
    n_undecided
        How many are undecided.
    """
    values = np.empty(len(words) // words_per_draw, dtype=np.int64)
    shift = 64 - (len(bounds) - 1).bit_length()
    n_undecided = _invert(words, word, words_per_draw, thresholds, bounds, np.uint64(shift), values)
    return values, int(n_undecided)


@serial
def _invert(words, word, words_per_draw, thresholds, bounds, shift, values):  # type: ignore[no-untyped-def]
    n_undecided = 0
    for draw in range(len(values)):
        u = words[draw * words_per_draw + word] >> np.uint64(1)
        bucket = np.int64(u >> shift)
        low = bounds[bucket + 1]
        high = bounds[bucket]
        # The answer lies in low … high. Where they are equal no threshold lies in the bucket: nothing left to compare.
        if low < high:
            while high - low > 4:
                middle = (low + high + 1) >> 1
                if u < thresholds[middle]:
                    low = middle
                else:
                    high = middle - 1
            while low < high and u < thresholds[low + 1]:
                low += 1
            if u == thresholds[low + 1]:
                low = UNDECIDED
                n_undecided += 1
        values[draw] = low
    return n_undecided


def add_saturating(values: IntArray, noise: IntArray, limit: int) -> IntArray:
    """``clip(clip(values) + noise)`` at ``limit`` on both sides; ``limit`` and ``noise`` must leave room below 2**63."""
    total = np.empty(len(values), dtype=np.int64)
    _add_saturating(values, noise, limit, total)
    return total


@serial
def _add_saturating(values, noise, limit, total):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        value = min(max(values[i], -limit), limit)
        total[i] = min(max(value + noise[i], -limit), limit)


class AcceptanceTables(NamedTuple):
    """What :func:`accept_within_block` needs to bound exp(-a / (2 sigma2)) for whole a, in units of 2**-63.

    ``rate = floor(2**e / (2 sigma2))`` lies in [2**63, 2**64); ``a << before`` fits in 64 bits for every a of a block
    below ``n_blocks``; ``after = e + before - 127``; ``exponentials[i] = floor(2**63 exp(-i / 2**12))`` for i < 2**10.
    """

    rate: np.uint64
    before: np.uint64
    after: np.uint64
    n_blocks: int
    exponentials: WordArray


# How far, in units of 2**-63, the computed exponential may lie from the true one. The exponent is at most 2.5 too
# small, the series loses 2, the table 1, the last product 2; twice that to be safe.
_SLACK = np.uint64(16)


def accept_within_block(blocks: IntArray, words: WordArray, shift: int, tables: AcceptanceTables) -> IntArray:
    """Accept or reject a place within each block of 2**shift magnitudes of a discrete Gaussian.

    Parameters
    ----------
    blocks
        Block q of each draw.
    words
        Two words per draw, as rows. The upper ``shift`` bits of the second are the place r, the rest are leading bits
        of U.

    Returns
    -------
    magnitudes
        ``(q << shift) + r`` where U < exp(-r (2 (q << shift) + r) / (2 sigma2)) for certain, ``REJECTED`` where
        certainly not, ``UNDECIDED`` where the bits are too few or the block lies beyond the tables.
    """
    magnitudes = np.empty(len(blocks), dtype=np.int64)
    _accept_within_block(blocks, words, np.uint64(shift), tables, magnitudes)
    return magnitudes


@serial
def _upper_half(a, b):  # type: ignore[no-untyped-def]
    """floor(a b / 2**64) of unsigned 64-bit integers."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    crossed = a_high * b_low + (a_low * b_low >> half)
    middle = a_low * b_high + (crossed & mask)
    return a_high * b_high + (crossed >> half) + (middle >> half)


@serial
def _accept_within_block(blocks, words, shift, tables, magnitudes):  # type: ignore[no-untyped-def]
    one = np.uint64(1)
    bits = np.uint64(64) - shift
    width = one << (shift - one)
    for draw in range(len(blocks)):
        word = words[draw, 1]
        place = word >> bits
        start = np.uint64(blocks[draw]) << shift
        if blocks[draw] >= tables.n_blocks:
            magnitudes[draw] = UNDECIDED
        elif place == 0:
            magnitudes[draw] = np.int64(start)
        else:
            a = place * (start + start + place)
            exponent = _upper_half(a << tables.before, tables.rate) >> tables.after
            # exponent = i 2**51 + x: the exponential is a table entry times the first terms of the series of exp(-x).
            x = exponent & np.uint64((1 << 51) - 1)
            x2 = _upper_half(x << one, x)
            x3 = _upper_half(x2 << one, x)
            x4 = _upper_half(x3 << one, x)
            terms = (np.uint64(12) * x2 + x4 - np.uint64(4) * x3) // np.uint64(24)
            series = np.uint64(1 << 63) - x + terms
            bound = _upper_half(tables.exponentials[exponent >> np.uint64(51)], series) << one
            u = (word & ((one << bits) - one)) << (shift - one)
            if u + width + _SLACK <= bound:
                magnitudes[draw] = np.int64(start + place)
            elif u >= bound + _SLACK:
                magnitudes[draw] = REJECTED
            else:
                magnitudes[draw] = UNDECIDED
