"""How well can two inputs be told apart from many runs? A lower bound on the privacy loss, with
confidence.

Half of the runs are used to find the event that tells the inputs apart best, the other half to
estimate its probability under both. The bound holds with the stated confidence whatever the event
is, so a mechanism that keeps its promise exceeds it by bad luck alone, about once in a million
tests; one that adds too little noise is found if the event is any good.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

# Chance of a false alarm per bound; each test takes four.
ALPHA = 1e-7
ORDERS = np.concatenate([np.linspace(1.05, 3, 40), np.linspace(3.5, 60, 60)])


@dataclass(frozen=True)
class Loss:
    """Lower bounds on what a mechanism loses between two inputs."""

    epsilon: float
    rho: float


def loss_at_least(one: Any, other: Any) -> Loss:
    """The loss that two tables of runs show, one row per run, one whole number per column."""
    both = [_one_way(one, other), _one_way(other, one)]
    return Loss(max(loss.epsilon for loss in both), max(loss.rho for loss in both))


def _one_way(one: Any, other: Any) -> Loss:
    one, other = one.reshape(len(one), -1), other.reshape(len(other), -1)
    half, other_half = len(one) // 2, len(other) // 2
    score = _evidence(one[:half], other[:other_half])
    learned = score(one[:half]), score(other[:other_half])
    fresh = score(one[half:]), score(other[other_half:])
    thresholds = np.unique(np.quantile(np.concatenate(learned), np.linspace(0, 1, 400)[:-1]))
    # At a threshold the test guesses "one" when the evidence reaches it.
    epsilon_at = max(thresholds, key=lambda at: _log_ratio(*_bounds(*learned, at)))
    rho_at = max(thresholds, key=lambda at: _renyi(*_bounds(*learned, at)))
    return Loss(_log_ratio(*_bounds(*fresh, epsilon_at)), _renyi(*_bounds(*fresh, rho_at)))


def _evidence(one: Any, other: Any) -> Any:
    """Sum over the columns that differ of the logarithm of the ratio of frequencies, as learned
    from some runs.
    """
    tables = []
    for column in range(one.shape[1]):
        a, b = one[:, column], other[:, column]
        spread = np.sqrt(a.var() / len(a) + b.var() / len(b)) + 1e-12
        if abs(a.mean() - b.mean()) < 5 * spread:
            continue
        low, high = (int(np.quantile(np.concatenate([a, b]), q)) for q in (0.002, 0.998))
        counts = [
            np.bincount(np.clip(x, low, high) - low, minlength=high - low + 1) + 1.0 for x in (a, b)
        ]
        tables.append(
            (
                column,
                low,
                high,
                np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum()),
            )
        )

    def score(runs: Any) -> Any:
        total = np.zeros(len(runs))
        for column, low, high, ratio in tables:
            total += ratio[np.clip(runs[:, column], low, high) - low]
        return total

    return score


def _bounds(one: Any, other: Any, threshold: float) -> tuple[float, float]:
    """A lower bound on the event's probability under one input and an upper bound under the other
    (Clopper, Pearson).
    """
    hits, misses = int((one >= threshold).sum()), int((one < threshold).sum())
    low = float(stats.beta.ppf(ALPHA, hits, misses + 1)) if hits else 0.0
    hits, misses = int((other >= threshold).sum()), int((other < threshold).sum())
    high = float(stats.beta.ppf(1 - ALPHA, hits + 1, misses)) if misses else 1.0
    return low, high


def _log_ratio(low: float, high: float) -> float:
    return float(np.log(low / high)) if low > 0 else -np.inf


def _renyi(low: float, high: float) -> float:
    """The smallest ρ for which an event of these probabilities is allowed: Rényi divergence of
    order α is at most α ρ.
    """
    if low <= high:
        return 0.0
    first = ORDERS * np.log(low) + (1 - ORDERS) * np.log(high)
    second = ORDERS * np.log1p(-low) + (1 - ORDERS) * np.log1p(-high)
    return float((np.logaddexp(first, second) / (ORDERS - 1) / ORDERS).max())
