"""Budget accounts that outlive the process: reserve first, then draw noise.

An account belongs to one data set and one privacy unit and has a total under one definition. Each release reserves its
part inside one transaction before any noise is drawn, so that no crash and no number of concurrent users can spend more
than the total: a crash loses budget, never privacy. Rows are only ever added.

A reservation is used once. Its idempotency key names the release: whoever asks again under the same key pays nothing and
gets :class:`~tallytree.errors.DuplicateReleaseError`, never a second draw of noise, because two draws for one payment
would reveal more than was paid for.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from tallytree.errors import BudgetError, DuplicateReleaseError, RequestError, VerificationError
from tallytree.model.confidential import ENTITY
from tallytree.privacy.budget import Budget, Definition
from tallytree.privacy.ledger_chain import (
    SYMBOL,
    Account,
    Entry,
    Kind,
    Receipt,
    cost_on_account,
    entry_from_row,
    parallel_charge,
    parts_spent,
    plain_number,
    summarise,
)

if TYPE_CHECKING:  # SQLAlchemy is loaded by the functions that open a ledger
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection


@dataclass(frozen=True)
class Part:
    """A part of the data in which each unit lies wholly or not at all: the rows whose public column has this value."""

    column: str
    value: str


@dataclass(frozen=True)
class Purpose:
    """What a reservation is for; recorded as it is, and public.

    Attributes
    ----------
    key
        Idempotency key; a random one when empty, so that every run pays for itself.
    summary
        One line in words.
    request_digest
        SHA-256 of the request, so that a key cannot be used again for another release.
    composition
        How the amount is made up: the tree of mechanisms, parallel composition included.
    """

    key: str = ""
    summary: str = ""
    request_digest: str = ""
    composition: dict[str, Any] | None = None


UNNAMED = Purpose()


@dataclass(frozen=True)
class _Standing:
    """What the next row of an account depends on."""

    opening: Entry
    last: Entry
    closed: bool
    reserved: Entry | None
    completed: Entry | None

    @property
    def remaining(self) -> Fraction:
        return self.opening.amount - self.last.spent

    def next_row(self, kind: Kind) -> Entry:
        """A row that charges nothing."""
        return Entry(
            dataset=self.opening.dataset,
            position=self.last.position + 1,
            kind=kind,
            recorded_at=_now(),
            definition=self.opening.definition,
            unit=self.opening.unit,
            amount=Fraction(0),
            charge=Fraction(0),
            spent=self.last.spent,
            previous_hash=self.last.hash,
        )


def create_account(ledger: str, dataset: str, budget: Budget, *, unit: str = ENTITY, note: str = "") -> Account:
    """Open the account of a data set.

    Parameters
    ----------
    ledger
        A path or ``sqlite:///path`` (made if it is not there), or ``postgresql://…``.
    dataset
        Name of the account.
    budget
        Definition and total.
    unit
        What one unit of privacy is; releases for another unit are refused, since their losses do not add up.
    """
    with _transaction(ledger, account=_name(dataset, "dataset"), create=True) as connection:
        if _read(connection, dataset):
            raise RequestError(f"The ledger already has an account for {dataset!r}. Accounts are never replaced.")
        opening = Entry(
            dataset=dataset,
            position=0,
            kind="create",
            recorded_at=_now(),
            definition=budget.definition,
            unit=_name(unit, "unit"),
            amount=budget.total,
            charge=Fraction(0),
            spent=Fraction(0),
            purpose=_line(note, "note"),
        )
        return summarise([_write(connection, opening)])


def reserve(
    ledger: str,
    dataset: str,
    budget: Budget,
    *,
    secure: bool,
    purpose: Purpose = UNNAMED,
    unit: str = ENTITY,
    part: Part | None = None,
) -> Entry:
    """Pay for a release before any noise is drawn.

    Parameters
    ----------
    budget
        What the release costs, under its own definition. Pure ε counts as ρ = ε²/2 on an account of zCDP.
    secure
        Whether the noise will come from the system's cryptographic randomness; an insecure seed is refused.
    part
        The release touches only this part of the data. Parts along one column compose in parallel: the account pays
        for the largest.

    Returns
    -------
    Entry
        The reservation; its :meth:`~Entry.receipt` belongs in the manifest.

    Raises
    ------
    BudgetError
        Not enough is left, or the account is closed.
    DuplicateReleaseError
        The key was used before; nothing is charged, and no noise may be drawn.
    """
    if not secure:
        raise RequestError(
            "A release made with an insecure seed is not private, so the ledger does not record it. Leave out the seed, or "
            "leave out the ledger."
        )
    key = _name(purpose.key, "idempotency key") if purpose.key else secrets.token_hex(16)
    with _transaction(ledger, account=_name(dataset, "dataset")) as connection:
        account = _standing(connection, dataset, key)
        entry = replace(
            account.next_row("reserve"),
            definition=budget.definition,
            unit=_name(unit, "unit"),
            amount=budget.total,
            key=key,
            part_of=_name(part.column, "part's column") if part else None,
            part=_name(part.value, "part's value") if part else None,
            purpose=_line(purpose.summary, "purpose"),
            digest=_line(purpose.request_digest, "request digest"),
            detail="" if purpose.composition is None else json.dumps(purpose.composition, sort_keys=True),
        )
        _refuse_duplicate(account, entry)
        _refuse_other_terms(account, entry)
        charge = _charge(connection, entry, account.opening.definition)
        if charge > account.remaining:
            raise _overspent(account, entry, charge)
        return _write(connection, replace(entry, charge=charge, spent=entry.spent + charge))


def complete(ledger: str, reservation: Entry, *, result_digest: str) -> Entry:
    """Mark a reservation's release as published; repeating the mark changes nothing."""
    with _transaction(ledger, account=reservation.dataset) as connection:
        account = _standing(connection, reservation.dataset, reservation.key)
        if account.reserved != reservation:
            raise RequestError(
                f"The ledger holds no reservation {reservation.key!r} as it was made; nothing to complete."
            )
        if account.completed is not None:
            if account.completed.digest != result_digest:
                raise RequestError(f"The reservation {reservation.key!r} is complete already, with another release.")
            return account.completed
        digest = _line(result_digest, "result digest")
        return _write(connection, replace(account.next_row("complete"), key=reservation.key, digest=digest))


