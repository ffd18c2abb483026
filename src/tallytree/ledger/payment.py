"""Paying for a release before its noise is drawn, and reporting it once it is out."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from tallytree.errors import RequestError, TallytreeError
from tallytree.ledger.chain import ACCOUNT, Entry, Receipt
from tallytree.model.part import Part, part_from
from tallytree.options.groups import Paying
from tallytree.privacy.guarantee import budget_of, unit_from_json
from tallytree.storage.folder import MANIFEST, Manifest, lasting_digest, read_manifest


@dataclass(frozen=True)
class Payment:
    """From which account a release is paid.

    Attributes
    ----------
    ledger
        Address of the ledger: a file or ``postgresql://…``; never shown, it may hold a password.
    dataset
        Name of the account.
    key
        Idempotency key: a run that is repeated under the same key neither pays nor draws noise
        again.
    part
        The release is about this part of the data, one of the account's, and the data were read
        with ``where=`` for it.
    """

    ledger: str
    dataset: str
    key: str = ""
    part: Part | None = None

    def __repr__(self) -> str:
        return f"Payment(dataset={self.dataset!r}, key={self.key!r}, part={self.part!r})"


def payment_from(options: Paying) -> Payment | None:
    """Which account pays, by the options of a release; None for a release without a ledger."""
    ledger, dataset, key, part = (
        options.ledger,
        options.dataset,
        options.idempotency_key,
        options.part,
    )
    if isinstance(ledger, Payment):
        if any(option is not None for option in (dataset, key, part)):
            raise RequestError(
                "A Payment names its data set already; leave dataset out, and idempotency_key and "
                "part too."
            )
        return ledger
    if ledger is None and dataset is None:
        if key is not None or part is not None:
            raise RequestError(
                "idempotency_key and part (--idempotency-key, --part) go with --ledger and "
                "--dataset."
            )
        return None
    if not isinstance(ledger, str):
        raise RequestError(
            "ledger and dataset go together: --dataset names an account; add --ledger, the file or "
            "database that holds it."
        )
    if dataset is None:
        raise RequestError(
            "ledger and dataset go together: a ledger is named (--ledger or TALLYTREE_LEDGER); add "
            "--dataset, the account "
            "that pays."
        )
    return Payment(ledger, dataset, key or "", part_from(part, "--part"))


def pay(payment: Payment | None, manifest: Manifest) -> Manifest:
    """Reserve what a release costs, before any noise is drawn, and put the receipt into its
    manifest.
    """
    if payment is None:
        return manifest
    return with_receipt(manifest, receipt_of(payment, reserve_for(payment, manifest)))


def receipt_of(payment: Payment, entry: Entry) -> Receipt:
    """What the manifest of a release records of its payment: the row, and whose account it is."""
    from tallytree.ledger.accounts import opening_hash  # loads SQLAlchemy

    return entry.receipt() | {ACCOUNT: opening_hash(payment.ledger, payment.dataset)}


def with_receipt(manifest: Manifest, receipt: Receipt) -> Manifest:
    """The manifest of a release that an account paid for."""
    return {**manifest, "privacy": {**manifest["privacy"], "ledger": receipt}}


def reserve_for(payment: Payment, manifest: Manifest) -> Entry:
    """The reservation of what a release costs, by what its manifest says; written from its plan, so
    nothing is confidential.
    """
    from tallytree.ledger.accounts import Purpose, reserve  # loads SQLAlchemy

    privacy = manifest["privacy"]
    _refuse_other_rows(payment.part, manifest.get("where"))
    return reserve(
        payment.ledger,
        payment.dataset,
        budget_of(privacy),
        secure=privacy["private"] is True,
        unit=unit_from_json(privacy["unit"]),
        part=payment.part,
        purpose=Purpose(
            key=payment.key,
            summary=f"{manifest['kind']}: {privacy['statement']}",
            request_digest=digest_of_request(manifest),
            composition=privacy["composition"],
        ),
    )


def _refuse_other_rows(part: Part | None, where: dict[str, str] | None) -> None:
    """A part is paid for in parallel only if no other rows were read."""
    if part is not None and where != part.to_json():
        read = (
            "all rows were read"
            if where is None
            else f"the rows of {where['column']}={where['value']} were read"
        )
        raise RequestError(
            f"The payment is for the part {str(part)!r}, but {read}; read with where={str(part)!r}."
        )


def digest_of_request(manifest: Manifest) -> str:
    """SHA-256 of what is asked for: the manifest without the versions of libraries, which may
    change between two tries, and without how far a stream is.
    """
    changing = ("versions", *manifest.get("grows", ()))
    asked = {name: value for name, value in manifest.items() if name not in changing}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def report_release(payment: Payment, folder: str | Path) -> None:
    """Tell the ledger that a release it paid for is out; repeating it changes nothing."""
    from tallytree.ledger.accounts import complete, find_reservation  # loads SQLAlchemy

    receipt = read_manifest(folder)["privacy"]["ledger"]
    digest = lasting_digest((Path(folder) / MANIFEST).read_bytes())
    complete(payment.ledger, find_reservation(payment.ledger, receipt), result_digest=digest)


def is_released(payment: Payment | None, folder: str | Path) -> bool:
    """Whether the folder holds the release that was paid for under this key, by this ledger's own
    record.
    """
    if payment is None or not payment.key:
        return False
    from tallytree.ledger.accounts import find_reservation  # loads SQLAlchemy

    try:
        receipt = read_manifest(folder)["privacy"]["ledger"]
        if (receipt["dataset"], receipt["key"]) != (payment.dataset, payment.key):
            return False
        find_reservation(payment.ledger, receipt)
    except (TallytreeError, KeyError, TypeError):
        return False
    return True
