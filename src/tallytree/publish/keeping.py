"""What is paid for is kept: measuring under a key that is always forgotten, and finishing what a run that died has left.

A release that goes to a folder claims it first, then pays, then measures. Every noisy answer is kept as it is given
(:mod:`tallytree.privacy.journal`); when all are there they are kept once more, with all that is needed to finish the release
without the data. Everything after that is post-processing, and can be done again, by another run, on another day.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from tallytree.errors import DuplicateReleaseError, PaidNotFinishedError, RequestError, TallytreeError
from tallytree.privacy.journal import Journal
from tallytree.privacy.randomness import KeyStream
from tallytree.publish.payment import (
    Payment,
    digest_of_request,
    is_released,
    pay,
    report_release,
    reserve_for,
    with_receipt,
)
from tallytree.released.published import Published
from tallytree.storage.folder import Manifest, build_folder
from tallytree.storage.work import ANSWERS, MEASURED, Work, claim, reopen

T = TypeVar("T", bound=Published)
# The work folder of the release that is being made. A context variable, because it concerns neither what is measured nor how,
# and would otherwise be handed through every function between the command line and the noise.
_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


@dataclass(frozen=True, eq=False)
class PaidNoise:
    """A release that is paid for.

    Attributes
    ----------
    manifest
        Everything that is said about the release so far, with the receipt.
    stream
        Hands out noise; its key is forgotten when the measuring ends, however it ends.
    work
        Where noisy answers are kept until the release is written; None where nothing is kept.
    """

    manifest: Manifest
    stream: KeyStream
    work: Work | None

    def measured(self, manifest: Manifest, tables: Mapping[str, Any]) -> None:
        """Keep everything that was measured, with all that is needed to finish the release without the data."""
        if self.work is not None:
            shutil.rmtree(self.work.path / MEASURED, ignore_errors=True)
            build_folder(self.work.path / MEASURED, tables, manifest)


@contextmanager
def paid_noise(payment: Payment | None, manifest: Manifest, insecure_seed: int | None) -> Iterator[PaidNoise]:
    """Pay for a release, hand out a key for its noise, and forget the key afterwards, by an exception too.

    While :func:`publish_to` makes a release every noisy answer is kept as it is given, and a run that goes on after another
    one has died gets the answers that were kept; it draws the others under a fresh key and pays nothing.

    Parameters
    ----------
    manifest
        Everything that will be said about the release; written from its plan, so nothing in it is confidential.
    insecure_seed
        For tests and experiments only.
    """
    work, journal = _WORK.get(), None
    if work is None:
        paid = pay(payment, manifest)
    else:
        paid = _paid_once(work, payment, manifest)
        journal = Journal(work.folder(ANSWERS))
    seed = insecure_seed
    stream = KeyStream.from_system(journal) if seed is None else KeyStream.from_insecure_seed(seed, journal)
    try:
        yield PaidNoise(paid, stream, work)
    finally:
        stream.forget()
    if work is not None and journal is not None:
        note = work.note() | {"state": "measured", "answers": journal.digest()}
        work.write_note(note)
        if payment is not None:
            from tallytree.privacy.ledger import find_reservation, note_measured  # loads SQLAlchemy

            note_measured(payment.ledger, find_reservation(payment.ledger, note["receipt"]), digest=note["answers"])


@contextmanager
def simulating() -> Iterator[None]:
    """Releases that are made inside are simulations: nothing of them is paid for or kept, and they get no answer that was."""
    before = _WORK.set(None)
    try:
        yield
    finally:
        _WORK.reset(before)


def _paid_once(work: Work, payment: Payment | None, manifest: Manifest) -> Manifest:
    """Pay, unless the run that left this work folder did; what was asked for must be the same."""
    asked, note = digest_of_request(manifest), work.note()
    if note and note["request"] != asked:
        raise RequestError(
            f"{work.path} holds what another request paid for. Finish that one (tallytree resume {work.target}), drop it "
            f"(tallytree clean {work.target}), or choose another folder."
        )
    if payment is None:
        work.write_note(note or _fresh_note(work, manifest, asked, "") | {"state": "paid"})
        return manifest
    key = note.get("key") or payment.key or uuid4().hex
    open_before = None
    if note:
        from tallytree.privacy.ledger import find_open  # loads SQLAlchemy

        open_before = find_open(payment.ledger, payment.dataset, key)
    else:
        work.write_note(_fresh_note(work, manifest, asked, key))
    entry = open_before.reservation if open_before is not None else reserve_for(replace(payment, key=key), manifest)
    work.write_note(work.note() | {"state": "paid", "receipt": entry.receipt(), "ledger": _shown(payment.ledger)})
    return with_receipt(manifest, entry.receipt())


def _fresh_note(work: Work, manifest: Manifest, asked: str, key: str) -> dict[str, Any]:
    facts = {"request": asked, "kind": manifest["kind"], "key": key, "state": "paying", "receipt": None}
    # A stream goes on run by run; what a run that died was up to is finished before the next one goes further.
    return facts | {"overwrite": work.overwrite} | {name: manifest[name] for name in ("n_steps",) if name in manifest}


def _shown(ledger: str) -> str | None:
    """The address of a ledger that is a file; others may hold a password and are not written down."""
    return None if "@" in ledger or "://" in ledger else str(Path(ledger).absolute())


def publish_to(
    folder: str | Path,
    make: Callable[[], T],
    *,
    payment: Payment | None = None,
    overwrite: bool = False,
    noisy: bool = True,
) -> T | None:
    """Make a release in a folder, unless it was paid for and is there already; tell the ledger that it is out.

    The target is claimed before ``make`` pays. What a run that died has left there is gone on with, if it is the same request.

    Parameters
    ----------
    make
        Pays, measures and estimates.

    Returns
    -------
    Published or None
        What ``make`` returned; None where the folder held the release under the same idempotency key.
    """
    if payment is not None and is_released(payment, folder):
        try:
            make()  # pays and draws nothing, since the key was used; another request under it is refused
        except DuplicateReleaseError:
            report_release(payment, folder)
            left = reopen(folder)
            if left is not None:
                left.release()
            return None
        raise AssertionError("a key that was used has paid again")
    work = claim(folder, overwrite=overwrite)
    with kept_on_failure(work):
        made = made_in(work, make)
        finish(work, made, payment=payment, noisy=noisy)
    return made


def made_in(work: Work, make: Callable[[], T]) -> T:
    """Make a release for a claimed target: its answers are kept in the work folder as they are given."""
    token = _WORK.set(work)
    try:
        return make()
    finally:
        _WORK.reset(token)


@contextmanager
def kept_on_failure(work: Work) -> Iterator[None]:
    """Where making a release fails: drop the claim if nothing was paid, otherwise keep everything and say how to go on."""
    try:
        yield
    except BaseException as error:
        _leave(work, error)
        raise


def finish(work: Work, made: Published, *, payment: Payment | None, noisy: bool = True) -> None:
    """Verify a release, put it into its place, tell the ledger, and give the target free."""
    made.verify().raise_if_failed()
    made.save(work.target, noisy=noisy, work=work)
    if payment is not None:
        report_release(payment, work.target)
    work.release()


def _leave(work: Work, error: BaseException) -> None:
    state = work.note().get("state")
    if state is None or (state == "paying" and isinstance(error, TallytreeError)):
        work.release()
        return
    work.leave()
    if isinstance(error, Exception | KeyboardInterrupt):
        told = "It was stopped." if isinstance(error, KeyboardInterrupt) else str(error) or type(error).__name__
        raise PaidNotFinishedError(
            f"{told} The release to {work.target} is paid for and not finished; what was measured is kept and nothing is paid "
            f"twice. To finish it: tallytree resume {work.target}, or the same command again."
        ) from error
