"""zCDP to (ε, δ): the tight formula, rounded to the safe side."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.privacy.conversion import delta_from_rho, epsilon_from_rho, rho_from_epsilon, rounded

CASES = [
    ("0.1", "1e-6"),
    ("1", "1e-9"),
    ("0.001", "1e-9"),
    ("10", "1e-12"),
    ("100", "1e-9"),
    ("0.5", "0.1"),
]


def on_a_grid(rho: float, delta: float) -> float:
    """The same minimum by brute force over a fine grid of orders."""
    order = 1 + np.exp(np.linspace(-9, 12, 400_001))
    correction = order * np.log1p(-1 / order) - np.log(order - 1)
    return float(np.min(order * rho + (math.log(1 / delta) + correction) / (order - 1)))


@pytest.mark.parametrize(("rho", "delta"), CASES)
def test_epsilon_is_the_minimum_over_orders(rho: str, delta: str) -> None:
    epsilon = float(epsilon_from_rho(Fraction(rho), Fraction(delta)))
    assert epsilon == pytest.approx(on_a_grid(float(rho), float(delta)), rel=1e-8)
    # Below the bound everybody knows, Bun and Steinke 2016, Prop. 1.3.
    assert epsilon < float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / float(delta)))


@pytest.mark.parametrize(("rho", "delta"), CASES)
def test_it_is_no_better_than_the_gaussian_mechanism_itself(rho: str, delta: str) -> None:
    """A ρ-zCDP mechanism whose exact δ is known: the continuous Gaussian. A conversion below it
    would be wrong.
    """
    from scipy.stats import norm

    epsilon = float(epsilon_from_rho(Fraction(rho), Fraction(delta)))
    shift = math.sqrt(2 * float(rho))
    true = norm.sf(epsilon / shift - shift / 2) - math.exp(epsilon) * norm.sf(
        epsilon / shift + shift / 2
    )
    assert true <= float(delta)


@settings(deadline=None, max_examples=40)
@given(st.fractions("1/100000", 50), st.integers(1, 20))
def test_the_three_directions_agree_and_lean_to_the_safe_side(rho: Fraction, digits: int) -> None:
    delta = Fraction(1, 10**digits)
    epsilon = epsilon_from_rho(rho, delta)
    if epsilon == 0:
        return
    allowed = rho_from_epsilon(epsilon, delta)
    assert float(allowed) == pytest.approx(float(rho), rel=1e-8)
    assert epsilon_from_rho(allowed, delta) <= epsilon * (1 + Fraction(1, 10**10))
    assert float(delta_from_rho(rho, epsilon)) == pytest.approx(float(delta), rel=1e-6)


@pytest.mark.parametrize(("rho", "delta"), CASES)
def test_rounding_is_to_the_safe_side(rho: str, delta: str) -> None:
    """At the stated ε some order proves δ without any rounding error in its favour, in 50 digits."""
    epsilon = epsilon_from_rho(Fraction(rho), Fraction(delta))
    with localcontext(prec=50):
        stated = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)

        def log_delta(x: Decimal) -> Decimal:
            order = 1 + x.exp()
            correction = order * (1 - 1 / order).ln() - (order - 1).ln()
            return (order - 1) * (order * Decimal(rho) - stated) + correction

        low, high = Decimal(-5), Decimal(10)
        for _ in range(150):
            left, right = (2 * low + high) / 3, (low + 2 * high) / 3
            low, high = (low, right) if log_delta(left) < log_delta(right) else (left, high)
        assert log_delta(low) <= Decimal(delta).ln()
        assert log_delta(low) > Decimal(delta).ln() - Decimal("1e-8")


def test_a_loose_delta_may_need_no_epsilon() -> None:
    assert epsilon_from_rho(Fraction(1, 10**6), Fraction(1, 100)) == 0
    assert delta_from_rho(Fraction(5), Fraction(0)) <= 1
    assert 0 < delta_from_rho(Fraction(1, 100), Fraction(50)) < Fraction(1, 10**200)


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(RequestError, match="delta must lie"):
        epsilon_from_rho(Fraction(1), Fraction(1))
    with pytest.raises(RequestError, match="delta must lie"):
        rho_from_epsilon(Fraction(1), Fraction(0))
    with pytest.raises(RequestError, match="rho must lie"):
        epsilon_from_rho(Fraction(0), Fraction(1, 10))
    with pytest.raises(RequestError, match="epsilon must be"):
        rho_from_epsilon(Fraction(0), Fraction(1, 10))
    with pytest.raises(RequestError, match="epsilon must be"):
        delta_from_rho(Fraction(1), Fraction(-1))


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        ("1.23456789012345", "1.23456789013", "1.23456789012"),
        ("98765432109876.5", "98765432109900", "98765432109800"),
    ],
)
def test_twelve_digits_are_kept(value: str, up: str, down: str) -> None:
    assert rounded(Decimal(value), ROUND_CEILING) == Fraction(up)
    assert rounded(Decimal(value), ROUND_FLOOR) == Fraction(down)
