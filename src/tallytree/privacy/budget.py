"""Budgets as exact rationals: what a release may lose, how it is split, and the noise that a part
of it pays for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
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


def stated_budget(
    epsilon: object, rho: object, definition: Definition, delta: object = None
) -> Budget:
    """``epsilon`` for pure differential privacy, ``rho`` for zero-concentrated, and not both.

    ``epsilon`` with ``delta`` is a zero-concentrated budget whose Gaussian noise is (ε, δ)-DP,
    whatever is asked with it; who knows the answers better calls
    :func:`~tallytree.privacy.approximate.approximate_budget`.
    """
    if definition not in ("pure", "zcdp"):
        raise RequestError(f"The definition must be one of pure, zcdp, got {definition!r}.")
    if delta is not None:
        if epsilon is None or rho is not None:
            raise RequestError(
                "delta goes with epsilon and nothing else; give epsilon=… and delta=…."
            )
        from tallytree.privacy.approximate import approximate_budget  # loads exact profiles

        found = approximate_budget(epsilon, delta)
        return replace(found.budget, asked=(found.epsilon, found.delta))
    name, value, other = (
        ("epsilon", epsilon, rho) if definition == "pure" else ("rho", rho, epsilon)
    )
    if other is not None:
        wrong, its = ("rho", "zcdp") if definition == "pure" else ("epsilon", "pure")
        raise RequestError(
            f"{wrong} belongs to definition {its!r}; definition {definition!r} takes {name}."
        )
    if value is None:
        number = "1.0" if definition == "pure" else "0.1"
        raise RequestError(
            f"{name} is missing. State the privacy loss, for example {name}={number} (--{name} "
            f"{number})."
        )
    return Budget(definition, exact(value, name))


def refuse_many_changes(budget: Budget, sensitivities: Iterable[Sensitivity]) -> None:
    """Refuse (ε, δ) where one unit may change more answers than the budget was found for.

    Answers are whole numbers, so no more of them change than their L1 sensitivities add up to.
    """
    refuse_more_changes(budget, sum(sensitivity.l1 for sensitivity in sensitivities))


def refuse_more_changes(budget: Budget, most: int) -> None:
    """The same where it is known how many answers change at most."""
    if budget.asked is None:
        return
    from tallytree.privacy.approximate import ANY_ANSWERS

    if most > ANY_ANSWERS.most_changed:
        raise RequestError(
            f"One unit may change {most:,} answers, more than the {ANY_ANSWERS.most_changed:,} for "
            "which epsilon and delta are "
            "proved. Lower the bounds on what one unit contributes, or state rho."
        )
