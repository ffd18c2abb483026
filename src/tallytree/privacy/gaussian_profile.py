"""The exact (ε, δ) of Gaussian noise on real numbers, never on the optimistic side.

A query of L2 sensitivity Δ with Gaussian noise of variance σ² is (ε, δ)-differentially private
exactly where

    δ >= Q(a) - e**ε Q(b),   a = ε/μ - μ/2,   b = ε/μ + μ/2,   μ = Δ/σ,

Q the upper tail of the standard normal distribution (Balle and Wang 2018, "Improving the Gaussian
Mechanism for Differential Privacy", Thm. 8). :mod:`tallytree.privacy.discrete_profile` carries this
over to noise on whole numbers.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from tallytree.errors import RequestError
from tallytree.privacy.conversion import decimal_of, rounded

# Tails this far out lie below 10**-300; nobody needs their digits.
_FARTHEST = 38
_SMALLEST = Fraction(1, 10**300)
# Of 110 digits a few are lost to the rounding of some hundred operations, and a few to the
# difference of two tails.
_DIGITS = 110
_MARGIN = Decimal("1e-60")
_PI = Decimal(
    "3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679821480865132823"
)
# From here on the continued fraction is the quicker way to a tail.
_NEAR = 3


def gaussian_delta(mu_squared: Fraction, epsilon: Fraction) -> Fraction:
    """The smallest δ, rounded up to 12 digits, of Gaussian noise with (Δ/σ)² = ``mu_squared``.

    Examples
    --------
    >>> float(gaussian_delta(Fraction(1), Fraction(1)))
    0.126936737507
    """
    if mu_squared <= 0 or epsilon < 0:
        raise RequestError(
            f"mu² must be above 0 and epsilon at least 0, got {mu_squared} and {epsilon}."
        )
    with localcontext(prec=_DIGITS):
        mu = decimal_of(mu_squared).sqrt()
        near, far = decimal_of(epsilon) / mu - mu / 2, decimal_of(epsilon) / mu + mu / 2
        if near > _FARTHEST:
            return _SMALLEST
        # e**ε Q(b) = φ(a) Q(b)/φ(b), as e**ε φ(b) = φ(a).
        delta = _density(near) * (_mills_ratio(near) - _mills_ratio(far) + _MARGIN)
        return min(Fraction(1), rounded(delta, ROUND_CEILING))


def _density(x: Decimal) -> Decimal:
    return (-x * x / 2).exp() / (2 * _PI).sqrt()


def _mills_ratio(x: Decimal) -> Decimal:
    """Q(x)/φ(x), off by less than 10**-70 of itself.

    Near 0 from Q(x) = 1/2 - φ(x) (x + x³/3 + x⁵/(3·5) + x⁷/(3·5·7) + …), else from the continued
    fraction 1/(x + 1/(x + 2/(x + 3/(x + …)))), whose convergents lie on either side of it in turn
    (Abramowitz and Stegun 1964, 26.2.11 and
    26.2.14); Q(-x) = 1 - Q(x).
    """
    if x <= -_NEAR:
        return 1 / _density(x) - _mills_ratio(-x)
    if x < _NEAR:
        total, term, odd = x, x, 1
        while abs(term) > Decimal("1e-100"):
            odd += 2
            term = term * x * x / odd
            total += term
        return 1 / (2 * _density(x)) - total
    depth = 64
    while True:
        one, other = _convergent(x, depth), _convergent(x, depth + 1)
        if abs(one - other) <= Decimal("1e-70") * one:
            return one
        depth *= 2


def _convergent(x: Decimal, depth: int) -> Decimal:
    below = x
    for numerator in range(depth, 0, -1):
        below = x + numerator / below
    return 1 / below


def rough_gaussian_delta(mu: float, epsilon: float) -> float:
    """The same in floating point, for looking around: up to some 10**-8 off where μ is tiny."""
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near > _FARTHEST:
        return 0.0
    rest = math.exp(-(near**2) / 2) / math.sqrt(2 * math.pi) * _rough_mills_ratio(far)
    return max(0.0, math.erfc(near / math.sqrt(2)) / 2 - rest)


def _rough_mills_ratio(x: float) -> float:
    """Q(x)/φ(x) for x > 0."""
    if x < 25:
        return math.sqrt(math.pi / 2) * math.erfc(x / math.sqrt(2)) * math.exp(x * x / 2)
    return (1 - 1 / x**2 + 3 / x**4 - 15 / x**6) / x
