"""The order of numbers from large to small, as a kernel of its own: np.argsort takes Numba four
times as long to compile.
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.jit import serial

# Stretches up to this long are sorted by insertion.
_SHORT = 15
# The longer part waits, so that the parts waiting at once at least double in length: never more
# than 63.
_MOST_WAITING = 64


@serial
def _part(keys, order, low, high):
    """Hoare's partition around the median of three keys; returns the place of the median, larger
    keys before it.
    """
    middle = (low + high) >> 1
    for left, right in ((low, middle), (middle, high), (low, middle)):
        if keys[order[right]] > keys[order[left]]:
            order[left], order[right] = order[right], order[left]
    pivot = keys[order[middle]]
    order[middle], order[high] = order[high], order[middle]
    i, j = low, high - 1
    while True:
        while i < high and keys[order[i]] > pivot:
            i += 1
        while j >= low and keys[order[j]] < pivot:
            j -= 1
        if i >= j:
            break
        order[i], order[j] = order[j], order[i]
        i += 1
        j -= 1
    order[i], order[high] = order[high], order[i]
    return i


@serial
def order_falling(keys, order):
    """Write to ``order`` the places of the keys from the largest to the smallest, in place."""
    for i in range(len(keys)):
        order[i] = i
    waiting = np.empty((_MOST_WAITING, 2), dtype=np.int64)
    waiting[0, 0], waiting[0, 1] = 0, len(keys) - 1
    n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        low, high = waiting[n_waiting, 0], waiting[n_waiting, 1]
        while high - low >= _SHORT:
            place = _part(keys, order, low, high)
            if high - place > place - low:
                waiting[n_waiting, 0], waiting[n_waiting, 1] = place + 1, high
                high = place - 1
            else:
                waiting[n_waiting, 0], waiting[n_waiting, 1] = low, place - 1
                low = place + 1
            n_waiting += 1
        for i in range(low + 1, high + 1):
            moved = order[i]
            j = i
            while j > low and keys[order[j - 1]] < keys[moved]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = moved
