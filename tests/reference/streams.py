"""Slow, obvious streams: whole weights from binomials, rows as double sums, counts by solving
triangular systems exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def weights(n_steps: int) -> list[int]:
    """C(2k, k)/4^k as multiples of 2^-16, rounded."""
    return [
        math.floor(Fraction(math.comb(2 * k, k) << 16, 4**k) + Fraction(1, 2))
        for k in range(n_steps)
    ]


def rows(weights: Sequence[int], counts: Sequence[int]) -> list[int]:
    return [
        min(sum(weights[t - s] * counts[s] for s in range(t + 1)), 2**61)
        for t in range(len(counts))
    ]


def decoded(weights: Sequence[int], rows: Sequence[int]) -> list[Fraction]:
    """The counts so far: arrivals by forward substitution, then their running sums."""
    arrivals: list[Fraction] = []
    for t, row in enumerate(rows):
        known = sum((weights[t - s] * arrivals[s] for s in range(t)), Fraction(0))
        arrivals.append((row - known) / weights[0])
    return [sum(arrivals[: t + 1], Fraction(0)) for t in range(len(rows))]


def digits(step: int, branching: int, n_levels: int) -> list[int]:
    """How many complete blocks of each level, the finest first, the count after ``step`` steps is
    made of.
    """
    found = []
    for _ in range(n_levels - 1):
        step, digit = divmod(step, branching)
        found.append(digit)
    return [*found, step]
