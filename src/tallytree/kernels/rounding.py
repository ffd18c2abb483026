"""The step of largest-remainder rounding: the largest fractions go up, in other kernels."""

from __future__ import annotations

from tallytree.kernels.jit import serial


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
