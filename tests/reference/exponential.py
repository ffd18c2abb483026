"""Probabilities of the exponential mechanism, to fifty digits."""

import mpmath


def choice_probabilities(scores: list[int], rate) -> list[float]:
    with mpmath.workdps(50):
        weights = [mpmath.exp(mpmath.mpf(rate.numerator) * s / rate.denominator) for s in scores]
        total = mpmath.fsum(weights)
        return [float(weight / total) for weight in weights]


def choice_of(u, scores: list[int], rate) -> int:
    """The candidate whose part of [0, 1) holds the fraction u."""
    with mpmath.workdps(400):
        weights = [mpmath.exp(mpmath.mpf(rate.numerator) * s / rate.denominator) for s in scores]
        target = mpmath.mpf(u.numerator) / u.denominator * mpmath.fsum(weights)
        below = mpmath.mpf(0)
        for candidate, weight in enumerate(weights):
            below += weight
            if target < below:
                return candidate
    return len(scores) - 1
