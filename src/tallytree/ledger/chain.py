"""Ledger rows and what they add up to, without a database.

An account is a list of :class:`Entry` rows, each sealed by a SHA-256 over its fields and the seal
of the row before, so that an edited, inserted or removed row is noticed. Everything here can be
recomputed from an exported history alone.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal, get_args

from tallytree.errors import InputError, RequestError
from tallytree.ledger.terms import Parts, Terms, parts_of
from tallytree.model.nested import parse_json
from tallytree.privacy.budget import Definition, plain_number

Kind = Literal["create", "terms", "reserve", "measured", "complete", "advance", "close"]
Receipt = dict[str, str | int]

ACCOUNT = "account"
"""Of a receipt in a manifest: the hash of the row that opened the account, which tells accounts of
one name in several ledgers apart."""

FORMAT = "tallytree-ledger-1"
"""Format of rows. It opens a row's seal; a change of the fields or of their meaning needs another name."""

# Beyond any that :func:`rational_text` writes; exponents, which would take all memory, are none of
# ours.
_RATIONAL = re.compile(r"-?[0-9]{1,3100}(/[0-9]{1,3100})?")

NO_HASH = "0" * 64
SYMBOL: dict[str, str] = {"pure": "ε", "zcdp": "ρ"}


@dataclass(frozen=True)
class Entry:
    """One row of an account; rows are only ever added.

    Attributes
    ----------
    position
        0 for the row that opens the account, then counting up without gaps.
    kind
        ``create``; ``terms`` (parts or the name of the unit are fixed later); ``reserve``;
        ``measured`` (the noisy answers of a reservation are kept); ``complete`` (its release is
        out); ``advance`` (a stream leaves a step, and further ones are drawn); or ``close``.
    definition, amount
        ``create``: the account's definition and total. ``reserve``: those of the release. Otherwise
        an amount of 0.
    charge, spent
        What the row adds to the account's loss, in the account's definition, and the loss after the
        row.
    unit
        What one unit of privacy is. ``reserve``: the unit that the release protects, by its name.
    key
        Idempotency key of a reservation, of its measurement and of its completion. ``advance``, and
        the measurement of what follows: the step that is left, a space, and the key; so no step is
        left twice.
    part_of, part
        A reservation that touches only the part ``part`` of the data along the public column
        ``part_of``.
    purpose, detail
        In words, and as JSON: what the reservation is for and how its amount is made up. ``create``
        and ``terms``: the account's parts. ``advance``: the step that is reached, and the run.
    digest
        SHA-256: ``reserve``: of the request; ``measured``: of the noisy answers; ``complete``: of
        the manifest; ``advance``: of the noisy rows that are released.
    format
        :data:`FORMAT`.
    """

    dataset: str
    position: int
    kind: Kind
    recorded_at: str
    definition: Definition
    unit: str
    amount: Fraction
    charge: Fraction
    spent: Fraction
    key: str | None = None
    part_of: str | None = None
    part: str | None = None
    purpose: str = ""
    digest: str = ""
    detail: str = ""
    previous_hash: str = NO_HASH
    hash: str = ""
    format: str = FORMAT

    def as_row(self) -> dict[str, str | int | None]:
        """The fields as stored and exported, the format first: exact rationals as text
        (``"1/10"``).
        """
        values = ((name, getattr(self, name)) for name in COLUMNS)
        return {
            name: rational_text(value) if isinstance(value, Fraction) else value
            for name, value in values
        }

    def seal(self) -> str:
        """SHA-256 over all fields but ``hash``, the format first, as a JSON list without spaces,
        ASCII only.
        """
        listed = [value for name, value in self.as_row().items() if name != "hash"]
        return hashlib.sha256(json.dumps(listed, separators=(",", ":")).encode("ascii")).hexdigest()

    def receipt(self) -> Receipt:
        """What a manifest records of a reservation: enough to notice when the ledger later loses or
        changes the row.
        """
        named = self.part_of is not None and self.part is not None
        return {
            "dataset": self.dataset,
            "position": self.position,
            "key": self.key or "",
            "definition": self.definition,
            "amount": rational_text(self.amount),
            "charge": rational_text(self.charge),
            "hash": self.hash,
            **({"part_of": self.part_of or "", "part": self.part or ""} if named else {}),
        }


def holds_receipt(entry: Entry, receipt: Receipt) -> bool:
    """Whether a row is the one that a receipt speaks of."""
    return entry.receipt() == {name: fact for name, fact in receipt.items() if name != ACCOUNT}


COLUMNS = ("format", *(field.name for field in fields(Entry) if field.name != "format"))
"""The fields of a row in the order in which they are sealed and exported."""


@dataclass(frozen=True)
class Account:
    """An account as its rows leave it."""

    dataset: str
    definition: Definition
    unit: str
    total: Fraction
    spent: Fraction
    closed: bool
    n_reservations: int
    unfinished: tuple[str, ...]
    created_at: str
    head: str
    measured: tuple[str, ...] = ()
    parts: Parts | None = None

    @property
    def remaining(self) -> Fraction:
        """What can still be reserved."""
        return self.total - self.spent


def rational_text(value: Fraction) -> str:
    """An exact rational as text, ``"3"`` or ``"1/10"``."""
    if max(value.denominator, abs(value.numerator)).bit_length() > 10_000:
        raise RequestError(
            "The account's exact sum would need thousands of digits, because its amounts have "
            "unrelated denominators. "
            "Give amounts as decimals, such as 0.1."
        )
    return str(value)


