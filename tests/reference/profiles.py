"""Slow, obvious (ε, δ) of Gaussian noise: integrals in 60 digits, sums over all outcomes, and the
best adversary in rounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from mpmath import erfc, exp, mp, mpf, sqrt

mp.dps = 60


def number(value: Fraction) -> mpf:
    return mpf(value.numerator) / value.denominator


def gaussian_delta(mu_squared: Fraction, epsilon: Fraction) -> mpf:
    """Balle and Wang 2018, Thm. 8, with so many digits that nothing is lost."""
    with mp.workdps(1500):
        mu, loss = sqrt(number(mu_squared)), number(epsilon)

        def tail(x: mpf) -> mpf:
            return erfc(x / sqrt(mpf(2))) / 2

        return tail(loss / mu - mu / 2) - exp(loss) * tail(loss / mu + mu / 2)


def probabilities(sigma2: Fraction) -> dict[int, mpf]:
    """The discrete Gaussian up to 16 standard deviations; less than 10**-50 lies beyond."""
    radius = 2 + int(16 * float(sigma2) ** 0.5)
    weights = {x: exp(-number(Fraction(x * x) / (2 * sigma2))) for x in range(-radius, radius + 1)}
    total = sum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


def discrete_delta(shifts: Sequence[tuple[int, Fraction]], epsilon: Fraction) -> mpf:
    """Σ max(0, P(x) - e**ε Q(x)) over all outcomes, one coordinate per (shift, σ²)."""
    total = mpf(0)
    laws = [list(probabilities(sigma2).items()) for _, sigma2 in shifts]
    for outcome in itertools.product(*laws):
        loss, weight = -epsilon, mpf(1)
        for (x, probability), (shift, sigma2) in zip(outcome, shifts, strict=True):
            loss += Fraction(2 * x * shift + shift * shift) / (2 * sigma2)
            weight *= probability
        if loss > 0:
            total += weight * (1 - exp(-number(loss)))
    return total


def adversary_delta(
    rho: Fraction, scales: Sequence[Fraction], epsilon: Fraction, *, rounds: int
) -> mpf:
    """The largest δ over all ways to choose each round's shift and σ² from the answers before, Σ
    s²/(2σ²) <= ρ.
    """
    laws = {sigma2: list(probabilities(sigma2).items()) for sigma2 in scales}
    known: dict[tuple[Fraction, Fraction, int], mpf] = {}

    def best(loss: Fraction, left: Fraction, rounds_left: int) -> mpf:
        """E max(0, 1 - exp(ε - loss)) when the rest is played best."""
        place = loss, left, rounds_left
        if place not in known:
            found = 1 - exp(number(epsilon - loss)) if loss > epsilon else mpf(0)
            for sigma2, law in laws.items() if rounds_left else ():
                for shift in range(1, math.isqrt(math.floor(2 * sigma2 * left)) + 1):
                    cost = shift * shift / (2 * sigma2)
                    value = sum(
                        probability
                        * best(loss + cost + x * shift / sigma2, left - cost, rounds_left - 1)
                        for x, probability in law
                    )
                    found = max(found, value)
            known[place] = found
        return known[place]

    return best(Fraction(0), rho, rounds)
