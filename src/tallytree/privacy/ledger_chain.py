"""Ledger rows and what they add up to, without a database.

An account is a list of :class:`Entry` rows, each sealed by a SHA-256 over its fields and the seal of the row before, so
that an edited, inserted or removed row is noticed. Everything here can be recomputed from an exported history alone.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal

from tallytree.errors import InputError, RequestError
from tallytree.privacy.budget import Definition

Kind = Literal["create", "reserve", "complete", "close"]
Receipt = dict[str, str | int]

FORMAT = "tallytree-ledger-1"
"""Opens every seal; a change of the fields or of their meaning needs another name."""

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
        ``create``, ``reserve``, ``complete`` (the release of a reservation is out) or ``close``.
    definition, amount
        ``create``: the account's definition and total. ``reserve``: those of the release. Otherwise an amount of 0.
    charge, spent
        What the row adds to the account's loss, in the account's definition, and the loss after the row.
    unit
        What one unit of privacy is; the same on all rows of an account.
    key
        Idempotency key of a reservation and of its completion.
    part_of, part
        A reservation that touches only the part ``part`` of the data along the public column ``part_of``.
    purpose, detail
        In words, and as JSON: what the reservation is for and how its amount is made up.
    digest
        ``reserve``: SHA-256 of the request; ``complete``: SHA-256 of the manifest.
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

    def as_row(self) -> dict[str, str | int | None]:
        """The fields as stored and exported: exact rationals as text (``"1/10"``)."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: rational_text(value) if isinstance(value, Fraction) else value for name, value in values}

    def seal(self) -> str:
        """SHA-256 over the format's name and all fields but ``hash``, as a JSON list without spaces, ASCII only."""
        row = self.as_row()
        listed = [FORMAT] + [row[field.name] for field in fields(self) if field.name != "hash"]
        return hashlib.sha256(json.dumps(listed, separators=(",", ":")).encode("ascii")).hexdigest()

    def receipt(self) -> Receipt:
        """What a manifest records of a reservation: enough to notice when the ledger later loses or changes the row."""
        return {
            "dataset": self.dataset,
            "position": self.position,
            "key": self.key or "",
            "definition": self.definition,
            "amount": rational_text(self.amount),
            "charge": rational_text(self.charge),
            "hash": self.hash,
        }


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

    @property
    def remaining(self) -> Fraction:
        """What can still be reserved."""
        return self.total - self.spent


def rational_text(value: Fraction) -> str:
    """An exact rational as text, ``"3"`` or ``"1/10"``."""
    if max(value.denominator, abs(value.numerator)).bit_length() > 10_000:
        raise RequestError(
            "The account's exact sum would need thousands of digits, because its amounts have unrelated denominators. "
            "Give amounts as decimals, such as 0.1."
        )
    return str(value)


def plain_number(value: Fraction) -> str:
    """An exact rational for people: ``0.1`` where the decimal ends soon, ``1/3`` otherwise."""
    for digits in range(13):
        if (value * 10**digits).denominator == 1:
            sign, whole = "-" if value < 0 else "", abs(int(value * 10**digits))
            return f"{sign}{whole // 10**digits}" + (f".{whole % 10**digits:0{digits}d}" if digits else "")
    return str(value)


def entry_from_row(row: Mapping[str, Any]) -> Entry:
    """Read a stored or exported row; amounts are exact rationals as text, as :meth:`Entry.as_row` writes them."""
    try:
        known = {field.name: row[field.name] for field in fields(Entry)}
        known["position"] = int(known["position"])
        for name in ("amount", "charge", "spent"):
            known[name] = Fraction(known[name])
        return Entry(**known)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        raise InputError(f"A row of the ledger cannot be read: {FORMAT} is expected, with all of its fields.") from None


def cost_on_account(definition: Definition, amount: Fraction, account: Definition) -> Fraction:
    """What a release counts on an account: as it is, or ε²/2 for a pure release on a zCDP account.

    ε-DP implies ε²/2-zCDP (Bun and Steinke 2016, Proposition 1.4). There is no way back: zCDP implies no pure guarantee.
    """
    if definition == account:
        return amount
    if account == "zcdp":
        return amount * amount / 2
    raise RequestError(
        f"A release under zCDP (ρ = {plain_number(amount)}) cannot be charged to an account of pure ε: zCDP implies no pure "
        "guarantee. Release under the definition 'pure', or open an account with a total of ρ."
    )


def parts_spent(earlier: Iterable[Entry], account: Definition) -> dict[str, Fraction]:
    """Loss per part, from the earlier reservations along one partition."""
    spent: dict[str, Fraction] = defaultdict(Fraction)
    for entry in earlier:
        spent[entry.part or ""] += cost_on_account(entry.definition, entry.amount, account)
    return spent


def parallel_charge(cost: Fraction, part: str, spent_by_part: Mapping[str, Fraction]) -> Fraction:
    """What a release on one part of a partition adds to the account: parallel composition charges the largest part."""
    highest = max(spent_by_part.values(), default=Fraction(0))
    return max(Fraction(0), spent_by_part.get(part, Fraction(0)) + cost - highest)


