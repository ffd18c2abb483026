"""Slow, obvious streams: whole weights from binomials, rows as double sums, counts by solving
triangular systems exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tallytree.model.arrays import FloatArray


def weights(n_steps: int, thousandths: int = 500, bits: int = 16) -> list[int]:
    """Coefficients of (1 - z)^(-a), C(2k, k)/4^k for a = 1/2, as multiples of 2^-bits, rounded."""
    found, coefficient = [], Fraction(1)
    for k in range(n_steps):
        if k:
            coefficient *= Fraction(1000 * (k - 1) + thousandths, 1000 * k)
        found.append(math.floor(coefficient * 2**bits + Fraction(1, 2)))
    return found


def rows(
    weights: Sequence[int],
    counts: Sequence[int],
    rows: Sequence[int] | None = None,
    columns: Sequence[int] | None = None,
) -> list[int]:
    ones = [1] * len(counts)
    r, d = rows or ones, columns or ones
    return [
        min(r[t] * sum(weights[t - s] * d[s] * counts[s] for s in range(t + 1)), 2**61)
        for t in range(len(counts))
    ]


def decoded(
    weights: Sequence[int],
    answers: Sequence[int],
    rows: Sequence[int] | None = None,
    columns: Sequence[int] | None = None,
) -> list[Fraction]:
    """The counts so far: arrivals by forward substitution, then their running sums."""
    ones = [1] * len(answers)
    r, d = rows or ones, columns or ones
    arrivals: list[Fraction] = []
    for t, answer in enumerate(answers):
        known = sum((weights[t - s] * d[s] * arrivals[s] for s in range(t)), Fraction(0))
        arrivals.append((Fraction(answer, r[t]) - known) / (weights[0] * d[t]))
    return [sum(arrivals[: t + 1], Fraction(0)) for t in range(len(answers))]


def taken(inverse: FloatArray, arrivals: FloatArray, rows: FloatArray) -> FloatArray:
    """What the count after step t takes of row j, as a lower triangular matrix."""
    n_steps = len(inverse)
    found = np.zeros((n_steps, n_steps))
    for t in range(n_steps):
        for j in range(t + 1):
            found[t, j] = rows[j] * sum(arrivals[s] * inverse[s - j] for s in range(j, t + 1))
    return found


def digits(step: int, branching: int, n_levels: int) -> list[int]:
    """How many complete blocks of each level, the finest first, the count after ``step`` steps is
    made of.
    """
    found = []
    for _ in range(n_levels - 1):
        step, digit = divmod(step, branching)
        found.append(digit)
    return [*found, step]
