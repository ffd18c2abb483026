"""Slow, obvious twins of the staircase kernels."""

from __future__ import annotations

import numpy as np


def heights(sizes: list[int], n_sizes: int) -> list[int]:
    """N(i): groups with more than i entities."""
    return [sum(size > i for size in sizes) for i in range(n_sizes)]


def cells(sizes: list[int], start: int, end: int) -> int:
    """Cells of the staircase in columns ``start`` … ``end - 1``, one by one."""
    return sum(1 for size in sizes for column in range(start, end) if column < size)


def smoothed_curve(groups, kept, noise, ends, answers, noise_variance):  # type: ignore[no-untyped-def]
    """Mean and covariance of N given block sums, by conditioning one large Gaussian vector."""
    n_sizes = len(kept)
    # N = mean + F·(independent noise of each size)
    mean, spread = np.empty(n_sizes), np.zeros((n_sizes, n_sizes))
    height, row = float(groups), np.zeros(n_sizes)
    for size in range(n_sizes):
        height *= kept[size]
        row = row * kept[size]
        row[size] = 1.0
        mean[size], spread[size] = height, row
    covariance = spread @ np.diag(noise) @ spread.T
    sums = np.zeros((len(ends), n_sizes))
    start = 0
    for block, end in enumerate(ends):
        sums[block, start:end] = 1.0
        start = end
    seen = sums @ covariance @ sums.T + noise_variance * np.eye(len(ends))
    gain = np.linalg.solve(seen, sums @ covariance).T
    miss = np.asarray(answers, dtype=float) - sums @ mean
    _, log_determinant = np.linalg.slogdet(seen)
    likelihood = -0.5 * (log_determinant + miss @ np.linalg.solve(seen, miss))
    return mean + gain @ miss, covariance - gain @ sums @ covariance, likelihood
