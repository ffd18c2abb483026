"""Slow, obvious twins of the staircase kernels."""

from __future__ import annotations

import itertools
import math

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


def stepped_curve(answers, widths, guesses, noise_variance, chance):  # type: ignore[no-untyped-def]
    """Log-likelihood of block sums, mean and variance of each block's height, over all ways to place drops, one by one."""
    n = len(answers)
    logs, means, variances = [], [], []
    for drops in itertools.product([False, True], repeat=n - 1):
        log = sum(math.log(chance if drop else 1 - chance) for drop in drops)
        mean, variance = np.empty(n), np.empty(n)
        starts = [0, *(i + 1 for i, drop in enumerate(drops) if drop)]
        for start, end in zip(starts, [*starts[1:], n]):
            here = slice(start, end)
            wide, guess = widths[here].astype(float), guesses[start]
            seen = guess**2 * np.outer(wide, wide) + noise_variance * np.eye(end - start)
            miss = answers[here] - guess * wide
            gain = guess**2 * np.linalg.solve(seen, wide)
            log -= 0.5 * (np.linalg.slogdet(seen)[1] + miss @ np.linalg.solve(seen, miss))
            mean[here], variance[here] = guess + gain @ miss, guess**2 - gain @ wide * guess**2
        logs.append(log)
        means.append(mean)
        variances.append(variance)
    total = np.logaddexp.reduce(logs)
    weight = np.exp(np.array(logs) - total)[:, None]
    middle = (weight * means).sum(axis=0)
    return total, middle, (weight * (np.array(variances) + (np.array(means) - middle) ** 2)).sum(axis=0)
