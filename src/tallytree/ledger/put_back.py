"""Noticing, at a payment, that a ledger was put back to an earlier state: releases beside the new
one remember rows that it no longer has.

A chain of hashes cannot show that its last rows are gone. Whoever puts back an old copy of the
ledger, by mistake or to spend twice, leaves the releases that were paid for since; their receipts
name the account by the hash of its opening row.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tallytree.errors import BudgetError, TallytreeError
from tallytree.ledger.chain import ACCOUNT, Receipt, holds_receipt
from tallytree.privacy.budget import Budget
from tallytree.storage.folder import MANIFEST, read_manifest

# Folders beside the new release that are looked at, the newest first.
MOST_FOLDERS = 200


def refuse_put_back(ledger: str, dataset: str, target: Path, budget: Budget) -> None:
    """Refuse to pay from an account that lacks the payment of a release beside the target."""
    from tallytree.ledger.accounts import opening_hash, rows_at  # loads SQLAlchemy

    receipts = list(_receipts_beside(target, dataset))
    if not receipts:
        return
    account = opening_hash(ledger, dataset)
    own = {folder: receipt for folder, receipt in receipts if receipt.get(ACCOUNT) == account}
    rows = rows_at(ledger, dataset, {int(receipt["position"]) for receipt in own.values()})
    for folder, receipt in own.items():
        entry = rows.get(int(receipt["position"]))
        if entry is None or not holds_receipt(entry, receipt):
            raise BudgetError(
                f"The ledger no longer holds the payment of {folder}, row {receipt['position']} of "
                f"{dataset!r}: it was put back to an earlier state, and what was spent since is "
                "missing. Restore the newer ledger; nothing was paid.",
                budget.total,
                None,
            )


def _receipts_beside(target: Path, dataset: str) -> Iterator[tuple[Path, Receipt]]:
    """Receipts for an account of this name in the folders beside a target, the target included."""
    try:
        found = [(file.stat().st_mtime, file) for file in target.parent.glob(f"*/{MANIFEST}")]
    except OSError:
        return
    for _, file in sorted(found, reverse=True)[:MOST_FOLDERS]:
        try:
            receipt = read_manifest(file.parent)["privacy"]["ledger"]
            if receipt["dataset"] == dataset and isinstance(receipt["position"], int):
                yield file.parent, receipt
        except (TallytreeError, KeyError, TypeError):
            continue  # no release, or one that nobody paid for
