"""What a stream measures, in whole numbers: weights of powers of the summing matrix, and rows of
weighted counts.

A row asks r_t Σ_s w_{t-s} d_s x_s. Counts x are at most :data:`MOST_ARRIVALS`, d at most 2**18, and
max r times Σ w below 2**32: :mod:`tallytree.privacy.sensitivity` refuses others. So d x is split
into two halves of 29 bits whose weighted sums fit into 64 bits, and a row saturates at 2**61
instead of wrapping around; cutting off is a contraction, so sensitivities hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from tallytree.kernels.jit import as_input, serial
from tallytree.model.arrays import FloatArray, IntArray, read_only

HalfArray = npt.NDArray[np.uint32]

MOST_ARRIVALS = 2**40  # more in one step count as this many
WEIGHT_BITS = 16
COLUMN_BITS = 18
_LIMIT = 1 << 61
_HALF_BITS = 29
_BLOCK_BITS = 20
_FIXED_BITS = 62
_THOUSAND = 1000


@dataclass(frozen=True, eq=False)
class Factors:
    """What the rows of a stream weigh, w, r and d, of as many steps as there are weights."""

    weights: IntArray
    rows: IntArray
    columns: IntArray

    @cached_property
    def narrow(self) -> HalfArray:
        """The weights in 32 bits, as :func:`weighted_rows` takes them."""
        return read_only(self.weights.astype(np.uint32))

    @cached_property
    def fit(self) -> bool:
        """Whether all sums that :func:`weighted_rows` works with fit into 64 bits."""
        return int(self.weights.sum()) * int(self.rows.max()) < 1 << 32

    @cached_property
    def scales(self) -> tuple[FloatArray, FloatArray]:
        """1/d and 1/r: what an arrival and a row are divided by."""
        return read_only(1.0 / self.columns), read_only(1.0 / self.rows)

    @cached_property
    def sums(self) -> IntArray:
        """Σ_t r_t w_{t-s} for every s."""
        return read_only(column_sums(self.weights, self.rows))

    @cached_property
    def sums_of_squares(self) -> IntArray:
        """Σ_t r_t² w_{t-s}² for every s."""
        return read_only(column_sums(self.weights**2, self.rows**2))


def square_root_weights(n_steps: int) -> IntArray:
    """The first coefficients of (1 - z)**(-1/2), as multiples of 2**-16, rounded.

    Examples
    --------
    >>> (square_root_weights(4) / 2**16).round(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    return power_weights(n_steps, 500, WEIGHT_BITS)


def power_weights(n_steps: int, thousandths: int, bits: int) -> IntArray:
    """The first coefficients of (1 - z)**(-a), a in thousandths below 1,000, as multiples of
    2**-bits, rounded.

    Examples
    --------
    >>> power_weights(4, 500, 4).tolist()
    [16, 8, 6, 5]
    """
    return _weights(1 << max(6, (n_steps - 1).bit_length()), thousandths, bits)[:n_steps]


@lru_cache(maxsize=8)
def _weights(n_steps: int, thousandths: int, bits: int) -> IntArray:
    """As many as a power of two: streams of all lengths share few tables."""
    weights = np.empty(n_steps, dtype=np.int64)
    _fill_weights(weights, thousandths, bits)
    return read_only(weights)


@serial
def _fill_weights(weights, thousandths, bits):
    """f_k = f_{k-1} (1 - (1 - a)/k) in whole multiples of 2**-62, so that all machines agree; falls
    with k throughout.
    """
    coefficient = np.int64(1) << _FIXED_BITS
    shift = _FIXED_BITS - bits
    for k in range(len(weights)):
        if k > 0:
            coefficient -= coefficient // (_THOUSAND * k) * (_THOUSAND - thousandths)
        weights[k] = (coefficient + (np.int64(1) << (shift - 1))) >> shift


def halves(counts: IntArray, columns: IntArray) -> tuple[HalfArray, HalfArray]:
    """The high and the low 29 bits of d_s x_s; arrivals above the most count as the most."""
    scaled = np.minimum(counts, MOST_ARRIVALS) * columns
    low = (scaled & ((1 << _HALF_BITS) - 1)).astype(np.uint32)
    return (scaled >> _HALF_BITS).astype(np.uint32), low


def weighted_rows(
    weights: HalfArray, rows: IntArray, high: HalfArray, low: HalfArray, first: int
) -> IntArray:
    """r_t Σ_j w_j (2**29 high + low)_{t - j}, for t = first … len(high) - 1, cut off at 2**61.

    Weights are handed over in 32 bits, in which products are twice as fast. Cost is linear in rows
    times steps.
    """
    found = np.empty(len(high) - first, dtype=np.int64)
    asked = [read_only(array.view()) for array in (weights, rows, high, low)]
    _fill_rows(*asked, first, found)
    return found


@serial
def _fill_rows(weights, rows, high, low, first, found):
    for t in range(first, len(high)):
        above, below = np.int64(0), np.int64(0)
        for j in range(t + 1):
            weight = np.int64(weights[t - j])
            above += weight * np.int64(high[j])
            below += weight * np.int64(low[j])
        found[t - first] = _joined(above * rows[t], below * rows[t])


@serial
def _joined(high, low):
    """high 2**29 + low, cut off at 2**61; low is below 2**61."""
    if high >= np.int64(1) << (61 - _HALF_BITS):
        return np.int64(_LIMIT)
    return min((high << _HALF_BITS) + low, np.int64(_LIMIT))


def block_sums(counts: IntArray, width: int) -> IntArray:
    """Sums of consecutive blocks of ``width`` counts, cut off at 2**61; a block that is not
    complete is left out.

    From (n_steps,) to (n_steps // width,).
    """
    blocks = counts[: len(counts) // width * width].reshape(-1, width)
    high = (blocks >> _BLOCK_BITS).sum(axis=1)
    low = (blocks & ((1 << _BLOCK_BITS) - 1)).sum(axis=1)
    return np.minimum((np.minimum(high, _LIMIT >> _BLOCK_BITS) << _BLOCK_BITS) + low, _LIMIT)


def row_moments(
    inverse: FloatArray, arrivals: FloatArray, rows: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Σ_j L_tj² and Σ_j L_tj⁴ of each t, L_tj = rows[j] Σ_{s=j…t} arrivals[s] inverse[s - j].

    All arrays and both results have one entry per step. Cost: quadratic in steps.
    """
    squares, fourths = np.zeros(len(inverse)), np.zeros(len(inverse))
    given = [as_input(array, np.float64) for array in (inverse, arrivals, rows)]
    _add_moments(*given, squares, fourths)
    return read_only(squares), read_only(fourths)


@serial
def _add_moments(inverse, arrivals, rows, squares, fourths):
    """Four columns at a time, whose sums do not wait for one another."""
    n_steps = len(inverse)
    for first in range(0, n_steps, 4):
        taken, scale = np.zeros(4), np.zeros(4)
        scale[: min(4, n_steps - first)] = rows[first : first + 4]
        for t in range(first, min(first + 3, n_steps)):
            for k in range(t - first + 1):
                taken[k] += arrivals[t] * inverse[t - first - k]
            _add_powers(taken[0], taken[1], taken[2], taken[3], scale, t, squares, fourths)
        a, b, c, d = taken[0], taken[1], taken[2], taken[3]
        for t in range(first + 3, n_steps):
            arrival, place = arrivals[t], t - first
            a += arrival * inverse[place]
            b += arrival * inverse[place - 1]
            c += arrival * inverse[place - 2]
            d += arrival * inverse[place - 3]
            _add_powers(a, b, c, d, scale, t, squares, fourths)


@serial
def _add_powers(a, b, c, d, scale, t, squares, fourths):
    a, b, c, d = (a * scale[0]) ** 2, (b * scale[1]) ** 2, (c * scale[2]) ** 2, (d * scale[3]) ** 2
    squares[t] += (a + b) + (c + d)
    fourths[t] += (a * a + b * b) + (c * c + d * d)


def column_sums(weights: IntArray, rows: IntArray) -> IntArray:
    """Σ_t rows[t] weights[t - s] for every s, exactly where it fits into 64 bits; cost: steps times
    runs of equal rows.

    All arrays have one entry per step.
    """
    starts = np.flatnonzero(np.append(True, np.diff(rows) != 0))
    sums = np.concatenate([[0], np.cumsum(weights)])
    found = np.empty(len(weights), dtype=np.int64)
    given = [as_input(array, np.int64) for array in (sums, rows[starts], starts)]
    _fill_column_sums(*given, found)
    return found


@serial
def _fill_column_sums(sums, values, starts, found):
    """Each run of rows takes the difference of two sums over weights."""
    n_steps, last = len(found), len(starts) - 1
    for s in range(n_steps):
        end, run = n_steps, last
        total = np.int64(0)
        while end > s:
            start = max(starts[run], s)
            total += values[run] * (sums[end - s] - sums[start - s])
            end, run = start, run - 1
        found[s] = total
