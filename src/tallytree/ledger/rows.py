"""Reading and adding rows of one account inside a transaction; used by
:mod:`tallytree.ledger.accounts` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NoReturn

from sqlalchemy import Connection, insert, select

from tallytree.errors import InputError, RequestError, VerificationError
from tallytree.ledger.chain import Entry, Kind, entry_from_row, terms_of
from tallytree.ledger.schema import DECIDING_ROWS, entries
from tallytree.ledger.terms import Terms


@dataclass(frozen=True)
class Standing:
    """What the next row of an account depends on; the rows under a key are None where there are
    none.
    """

    opening: Entry
    last: Entry
    terms: Terms
    closed: bool
    reserved: Entry | None
    measured: Entry | None
    completed: Entry | None
    advanced: Entry | None

    @property
    def remaining(self) -> Fraction:
        """What can still be reserved."""
        return self.opening.amount - self.last.spent

    def next_row(self, kind: Kind) -> Entry:
        """A row that charges nothing."""
        return Entry(
            dataset=self.opening.dataset,
            position=self.last.position + 1,
            kind=kind,
            recorded_at=now(),
            definition=self.opening.definition,
            unit=self.terms.unit,
            amount=Fraction(0),
            charge=Fraction(0),
            spent=self.last.spent,
            previous_hash=self.last.hash,
        )


def standing(ledger: Connection, dataset: str, key: str | None = None) -> Standing:
    """Read the rows that decide what may be added to an account; their seals must hold."""
    found = ledger.execute(DECIDING_ROWS, {"dataset": dataset, "key": key})
    by_position = {row.position: row for row in (entry_from_row(one._asdict()) for one in found)}
    rows = [by_position[position] for position in sorted(by_position)]
    if not rows:
        no_account(ledger, dataset)
    refuse_edited(rows)
    if rows[0].kind != "create":
        raise edited(dataset)
    under_key = {row.kind: row for row in rows if key is not None and row.key == key}
    return Standing(
        opening=rows[0],
        last=rows[-1],
        terms=terms_of(rows),
        closed=any(row.kind == "close" for row in rows),
        reserved=under_key.get("reserve"),
        measured=under_key.get("measured"),
        completed=under_key.get("complete"),
        advanced=under_key.get("advance"),
    )


def refuse_edited(rows: Sequence[Entry]) -> None:
    """Refuse rows that do not match their seals."""
    if any(row.seal() != row.hash for row in rows):
        raise edited(rows[0].dataset)


def edited(dataset: str) -> VerificationError:
    """What is said about an account that somebody changed."""
    return VerificationError(
        f"The rows of the account {dataset!r} were edited; nothing more is recorded on it. See: "
        "tallytree ledger verify",
        failures=("a row does not match its hash",),
    )


def read_rows(ledger: Connection, dataset: str, **conditions: Any) -> list[Entry]:
    """The rows of an account in order, those whose columns have the given values."""
    query = select(entries).where(
        entries.c.dataset == dataset,
        *(entries.c[name] == value for name, value in conditions.items()),
    )
    found = ledger.execute(query.order_by(entries.c.position))
    return [entry_from_row(row._asdict()) for row in found]


def account_names(ledger: Connection) -> list[str]:
    """All accounts."""
    name = entries.c.dataset
    names = list(ledger.execute(select(name).distinct().order_by(name)).scalars())
    if not all(isinstance(one, str) for one in names):
        raise InputError(
            "A row of the ledger cannot be read: it belongs to no account. The ledger is damaged."
        )
    return names


def write_row(ledger: Connection, entry: Entry) -> Entry:
    """Seal a row and add it."""
    sealed = replace(entry, hash=entry.seal())
    ledger.execute(insert(entries).values(sealed.as_row()))
    return sealed


def account_rows(ledger: Connection, dataset: str) -> list[Entry]:
    """All rows of an account in order; refuses when there are none."""
    rows = read_rows(ledger, dataset)
    if not rows:
        no_account(ledger, dataset)
    return rows


def no_account(ledger: Connection, dataset: str) -> NoReturn:
    """Refuse an account that is not there, naming those that are."""
    known = ", ".join(repr(name) for name in account_names(ledger)[:10]) or "none"
    raise RequestError(
        f"The ledger has no account {dataset!r}. Accounts: {known}. To open one: tallytree ledger "
        "create"
    )


def now() -> str:
    """The time of a row."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def name_text(text: str, what: str) -> str:
    """A name that every database stores alike."""
    if not text.strip() or len(text) > 200:
        raise RequestError(f"The {what} must have 1 to 200 characters.")
    return line_text(text, what)


def line_text(text: str, what: str) -> str:
    """One line that every database stores alike: surrogates, NUL and other control characters are
    not.
    """
    if not text.isprintable():
        raise RequestError(f"The {what} must be one line of printable characters.")
    return text
