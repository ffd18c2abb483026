"""What an account fixes for good: the unit whose losses it adds up, and the parts that are paid for
side by side.

Losses add up per unit, so all releases of an account must protect the same one. Releases of
disjoint parts need not pay for one another, so the parts must be disjoint: exact labels of one
public column, listed when the account is opened (or once, later), and a unit must lie in one of
them.
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

from tallytree.errors import InputError, RequestError
from tallytree.model.nested import parse_json
from tallytree.model.part import Part
from tallytree.model.unit import ENTITY, Unit


def unit_from(unit: str | Unit) -> Unit:
    """A unit from the word that requests use: ``"entity"`` for one row, otherwise the column that
    names it.
    """
    if isinstance(unit, Unit):
        return unit
    return Unit() if unit == ENTITY else Unit(column=unit)


@dataclass(frozen=True)
class Parts:
    """The public parts of an account.

    Attributes
    ----------
    column
        The public column that divides the rows.
    labels
        Its labels; rows with any other belong to no part.
    units_in_one_part
        The owner's declaration that all rows of a unit have the same label. Needed where a unit has
        several rows: it could otherwise lie in several parts, and their losses would add up.
    """

    column: str
    labels: tuple[str, ...]
    units_in_one_part: bool = False

    def __post_init__(self) -> None:
        folded = [_folded(label) for label in self.labels]
        alike = (
            [label for label, fold in zip(self.labels, folded) if folded.count(fold) > 1]
            if _repeats(folded)
            else []
        )
        if not self.labels or not self.column:
            raise RequestError(
                "Parts are a column and at least one label, such as state=Georgia,Ohio."
            )
        # Some databases compare text without case, trailing spaces or accents; such labels could
        # select the same rows.
        if alike:
            raise RequestError(
                f"The labels {', '.join(map(repr, sorted(alike)[:4]))} differ at most by case, "
                "spaces or accents, so they may "
                "name the same rows; list each part once."
            )
        _refuse_one_value(self.labels)

    def covers(self, column: str | None, label: str | None) -> bool:
        """Whether this is one of the parts."""
        return column == self.column and label in self.labels

    def to_json(self) -> dict[str, object]:
        """As ledgers hold it."""
        return {
            "column": self.column,
            "labels": list(self.labels),
            "units_in_one_part": self.units_in_one_part,
        }


def _folded(label: str) -> str:
    letters = (
        letter
        for letter in unicodedata.normalize("NFKD", label)
        if not unicodedata.combining(letter)
    )
    return "".join("".join(letters).casefold().split())


# Whole and decimal numbers, as columns of numbers write them; an exponent has few digits.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.ASCII)
MOST_DIGITS = 400
TRUE, FALSE = ("1", "t", "true", "y", "yes", "on"), ("0", "f", "false", "n", "no", "off")
# As people and programs write days; 03/04/2025 may be two of them.
DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y%m%d")


Value = Fraction | float | date | bool


def values_of(label: str) -> frozenset[Value]:
    """What a label may be where its column is read as numbers, dates or truth values.

    A column of ``1`` is read as text in one file and as integers in another, so a row that is in
    part ``01`` of the first is in part ``1`` of the second.

    Examples
    --------
    >>> values_of("01") & values_of("1.0") == {1}
    True
    >>> len(values_of("Georgia"))
    0
    """
    text = _folded(label)
    found: set[Value] = {text in TRUE} if text in TRUE + FALSE else set()
    if len(text) <= MOST_DIGITS and NUMBER.fullmatch(text):
        # Columns of floating point hold the nearest double.
        found |= {Fraction(text), float(text)}
    # The day alone: a column of times may be read as one of days.
    words = label.strip().replace("T", " ").split()
    for day in words[:1]:
        with suppress(ValueError):
            found.add(date.fromisoformat(day))
        for form in DAYS:
            with suppress(ValueError):
                found.add(datetime.strptime(day, form).date())
    return frozenset(found)


def _refuse_one_value(labels: Sequence[str]) -> None:
    """Refuse labels that are one value where the column is read with another type."""
    first: dict[Value, str] = {}
    for label in labels:
        for value in values_of(label):
            other = first.setdefault(value, label)
            if other != label:
                raise RequestError(
                    f"The labels {other!r} and {label!r} are the same number, date or truth value "
                    "where the column is not read as text, so they may name the same rows; list "
                    "each part once."
                )


def _repeats(folded: list[str]) -> bool:
    return len(set(folded)) < len(folded)


def detail_of(parts: Parts | None) -> str:
    """What the row that fixes parts holds as its ``detail``."""
    return "" if parts is None else json.dumps({"parts": parts.to_json()}, sort_keys=True)


def parts_of(detail: str) -> Parts | None:
    """The parts that a row fixes by its ``detail``."""
    if not detail:
        return None
    try:
        stated = parse_json(detail)["parts"]
        column, labels, one = stated["column"], stated["labels"], stated["units_in_one_part"]
        if not (isinstance(column, str) and isinstance(labels, list) and isinstance(one, bool)):
            raise TypeError
        if not all(isinstance(label, str) for label in labels):
            raise TypeError
        return Parts(column, tuple(labels), one)
    except (KeyError, TypeError, ValueError):
        raise InputError("The parts of an account cannot be read; the ledger is damaged.") from None


@dataclass(frozen=True)
class Terms:
    """What an account has fixed so far.

    ``named`` is what releases have called their row on an account that was opened for ``"entity"``;
    empty until one has.
    """

    dataset: str
    unit: str
    parts: Parts | None = None
    named: str = ""


def refuse_other_unit(terms: Terms, unit: Unit) -> None:
    """Refuse a release whose losses are per another unit than the account's.

    An account of ``"entity"`` takes releases that protect one row; the first that names its row
    fixes the name. Every other account takes those whose column or row has the account's name.
    """
    account, asked = terms.unit, unit.name
    if account == ENTITY and not unit.column and not unit.group and unit.contributions == 1:
        if asked in (ENTITY, terms.named) or not terms.named:
            return
        account = terms.named
    elif account == asked:
        return
    hint = f"say entity={account!r} if each row is one {account}; " if asked == ENTITY else ""
    raise RequestError(
        f"The account {terms.dataset!r} counts losses per {account!r}, this release protects "
        f"{asked!r}: the two do not add up. "
        f"If one {account} has to do with at most k of {asked}, a loss of ε here is one of k·ε "
        "there (ρ: k²·ρ), but only "
        f"reading can hold k: {hint}read with unit={account!r} and contributions=k, or open an "
        f"account for {asked!r}."
    )


def refuse_other_part(terms: Terms, part: Part | None, unit: Unit) -> None:
    """Refuse a part that the account does not have, or in which a unit may lie only partly."""
    parts = terms.parts
    if part is None:
        return
    if parts is None:
        raise RequestError(
            f"The account {terms.dataset!r} has no parts. Fix them with: tallytree ledger migrate "
            f"--dataset {terms.dataset} "
            f"--parts {part.column}=LABEL,LABEL,…; or filter with where={str(part)!r}, which is "
            "paid in full."
        )
    if not parts.covers(part.column, part.value):
        raise RequestError(
            f"{str(part)!r} is no part of the account {terms.dataset!r}; labels count exactly as "
            "written. "
            f"{_known(parts, part.value)} To filter without a part: where={str(part)!r}, which is "
            "paid in full."
        )
    if not unit.in_one_row and not parts.units_in_one_part:
        raise RequestError(
            f"The rows of one {unit.name} may lie in several parts, whose losses then add up. Open "
            "the account with "
            f"--units-in-one-part if each {unit.name} lies in one {parts.column}, or leave the "
            "part out."
        )


def _known(parts: Parts, asked: str) -> str:
    by_fold: dict[str, str] = {_folded(label): label for label in parts.labels}
    close = difflib.get_close_matches(_folded(asked), list(by_fold), n=1)
    shown: Sequence[str] = [by_fold[close[0]]] if close else parts.labels[:10]
    more = ", …" if len(shown) < len(parts.labels) else ""
    return f"Its parts: {', '.join(f'{parts.column}={label}' for label in shown)}{more}."
