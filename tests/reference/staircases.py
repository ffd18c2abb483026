"""Slow, obvious twins of the staircase kernels."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tallytree.tuning.curves import NEARBY, UNLIKE


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
    """Log-likelihood of block sums, mean and variance of each block's height, over all ways to
    place drops, one by one.
    """
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
    return (
        total,
        middle,
        (weight * (np.array(variances) + (np.array(means) - middle) ** 2)).sum(axis=0),
    )


def summed_children(groups, height, variance, fitted):  # type: ignore[no-untyped-def]
    """The best linear estimate of a sum that is right on average whatever the common shape is, and
    its variance.

    Lagrange: minimise the variance of Σ a_c y_c − Σ (s G_c + deviation_c) over all a with Σ a_c G_c
    = Σ G_c.
    """
    share = min(max(fitted.sum() / max(groups.sum(), 1), 0), 1)
    mixed = share * (1 - share)
    unlike = groups * mixed + (UNLIKE * groups * mixed) ** 2 + 1e-9
    n = len(groups)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = 2 * np.diag(unlike + variance)
    system[:n, n] = system[n, :n] = groups
    weights = np.linalg.lstsq(system, np.append(2 * unlike, groups.sum()), rcond=None)[0][:n]
    return weights @ height, ((1 - weights) ** 2 * unlike + weights**2 * variance).sum()


def bias_of_sums(groups, fitted, seen, variance, bias_variance):  # type: ignore[no-untyped-def]
    """Mean and variance of the bias per size, and the log-likelihood, by conditioning one large
    Gaussian vector.
    """
    size = np.arange(1.0, len(fitted) + 1)
    share = fitted / groups
    scale = groups * share * (1 - share)
    near = np.minimum.outer(size + 1, size + 1) / np.maximum.outer(size + 1, size + 1)
    covariance = bias_variance * near ** (1 / math.log(NEARBY)) * np.outer(scale, scale)
    known = np.isfinite(variance)
    around = covariance[np.ix_(known, known)] + np.diag(variance[known] + 1e-9)
    miss = (seen - fitted)[known]
    gain = np.linalg.solve(around, covariance[known]).T
    likelihood = -0.5 * (np.linalg.slogdet(around)[1] + miss @ np.linalg.solve(around, miss))
    return gain @ miss, np.diag(covariance - gain @ covariance[known]), likelihood
