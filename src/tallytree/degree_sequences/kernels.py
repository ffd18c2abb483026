"""Sequences that are the degrees of some simple graph: the test, and the nearest such sequence."""

from __future__ import annotations

import numpy as np

from tallytree.errors import InputError
from tallytree.kernels.jit import serial
from tallytree.model.arrays import IntArray


@serial
def _satisfies_erdos_gallai(falling):
    """Σ_{i ≤ k} d_i ≤ k(k − 1) + Σ_{i > k} min(d_i, k) for every k, degrees falling; the sum is
    known to be even.
    """
    n = len(falling)
    before = np.zeros(n + 1, dtype=np.int64)
    for i in range(n):
        before[i + 1] = before[i] + falling[i]
    above = n  # nodes with a degree above k, which falls as k grows
    for k in range(1, n + 1):
        while above > 0 and falling[above - 1] <= k:
            above -= 1
        cut = max(above, k)
        if before[k] > k * (k - 1) + k * (cut - k) + before[n] - before[cut]:
            return False
    return True


@serial
def _connect(falling, wanted):
    """Connect nodes greedily and lower ``falling``, in place, to the degrees that were reached.

    ``wanted`` starts as a copy and holds the ends still missing, always in falling order from the
    node at work on. The node that misses most is connected to those that miss most after it. Among
    equals the last ones are taken, which keeps the order.
    """
    n = len(falling)
    positive = n  # nodes that still miss an end are node … positive − 1
    for node in range(n):
        while positive > node and wanted[positive - 1] <= 0:
            positive -= 1
        if positive <= node:
            return
        n_ends = min(wanted[node], positive - node - 1)
        falling[node] -= wanted[node] - n_ends
        if n_ends == 0:
            continue
        last = node + n_ends
        level = wanted[last]
        first_equal = last
        while first_equal > node + 1 and wanted[first_equal - 1] == level:
            first_equal -= 1
        end_equal = last + 1
        while end_equal < positive and wanted[end_equal] == level:
            end_equal += 1
        for other in range(node + 1, first_equal):
            wanted[other] -= 1
        for other in range(end_equal - (last + 1 - first_equal), end_equal):
            wanted[other] -= 1


def is_graphical(degrees: IntArray) -> bool:
    """Whether some simple undirected graph has these degrees: an even sum, and Erdős and Gallai's
    inequalities. O(n log n).

    ``degrees`` is (n_nodes,).
    """
    values = np.asarray(degrees, dtype=np.int64)
    if len(values) == 0:
        return True
    if values.min() < 0 or values.max() >= len(values) or int(values.sum()) % 2:
        return False
    return bool(_satisfies_erdos_gallai(np.sort(values)[::-1].copy()))


def nearest_graphical(degrees: IntArray) -> IntArray:
    """A graphical sequence at the least L1 distance from whole numbers, in rising order.

    Nodes are connected greedily, the one that misses most ends to those that miss most after it,
    and every end for which there is no partner is dropped (Karwa and Slavković 2012, Algorithm 2,
    which proves the distance minimal; the tests confirm it against all graphical sequences of up to
    6 nodes). Other sequences may be equally near, and the nearest in squares may be another one.
    Degrees are never raised above the given ones, except negative ones, which become 0. O(n log n +
    edges), plus ties.

    ``degrees`` and the result are (n_nodes,).
    """
    values = np.asarray(degrees)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise InputError("Degrees are whole numbers, one per node.")
    falling = np.clip(np.sort(values.astype(np.int64))[::-1], 0, max(len(values) - 1, 0))
    _connect(falling, falling.copy())
    return np.sort(falling)
