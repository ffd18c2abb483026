"""Budget accounts that outlive the process: reserve first, then draw noise.

An account belongs to one data set and one privacy unit and has a total under one definition. Each
release reserves its part inside one transaction before any noise is drawn, so that no crash and no
number of concurrent users can spend more than the total: a crash loses budget, never privacy. Rows
are only ever added.

A reservation is used once. Its idempotency key names the release: whoever asks again under the same
key pays nothing and gets :class:`~tallytree.errors.DuplicateReleaseError`, never a second draw of
noise, because two draws for one payment would reveal more than was paid for. What it measured may
be noted (:func:`note_measured`), so that a run that died can be found (:func:`find_open`) and
finished from its kept answers.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from tallytree.errors import BudgetError, DuplicateReleaseError, RequestError, VerificationError
from tallytree.ledger.chain import (
    SYMBOL,
    Account,
    Entry,
    Receipt,
    cost_on_account,
    holds_receipt,
    parallel_charge,
    parts_spent,
    summarise,
)
from tallytree.ledger.checks import check_manifest
from tallytree.ledger.rows import (
    Standing,
    account_names,
    account_rows,
    line_text,
    name_text,
    now,
    read_rows,
    refuse_edited,
    standing,
    write_row,
)
from tallytree.ledger.tables import ledger_transaction
from tallytree.ledger.terms import (
    Parts,
    Terms,
    detail_of,
    refuse_other_part,
    refuse_other_unit,
    unit_from,
)
from tallytree.model.part import Part
from tallytree.model.unit import ENTITY, UNNAMED, Unit
from tallytree.privacy.budget import Budget, Definition, plain_number


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


UNNAMED_PURPOSE = Purpose()


@dataclass(frozen=True)
class OpenReservation:
    """A reservation whose release is not out; ``measured_digest`` is empty where no measurement was
    noted.
    """

    reservation: Entry
    measured_digest: str = ""


def create_account(
    ledger: str,
    dataset: str,
    budget: Budget,
    *,
    unit: str = ENTITY,
    parts: Parts | None = None,
    note: str = "",
) -> Account:
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
        Name of one unit of privacy: of a row (``"person"``) or of the column that names it.
        Releases for another unit are refused, since their losses do not add up. ``"entity"`` takes
        any row, until a release gives it a name.
    parts
        The public parts that are paid for side by side; none if not given.
    """
    with ledger_transaction(ledger, account=name_text(dataset, "dataset"), create=True) as opened:
        if read_rows(opened, dataset):
            raise RequestError(
                f"The ledger already has an account for {dataset!r}. Accounts are never replaced."
            )
        opening = Entry(
            dataset=dataset,
            position=0,
            kind="create",
            recorded_at=now(),
            definition=budget.definition,
            unit=ENTITY if unit in UNNAMED else name_text(unit, "unit"),
            amount=budget.total,
            charge=Fraction(0),
            spent=Fraction(0),
            purpose=line_text(note, "note"),
            detail=_checked_detail(parts),
        )
        return summarise([write_row(opened, opening)])


def migrate_account(
    ledger: str, dataset: str, *, unit: str = ENTITY, parts: Parts | None = None
) -> Account:
    """Fix, once and for good, what an account left open: its parts, or the name of its unit.

    Without ``unit`` and ``parts`` nothing changes.
    """
    with ledger_transaction(ledger, account=name_text(dataset, "dataset")) as opened:
        account = standing(opened, dataset)
        unit = account.terms.unit if unit in UNNAMED else name_text(unit, "unit")
        if unit != account.terms.unit or parts is not None:
            _refuse_fixed_terms(account.terms, unit, parts)
            write_row(
                opened, replace(account.next_row("terms"), unit=unit, detail=_checked_detail(parts))
            )
        return summarise(read_rows(opened, dataset))


def _refuse_fixed_terms(terms: Terms, unit: str, parts: Parts | None) -> None:
    """Refuse to fix what is fixed."""
    if parts is not None and terms.parts is not None:
        raise RequestError(
            f"The account {terms.dataset!r} has its parts already; they never change."
        )
    if unit != terms.unit and (terms.unit != ENTITY or terms.named not in ("", unit)):
        raise RequestError(
            f"The account {terms.dataset!r} counts losses per {terms.named or terms.unit!r} "
            "already; its unit never changes."
        )


def _checked_detail(parts: Parts | None) -> str:
    if parts is not None:
        name_text(parts.column, "parts' column")
        for label in parts.labels:
            name_text(label, "label of a part")
    return detail_of(parts)


