"""Partitions of bins by trying them all."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise, product
from math import floor

import numpy as np


def all_partitions(n_bins: int):
    for n_cuts in range(n_bins):
        for cuts in combinations(range(1, n_bins), n_cuts):
            yield (0, *cuts, n_bins)


def squares_cost(values, edges, price) -> float:
    parts = [np.asarray(values[a:b], dtype=float) for a, b in pairwise(edges)]
    return sum(((part - part.mean()) ** 2).sum() + price for part in parts)


def rounded_squares(counts, edges) -> int:
    parts = [[Fraction(int(count)) for count in counts[a:b]] for a, b in pairwise(edges)]
    return sum(floor(sum((one - sum(part) / len(part)) ** 2 for one in part)) for part in parts)


def absolute_deviations(counts) -> int:
    return min(int(np.abs(np.asarray(counts) - m).sum()) for m in counts)


def all_tilings(starts, node=0):
    """All sets of nodes that tile a node of a tree."""
    yield (node,)
    children = range(starts[node], starts[node + 1])
    if children:
        for parts in product(*(list(all_tilings(starts, child)) for child in children)):
            yield tuple(sorted(sum(parts, ())))


def tiling_probabilities(costs, price, scale, *, noisy_leaves=True, reach=40):
    """P(tiling) for the cheapest of the tree of seven nodes over four cells, as the privacy room
    chooses it.

    Every node costs its cost plus discrete Laplace noise plus the price; where a node and its
    inside cost the same, it is the node. Sums over all noise up to ``reach`` scales.
    """
    width = int(reach * scale)
    z = np.arange(-width, width + 1)
    law = np.exp(-np.abs(z) / scale)
    law = law / law.sum()
    sure = (z == 0).astype(float)

    def pair(a, b):
        return np.convolve(a, b)  # values −2 width … 2 width

    def placed(values, law, shift, size):
        out = np.zeros(2 * size + 1)
        out[values + shift + size] = law
        return out

    size = 6 * width + 8 * (price + int(np.max(costs)) + 1)
    at_most = np.cumsum
    halves = []
    for half, leaves in ((1, (3, 4)), (2, (5, 6))):
        one = law if noisy_leaves else sure
        z2 = np.arange(-2 * width, 2 * width + 1)
        inside = placed(
            z2, pair(one, one), 2 * price + int(costs[leaves[0]]) + int(costs[leaves[1]]), size
        )
        own = placed(z, law, price + int(costs[half]), size)
        inside_at_least = at_most(inside[::-1])[::-1]
        own_above = np.append(at_most(own[::-1])[::-1][1:], 0.0)
        halves.append({(half,): own * inside_at_least, leaves: inside * own_above})
    own = placed(z, law, price + int(costs[0]), 2 * size)
    own_above = np.append(at_most(own[::-1])[::-1][1:], 0.0)
    found = {(0,): 0.0}
    for first, second in product(*halves):
        total = np.convolve(halves[0][first], halves[1][second])
        found[tuple(sorted((*first, *second)))] = float((total * own_above).sum())
    found[0,] = 1 - sum(found.values())
    return found
