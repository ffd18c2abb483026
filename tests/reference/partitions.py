"""Partitions of bins by trying them all."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
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
