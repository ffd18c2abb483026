"""Merging neighbouring bins: best partitions under a price per part, in quadratic time whatever the
number of parts.

The dynamic program of the papers fills one row per number of parts, O(k N²). With a fixed price λ
per part one row is enough: F(j) = min over i < j of F(i) + cost(i, j) + λ. The optimum for λ is the
optimum for its own number of parts, and λ is what the noise says a part costs, so no other number
needs to be tried.
"""

from __future__ import annotations

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.jit import as_input, serial
from tallytree.model.arrays import FloatArray, IntArray

# Quadratic time: a few seconds.
MOST_BINS = 1 << 15


@serial
def _cheapest_squares(values, price, cheapest, start):
    n_bins = len(values)
    total, squares = np.zeros(n_bins + 1), np.zeros(n_bins + 1)
    for i in range(n_bins):
        total[i + 1] = total[i] + values[i]
        squares[i + 1] = squares[i] + values[i] * values[i]
    cheapest[0] = 0.0
    for j in range(1, n_bins + 1):
        best, where = np.inf, 0
        for i in range(j):
            part = total[j] - total[i]
            # Parts are compared without the common term squares[j].
            cost = cheapest[i] - squares[i] - part * part / (j - i)
            if cost < best:
                best, where = cost, i
        cheapest[j] = best + squares[j] + price
        start[j] = where


def merge_by_squares(values: FloatArray, price: float) -> IntArray:
    """The partition with the least sum of squared deviations from the mean of each part, plus a
    price per part.

    Returns
    -------
    IntArray
        First bin of every part, then the number of bins. O(N²).
    """
    given = as_input(values, np.float64)
    _check_bins(len(given))
    centred = as_input(given - given.mean(), np.float64)
    cheapest, start = np.empty(len(given) + 1), np.zeros(len(given) + 1, dtype=np.int64)
    _cheapest_squares(centred, float(price), cheapest, start)
    edges = [len(given)]
    while edges[-1] > 0:
        edges.append(int(start[edges[-1]]))
    return np.array(edges[::-1])


@serial
def _deviations(values, rank, after, before, out):
    """out[j] = Σ |value − median| over the first j bins, from the last j down to 1.

    ``after`` and ``before`` link all bins in order of value and are used up. The middle bin m moves
    by at most one place per bin taken out; ``low`` and ``high`` are the sums before and after it.
    """
    n = len(values)
    m = 0
    while before[m] >= 0:
        m = before[m]
    low, high, n_low = 0, 0, 0
    other = m
    while after[other] >= 0:
        other = after[other]
        high += values[other]
    while n_low < (n - 1) // 2:
        low += values[m]
        m = after[m]
        high -= values[m]
        n_low += 1
    for j in range(n, 0, -1):
        n_high = n - 1 - n_low
        out[j] = high - n_high * values[m] + n_low * values[m] - low
        gone = j - 1
        if n == 1:
            break
        if gone == m:
            if after[m] >= 0:
                m = after[m]
                high -= values[m]
            else:
                m = before[m]
                low -= values[m]
                n_low -= 1
        elif rank[gone] < rank[m]:
            low -= values[gone]
            n_low -= 1
        else:
            high -= values[gone]
        if before[gone] >= 0:
            after[before[gone]] = after[gone]
        if after[gone] >= 0:
            before[after[gone]] = before[gone]
        n -= 1
        wanted = (n - 1) // 2
        while n_low < wanted:
            low += values[m]
            m = after[m]
            high -= values[m]
            n_low += 1
        while n_low > wanted:
            high += values[m]
            m = before[m]
            low -= values[m]
            n_low -= 1


@serial
def _link(order, after, before):
    """Link bins in the given order."""
    previous = -1
    for bin_ in order:
        before[bin_] = previous
        if previous >= 0:
            after[previous] = bin_
        previous = bin_
    after[previous] = -1


def deviations_from(counts: IntArray) -> IntArray:
    """Σ |count − median| over the first q bins, for q = 1, 2, …: whole numbers, in O(N log N).

    All bins are linked in order of their counts and taken out from the end, during which the median
    moves by one place at most per bin.
    """
    values, order, rank = _ordered(counts)
    n_bins = len(values)
    after, before = np.empty(n_bins, dtype=np.int64), np.empty(n_bins, dtype=np.int64)
    cost = np.zeros(n_bins + 1, dtype=np.int64)
    _link(order, after, before)
    _deviations(values, rank, after, before, cost)
    return cost[1:]


def cut_deviations(counts: IntArray) -> IntArray:
    """Absolute deviations from the medians left and right of every cut inside a stretch of bins,
    added up.

    From (n_bins,) to (n_bins - 1,).
    """
    return deviations_from(counts)[:-1] + deviations_from(counts[::-1])[-2::-1]


def _ordered(counts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    values = as_input(counts, np.int64)
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    return values, as_input(order, np.int64), as_input(rank, np.int64)


@serial
def _cheapest_cut(prices, starts, best, chosen):
    n_nodes = len(prices)
    for v in range(n_nodes - 1, -1, -1):
        below = 0
        for c in range(starts[v], starts[v + 1]):
            below += best[c]
        # best[v] is the price of the cheapest tiling of v; where both are alike, v itself.
        whole = starts[v] == starts[v + 1] or prices[v] <= below
        best[v] = prices[v] if whole else below
        chosen[v] = whole
    for v in range(n_nodes):
        for c in range(starts[v], starts[v + 1]):
            # Nothing below a chosen node is chosen: 2 stands for "lies below".
            if chosen[v] > 0:
                chosen[c] = 2
    for v in range(n_nodes):
        chosen[v] = chosen[v] == 1


def cheapest_cut(prices: IntArray, child_starts: IntArray) -> IntArray:
    """1 for the nodes of a tree that tile its root at the least sum of prices, else 0. Linear in
    nodes, whole numbers.

    ``prices`` and the result are (n_nodes,), ``child_starts`` is (n_nodes + 1,).
    """
    given = as_input(prices, np.int64)
    best, chosen = np.empty(len(given), dtype=np.int64), np.zeros(len(given), dtype=np.int64)
    _cheapest_cut(given, as_input(child_starts, np.int64), best, chosen)
    return chosen


@serial
def _box_deviations(values, starts, out):
    for box in range(len(starts) - 1):
        part = np.sort(values[starts[box] : starts[box + 1]])
        n = len(part)
        total = 0
        for i in range(n // 2):
            total += part[n - 1 - i] - part[i]
        out[box] = total


def box_deviations(values: IntArray, starts: IntArray) -> IntArray:
    """Σ |value − median| of every stretch ``values[starts[i]:starts[i + 1]]``: whole numbers."""
    out = np.empty(len(starts) - 1, dtype=np.int64)
    _box_deviations(as_input(values, np.int64), as_input(starts, np.int64), out)
    return out


def _check_bins(n_bins: int) -> None:
    if not 1 <= n_bins <= MOST_BINS:
        raise RequestError(
            f"Bins are merged where there are 1 to {MOST_BINS:,} of them, got {n_bins:,}."
        )
