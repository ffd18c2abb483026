"""Slow, obvious isotonic regression."""

import heapq
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog


def isotonic_l2(values: Sequence[float], weights: Sequence[float] | None = None) -> np.ndarray:
    """Min-max formula: fit[i] = max over a ≤ i of min over b ≥ i of the mean of values[a..b]."""
    v = np.asarray(values, dtype=float)
    w = np.ones(len(v)) if weights is None else np.asarray(weights, dtype=float)
    return np.array(
        [
            max(
                min(np.average(v[a : b + 1], weights=w[a : b + 1]) for b in range(i, len(v)))
                for a in range(i + 1)
            )
            for i in range(len(v))
        ]
    )


def lowest_l1(values: Sequence[int]) -> list[int]:
    """The lowest L1 fit: slope trick with a library heap of negated kinks, for inputs too long for
    a linear program.
    """
    heap: list[int] = []
    fit = []
    for v in values:
        heapq.heappush(heap, -v)
        if -heap[0] > v:
            heapq.heapreplace(heap, -v)
        fit.append(-heap[0])
    for i in range(len(fit) - 2, -1, -1):
        fit[i] = min(fit[i], fit[i + 1])
    return fit


def isotonic_l1(values: Sequence[int]) -> list[int]:
    """Halfway between the lowest L1 fit and the highest, which is the lowest of the mirrored
    values, mirrored back.
    """
    highest = [-x for x in lowest_l1([-v for v in reversed(values)])][::-1]
    return [(low + high + 1) // 2 for low, high in zip(lowest_l1(values), highest)]


def least_l1_cost(values: Sequence[float], lower: float, upper: float) -> float:
    """Least absolute deviation of a nondecreasing fit within bounds, as a linear program."""
    n = len(values)
    if n == 0:
        return 0.0
    # Unknowns: fit x and deviations d; d ≥ ±(x − v), x[i] ≤ x[i + 1].
    eye = np.eye(n)
    rising = np.hstack([eye[:-1] - eye[1:], np.zeros((n - 1, n))])
    above, below = np.hstack([eye, -eye]), np.hstack([-eye, -eye])
    v = np.asarray(values, dtype=float)
    answer = linprog(
        np.concatenate([np.zeros(n), np.ones(n)]),
        A_ub=np.vstack([rising, above, below]),
        b_ub=np.concatenate([np.zeros(n - 1), v, -v]),
        bounds=[(lower, upper)] * n + [(0, None)] * n,
    )
    return float(answer.fun)


def best_whole_l2_cost(values: Sequence[int], lower: int, upper: int) -> int:
    """Least squared distance of a nondecreasing whole-number fit within bounds, by dynamic
    programming over values.
    """
    best = [0] * (upper - lower + 1)
    for v in values:
        least = None
        for k in range(len(best)):
            least = best[k] if least is None else min(least, best[k])
            best[k] = least + (v - lower - k) ** 2
    return min(best)
