"""What a release promises: the part of every manifest's ``privacy`` block that is the same for all
kinds.

A :class:`Guarantee` holds the few facts from which the rest follows: the statement, the factor as a
number, the cost of replacing a unit, (ε, δ) beside ρ. :func:`guarantee_to_json` writes them,
:func:`guarantee_from_json` reads them back, and a block is genuine only where writing what was read
gives the same block again (:func:`false_claims`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any, get_args

from tallytree.errors import InputError, RequestError
from tallytree.model.unit import Unit
from tallytree.privacy.budget import Budget, Definition, exact, plain_number, stated_budget
from tallytree.privacy.conversion import epsilon_from_rho

NOT_PRIVATE = "NOT PRIVATE: the noise came from an insecure seed, for tests and experiments only."
NEIGHBOURS = "add or remove one unit; everything under fixed stays as it is"
REPLACED = "replace one unit by another, at the loss under replacing; everything under fixed stays as it is"
# At which δ a zCDP guarantee is also stated as (ε, δ).
STATED_DELTAS = (Fraction(1, 10**6), Fraction(1, 10**9))
# Above this ε the factor has more than 20 digits, and nobody learns anything from them.
_LARGEST_FACTOR_EPSILON = 50
_SMALLEST_RHO, _LARGEST_RHO = Fraction(1, 10**15), 10**9


@dataclass(frozen=True)
class Guarantee:
    """What is promised about one protected unit.

    Attributes
    ----------
    budget
        The loss: ε or ρ.
    unit
        What is protected.
    fixed
        What neighbouring data have in common, in words: facts that are published as they are and
        not protected.
    secure
        Whether the noise comes from the system's randomness; without it nothing is promised.
    adds
        Where one entity may add more than 1 to the size of its group: how much, and to what, in
        words; otherwise empty.
    alone
        Where what is fixed was read off the rows: a unit alone there would take a fixed fact with
        it, so that it has no neighbour and is not covered; otherwise empty.
    """

    budget: Budget
    unit: Unit
    fixed: tuple[str, ...]
    secure: bool
    adds: str = ""
    alone: str = ""

    @property
    def statement(self) -> str:
        """What is protected and how well, in plain English, and what is not."""
        if not self.secure:
            return NOT_PRIVATE
        unit = self.unit.words.replace("one ", "any one ", 1) + (
            f" ({self.adds})" if self.adds else ""
        )
        held = (
            f"Held fixed, and so not protected: {'; '.join(self.fixed)}."
            if self.fixed
            else "Nothing is held fixed."
        )
        held += (
            f" Not covered: any one {self.unit.word} alone in {self.alone}." if self.alone else ""
        )
        loss = self.budget.of_replacing if self.budget.replacing else self.budget.total
        done = (
            f"Replacing {unit} by another"
            if self.budget.replacing
            else f"Adding or removing {unit}"
        )
        if self.budget.definition == "pure":
            number = plain_number(loss)
            power = f"e^({number})" if "/" in number else f"e^{number}"
            factor = factor_of(loss)
            about = f" ≈ {factor}" if factor else ""
            return f"{done} makes any outcome at most {power}{about} times as likely. {held}"
        rho = plain_number(loss)
        if self.budget.asked is not None:
            epsilon, delta = (_short(str(number)) for number in self.budget.asked)
            return (
                f"{done} is hidden with (ε, δ)-differential privacy, ε = {epsilon}, δ = {delta}, "
                "by "
                f"Gaussian noise under zero-concentrated differential privacy, rho = {rho}. {held}"
            )
        pairs = [
            f"(ε = {_short(pair['epsilon'])}, δ = {_short(pair['delta'])})"
            for pair in self.approximate
        ]
        also = f", which implies {' and '.join(pairs)}" if pairs else ""
        return f"{done} is hidden with zero-concentrated differential privacy, rho = {rho}{also}. {held}"

    @property
    def approximate(self) -> list[dict[str, str]]:
        """(ε, δ) guarantees that a zCDP guarantee implies, exact numbers as text, for the
        neighbours that it was stated for.
        """
        rho = self.budget.of_replacing if self.budget.replacing else self.budget.total
        if self.budget.definition == "pure" or not _SMALLEST_RHO <= rho <= _LARGEST_RHO:
            return []
        return [
            {"epsilon": str(epsilon_from_rho(rho, delta)), "delta": str(delta)}
            for delta in STATED_DELTAS
        ]

    @property
    def replacing(self) -> dict[str, str]:
        """The loss where one unit is replaced by another."""
        return {self.budget.symbol: str(self.budget.of_replacing)}


# Above this ε a promise is called weak.
_LARGEST_STRONG_EPSILON = 10


def weak_promise(budget: Budget) -> str:
    """What a loss above ε = 10 means, in plain words; empty where the promise is stronger.

    Examples
    --------
    >>> weak_promise(Budget("pure", Fraction(10)))
    ''
    >>> weak_promise(Budget("pure", Fraction(100)))[:23]
    'ε = 100, which is above'
    """
    total = budget.of_replacing if budget.replacing else budget.total
    if budget.definition == "pure" or budget.asked is not None:
        epsilon = total if budget.asked is None else budget.asked[0]
        said = f"ε = {float(epsilon):.6g}"
    elif total > _LARGEST_RHO:
        epsilon, said = Fraction(total), f"ρ = {float(total):.6g}"
    elif total < _SMALLEST_RHO:
        return ""
    else:
        epsilon = epsilon_from_rho(total, STATED_DELTAS[0])
        said = f"ρ = {float(total):.6g} means ε = {float(epsilon):.4g} at δ = 10⁻⁶"
    if epsilon <= _LARGEST_STRONG_EPSILON:
        return ""
    return (
        f"{said}, which is above {_LARGEST_STRONG_EPSILON}: these numbers may be over "
        f"{factor_of(Fraction(_LARGEST_STRONG_EPSILON))} times as likely with a unit in the data "
        "as without it, so whoever knows the rest of the data may be all but certain about it. The "
        "promise is weak."
    )


# Rounds of a mechanism may have a thousandth of the budget each, and noise has a largest scale
# (:data:`tallytree.privacy.noise.LARGEST_SCALE`): below these losses a round could be paid for and
# not be answered.
_LEAST_PER_ROW = {"pure": Fraction(1, 10**9), "zcdp": Fraction(1, 10**16)}


def refuse_hopeless_promise(block: Mapping[str, Any]) -> None:
    """Refuse, before anything is paid, a loss so small for each row of a unit that noise would hide
    any count.

    ``block`` is the privacy block of a manifest.

    Examples
    --------
    >>> unit = {"contributions": 1000}
    >>> refuse_hopeless_promise({"definition": "pure", "epsilon": "1/1000000", "unit": unit})
    """
    budget, n_rows = budget_of(block), int(block["unit"]["contributions"] or 1)
    is_pure = budget.definition == "pure"
    least = _LEAST_PER_ROW[budget.definition] * n_rows ** (1 if is_pure else 2)
    if budget.total < least:
        raise RequestError(
            f"{budget.symbol} = {float(budget.total):.3g} is too small a loss for units of up to "
            f"{n_rows:,} rows: noise would hide any count. It must be at least {float(least):.3g}. "
            "Raise the budget, or lower the bounds on what one unit contributes."
        )


def factor_of(epsilon: Fraction) -> str:
    """e^ε rounded up to three digits, as people write it; empty where it has too many.

    Examples
    --------
    >>> factor_of(Fraction(1, 10)), factor_of(Fraction(1)), factor_of(Fraction(10))
    ('1.11', '2.72', '22,100')
    """
    if epsilon > _LARGEST_FACTOR_EPSILON:
        return ""
    with localcontext(prec=40):
        factor = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        # Near 1 the digits that count are those after it.
        digits = factor.adjusted() - 2 if factor > Decimal("1.01") else (factor - 1).adjusted() - 1
        rounded = factor.quantize(Decimal(1).scaleb(digits), rounding=ROUND_CEILING)
    return f"{rounded:,f}"


def guarantee_to_json(guarantee: Guarantee) -> dict[str, Any]:
    """The guarantee as a manifest holds it; amounts are exact rationals as text."""
    budget, unit = guarantee.budget, guarantee.unit
    facts: dict[str, Any] = {
        "private": guarantee.secure,
        "definition": budget.definition,
        budget.symbol: str(budget.total),
    }
    if budget.definition == "pure":
        facts["factor"] = factor_of(budget.of_replacing if budget.replacing else budget.total)
    else:
        facts["approximate"] = guarantee.approximate
    if budget.asked is not None:
        facts["stated"] = {"epsilon": str(budget.asked[0]), "delta": str(budget.asked[1])}
    return facts | {
        "unit": {
            "words": unit.words,
            "name": unit.name,
            "entity": unit.entity,
            "column": unit.column or None,
            "contributions": unit.contributions,
            "in_one_row": unit.in_one_row,
            "group": unit.group or None,
            **({"min_gap": unit.min_gap} if unit.min_gap else {}),
        },
        "adds": guarantee.adds,
        "alone": guarantee.alone,
        "neighbours": REPLACED if budget.replacing else NEIGHBOURS,
        "replacing": guarantee.replacing,
        "fixed": list(guarantee.fixed),
        "statement": guarantee.statement,
    }


def guarantee_from_json(block: Mapping[str, Any]) -> Guarantee:
    """The guarantee that :func:`guarantee_to_json` wrote; believes none of what follows from the
    rest.
    """
    try:
        unit, fixed = block["unit"], block["fixed"]
        if not isinstance(fixed, list) or not all(isinstance(fact, str) for fact in fixed):
            raise TypeError("fixed is a list of sentences")
        return Guarantee(
            budget_of(block),
            unit_from_json(unit),
            tuple(fixed),
            block["private"] is True,
            str(block["adds"]),
            str(block["alone"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"The privacy block of the manifest cannot be read: {_what(error)}."
        ) from None


def unit_from_json(unit: Mapping[str, Any]) -> Unit:
    """The unit of a privacy block."""
    entity, column, contributions = (
        str(unit["entity"]),
        str(unit["column"] or ""),
        unit["contributions"],
    )
    one_row = bool(column or unit["group"] or contributions != 1 or unit["in_one_row"])
    group, min_gap = str(unit["group"] or ""), unit.get("min_gap", 0)
    if isinstance(min_gap, bool) or not isinstance(min_gap, int) or min_gap < 0:
        raise InputError(f"The gap of a unit is a whole number of at least 0, got {min_gap!r}.")
    return Unit(entity, column, contributions, one_row, group, min_gap)


def budget_of(block: Mapping[str, Any]) -> Budget:
    """The loss that a privacy block states."""
    definition = block["definition"]
    if definition not in get_args(Definition):
        raise InputError(
            f"There is no definition {definition!r} of privacy; known are "
            f"{', '.join(get_args(Definition))}."
        )
    symbol = "epsilon" if definition == "pure" else "rho"
    stated = block.get("stated")
    asked = (
        None
        if stated is None
        else (exact(stated["epsilon"], "epsilon"), exact(stated["delta"], "delta"))
    )
    return Budget(
        definition, exact(block[symbol], symbol), asked, block.get("neighbours") == REPLACED
    )


def false_claims(block: Mapping[str, Any]) -> list[str]:
    """Names of what a privacy block states otherwise than it follows from the rest of it."""
    guarantee = guarantee_from_json(block)
    derived = guarantee_to_json(guarantee)
    wrong = [name for name, value in derived.items() if name not in block or block[name] != value]
    asked = guarantee.budget.asked
    if (
        asked is not None
        and guarantee.budget.total > stated_budget(asked[0], None, "pure", asked[1]).total
    ):
        wrong.append("stated")  # the budget is larger than what keeps the stated ε and δ
    return wrong


def _short(number: str) -> str:
    value = Fraction(number)
    if value < Fraction(1, 1000):
        return f"{float(value):.0e}".replace("e-0", "e-")
    with localcontext(prec=4, rounding=ROUND_CEILING):
        return f"{Decimal(value.numerator) / Decimal(value.denominator):f}"


def _what(error: Exception) -> str:
    return (
        f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error).rstrip(".")
    )
