"""Budgets as exact rationals: what a release may lose, how it is split, and the noise that a part
of it pays for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args

from tallytree.errors import RequestError

if TYPE_CHECKING:
    from tallytree.privacy.noise import Noise
    from tallytree.privacy.sensitivity import Sensitivity

Definition = Literal["pure", "zcdp"]
Exact = int | float | Decimal | str | Fraction

# Text such as 1e999999999 would fill the memory once it is written out as a fraction.
_MOST_DIGITS = 60


def exact(value: Exact | Any, name: str) -> Fraction:
    """A positive number as the fraction that it is meant to be.

    A float counts as its shortest decimal: 0.1 is 1/10, not the binary number nearest to it. Text
    may be ``"0.1"``, ``"1e-3"`` or ``"1/3"``.

    Examples
    --------
    >>> exact(0.1, "epsilon"), exact("1/3", "epsilon")
    (Fraction(1, 10), Fraction(1, 3))
    """
    number = _fraction(value)
    if number is None:
        raise RequestError(
            f'{name} must be a positive number such as 0.5, "0.5" or "1/3", got {value!r}.'
        )
    if number <= 0:
        raise RequestError(f"{name} must be greater than 0, got {value!s}.")
    return number


def written_fraction(value: object) -> Fraction:
    """A fraction that :func:`str` wrote, as manifests hold it: digits, or digits over digits."""
    digits = value.split("/") if isinstance(value, str) else []
    if len(digits) not in (1, 2) or not all(
        part.isascii() and part.isdigit() and len(part) < 1000 for part in digits
    ):
        raise TypeError(f"expected a fraction such as 1/3, got {value!r}")
    if len(digits) == 2 and int(digits[1]) == 0:
        raise TypeError(f"expected a fraction such as 1/3, got {value!r}")
    return Fraction(int(digits[0]), int(digits[1]) if len(digits) == 2 else 1)


def _fraction(value: object) -> Fraction | None:
    """The value as a fraction, None where it is not a finite number of reasonable length."""
    if isinstance(value, Fraction):
        return value
    # NumPy's whole and real numbers are of these types too, its truth values are not.
    if isinstance(value, bool) or not isinstance(value, Integral | Real | Decimal | str):
        return None
    # str of a float, NumPy's too, is its shortest decimal.
    parts = str(value).split("/") if isinstance(value, str) else [str(value)]
    # Python would take 1_0 for 10, and digits of every script.
    if len(parts) > 2 or not all(part.isascii() and "_" not in part for part in parts):
        return None
    try:
        numbers = [Decimal(part.strip()) for part in parts]
    except InvalidOperation:
        return None
    if not all(number.is_finite() and _is_short(number) for number in numbers) or (
        len(parts) == 2 and numbers[1] == 0
    ):
        return None
    return Fraction(numbers[0]) / (Fraction(numbers[1]) if len(parts) == 2 else 1)


def _is_short(number: Decimal) -> bool:
    return abs(number.adjusted()) <= _MOST_DIGITS and len(number.as_tuple().digits) <= _MOST_DIGITS


@dataclass(frozen=True)
class Budget:
    """A privacy loss: ``total`` is ε where the definition is ``pure``, ρ where it is ``zcdp``.

    The loss is that of adding or removing one unit. ``asked`` is the (ε, δ) that a zCDP budget was
    found for, where the user stated these; all noise is Gaussian then. ``replacing`` says that the
    user stated the loss of replacing one unit.
    """

    definition: Definition
    total: Fraction
    asked: tuple[Fraction, Fraction] | None = None
    replacing: bool = False

    def __post_init__(self) -> None:
        if self.definition not in get_args(Definition):
            raise RequestError(
                f"The definition must be one of {', '.join(get_args(Definition))}, got "
                f"{self.definition!r}."
            )
        if not isinstance(self.total, Fraction):
            raise TypeError("A budget is a Fraction; see tallytree.privacy.budget.exact.")
        if self.total <= 0:
            raise RequestError(f"{self.symbol} must be greater than 0, got {self.total}.")

    @property
    def symbol(self) -> str:
        """What the total is called: ``epsilon`` or ``rho``."""
        return "epsilon" if self.definition == "pure" else "rho"

    @property
    def of_replacing(self) -> Fraction:
        """The loss where one unit is replaced by another: one is removed and one added, so 2ε, or
        2²ρ.
        """
        return self.total * (2 if self.definition == "pure" else 4)

    def __str__(self) -> str:
        return f"{self.symbol} = {self.total}"


def budget_for_replacing(stated: Budget) -> Budget:
    """The budget with which replacing one unit by another costs what was stated: half of ε, or a
    quarter of ρ.

    A neighbour that has another unit in the place of one is two steps of removing and adding away
    (hay2010 §2.1).

    Examples
    --------
    >>> str(budget_for_replacing(Budget("pure", Fraction(1))))
    'epsilon = 1/2'
    """
    if stated.asked is not None:
        raise RequestError(
            "neighbours='replace' goes with epsilon alone or with rho; with delta, add-remove is "
            "proved."
        )
    return Budget(
        stated.definition, stated.total / (2 if stated.definition == "pure" else 4), replacing=True
    )


def split(budget: Budget, shares: Sequence[Exact]) -> tuple[Budget, ...]:
    """Parts of a budget in proportion to shares that add up to 1, for measurements that follow one
    another.

    Both definitions add up over measurements of the same data, so the parts together cost the
    whole.
    """
    if len(shares) == 0:
        raise RequestError("A budget is split into at least one share.")
    fractions = [exact(share, f"share {number}") for number, share in enumerate(shares, start=1)]
    if sum(fractions) != 1:
        raise RequestError(
            f"The shares of a budget must add up to 1; {', '.join(map(str, shares))} add up to "
            f'{float(sum(fractions)):.12g}. Thirds and the like can be written as "1/3".'
        )
    return tuple(Budget(budget.definition, budget.total * fraction) for fraction in fractions)


def split_equally(budget: Budget, n_parts: int) -> tuple[Budget, ...]:
    """Equal parts of a budget."""
    return split(budget, [Fraction(1, n_parts)] * n_parts)


def pure_loss(part: Budget, rate: int = 2) -> Fraction:
    """The largest ε, to 30 bits, at which a step of pure loss ε costs at most this part of a
    budget.

    zCDP: any step of pure loss ε costs at most ε²/2 (Bun and Steinke 2016, Prop. 1.4); ``rate`` is
    that 2, or a larger number where a step is known to cost less.
    """
    if part.definition == "pure":
        return part.total
    square = rate * part.total
    scale = 1 << (
        30 + max(0, (square.denominator.bit_length() - square.numerator.bit_length()) // 2 + 1)
    )
    return Fraction(math.isqrt(square.numerator * scale**2 // square.denominator), scale)


def noise_for(part: Budget, sensitivity: Sensitivity) -> Noise:
    """The noise that makes a query of this sensitivity cost this part of the budget.

    ``pure``: discrete Laplace of scale l1/ε. ``zcdp``: discrete Gaussian of sigma2 = l2²/(2ρ)
    (Canonne, Kamath, Steinke 2020, Thm. 14: in more dimensions the loss is that of the L2
    distance).
    """
    from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace  # loads the samplers

    if part.definition == "pure":
        return DiscreteLaplace(sensitivity.l1 / part.total)
    return DiscreteGaussian(sensitivity.l2_squared / (2 * part.total))


def noise_fits(part: Budget, sensitivity: Sensitivity) -> bool:
    """Whether noise of that scale can be drawn; see :func:`noise_for`."""
    from tallytree.privacy.noise import LARGEST_SCALE, LARGEST_SIGMA2  # as above

    if part.definition == "pure":
        return sensitivity.l1 / part.total <= LARGEST_SCALE
    return sensitivity.l2_squared / (2 * part.total) < LARGEST_SIGMA2


def plain_number(value: Fraction) -> str:
    """An exact rational for people: ``0.1`` where the decimal ends soon, ``1/3`` otherwise."""
    for digits in range(13):
        if (value * 10**digits).denominator == 1:
            sign, whole = "-" if value < 0 else "", abs(int(value * 10**digits))
            return f"{sign}{whole // 10**digits}" + (
                f".{whole % 10**digits:0{digits}d}" if digits else ""
            )
    return str(value)
