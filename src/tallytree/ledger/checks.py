"""Whether a history holds together: every seal, every sum, every receipt, from its rows alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tallytree.errors import TallytreeError
from tallytree.ledger.chain import (
    FORMAT,
    NO_HASH,
    Entry,
    Receipt,
    cost_on_account,
    holds_receipt,
    parallel_charge,
)
from tallytree.ledger.terms import Parts, parts_of
from tallytree.model.unit import ENTITY


def check_history(history: Sequence[Entry], receipts: Iterable[Receipt] = ()) -> list[str]:
    """Every way in which an account's history does not hold together; empty when it does.

    Parameters
    ----------
    history
        All rows of one account in order.
    receipts
        What the manifests of releases recorded. A chain cannot show that its last rows were cut
        off, or that all of it was written anew; the receipts can.
    """
    if not history:
        return ["the account has no rows"]
    return _check_seals(history) + _check_sums(history) + _check_receipts(history, receipts)


def check_heads(history: Sequence[Entry], heads: Iterable[str]) -> list[str]:
    """Heads that were noted outside the ledger and are no longer in it: it was put back, or written
    anew.
    """
    there = {entry.hash for entry in history}
    return [
        f"no row has the hash {head!r}: the account was put back to an earlier state, or is another"
        for head in heads
        if head not in there
    ]


def check_manifest(history: Sequence[Entry], receipt: Receipt, manifest_digest: str) -> list[str]:
    """Whether a history knows a release and its manifest as they are.

    Parameters
    ----------
    receipt
        What the manifest records of its reservation.
    manifest_digest
        SHA-256 of the manifest's bytes, which the row that completed the release must hold.
    """
    failures = _check_receipts(history, [receipt])
    where = f"row {receipt.get('position')}"
    completed = [
        entry.digest
        for entry in history
        if entry.kind == "complete" and entry.key == receipt.get("key")
    ]
    if not completed:
        failures.append(
            f"{where}: no release was reported for it, so nothing vouches for this manifest"
        )
    elif manifest_digest not in completed:
        failures.append(
            f"{where}: the manifest is not the one that was reported; it was edited, or is of "
            "another release"
        )
    return failures


def _check_seals(history: Sequence[Entry]) -> list[str]:
    failures = []
    previous_hash = NO_HASH
    for position, entry in enumerate(history):
        if entry.position != position:
            failures.append(
                f"row {entry.position}: row {position} is expected here, rows are missing or out "
                "of order"
            )
        if entry.seal() != entry.hash:
            failures.append(
                f"row {entry.position}: its contents do not match its hash, it was edited"
            )
        if entry.previous_hash != previous_hash:
            failures.append(f"row {entry.position}: it does not follow the row before it")
        if entry.format != FORMAT:
            failures.append(f"row {entry.position}: its format is unknown")
        previous_hash = entry.hash
    return failures


@dataclass
class _Replay:
    """The account as it stands while its rows are gone through."""

    first: Entry
    unit: str
    named: str = ""
    parts: Parts | None = None
    spent: Fraction = Fraction(0)
    closed: bool = False
    reservations: list[Entry] = field(default_factory=list)
    by_kind: dict[str, set[str | None]] = field(default_factory=lambda: defaultdict(set))
    partitions: dict[str, dict[str, Fraction]] = field(default_factory=lambda: defaultdict(dict))


def _check_sums(history: Sequence[Entry]) -> list[str]:
    failures = []
    replay = _Replay(history[0], history[0].unit)
    for entry in history:
        where = f"row {entry.position}"
        if (entry.kind == "create") != (entry is replay.first):
            failures.append(f"{where}: an account is opened by its first row and only there")
        if entry.dataset != replay.first.dataset or not _is_of_unit(replay, entry):
            failures.append(f"{where}: it belongs to another account or privacy unit")
        charge, complaints = _step(replay, entry)
        failures += [f"{where}: {complaint}" for complaint in complaints]
        replay.closed |= entry.kind == "close"
        replay.spent += charge
        if entry.charge != charge or entry.spent != replay.spent:
            failures.append(f"{where}: the charge or the running total does not add up")
        if replay.spent > replay.first.amount and entry.kind == "reserve":
            failures.append(f"{where}: more is reserved than the account's total")
    return failures


def _is_of_unit(replay: _Replay, entry: Entry) -> bool:
    if entry.unit == replay.unit:
        return True
    if replay.unit != ENTITY:
        return False
    if entry.kind == "terms":
        return replay.named in ("", entry.unit)
    return entry.kind == "reserve" and replay.named in ("", entry.unit)


def _step(replay: _Replay, entry: Entry) -> tuple[Fraction, list[str]]:
    """What a row must charge, and what is wrong with it; moves the replay on."""
    complaints: list[str] = []
    known = replay.by_kind
    match entry.kind:
        case "create":
            complaints = _fix_parts(replay, entry)
        case "terms":
            complaints = _fix_parts(replay, entry)
            replay.unit = entry.unit
        case "reserve":
            if replay.closed or entry.key in known["reserve"]:
                complaints.append("it reserves after the account was closed, or under a used key")
            if not _is_known_part(replay, entry):
                complaints.append("it pays for a part that the account does not have")
            if entry.unit != replay.unit:
                replay.named = entry.unit
            known["reserve"].add(entry.key)
            replay.reservations.append(entry)
            return _charge_of(replay, entry), complaints
        case "measured":
            if (
                entry.key not in known["reserve"] | known["advance"]
                or entry.key in known["measured"] | known["complete"]
            ):
                complaints.append("it measures for no reservation, or for one that was measured")
            known["measured"].add(entry.key)
        case "complete":
            if entry.key not in known["reserve"] or entry.key in known["complete"]:
                complaints.append("it completes no reservation, or one that is complete")
            known["complete"].add(entry.key)
        case "advance":
            step, _, key = (entry.key or "").partition(" ")
            if not step.isdecimal() or key not in known["reserve"] or entry.key in known["advance"]:
                complaints.append("a stream that nobody paid for goes on, or leaves a step twice")
            known["advance"].add(entry.key)
        case "close":
            pass
    return Fraction(0), complaints


def _is_known_part(replay: _Replay, entry: Entry) -> bool:
    if entry.part_of is None:
        return True
    return replay.parts is not None and replay.parts.covers(entry.part_of, entry.part)


def _fix_parts(replay: _Replay, entry: Entry) -> list[str]:
    try:
        parts = parts_of(entry.detail)
    except TallytreeError:
        return ["the parts that it fixes cannot be read"]
    if parts is not None and replay.parts is not None:
        return ["it fixes parts that were fixed before"]
    replay.parts = parts or replay.parts
    return []


def _charge_of(replay: _Replay, entry: Entry) -> Fraction:
    account = replay.first.definition
    if entry.definition != account and account != "zcdp":
        return Fraction(-1)  # No sound charge exists, so whatever the row says does not add up.
    cost = cost_on_account(entry.definition, entry.amount, account)
    if entry.part_of is None:
        return cost
    spent_by_part = replay.partitions[entry.part_of]
    part = entry.part or ""
    charge = parallel_charge(cost, part, spent_by_part)
    spent_by_part[part] = spent_by_part.get(part, Fraction(0)) + cost
    return charge


def _check_receipts(history: Sequence[Entry], receipts: Iterable[Receipt]) -> list[str]:
    by_position: dict[object, Entry] = {entry.position: entry for entry in history}
    failures = []
    for receipt in receipts:
        entry = by_position.get(receipt.get("position"))
        if entry is None or not holds_receipt(entry, receipt):
            failures.append(
                f"row {receipt.get('position')}: a release was paid for here, and the ledger no "
                "longer says so"
            )
    return failures
