"""What a stream measures, in whole numbers: weights of the square-root factorisation, and rows of
weighted counts.

Counts are at most :data:`MOST_ARRIVALS`, weights at most 2**16 with a sum below 2**37. So counts
are split into two halves of 20 bits whose weighted sums fit into 64 bits, and a row saturates at
2**61 instead of wrapping around; cutting off is a contraction, so sensitivities hold.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tallytree.kernels.jit import as_input, serial
from tallytree.model.arrays import IntArray

MOST_ARRIVALS = 2**40  # more in one step count as this many
WEIGHT_BITS = 16
_LIMIT = 1 << 61
_HALF_BITS = 20
_FIXED_BITS = 62


def square_root_weights(n_steps: int) -> IntArray:
    """The first coefficients of (1 - z)**(-1/2), as multiples of 2**-16, rounded.

    Examples
    --------
    >>> (square_root_weights(4) / 2**16).round(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    return _weights(1 << max(6, (n_steps - 1).bit_length()))[:n_steps]


@lru_cache(maxsize=8)
def _weights(n_steps: int) -> IntArray:
    """As many as a power of two: streams of all lengths share few tables."""
    weights = np.empty(n_steps, dtype=np.int64)
    _fill_weights(weights)
    weights.setflags(write=False)
    return weights


@serial
def _fill_weights(weights):
    """f_k = f_{k-1} (1 - 1/(2k)) in whole multiples of 2**-62, so that all machines agree; falls
    with k throughout.
    """
    coefficient = np.int64(1) << _FIXED_BITS
    shift = _FIXED_BITS - WEIGHT_BITS
    for k in range(len(weights)):
        if k > 0:
            coefficient -= coefficient // (2 * k)
        weights[k] = (coefficient + (np.int64(1) << (shift - 1))) >> shift


def weighted_rows(weights: IntArray, counts: IntArray, first: int) -> IntArray:
    """Row t = Σ_j weights[j] counts[t - j], for t = first … len(counts) - 1, cut off at 2**61.

    Cost is linear in rows times steps.
    """
    rows = np.empty(len(counts) - first, dtype=np.int64)
    _fill_rows(as_input(weights, np.int64), as_input(counts, np.int64), first, rows)
    return rows


@serial
def _fill_rows(weights, counts, first, rows):
    mask = (np.int64(1) << _HALF_BITS) - 1
    for t in range(first, len(counts)):
        high, low = np.int64(0), np.int64(0)
        for j in range(t + 1):
            count = counts[t - j]
            high += weights[j] * (count >> _HALF_BITS)
            low += weights[j] * (count & mask)
        rows[t - first] = _joined(high, low)


@serial
def _joined(high, low):
    """high 2**20 + low, cut off at 2**61; low is below 2**57."""
    if high >= np.int64(1) << (61 - _HALF_BITS):
        return np.int64(_LIMIT)
    return min((high << _HALF_BITS) + low, np.int64(_LIMIT))


def block_sums(counts: IntArray, width: int) -> IntArray:
    """Sums of consecutive blocks of ``width`` counts, cut off at 2**61; a block that is not
    complete is left out.

    From (n_steps,) to (n_steps // width,).
    """
    blocks = counts[: len(counts) // width * width].reshape(-1, width)
    high = (blocks >> _HALF_BITS).sum(axis=1)
    low = (blocks & ((1 << _HALF_BITS) - 1)).sum(axis=1)
    return np.minimum((np.minimum(high, _LIMIT >> _HALF_BITS) << _HALF_BITS) + low, _LIMIT)
