"""Whole numbers on a tree that still add up: every node is rounded down or up, never further away."""

from __future__ import annotations

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.jit import serial
from tallytree.kernels.trees.least_squares import check_tree
from tallytree.kernels.trees.nonnegative import rank_ascending
from tallytree.model.arrays import FloatArray, IntArray

# sums of estimates are off by rounding errors; closer than this to a whole number counts as whole
NEARLY_WHOLE = 1e-6


@serial
def _round_downwards(child_starts, values, most_children, whole):
    """Children of a node get their floors, and what is missing to the node goes one each to the
    largest fractions.

    With values that add up, Σ ⌊child⌋ ≤ ⌊node⌋ and ⌈node⌉ ≤ Σ ⌈child⌉, so at most one each is
    needed; rounding errors in the sums are covered by going round again.
    """
    fractions = np.empty(most_children)
    order = np.empty(most_children, dtype=np.int64)
    whole[0] = round(values[0])
    for node in range(len(values)):
        first, last = child_starts[node], child_starts[node + 1]
        if first == last:
            continue
        missing = whole[node]
        for child in range(first, last):
            floor = np.floor(values[child] + NEARLY_WHOLE)
            whole[child] = np.int64(floor)
            missing -= whole[child]
            fractions[child - first] = floor - values[child]  # most negative first when sorted
        if missing == 0:
            continue
        n_children = last - first
        rank_ascending(fractions, n_children, order)
        place = 0
        while missing > 0:
            whole[first + order[place % n_children]] += 1
            missing -= 1
            place += 1
        place, tries = n_children - 1, 0
        while missing < 0:
            child = first + order[place]
            # Zeros are spared, unless values that do not add up leave nothing else to take from.
            if whole[child] > 0 or values[child] < 0 or tries > n_children:
                whole[child] -= 1
                missing += 1
                tries = 0
            tries += 1
            place = place - 1 if place > 0 else n_children - 1


def round_tree(values: FloatArray, child_starts: IntArray) -> IntArray:
    """Round values that add up on a tree to whole numbers that add up, each within 1 of its value.

    The root is rounded to the nearest whole number; below a node the largest fractions are rounded
    up. What was at least 0 stays so. O(nodes · log children).

    Examples
    --------
    >>> round_tree(np.array([3.0, 1.4, 1.6]), np.array([1, 3, 3, 3]))
    array([3, 1, 2])
    """
    starts = np.ascontiguousarray(child_starts, dtype=np.int64)
    real = np.ascontiguousarray(values, dtype=np.float64)
    check_tree(starts, len(real))
    if not np.all(np.abs(real) < 2.0**53):
        raise RequestError(
            "Only finite values below 2^53 can be rounded to whole numbers that add up."
        )
    whole = np.empty(len(real), dtype=np.int64)
    _round_downwards(starts, real, int(np.diff(starts).max(initial=1)), whole)
    return whole