def reserve(
    ledger: str,
    dataset: str,
    budget: Budget,
    *,
    secure: bool,
    purpose: Purpose = UNNAMED_PURPOSE,
    unit: str | Unit = ENTITY,
    part: Part | None = None,
) -> Entry:
    """Pay for a release before any noise is drawn.

    Parameters
    ----------
    budget
        What the release costs, under its own definition. Pure ε counts as ρ = ε²/2 on an account of
        zCDP.
    secure
        Whether the noise will come from the system's cryptographic randomness; an insecure seed is
        refused.
    unit
        What the release protects: ``"entity"`` for one row, a column, or a :class:`Unit` with all
        that is known.
    part
        The release touches only this part of the data, one of the account's. Parts compose in
        parallel: the account pays for the largest. That only rows of the part were read is for the
        caller to see to.

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
            "A release made with an insecure seed is not private, so the ledger does not record "
            "it. Leave out the seed, or "
            "leave out the ledger."
        )
    key = name_text(purpose.key, "idempotency key") if purpose.key else secrets.token_hex(16)
    protected = unit_from(unit)
    with ledger_transaction(ledger, account=name_text(dataset, "dataset")) as opened:
        account = standing(opened, dataset, key)
        entry = replace(
            account.next_row("reserve"),
            definition=budget.definition,
            unit=name_text(protected.name, "unit"),
            amount=budget.total,
            key=key,
            part_of=name_text(part.column, "part's column") if part else None,
            part=name_text(part.value, "part's value") if part else None,
            purpose=line_text(purpose.summary, "purpose"),
            digest=line_text(purpose.request_digest, "request digest"),
            detail=""
            if purpose.composition is None
            else json.dumps(purpose.composition, sort_keys=True),
        )
        _refuse_duplicate(account, entry)
        if account.closed:
            raise BudgetError(
                f"The account {dataset!r} is closed; no more budget is given.",
                budget.total,
                Fraction(0),
            )
        refuse_other_unit(account.terms, protected)
        refuse_other_part(account.terms, part, protected)
        charge = _charge(opened, entry, account.terms.parts, account.opening.definition)
        if charge > account.remaining:
            raise _overspent(account, entry, charge)
        return write_row(opened, replace(entry, charge=charge, spent=entry.spent + charge))


def note_measured(ledger: str, reservation: Entry, *, digest: str) -> Entry:
    """Note that the noisy answers of a reservation are kept, by their SHA-256; repeating the note
    changes nothing.

    From then on everything is post-processing of these answers: no others may be drawn for the
    reservation.
    """
    with ledger_transaction(ledger, account=reservation.dataset) as opened:
        account = _of_reservation(opened, reservation, "measure")
        found = account.measured
        if found is not None:
            if found.digest != digest:
                raise RequestError(
                    f"The reservation {reservation.key!r} was measured already, with other answers."
                )
            return found
        if account.completed is not None:
            raise RequestError(
                f"The reservation {reservation.key!r} is complete already; nothing is left to "
                "measure."
            )
        noted = name_text(digest, "digest of the noisy answers")
        return write_row(
            opened, replace(account.next_row("measured"), key=reservation.key, digest=noted)
        )


def complete(ledger: str, reservation: Entry, *, result_digest: str) -> Entry:
    """Mark a reservation's release as published; repeating the mark changes nothing."""
    with ledger_transaction(ledger, account=reservation.dataset) as opened:
        account = _of_reservation(opened, reservation, "complete")
        found = account.completed
        if found is not None:
            if found.digest != result_digest:
                raise RequestError(
                    f"The reservation {reservation.key!r} is complete already, with another "
                    "release."
                )
            return found
        digest = line_text(result_digest, "result digest")
        return write_row(
            opened, replace(account.next_row("complete"), key=reservation.key, digest=digest)
        )


def _of_reservation(opened: Connection, reservation: Entry, what: str) -> Standing:
    account = standing(opened, reservation.dataset, reservation.key)
    if account.reserved != reservation:
        raise RequestError(
            f"The ledger holds no reservation {reservation.key!r} as it was made; nothing to "
            f"{what}."
        )
    return account


def find_open(ledger: str, dataset: str, key: str) -> OpenReservation | None:
    """The reservation under a key that was paid for and whose release is not out, to be finished;
    None if there is none.
    """
    with ledger_transaction(ledger) as opened:
        rows = read_rows(opened, dataset, key=key)
    refuse_edited(rows)
    by_kind = {row.kind: row for row in rows}
    if "reserve" not in by_kind or "complete" in by_kind:
        return None
    measured = by_kind.get("measured")
    return OpenReservation(by_kind["reserve"], "" if measured is None else measured.digest)


def find_reservation(ledger: str, receipt: Receipt) -> Entry:
    """The reservation that a manifest's receipt speaks of."""
    dataset, position = str(receipt["dataset"]), int(receipt["position"])
    with ledger_transaction(ledger) as opened:
        found = read_rows(opened, dataset, position=position)
    if not found or not holds_receipt(found[0], receipt):
        raise VerificationError(
            f"The ledger holds no row {position} of {dataset!r} as the release recorded it."
        )
    return found[0]


