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


def payment_from(ledger: str | Payment | None, dataset: str | None) -> Payment | None:
    """The payment that the arguments ``ledger`` and ``dataset`` of a release ask for."""
    if isinstance(ledger, Payment):
        if dataset is not None:
            raise RequestError("A Payment names its data set already; leave dataset out.")
        return ledger
    if (ledger is None) != (dataset is None):
        raise RequestError("ledger and dataset go together: where the accounts are, and which one pays.")
    return None if ledger is None or dataset is None else Payment(ledger, dataset)


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
        unit=privacy.get("unit_name") or privacy.get("unit_column") or ENTITY,
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
