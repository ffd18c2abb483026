"""Slow, obvious ways to reach a given sum."""

import math
from fractions import Fraction

import numpy as np


def project_to_simplex(values: list[float], total: float) -> np.ndarray:
    """Sort, and keep as many of the largest as stay positive."""
    if not values:
        return np.empty(0)
    v = np.asarray(values, dtype=float)
    falling = np.sort(v)[::-1]
    thresholds = (np.cumsum(falling) - total) / np.arange(1, len(v) + 1)
    kept = np.flatnonzero(falling > thresholds)
    threshold = thresholds[kept[-1]] if len(kept) else falling[0]
    return np.maximum(v - threshold, 0)


def project_exactly(values: list[int], total: int) -> list[Fraction]:
    """The same in fractions."""
    falling = sorted(values, reverse=True)
    threshold = Fraction(max(values))
    for kept in range(1, len(values) + 1):
        candidate = Fraction(sum(falling[:kept]) - total, kept)
        if falling[kept - 1] > candidate:
            threshold = candidate
    return [max(v - threshold, Fraction(0)) for v in values]


def round_to_total(values: list[Fraction], total: int) -> list[int]:
    """Everything down, then the largest fractions up, the first of ties first."""
    floors = [math.floor(v) for v in values]
    order = sorted(range(len(values)), key=lambda i: (floors[i] - values[i], i))
    for i in order[: total - sum(floors)]:
        floors[i] += 1
    return floors
