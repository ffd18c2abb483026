"""Enclosures hold the true number and are narrow; tables agree with decimals of 120 digits."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.privacy.probabilities import (
    GaussianMagnitude,
    GeometricDigit,
    LaplaceMagnitude,
    Survival,
    enclose_exp,
    survival_floor,
    survival_table,
)
from tests.reference.probabilities import (
    decimal,
    gaussian_probabilities,
    laplace_probabilities,
    survival_floors,
)


@settings(deadline=None)
@given(st.fractions(0, 200), st.integers(1, 300))
def test_exponential_is_enclosed(exponent: Fraction, bits: int) -> None:
    enclosure = enclose_exp(exponent, bits)
    with localcontext(prec=300):
        true = (-decimal(exponent)).exp() * 2**bits
        assert enclosure.low <= true <= enclosure.high
    assert enclosure.high - enclosure.low <= 2


def test_exponential_of_extremes() -> None:
    assert enclose_exp(Fraction(0), 70) == (1 << 70, 1 << 70, 70)
    assert enclose_exp(Fraction(10**30), 70) == (0, 1, 70)
    tiny = enclose_exp(Fraction(1, 10**40), 70)
    assert tiny.low >= (1 << 70) - 2


@pytest.mark.parametrize(
    "scale",
    [Fraction(1, 40), Fraction(1, 3), Fraction(1), Fraction(355, 113), Fraction(60)],
    ids=str,
)
def test_laplace_table(scale: Fraction) -> None:
    table = survival_table(LaplaceMagnitude(scale), 63)
    assert table == survival_floors(laplace_probabilities(scale, len(table) - 1), 63)
    assert table[-1] == 0 < table[-2]


@pytest.mark.parametrize(
    "sigma2",
    [Fraction(1, 90), Fraction(1, 2), Fraction(1), Fraction(22, 7), Fraction(400)],
    ids=str,
)
def test_gaussian_table(sigma2: Fraction) -> None:
    table = survival_table(GaussianMagnitude(sigma2), 63)
    probabilities = gaussian_probabilities(sigma2, 2 * len(table) + 20)
    assert table == survival_floors(probabilities, 63)[: len(table)]
    assert table[-1] == 0 < table[-2]


def test_half_gaussian_table() -> None:
    table = survival_table(GaussianMagnitude(Fraction(9, 2), half=True), 63)
    with localcontext(prec=120):
        weights = [(-Decimal(x * x) / 9).exp() for x in range(100)]
        floors = [int(sum(weights[k:]) / sum(weights) * 2**63) for k in range(len(table))]
    assert table == floors


def test_digits_of_a_geometric_variable() -> None:
    """P(K >= 7 q + r) of the whole is the sum over the digits' joint probabilities: digits are
    independent.
    """
    scale, base = Fraction(5), 7
    p = float(enclose_exp(1 / scale, 100).low) / 2**100
    low = GeometricDigit(scale, base)
    high = [float(enclose_exp(base * q / scale, 100).low) / 2**100 for q in range(5)]
    shares = [survival_floor(low, k, 60) / 2**60 for k in range(base + 1)]
    for q in range(4):
        for r in range(base):
            joint = (high[q] - high[q + 1]) * (shares[r] - shares[r + 1])
            assert joint == pytest.approx((1 - p) * p ** (base * q + r), rel=1e-12)


@pytest.mark.parametrize(
    "survival",
    [
        LaplaceMagnitude(Fraction(7, 3)),
        LaplaceMagnitude(Fraction(10**7), step=4096),
        GeometricDigit(Fraction(300), 40),
        GeometricDigit(Fraction(1 << 40), 40),
        GaussianMagnitude(Fraction(7, 3)),
        GaussianMagnitude(Fraction(5000), half=True),
    ],
    ids=str,
)
def test_one_by_one_and_in_turn_agree(survival: Survival) -> None:
    table = survival_table(survival, 63)
    for k in [0, 1, 2, 5, len(table) // 2, len(table) - 2, len(table) - 1]:
        assert survival_floor(survival, k, 63) == table[k]
        assert survival_floor(survival, k, 200) >> 137 == table[k]
    assert all(one >= other for one, other in pairwise(table))


@pytest.mark.parametrize("first", [1, 5, 30])
@pytest.mark.parametrize("sigma2", [Fraction(1, 3), Fraction(5), Fraction(100)], ids=str)
def test_what_a_gaussian_leaves_beyond_a_term_is_bounded_and_not_far_too_loosely(
    sigma2: Fraction, first: int
) -> None:
    """All terms from one on add up to at most g (1 + 1/y), of which the bound is the next with a
    whole factor.
    """
    bits = 4000
    rest = GaussianMagnitude(sigma2)._rest(first, bits)
    with localcontext() as context:
        context.prec = 120
        g = [(-decimal(Fraction(j * j) / (2 * sigma2))).exp() for j in range(first, first + 200)]
        bound, inverse = Decimal(rest.high) / 2**bits / g[0], 2 * decimal(sigma2) / (2 * first + 1)
        assert rest.low == 0
        assert sum(g) <= bound * g[0]
        assert 1 + inverse <= bound < 2 + inverse + Decimal("1e-100")
