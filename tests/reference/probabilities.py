"""Slow, obvious twins of the exact probabilities: decimals with many digits, and sums term by term."""

from decimal import Decimal, localcontext
from fractions import Fraction

DIGITS = 120


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def laplace_probabilities(scale: Fraction, largest: int) -> list[Decimal]:
    """P(X = x) for x = 0 … largest."""
    with localcontext(prec=DIGITS):
        p = (-1 / decimal(scale)).exp()
        return [(1 - p) / (1 + p) * p**x for x in range(largest + 1)]


def gaussian_probabilities(sigma2: Fraction, largest: int) -> list[Decimal]:
    """P(X = x) for x = 0 … largest; ``largest`` must reach far into the tail."""
    with localcontext(prec=DIGITS):
        weights = [(-Decimal(x * x) / (2 * decimal(sigma2))).exp() for x in range(largest + 1)]
        total = weights[0] + 2 * sum(weights[1:])
        return [weight / total for weight in weights]


def survival_floors(probabilities: list[Decimal], digits: int) -> list[int]:
    """floor(2**digits P(|X| >= k)) from P(X = x), x = 0, 1, …, for k = 0 … len - 1."""
    with localcontext(prec=DIGITS):
        floors = []
        below = Decimal(0)
        for x, probability in enumerate(probabilities):
            floors.append(int((1 - below) * 2**digits))
            below += probability if x == 0 else 2 * probability
        return floors