def entry_from_row(row: Mapping[str, Any]) -> Entry:
    """Read a stored or exported row; amounts are exact rationals as text, as :meth:`Entry.as_row`
    writes them.
    """
    try:
        return Entry(**{name: _field(name, row[name]) for name in COLUMNS})
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        raise InputError(
            f"A row of the ledger cannot be read: {FORMAT} is expected, with all of its fields."
        ) from None


def _field(name: str, value: Any) -> Any:
    """A field as :class:`Entry` holds it; databases and files may hold anything."""
    if name == "position":
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError
        return int(value)
    if value is None and name in ("key", "part_of", "part"):
        return None
    if not isinstance(value, str):
        raise TypeError
    if name in ("amount", "charge", "spent"):
        if not _RATIONAL.fullmatch(value):
            raise ValueError
        return Fraction(value)
    known: Mapping[str, tuple[str, ...]] = {
        "kind": get_args(Kind),
        "definition": tuple(SYMBOL),
        "format": (FORMAT,),
    }
    if value not in known.get(name, (value,)):
        raise ValueError
    return value


def cost_on_account(definition: Definition, amount: Fraction, account: Definition) -> Fraction:
    """What a release counts on an account: as it is, or ε²/2 for a pure release on a zCDP account.

    ε-DP implies ε²/2-zCDP (Bun and Steinke 2016, Proposition 1.4). There is no way back: zCDP
    implies no pure guarantee.
    """
    if definition == account:
        return amount
    if account == "zcdp":
        return amount * amount / 2
    raise RequestError(
        f"A release under zCDP (ρ = {plain_number(amount)}) cannot be charged to an account of "
        "pure ε: zCDP implies no pure "
        "guarantee. Release under the definition 'pure', or open an account with a total of ρ."
    )


def parts_spent(earlier: Iterable[Entry], account: Definition) -> dict[str, Fraction]:
    """Loss per part, from the earlier reservations along one partition."""
    spent: dict[str, Fraction] = defaultdict(Fraction)
    for entry in earlier:
        spent[entry.part or ""] += cost_on_account(entry.definition, entry.amount, account)
    return spent


def parallel_charge(cost: Fraction, part: str, spent_by_part: Mapping[str, Fraction]) -> Fraction:
    """What a release on one part of a partition adds to the account: parallel composition charges
    the largest part.
    """
    highest = max(spent_by_part.values(), default=Fraction(0))
    return max(Fraction(0), spent_by_part.get(part, Fraction(0)) + cost - highest)


def terms_of(rows: Iterable[Entry]) -> Terms:
    """What the rows of an account fix: its first row and those of kind ``terms``; a reservation's
    name for its row.
    """
    opening, *later = sorted(rows, key=lambda row: row.position)
    terms = Terms(opening.dataset, opening.unit, parts_of(opening.detail))
    for row in later:
        if row.kind == "terms":
            terms = Terms(terms.dataset, row.unit, parts_of(row.detail) or terms.parts, terms.named)
        elif row.kind == "reserve" and row.unit != terms.unit and not terms.named:
            terms = Terms(terms.dataset, terms.unit, terms.parts, row.unit)
    return terms


def summarise(history: Sequence[Entry]) -> Account:
    """The account that a history leaves; the history is taken as it is, see
    :func:`~tallytree.ledger.checks.check_history`.
    """
    first, last = history[0], history[-1]
    keys = {
        kind: [entry.key or "" for entry in history if entry.kind == kind]
        for kind in ("reserve", "measured", "complete")
    }
    completed, measured = set(keys["complete"]), set(keys["measured"])
    unfinished = tuple(key for key in keys["reserve"] if key not in completed)
    terms = terms_of(history)
    return Account(
        dataset=first.dataset,
        definition=first.definition,
        unit=terms.unit,
        total=first.amount,
        spent=last.spent,
        closed=any(entry.kind == "close" for entry in history),
        n_reservations=len(keys["reserve"]),
        unfinished=unfinished,
        created_at=first.recorded_at,
        head=last.hash,
        measured=tuple(key for key in unfinished if key in measured),
        parts=terms.parts,
    )


def history_as_json(history: Sequence[Entry]) -> str:
    """The history as one JSON object: the format's name and one object per row, which begins with
    its own.
    """
    return json.dumps(
        {"format": FORMAT, "entries": [entry.as_row() for entry in history]},
        indent=1,
        ensure_ascii=False,
    )


def history_from_json(exported: str) -> list[Entry]:
    """Read back what :func:`history_as_json` wrote."""
    try:
        contents = parse_json(exported)
        form, rows = contents["format"], contents["entries"]
    except (ValueError, KeyError, TypeError):
        form, rows = None, None
    if form != FORMAT or not isinstance(rows, list):
        raise InputError(
            f"This is not an exported ledger history: an object of format {FORMAT} is expected."
        )
    return [entry_from_row(row) for row in rows]


def history_as_csv(history: Sequence[Entry]) -> str:
    """The history as CSV, one line per row, with a header; an empty ``key``, ``part_of`` or
    ``part`` stands for none.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(entry.as_row() for entry in history)
    return text.getvalue()