def find_reservation(ledger: str, receipt: Receipt) -> Entry:
    """The reservation that a manifest's receipt speaks of."""
    dataset, position = str(receipt["dataset"]), int(receipt["position"])
    with _transaction(ledger) as connection:
        found = _read(connection, dataset, position=position)
    if not found or found[0].receipt() != receipt:
        raise VerificationError(f"The ledger holds no row {position} of {dataset!r} as the release recorded it.")
    return found[0]


def close_account(ledger: str, dataset: str, *, reason: str = "") -> Account:
    """Refuse every later reservation; releases under way may still be marked complete."""
    with _transaction(ledger, account=_name(dataset, "dataset")) as connection:
        account = _standing(connection, dataset)
        if account.closed:
            raise RequestError(f"The account {dataset!r} is closed already.")
        _write(connection, replace(account.next_row("close"), purpose=_line(reason, "reason")))
        return summarise(_read(connection, dataset))


def read_history(ledger: str, dataset: str) -> list[Entry]:
    """All rows of an account in order."""
    with _transaction(ledger) as connection:
        history = _read(connection, dataset)
        if not history:
            _no_account(connection, dataset)
        return history


def list_accounts(ledger: str) -> list[Account]:
    """All accounts of a ledger, by name."""
    with _transaction(ledger) as connection:
        return [summarise(_read(connection, name)) for name in _names(connection)]


def _charge(connection: Connection, entry: Entry, account: Definition) -> Fraction:
    cost = cost_on_account(entry.definition, entry.amount, account)
    if entry.part_of is None or entry.part is None:
        return cost
    earlier = _read(connection, entry.dataset, part_of=entry.part_of)
    return parallel_charge(cost, entry.part, parts_spent(earlier, account))


def _refuse_duplicate(account: _Standing, entry: Entry) -> None:
    earlier, done = account.reserved, account.completed
    if earlier is None:
        return
    asked, before = (
        (one.definition, one.amount, one.unit, one.part_of, one.part, one.digest) for one in (entry, earlier)
    )
    if asked != before:
        raise RequestError(
            f"The idempotency key {entry.key!r} belongs to another release. Choose a new key for this one."
        )
    if done is not None:
        raise DuplicateReleaseError(
            f"The release under the idempotency key {entry.key!r} was published at {done.recorded_at}. Nothing was charged; "
            "use that release. To pay for another one, choose a new key.",
            released=True,
            receipt=earlier.receipt(),
            result_digest=done.digest,
        )
    raise DuplicateReleaseError(
        f"A run under the idempotency key {entry.key!r} reserved its budget at {earlier.recorded_at} and has not reported a "
        "release: it is still running or it crashed. Its noise may have been seen and cannot be drawn again, so its budget "
        "stays spent. To pay for a new release, choose a new key.",
        released=False,
        receipt=earlier.receipt(),
    )


