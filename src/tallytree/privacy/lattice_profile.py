"""The exact (ε, δ) of discrete Gaussian noise where a unit changes one answer of each measurement
by 1.

That is the case of counts per bin, of cumulative counts and of sorted sizes, for units of one
entity. A measurement with such a sensitivity is dominated by the pair N_Z(1, σ²), N_Z(0, σ²): every
difference of its answers is 0 or ±1 at one place. Measurements whose scales are fixed beforehand
compose to the product of their pairs, however the queries follow from earlier answers (Zhu, Dong
and Wang 2022, "Optimal Accounting of Differential Privacy via Characteristic Function", Thm. 10).
The privacy loss of the product is

    Σ_i (1/2 + Z_i)/σ_i²,   Z_i discrete Gaussian,

a multiple of one rational number plus a constant. So its distribution is a finite sum up to tails,
with no grid to round to (for one measurement: Canonne, Kamath and Steinke 2020, Thm. 7), and

    δ = E max(0, 1 - exp(ε - loss)).

All terms are nonnegative, so floating point keeps their relative precision; the result is raised by
far more than its rounding errors and by the tails left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import reduce

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray
from tallytree.privacy.conversion import rounded

# Mass of each tail that is left out, and added to δ. Smaller δ are none that anybody states.
_TAIL = 1e-40
# Relative. Sums of at most some 10**4 nonnegative terms per measurement, each off by some 10**-14,
# err by less than 10**-11.
_MARGIN = 1e-10
# Products of probabilities; a tenth of a second.
MOST_WORK = 1 << 27


def lattice_delta(sigma2s: Sequence[Fraction], epsilon: Fraction) -> Fraction | None:
    """The smallest δ, up to a part in 10**10 and rounded up, of measurements with these σ², each
    changed by 1 at one place.

    None where the distribution of the loss has too many values; then σ² is large or the shares of
    the budget have no small common denominator, and
    :func:`~tallytree.privacy.discrete_profile.discrete_delta` is nearly exact.

    Examples
    --------
    >>> float(lattice_delta([Fraction(10)], Fraction(1)))
    0.000115132525376
    """
    if not sigma2s or min(sigma2s) <= 0 or epsilon < 0:
        raise RequestError(
            "An exact profile needs at least one sigma2, all above 0, and epsilon of at least 0."
        )
    inverses = [1 / sigma2 for sigma2 in sigma2s]
    unit = reduce(_common_divisor, inverses)
    steps = [int(inverse / unit) for inverse in inverses]
    radii = [1 + math.ceil(math.sqrt(float(2 * sigma2) * -math.log(_TAIL))) for sigma2 in sigma2s]
    reach = sum(step * radius for step, radius in zip(steps, radii))
    if (2 * reach + 1) * sum(2 * radius + 1 for radius in radii) > MOST_WORK:
        return None
    weights = np.ones(1)
    for step, radius, inverse in zip(steps, radii, inverses):
        weights = _spread(weights, _probabilities(radius, float(inverse)), step)
    # Loss at place j of the lattice, minus ε: exact before it becomes a float, so that small
    # differences stay right.
    constant = sum(inverses, Fraction(0)) / 2 - epsilon
    first = max(-reach, math.floor(-constant / unit) + 1)
    if first > reach:
        return rounded_up(_tails(len(sigma2s)))
    excess = float(constant + first * unit) + float(unit) * np.arange(reach - first + 1)
    delta = math.fsum(weights[reach + first :] * -np.expm1(-excess))
    return min(Fraction(1), rounded_up(delta * (1 + _MARGIN) + _tails(len(sigma2s))))


def rounded_up(delta: float) -> Fraction:
    """A float as a fraction of 12 digits, rounded up."""
    with localcontext(prec=60):
        return rounded(Decimal(delta), ROUND_CEILING)


def _tails(n_measurements: int) -> float:
    """A discrete Gaussian is subgaussian: P(|Z| > r) <= 2 exp(-r²/(2σ²))."""
    return 2 * n_measurements * _TAIL


def _probabilities(radius: int, inverse: float) -> FloatArray:
    weights = np.exp(-(np.arange(-radius, radius + 1, dtype=np.float64) ** 2) * (inverse / 2))
    return weights / weights.sum()


def _spread(weights: FloatArray, probabilities: FloatArray, step: int) -> FloatArray:
    """The distribution of a sum: what is there already plus ``step`` times a new variable."""
    total = np.zeros(len(weights) + step * (len(probabilities) - 1))
    for place, probability in enumerate(probabilities):
        total[place * step : place * step + len(weights)] += probability * weights
    return total


def _common_divisor(one: Fraction, other: Fraction) -> Fraction:
    return Fraction(
        math.gcd(one.numerator * other.denominator, other.numerator * one.denominator),
        one.denominator * other.denominator,
    )
