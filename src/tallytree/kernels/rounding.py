"""Largest-remainder rounding: whole numbers that keep a region's total, many regions at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tallytree.errors import InputError
from tallytree.kernels.jit import as_input, run_in_chunks, serial
from tallytree.model.arrays import IntArray

# A value this close below a whole number counts as that number: sums of floats are not exact.
SNAP = 1e-9


def round_to_totals(values: npt.ArrayLike, offsets: IntArray, totals: npt.ArrayLike) -> IntArray:
    """Round nonnegative values so that each region has its whole total: the largest fractions go up
    (kuo2018 §4.1).

    Equal fractions go up in the order of the values. Where the total lies between the sum of all
    values rounded down and the sum of all rounded up, every value is rounded down or up; farther
    away, the difference is dealt out one by one, and never below 0. An empty region must have total
    0.

    Examples
    --------
    >>> round_to_totals([0.5, 1.7, 0.8], np.array([0, 3]), [3]).tolist()
    [0, 2, 1]
    """
    numbers = as_input(values, np.float64)
    places = as_input(offsets, np.int64)
    sums = as_input(totals, np.int64)
    if (
        len(places) != len(sums) + 1
        or places[0] != 0
        or places[-1] != len(numbers)
        or (np.diff(places) < 0).any()
    ):
        raise InputError(
            "Rounding needs one total per region and offsets from 0 to the number of values."
        )
    if not (numbers >= 0).all() or (sums < 0).any() or (sums[np.diff(places) == 0] != 0).any():
        raise InputError(
            "Rounding needs values and totals of at least 0, and total 0 where a region has no "
            "values."
        )
    rounded = np.empty(len(numbers), dtype=np.int64)
    run_in_chunks(
        lambda start, stop: _round(numbers, places, sums, rounded, start, stop), len(sums)
    )
    return rounded


@serial
def _round(values, places, totals, rounded, start, stop):
    for region in range(start, stop):
        first, last = places[region], places[region + 1]
        n = last - first
        if n == 0:
            continue
        missing = totals[region]
        fraction = np.empty(n, dtype=np.float64)
        for i in range(n):
            whole = np.floor(values[first + i] + SNAP)
            rounded[first + i] = np.int64(whole)
            fraction[i] = max(values[first + i] - whole, 0.0)
            missing -= rounded[first + i]
        if missing > 0:
            rounded[first:last] += missing // n
            missing %= n
            raise_largest(fraction, missing, rounded[first:last])
        elif missing < 0:
            _lower_smallest(fraction, -missing, rounded[first:last])


@serial
def raise_largest(key, n_raised, whole):
    """Add 1 to the ``n_raised`` (at most len(key)) entries of ``whole`` with the largest keys, in
    place; the first of ties.
    """
    n = len(key)
    if n_raised <= 0:
        return
    if n_raised >= n:
        whole += 1
        return
    bar = _kth_smallest(key.copy(), n - n_raised)
    at_bar = n_raised
    for i in range(n):
        if key[i] > bar:
            whole[i] += 1
            at_bar -= 1
    for i in range(n):
        if key[i] == bar and at_bar > 0:
            whole[i] += 1
            at_bar -= 1


@serial
def _kth_smallest(key, k):
    """Entry ``k`` of the sorted keys, by Hoare's quickselect, in place; np.partition takes Numba 6
    seconds to compile.
    """
    low, high = 0, len(key) - 1
    while low < high:
        # Entries before i are at most the pivot, entries after j at least; whatever lies between
        # equals it.
        pivot = key[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while key[i] < pivot:
                i += 1
            while key[j] > pivot:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return key[k]


@serial
def _lower_smallest(key, n_lowered, whole):
    """Take ``n_lowered`` away from positive entries of ``whole``, smallest keys first, round after
    round, in place.
    """
    while n_lowered > 0:
        turned = np.where(whole > 0, -key, -np.inf)
        n_now = min(n_lowered, (whole > 0).sum())
        lowered = np.zeros_like(whole)
        raise_largest(turned, n_now, lowered)
        whole -= lowered
        n_lowered -= n_now