def _refuse_other_terms(account: _Standing, entry: Entry) -> None:
    if account.closed:
        raise BudgetError(
            f"The account {entry.dataset!r} is closed; no more budget is given.", entry.amount, Fraction(0)
        )
    if entry.unit != account.opening.unit:
        raise RequestError(
            f"The account {entry.dataset!r} counts losses per {account.opening.unit!r}, this release protects {entry.unit!r}: "
            "the two do not add up. Release for the account's unit, or open another account."
        )


def _overspent(account: _Standing, entry: Entry, charge: Fraction) -> BudgetError:
    symbol = SYMBOL[account.opening.definition]
    asked = f"{SYMBOL[entry.definition]} = {plain_number(entry.amount)}"
    counted = "" if charge == entry.amount else f", which counts as {symbol} = {plain_number(charge)} here"
    left, total = plain_number(account.remaining), plain_number(account.opening.amount)
    return BudgetError(
        f"The account {entry.dataset!r} has {symbol} = {left} left of {total}; the release asks for {asked}{counted}. "
        "Nothing was released. Ask for less.",
        requested=charge,
        remaining=account.remaining,
    )


def _standing(connection: Connection, dataset: str, key: str | None = None) -> _Standing:
    """Read the rows that decide what may be added to an account; their seals must hold."""
    from tallytree.privacy.ledger_tables import DECIDING_ROWS

    found = connection.execute(DECIDING_ROWS, {"dataset": dataset, "key": key})
    by_position = {row.position: row for row in (entry_from_row(row._asdict()) for row in found)}
    rows = [by_position[position] for position in sorted(by_position)]
    if not rows:
        _no_account(connection, dataset)
    if any(row.seal() != row.hash for row in rows) or rows[0].kind != "create":
        raise VerificationError(
            f"The rows of the account {dataset!r} were edited; nothing more is recorded on it. See: tallytree ledger verify",
            failures=("a row does not match its hash",),
        )
    under_key = {row.kind: row for row in rows if key is not None and row.key == key}
    return _Standing(
        opening=rows[0],
        last=rows[-1],
        closed=any(row.kind == "close" for row in rows),
        reserved=under_key.get("reserve"),
        completed=under_key.get("complete"),
    )


def _transaction(
    ledger: str, *, account: str | None = None, create: bool = False
) -> AbstractContextManager[Connection]:
    # SQLAlchemy takes longer to load than a release without a ledger takes to measure.
    from tallytree.privacy.ledger_tables import ledger_transaction

    return ledger_transaction(ledger, account=account, create=create)


def _read(connection: Connection, dataset: str, **values: str | int) -> list[Entry]:
    """Rows of an account whose columns have the given values, in order."""
    from tallytree.privacy.ledger_tables import rows_of

    return [entry_from_row(row._asdict()) for row in connection.execute(rows_of(dataset, **values))]


def _write(connection: Connection, entry: Entry) -> Entry:
    from tallytree.privacy.ledger_tables import entries

    sealed = replace(entry, hash=entry.seal())
    connection.execute(entries.insert().values(sealed.as_row()))
    return sealed


def _names(connection: Connection) -> Sequence[str]:
    from tallytree.privacy.ledger_tables import ACCOUNT_NAMES

    return connection.execute(ACCOUNT_NAMES).scalars().all()


def _no_account(connection: Connection, dataset: str) -> NoReturn:
    known = ", ".join(repr(name) for name in _names(connection)[:10]) or "none"
    raise RequestError(
        f"The ledger has no account {dataset!r}. Accounts: {known}. To open one: tallytree ledger create"
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _name(text: str, what: str) -> str:
    if not text.strip() or len(text) > 200:
        raise RequestError(f"The {what} must have 1 to 200 characters.")
    return _line(text, what)


def _line(text: str, what: str) -> str:
    # Surrogates, NUL and other control characters cannot be stored alike by both databases.
    if not text.isprintable():
        raise RequestError(f"The {what} must be one line of printable characters.")
    return text
