"""Budgets are exact: what is written is what counts, and what cannot be meant is refused."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.privacy.budget import Budget, exact, noise_for, plain_number
from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace
from tallytree.privacy.sensitivity import Sensitivity


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (1, "1"),
        (0.1, "1/10"),
        (np.float64(0.1), "1/10"),
        (np.float32(0.1), "1/10"),
        (np.int32(3), "3"),
        (Decimal("0.25"), "1/4"),
        ("0.1", "1/10"),
        (" 1/3 ", "1/3"),
        ("1e-3", "1/1000"),
        ("0.5/3", "1/6"),
        (1e-9, "1/1000000000"),
        (Fraction(2, 7), "2/7"),
    ],
)
def test_numbers_are_taken_as_written(value: object, meant: str) -> None:
    assert exact(value, "epsilon") == Fraction(meant)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "one",
        "1/0",
        "1/2/3",
        "1_0",
        "1/1_0",
        "\N{ARABIC-INDIC DIGIT ONE}",
        float("nan"),
        float("inf"),
        "nan",
        "-inf",
        None,
        True,
        [1],
        "1e999999999",
        "9" * 99,
    ],
)
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(RequestError, match="epsilon must be a positive number"):
        exact(value, "epsilon")


@pytest.mark.parametrize("value", [0, -1, -0.5, "0", "-1/2", Decimal("-3"), Fraction(0)])
def test_zero_and_less_are_refused(value: object) -> None:
    with pytest.raises(RequestError, match="rho must be greater than 0"):
        exact(value, "rho")


@given(st.floats(1e-30, 1e30))
def test_floats_keep_their_digits(value: float) -> None:
    assert float(exact(value, "epsilon")) == value


def test_bad_definitions_are_refused() -> None:
    with pytest.raises(RequestError, match="one of pure, zcdp, got 'renyi'"):
        Budget("renyi", Fraction(1))  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="epsilon must be greater than 0"):
        Budget("pure", Fraction(0))


def test_noise_follows_the_sensitivity() -> None:
    sensitivity = Sensitivity(l1=6, l2_squared=5)
    assert noise_for(Budget("pure", Fraction(1, 3)), sensitivity) == DiscreteLaplace(Fraction(18))
    assert noise_for(Budget("zcdp", Fraction(1, 8)), sensitivity) == DiscreteGaussian(Fraction(20))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("3", "3"),
        ("1/10", "0.1"),
        ("-5/4", "-1.25"),
        ("1/3", "1/3"),
        ("0", "0"),
        ("1/1000000", "0.000001"),
    ],
)
def test_numbers_for_people(value: str, shown: str) -> None:
    assert plain_number(Fraction(value)) == shown