def summarise(history: Sequence[Entry]) -> Account:
    """The account that a history leaves; the history is taken as it is, see :func:`check_history`."""
    first, last = history[0], history[-1]
    reserved = [entry.key or "" for entry in history if entry.kind == "reserve"]
    completed = {entry.key for entry in history if entry.kind == "complete"}
    return Account(
        dataset=first.dataset,
        definition=first.definition,
        unit=first.unit,
        total=first.amount,
        spent=last.spent,
        closed=any(entry.kind == "close" for entry in history),
        n_reservations=len(reserved),
        unfinished=tuple(key for key in reserved if key not in completed),
        created_at=first.recorded_at,
        head=last.hash,
    )


def check_history(history: Sequence[Entry], receipts: Iterable[Receipt] = ()) -> list[str]:
    """Every way in which an account's history does not hold together; empty when it does.

    Parameters
    ----------
    history
        All rows of one account in order.
    receipts
        What the manifests of releases recorded. A chain cannot show that its last rows were cut off, or that all of it
        was written anew; the receipts can.
    """
    if not history:
        return ["the account has no rows"]
    return _check_seals(history) + _check_sums(history) + _check_receipts(history, receipts)


def _check_seals(history: Sequence[Entry]) -> list[str]:
    failures = []
    previous_hash = NO_HASH
    for position, entry in enumerate(history):
        if entry.position != position:
            failures.append(f"row {entry.position}: row {position} is expected here, rows are missing or out of order")
        if entry.seal() != entry.hash:
            failures.append(f"row {entry.position}: its contents do not match its hash, it was edited")
        if entry.previous_hash != previous_hash:
            failures.append(f"row {entry.position}: it does not follow the row before it")
        previous_hash = entry.hash
    return failures


def _check_sums(history: Sequence[Entry]) -> list[str]:
    failures = []
    first = history[0]
    spent = Fraction(0)
    reserved: set[str | None] = set()
    completed: set[str | None] = set()
    partitions: dict[str, dict[str, Fraction]] = defaultdict(dict)
    closed = False
    for entry in history:
        where = f"row {entry.position}"
        if (entry.kind == "create") != (entry is first):
            failures.append(f"{where}: an account is opened by its first row and only there")
        if entry.dataset != first.dataset or entry.unit != first.unit:
            failures.append(f"{where}: it belongs to another account or privacy unit")
        charge = Fraction(0)
        if entry.kind == "reserve":
            if closed or entry.key in reserved:
                failures.append(f"{where}: it reserves after the account was closed, or under a used key")
            charge = _charge_of(entry, partitions, first.definition)
            reserved.add(entry.key)
        elif entry.kind == "complete":
            if entry.key not in reserved or entry.key in completed:
                failures.append(f"{where}: it completes no reservation, or one that is complete")
            completed.add(entry.key)
        closed |= entry.kind == "close"
        spent += charge
        if entry.charge != charge or entry.spent != spent:
            failures.append(f"{where}: the charge or the running total does not add up")
        if spent > first.amount:
            failures.append(f"{where}: more is reserved than the account's total")
    return failures


def _charge_of(entry: Entry, partitions: dict[str, dict[str, Fraction]], account: Definition) -> Fraction:
    if entry.definition != account and account != "zcdp":
        return Fraction(-1)  # No sound charge exists, so whatever the row says does not add up.
    cost = cost_on_account(entry.definition, entry.amount, account)
    if entry.part_of is None:
        return cost
    spent_by_part = partitions[entry.part_of]
    part = entry.part or ""
    charge = parallel_charge(cost, part, spent_by_part)
    spent_by_part[part] = spent_by_part.get(part, Fraction(0)) + cost
    return charge


def _check_receipts(history: Sequence[Entry], receipts: Iterable[Receipt]) -> list[str]:
    by_position = {entry.position: entry for entry in history}
    failures = []
    for receipt in receipts:
        entry = by_position.get(int(receipt["position"]))
        if entry is None or entry.receipt() != receipt:
            failures.append(f"row {receipt['position']}: a release was paid for here, and the ledger no longer says so")
    return failures


def history_as_json(history: Sequence[Entry]) -> str:
    """The history as one JSON object: the format's name and one object per row."""
    return json.dumps(
        {"format": FORMAT, "entries": [entry.as_row() for entry in history]}, indent=1, ensure_ascii=False
    )


def history_from_json(exported: str) -> list[Entry]:
    """Read back what :func:`history_as_json` wrote."""
    try:
        contents = json.loads(exported)
        rows = contents["entries"] if contents["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError):
        rows = None
    if not isinstance(rows, list):
        raise InputError(f"This is not an exported ledger history: an object of format {FORMAT} is expected.")
    return [entry_from_row(row) for row in rows]


def history_as_csv(history: Sequence[Entry]) -> str:
    """The history as CSV, one line per row, with a header; an empty ``key``, ``part_of`` or ``part`` stands for none."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Entry)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(entry.as_row() for entry in history)
    return text.getvalue()
