"""From zero-concentrated differential privacy to (ε, δ) and back, never on the optimistic side.

ρ-zCDP implies (ε, δ)-DP whenever, for some order α > 1,

    ln δ >= (α - 1)(α ρ - ε) + α ln(1 - 1/α) - ln(α - 1)

(Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy", Cor. 13; the best
α gives the tightest conversion known for zCDP). Every α yields a valid statement. So the best one
is looked for in floating point, and the statement is then computed from it in decimals of 60 digits
and rounded to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from tallytree.errors import RequestError

_DIGITS = 60
# Far more than the rounding errors of a dozen operations with 60 digits on numbers of the sizes
# that pass the checks.
_MARGIN = Decimal("1e-30")
# Results are rounded to so many significant digits.
_RESULT_DIGITS = 12
LEAST_RHO, MOST_RHO = Fraction(1, 10**15), Fraction(10**9)
"""Between them losses under zCDP are converted."""


def epsilon_from_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest ε, rounded up to 12 digits, such that ρ-zCDP implies (ε, δ)-DP.

    Examples
    --------
    >>> float(epsilon_from_rho(Fraction(1, 10), Fraction(1, 10**6)))
    2.14193892839
    """
    _require_rho(rho)
    _require_delta(delta)
    log_inverse_delta = -_log_float(delta)
    order = _best_order(
        lambda a: a * float(rho) + (log_inverse_delta + _correction_float(a)) / (a - 1)
    )
    with localcontext(prec=_DIGITS):
        epsilon = order * decimal_of(rho) + (-decimal_of(delta).ln() + _correction(order)) / (
            order - 1
        )
        return rounded(epsilon + _MARGIN, ROUND_CEILING) if epsilon > 0 else Fraction(0)


def delta_from_rho(rho: Fraction, epsilon: Fraction) -> Fraction:
    """The smallest δ, rounded up to 12 digits, such that ρ-zCDP implies (ε, δ)-DP; at most 1."""
    _require_rho(rho)
    if epsilon < 0:
        raise RequestError(f"epsilon must be at least 0, got {epsilon}.")
    rho_float, epsilon_float = float(rho), float(epsilon)
    order = _best_order(lambda a: (a - 1) * (a * rho_float - epsilon_float) + _correction_float(a))
    with localcontext(prec=_DIGITS):
        log_delta = (order - 1) * (order * decimal_of(rho) - decimal_of(epsilon)) + _correction(
            order
        )
        if log_delta >= 0:
            return Fraction(1)
        # Below 10**-300 nobody needs the digits.
        return rounded(max(log_delta + _MARGIN, Decimal(-700)).exp(), ROUND_CEILING)


def rho_from_epsilon(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ, rounded down to 12 digits, such that ρ-zCDP implies (ε, δ)-DP: what a stated
    (ε, δ) may spend.
    """
    if epsilon <= 0:
        raise RequestError(f"epsilon must be greater than 0, got {epsilon}.")
    _require_delta(delta)
    log_inverse_delta, epsilon_float = -_log_float(delta), float(epsilon)
    order = _best_order(
        lambda a: ((log_inverse_delta + _correction_float(a)) / (a - 1) - epsilon_float) / a
    )
    with localcontext(prec=_DIGITS):
        rest = (-decimal_of(delta).ln() + _correction(order)) / (order - 1)
        rho = (decimal_of(epsilon) - rest) / order
        if rho <= _MARGIN:
            raise RequestError(f"No zCDP budget fits epsilon = {epsilon} and delta = {delta}.")
        return rounded(rho - _MARGIN, ROUND_FLOOR)


def _correction_float(order: float) -> float:
    """α ln(1 - 1/α) - ln(α - 1)."""
    return order * math.log1p(-1 / order) - math.log(order - 1)


def _correction(order: Decimal) -> Decimal:
    return order * (1 - 1 / order).ln() - (order - 1).ln()


def _best_order(objective: Callable[[float], float]) -> Decimal:
    """An α > 1 that nearly minimises the objective: a grid over ln(α - 1), then golden section
    around its best point.
    """
    grid = [x / 8 for x in range(-80, 401)]

    def at(x: float) -> float:
        return objective(1 + math.exp(x))

    centre = min(grid, key=at)
    low, high = centre - 0.125, centre + 0.125
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if at(left) <= at(right):
            high = right
        else:
            low = left
    return Decimal(1 + math.exp((low + high) / 2))


def rounded(value: Decimal, rounding: str) -> Fraction:
    """The value with 12 significant digits, rounded in the stated direction."""
    unit = Decimal(1).scaleb(value.adjusted() - _RESULT_DIGITS + 1)
    return Fraction(value.quantize(unit, rounding=rounding))


def decimal_of(value: Fraction) -> Decimal:
    """The value in as many digits as the context has."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log_float(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _require_rho(rho: Fraction) -> None:
    if not LEAST_RHO <= rho <= MOST_RHO:
        with localcontext(prec=6):
            raise RequestError(
                f"rho must lie between 1e-15 and 1e9, got {decimal_of(rho).normalize()}."
            )


def _require_delta(delta: Fraction) -> None:
    if not Fraction(1, 10**300) <= delta < 1:
        raise RequestError(f"delta must lie between 1e-300 and 1, got {delta}.")
