"""Paying for a release before its noise is drawn, and reporting it once it is out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tallytree.errors import DuplicateReleaseError, RequestError, TallytreeError
from tallytree.model.confidential import ENTITY
from tallytree.options.groups import Paying
from tallytree.privacy.ledger import Part, Purpose, complete, find_reservation, reserve
from tallytree.release.privacy_checks import stated_budget
from tallytree.storage.folder import MANIFEST, Manifest, check_target, read_manifest

T = TypeVar("T")


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
        Idempotency key: a run that is repeated under the same key neither pays nor draws noise again.
    part
        The release touches only this part of the data, see :class:`~tallytree.privacy.ledger.Part`.
    """

    ledger: str
    dataset: str
    key: str = ""
    part: Part | None = None

    def __repr__(self) -> str:
        return f"Payment(dataset={self.dataset!r}, key={self.key!r}, part={self.part!r})"


def payment_from(options: Paying) -> Payment | None:
    """Which account pays, by the options of a release; None for a release without a ledger."""
    ledger, dataset, key, part = options.ledger, options.dataset, options.idempotency_key, options.part
    if isinstance(ledger, Payment):
        if any(option is not None for option in (dataset, key, part)):
            raise RequestError(
                "A Payment names its data set already; leave dataset out, and idempotency_key and part too."
            )
        return ledger
    if ledger is None and dataset is None:
        if key is not None or part is not None:
            raise RequestError("idempotency_key and part (--idempotency-key, --part) go with --ledger and --dataset.")
        return None
    if not isinstance(ledger, str):
        raise RequestError(
            "ledger and dataset go together: --dataset names an account; add --ledger, the file or database that holds it."
        )
    if dataset is None:
        raise RequestError(
            "ledger and dataset go together: a ledger is named (--ledger or TALLYTREE_LEDGER); add --dataset, the account "
            "that pays."
        )
    return Payment(ledger, dataset, key or "", None if part is None else _part(part))


def _part(text: str) -> Part:
    column, separator, value = text.partition("=")
    if not separator or not column or not value:
        raise RequestError(f"--part is {text!r}; write it as COLUMN=VALUE, such as state=Georgia.")
    return Part(column, value)


def pay(payment: Payment | None, manifest: Manifest) -> Manifest:
    """Reserve what a release costs, before any noise is drawn, and put the receipt into its manifest.

    Parameters
    ----------
    manifest
        Everything that will be said about the release; written from its plan, so nothing in it is confidential.
    """
    if payment is None:
        return manifest
    privacy = manifest["privacy"]
    receipt = reserve(
        payment.ledger,
        payment.dataset,
        stated_budget(manifest),
        secure=privacy["private"] is True,
        unit=privacy.get("unit_column") or ENTITY,
        part=payment.part,
        purpose=Purpose(
            key=payment.key,
            summary=f"{manifest['kind']}: {privacy['statement']}",
            request_digest=_digest_of_request(manifest),
            composition=privacy["composition"],
        ),
    ).receipt()
    return {**manifest, "privacy": {**privacy, "ledger": receipt}}


def _digest_of_request(manifest: Manifest) -> str:
    """SHA-256 of what is asked for: the manifest without the versions of libraries, which may change between two tries."""
    asked = {name: value for name, value in manifest.items() if name != "versions"}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def report_release(payment: Payment, folder: str | Path) -> None:
    """Tell the ledger that a release it paid for is out; repeating it changes nothing."""
    receipt = read_manifest(folder)["privacy"]["ledger"]
    digest = hashlib.sha256((Path(folder) / MANIFEST).read_bytes()).hexdigest()
    complete(payment.ledger, find_reservation(payment.ledger, receipt), result_digest=digest)


def publish_once(payment: Payment | None, folder: str | Path, make: Callable[[], T], *, overwrite: bool) -> T | None:
    """Make a release in a folder, unless it was paid for and is there already; tell the ledger that it is out.

    Parameters
    ----------
    make
        Pays, measures and saves to the folder.

    Returns
    -------
    T or None
        What ``make`` returned; None where the folder held the release under the same idempotency key. A run that
        crashed between writing its release and reporting it is thus reported by the next one.
    """
    there = _is_released(payment, folder)
    if not there:
        check_target(folder, overwrite=overwrite)
    made = None
    try:
        made = make()
    except DuplicateReleaseError:
        if not there:
            raise
    if payment is not None:
        report_release(payment, folder)
    return made


def _is_released(payment: Payment | None, folder: str | Path) -> bool:
    """Whether the folder holds the release that was paid for under this key, by this ledger's own record."""
    if payment is None or not payment.key:
        return False
    try:
        receipt = read_manifest(folder)["privacy"]["ledger"]
        if (receipt["dataset"], receipt["key"]) != (payment.dataset, payment.key):
            return False
        find_reservation(payment.ledger, receipt)
    except (TallytreeError, KeyError, TypeError):
        return False
    return True
