"""Kernels of the exact samplers: counters for the keyed stream, and inversion of 63-bit draws by
table.

No randomness here: random words arrive as an array. Arithmetic is on unsigned 64-bit integers
throughout.
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


class Span(NamedTuple):
    """Draws ``start:stop`` out of the draws of consecutive regions, each of which takes
    ``words_per_draw`` random words.

    Draws are numbered from 0 over all regions: draw ``offsets[i] - offsets[0] + j`` is number ``j``
    of region ``first_region + i``, where for i = 0 the count starts at ``first_draw`` instead of 0.
    """

    offsets: IntArray
    first_region: int
    first_draw: int
    start: int
    stop: int
    words_per_draw: int


def fill_counters(span: Span) -> tuple[WordArray, int]:
    """The 128-bit counters (region, block) whose ciphers hold the words of a span, two words a
    counter, region first.

    Word ``w`` of a region is half ``w & 1`` of its block ``w >> 1``; regions do not share blocks.
    Returns a buffer with a spare counter at its end, and the number of counters.
    """
    n_words = (span.stop - span.start) * span.words_per_draw
    # A region with n words of the span touches at most n // 2 + 1 blocks, and at most n.
    first, last = span.offsets[0] + span.start, span.offsets[0] + span.stop
    n_regions = (
        1 + np.searchsorted(span.offsets, last) - np.searchsorted(span.offsets, first, side="right")
    )
    n_blocks = max(0, min(n_words, n_words // 2 + int(n_regions)))
    buffer = np.empty(2 * (n_blocks + 1), dtype=np.uint64)
    return buffer, int(_fill_counters(span, _first_row(span), buffer))


def _first_row(span: Span) -> int:
    """Place in ``offsets`` of the region that the first draw of a span belongs to."""
    return int(np.searchsorted(span.offsets, span.offsets[0] + span.start, side="right")) - 1


@serial
def _fill_counters(span, row, counters):
    offsets = span.offsets
    position = offsets[0] + span.start
    end = offsets[0] + span.stop
    n_counters = 0
    while position < end:
        # Draw ``position`` is number ``position - origin`` of its region.
        origin = offsets[row] - span.first_draw if row == 0 else offsets[row]
        last = min(offsets[row + 1], end)
        if last > position:
            first_block = (position - origin) * span.words_per_draw >> 1
            last_block = ((last - origin) * span.words_per_draw - 1) >> 1
            for block in range(first_block, last_block + 1):
                counters[2 * n_counters] = span.first_region + row
                counters[2 * n_counters + 1] = block
                n_counters += 1
        position = last
        row += 1
    return n_counters


def gather_words_in_place(span: Span, buffer: WordArray) -> WordArray:
    """The words of a span, moved together at the start of the buffer of its encrypted counters."""
    n_words = (span.stop - span.start) * span.words_per_draw
    _gather_words_in_place(span, _first_row(span), buffer)
    return buffer[:n_words]


@serial
def _gather_words_in_place(span, row, buffer):
    offsets = span.offsets
    position = offsets[0] + span.start
    end = offsets[0] + span.stop
    source = 0
    target = 0
    while position < end:
        origin = offsets[row] - span.first_draw if row == 0 else offsets[row]
        last = min(offsets[row + 1], end)
        if last > position:
            source += (position - origin) * span.words_per_draw & 1
            n_words = (last - position) * span.words_per_draw
            if source > target:
                for word in range(n_words):
                    buffer[target + word] = buffer[source + word]
            target += n_words
            source += n_words
            source += source & 1
        position = last
        row += 1


def invert(
    words: WordArray, thresholds: WordArray, bounds: npt.NDArray[np.int32], values: IntArray
) -> int:
    """Look up each draw in a table of survival probabilities.

    Parameters
    ----------
    words
        One random word per draw (a view with strides will do): its upper 63 bits are ``u``.
    thresholds
        ``floor(2**63 * P(K >= k))`` for k = 0, 1, …, nonincreasing, up to and including the first
        0.
    bounds
        ``bounds[b]`` is the number of k >= 1 with ``thresholds[k] >= b << (63 - bits)``, for b = 0
        … 2**bits.
    values
        Written to: the number of k >= 1 with ``u < thresholds[k]``, or ``UNDECIDED`` where ``u``
        equals a threshold.

    Returns
    -------
    n_undecided
        How many draws are undecided.
    """
    shift = 64 - (len(bounds) - 1).bit_length()
    return int(_invert(words, thresholds, bounds, np.uint64(shift), values))


@serial
def _invert(words, thresholds, bounds, shift, values):
    n_undecided = 0
    for draw in range(len(values)):
        u = words[draw] >> np.uint64(1)
        bucket = np.int64(u >> shift)
        low = bounds[bucket + 1]
        high = bounds[bucket]
        # The answer lies in low … high. Where they are equal no threshold lies in the bucket:
        # nothing left to compare.
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


def sign_in_place(values: IntArray, words: WordArray) -> None:
    """Negate the values whose word has its lowest bit set.

    Both are (n,).
    """
    _sign_in_place(values, words)


@serial
def _sign_in_place(values, words):
    for draw in range(len(values)):
        negative = -np.int64(words[draw] & np.uint64(1))
        values[draw] = (values[draw] ^ negative) - negative


def add_in_place(noise: IntArray, values: IntArray, limit: int) -> None:
    """Turn noise into ``clip(clip(values) + noise)``, clipped to ±limit; noise and twice the limit
    must fit in 63 bits.

    Both are (n,).
    """
    _add_in_place(noise, values, limit)


@serial
def _add_in_place(noise, values, limit):
    for i in range(len(values)):
        value = min(max(values[i], -limit), limit)
        noise[i] = min(max(value + noise[i], -limit), limit)


class AcceptanceTables(NamedTuple):
    """What :func:`accept_within_block` needs to bound exp(-a / (2 sigma2)) for whole a, in units of
    2**-63.

    ``rate = floor(2**e / (2 sigma2))`` lies in [2**63, 2**64); ``a << before`` fits in 64 bits for
    every a of a block below ``n_blocks``; ``after = e + before - 127``; ``exponentials[i] =
    floor(2**63 exp(-i / 2**12))`` for i < 2**10.
    """

    rate: np.uint64
    before: np.uint64
    after: np.uint64
    n_blocks: int
    exponentials: WordArray


# How far, in units of 2**-63, the computed exponential may lie from the true one. The exponent is
# at most 2.5 too small, the series loses 2, the table 1, the last product 2; twice that to be safe.
_SLACK = np.uint64(16)


def accept_within_block(
    blocks: IntArray, words: WordArray, shift: int, tables: AcceptanceTables, magnitudes: IntArray
) -> int:
    """Accept or reject a place within each block of 2**shift magnitudes of a discrete Gaussian.

    Parameters
    ----------
    blocks
        Block q of each draw.
    words
        Two words per draw, as rows. The upper ``shift`` bits of the second are the place r, the
        rest are leading bits of U.
    magnitudes
        Written to: ``(q << shift) + r`` where U < exp(-r (2 (q << shift) + r) / (2 sigma2)) for
        certain, ``REJECTED`` where certainly not, ``UNDECIDED`` where the bits are too few or the
        block lies beyond the tables.

    Returns
    -------
    n_undecided
        How many draws are undecided.
    """
    return int(_accept_within_block(blocks, words, np.uint64(shift), tables, magnitudes))


@serial
def _upper_half(a, b):
    """floor(a b / 2**64) of unsigned 64-bit integers."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    crossed = a_high * b_low + (a_low * b_low >> half)
    middle = a_low * b_high + (crossed & mask)
    return a_high * b_high + (crossed >> half) + (middle >> half)


@serial
def _accept_within_block(blocks, words, shift, tables, magnitudes):
    one = np.uint64(1)
    bits = np.uint64(64) - shift
    width = one << (shift - one)
    n_undecided = 0
    for draw in range(len(blocks)):
        word = words[draw, 1]
        place = word >> bits
        start = np.uint64(blocks[draw]) << shift
        if blocks[draw] >= tables.n_blocks:
            magnitudes[draw] = UNDECIDED
            n_undecided += 1
        elif place == 0:
            magnitudes[draw] = np.int64(start)
        else:
            a = place * (start + start + place)
            exponent = _upper_half(a << tables.before, tables.rate) >> tables.after
            # exponent = i 2**51 + x: the exponential is a table entry times the first terms of the
            # series of exp(-x).
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
                n_undecided += 1
    return n_undecided
