"""Options that name the budget account of a release, shared by the commands that release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from tallytree.cli.app import say
from tallytree.errors import RequestError
from tallytree.kinds.verbs import load
from tallytree.model.part import Part, part_from
from tallytree.publish.keeping import publish_to
from tallytree.publish.payment import Payment
from tallytree.release.published import Published

T = TypeVar("T", bound=Published)

Ledger = Annotated[
    str | None,
    typer.Option(envvar="TALLYTREE_LEDGER", help="Ledger that pays: a file (ledger.db) or postgresql://host/database."),
]
Dataset = Annotated[str | None, typer.Option(help="Account in the ledger, see: tallytree ledger create.")]
IdempotencyKey = Annotated[
    str | None, typer.Option(help="Names this release: a repeated run under the same key neither pays nor draws again.")
]
PartOfData = Annotated[
    str | None,
    typer.Option(
        "--part", help="Read only the rows of COLUMN=VALUE, a part of the account's; parts are paid for in parallel."
    ),
]


def payment(ledger: str | None, dataset: str | None, key: str | None, part: str | None) -> Payment | None:
    """Which account pays, None for a release without a ledger."""
    if ledger is None and dataset is None:
        if key is not None or part is not None:
            raise RequestError("--idempotency-key and --part go with --ledger and --dataset.")
        return None
    if ledger is None:
        raise RequestError("--dataset names an account; add --ledger, the file or database that holds it.")
    if dataset is None:
        raise RequestError("A ledger is named (--ledger or TALLYTREE_LEDGER); add --dataset, the account that pays.")
    return Payment(ledger, dataset, key or "", part_from(part, "--part"))


def rows_to_read(payment: Payment | None, where: str | None) -> Part | None:
    """The rows that a command reads: those of the part that is paid for, or those of ``--where``."""
    if payment is None or payment.part is None:
        return part_from(where, "--where")
    if where is not None:
        raise RequestError("--part reads its rows itself; leave out --where, or pay in full and leave out --part.")
    return payment.part


def publish(
    payment: Payment | None, out: str, make: Callable[[], T], *, overwrite: bool, noisy: bool
) -> tuple[T, bool]:
    """Make a release in a folder; or load the one that was made under the same idempotency key.

    The second value says whether it was made before.
    """
    fresh = publish_to(out, make, payment=payment, overwrite=overwrite, noisy=noisy)
    if fresh is not None:
        return fresh, False
    say("This release was made before, under the same idempotency key. Nothing was charged.")
    return load(out), True