def opening_hash(ledger: str, dataset: str) -> str:
    """The hash of the row that opened an account; empty where there is none."""
    with ledger_transaction(ledger) as opened:
        found = read_rows(opened, dataset, position=0)
    return found[0].hash if found else ""


def rows_at(ledger: str, dataset: str, positions: Iterable[int]) -> dict[int, Entry]:
    """The rows of an account at some positions, those that there are."""
    with ledger_transaction(ledger) as opened:
        rows = [read_rows(opened, dataset, position=position) for position in positions]
    return {row.position: row for found in rows for row in found}


def check_release(ledger: str, manifest_digest: str, receipt: Receipt) -> list[str]:
    """Every way in which a ledger does not vouch for a release; empty when it does.

    Parameters
    ----------
    manifest_digest
        SHA-256 of the bytes of ``manifest.json``, or of what lasts of it:
        :func:`~tallytree.storage.folder.lasting_digest`.
    receipt
        What that manifest records of its reservation.
    """
    return check_manifest(read_history(ledger, str(receipt["dataset"])), receipt, manifest_digest)


def close_account(ledger: str, dataset: str, *, reason: str = "") -> Account:
    """Refuse every later reservation; releases under way may still be marked complete."""
    with ledger_transaction(ledger, account=name_text(dataset, "dataset")) as opened:
        account = standing(opened, dataset)
        if account.closed:
            raise RequestError(f"The account {dataset!r} is closed already.")
        write_row(opened, replace(account.next_row("close"), purpose=line_text(reason, "reason")))
        return summarise(read_rows(opened, dataset))


def read_history(ledger: str, dataset: str) -> list[Entry]:
    """All rows of an account in order."""
    with ledger_transaction(ledger) as opened:
        return account_rows(opened, dataset)


def list_accounts(ledger: str) -> list[Account]:
    """All accounts of a ledger, by name."""
    with ledger_transaction(ledger) as opened:
        return [summarise(account_rows(opened, name)) for name in account_names(opened)]


def _charge(opened: Connection, entry: Entry, parts: Parts | None, account: Definition) -> Fraction:
    cost = cost_on_account(entry.definition, entry.amount, account)
    if parts is None or entry.part_of is None or entry.part is None:
        return cost
    earlier = read_rows(opened, entry.dataset, part_of=entry.part_of)
    return parallel_charge(cost, entry.part, parts_spent(earlier, account))


def _refuse_duplicate(account: Standing, entry: Entry) -> None:
    earlier, measured, done = account.reserved, account.measured, account.completed
    if earlier is None:
        return
    asked, before = (
        (one.definition, one.amount, one.unit, one.part_of, one.part, one.digest)
        for one in (entry, earlier)
    )
    if asked != before:
        raise RequestError(
            f"The idempotency key {entry.key!r} belongs to another release. Choose a new key for "
            "this one."
        )
    kept = "" if measured is None else measured.digest
    if done is not None:
        raise DuplicateReleaseError(
            f"The release under the idempotency key {entry.key!r} was published at "
            f"{done.recorded_at}. Nothing was charged; "
            "use that release. To pay for another one, choose a new key.",
            state="completed",
            receipt=earlier.receipt(),
            measured_digest=kept,
            result_digest=done.digest,
        )
    if measured is not None:
        raise DuplicateReleaseError(
            f"A run under the idempotency key {entry.key!r} was paid for and measured at "
            f"{measured.recorded_at}, and has not "
            "reported a release: it is still running or it crashed. Nothing was charged; finish it "
            "from the noisy answers "
            "that it kept. No others can be drawn for it.",
            state="measured",
            receipt=earlier.receipt(),
            measured_digest=kept,
        )
    raise DuplicateReleaseError(
        f"A run under the idempotency key {entry.key!r} reserved its budget at "
        f"{earlier.recorded_at} and has not reported a "
        "release: it is still running or it crashed. Its noise may have been seen and cannot be "
        "drawn again, so its budget "
        "stays spent. To pay for a new release, choose a new key.",
        state="reserved",
        receipt=earlier.receipt(),
    )


def _overspent(account: Standing, entry: Entry, charge: Fraction) -> BudgetError:
    symbol = SYMBOL[account.opening.definition]
    asked = f"{SYMBOL[entry.definition]} = {plain_number(entry.amount)}"
    counted = (
        ""
        if charge == entry.amount
        else f", which counts as {symbol} = {plain_number(charge)} here"
    )
    left, total = plain_number(account.remaining), plain_number(account.opening.amount)
    return BudgetError(
        f"The account {entry.dataset!r} has {symbol} = {left} left of {total}; the release asks "
        f"for {asked}{counted}. "
        "Nothing was released. Ask for less.",
        requested=charge,
        remaining=account.remaining,
    )
