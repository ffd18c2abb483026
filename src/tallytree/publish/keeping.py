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
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from tallytree.errors import BudgetError, DuplicateReleaseError, PaidNotFinishedError, RequestError, VerificationError
from tallytree.model.confidential import Altered
from tallytree.privacy.journal import Journal
from tallytree.privacy.randomness import KeyStream
from tallytree.publish.owner import tell_owner
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
from tallytree.storage.parts import Parts, digest_of_parts
from tallytree.storage.work import ANSWERS, MEASURED, PARTS, Work, claim, reopen

if TYPE_CHECKING:
    from tallytree.privacy.ledger import OpenReservation

T = TypeVar("T", bound=Published)
# Of each number that is measured: eight in the journal, and at most as many in the tables of what was measured and in those of
# the release, which are compressed.
BYTES_PER_ANSWER = 24


@dataclass(frozen=True)
class _Making:
    """The release that is being made: its work folder, and what else finishing it needs to know."""

    work: Work
    finishing: dict[str, Any]


# A context variable, because it concerns neither what is measured nor how, and would otherwise be handed through every function
# between the command line and the noise.
_MAKING: ContextVar[_Making | None] = ContextVar("making", default=None)


@dataclass(frozen=True, eq=False)
class _Kept:
    """Where the answers of a release are kept, and which account is told when all are there."""

    work: Work
    journal: Journal
    payment: Payment | None


@dataclass(frozen=True, eq=False)
class PaidNoise:
    """A release that is paid for.

    Attributes
    ----------
    manifest
        Everything that is said about the release so far, with the receipt.
    stream
        Hands out noise; its key is forgotten when the measuring ends, however it ends.
    kept
        Where noisy answers are kept until the release is written; None where nothing is kept.
    """

    manifest: Manifest
    stream: KeyStream
    kept: _Kept | None

    def measured(self, manifest: Manifest, tables: Mapping[str, Any], parts: Parts | None = None) -> None:
        """Say that everything is measured, before anything more is computed from it: the key is forgotten, all that is needed
        to finish the release without the data is kept, and the ledger notes the digest of the answers.

        ``parts`` are tables that other machines have written, in the folder that :meth:`folder_for_parts` gave them.
        """
        self.stream.forget()
        if self.kept is not None:
            work, journal, payment = self.kept.work, self.kept.journal, self.kept.payment
            shutil.rmtree(work.path / MEASURED, ignore_errors=True)
            build_folder(work.path / MEASURED, tables, manifest, parts)
            digest = digest_of_parts(parts) if parts else journal.digest()
            work.write_note(work.note() | {"state": "measured", "answers": digest})
            tell_measured(work, payment)

    def folder_for_parts(self) -> Path | None:
        """A folder in which other machines may write tables of this release; None where nothing is kept, or where more is
        computed from the tables before they go out.

        Its name is new: a task that outlives its run finds the folder gone, and adds nothing to those of the next one.
        """
        making = _MAKING.get()
        if making is None or making.finishing["intervals"]:
            return None
        return making.work.folder(f"{PARTS}{uuid4().hex}")


@contextmanager
def paid_noise(
    payment: Payment | None,
    manifest: Manifest,
    insecure_seed: int | None,
    *,
    n_answers: int = 0,
    tell: Altered | None = None,
    elsewhere: bool = False,
) -> Iterator[PaidNoise]:
    """Pay for a release, hand out a key for its noise, and forget the key afterwards, by an exception too.

    While :func:`publish_to` makes a release every noisy answer is kept as it is given, and a run that goes on after another
    one has died gets the answers that were kept; it draws the others under a fresh key and pays nothing.

    Parameters
    ----------
    manifest
        Everything that will be said about the release; written from its plan, so nothing in it is confidential.
    insecure_seed
        For tests and experiments only.
    n_answers
        How many numbers will be measured, as far as it is known: without room on disk for them nothing is paid.
    tell
        What the owner asked to be told once the release is paid for.
    elsewhere
        Whether other machines draw the noise, so that answers are kept all together or not at all: what a run that died has
        left of them is deleted before there is another key, and once all are there no others are drawn.
    """
    making, journal, kept = _MAKING.get(), None, None
    if making is None:
        paid = pay(payment, manifest)
    else:
        work = making.work
        work.require_room(n_answers * BYTES_PER_ANSWER)
        paid, measured = _paid_once(making, payment, manifest)
        if elsewhere:
            _drop_answers(work)
        journal = Journal(work.folder(ANSWERS))
        if measured and journal.digest() != measured:
            raise VerificationError(
                f"The answers in {work.path} are not those that the ledger noted, and no others may be drawn for this payment."
            )
        kept = _Kept(work, journal, payment)
    if tell is not None:
        tell_owner(tell)
    seed = insecure_seed
    stream = KeyStream.from_system(journal) if seed is None else KeyStream.from_insecure_seed(seed, journal)
    try:
        yield PaidNoise(paid, stream, kept)
    finally:
        stream.forget()


def _drop_answers(work: Work) -> None:
    """Delete what other machines have answered for a run that died, unless it is all: two sets would double the loss."""
    if work.note().get("state") == "measured":
        raise PaidNotFinishedError(
            "Everything is measured already, and no other answers may be drawn for this payment."
        )
    for left in (work.path / MEASURED, *work.path.glob(f"{PARTS}*")):
        if left.exists():
            shutil.rmtree(left)


def tell_measured(work: Work, payment: Payment | None) -> None:
    """Note in the ledger that everything is measured; repeating it changes nothing, and other answers are refused."""
    if payment is not None:
        from tallytree.privacy.ledger import find_reservation, note_measured  # loads SQLAlchemy

        note = work.note()
        note_measured(payment.ledger, find_reservation(payment.ledger, note["receipt"]), digest=note["answers"])


@contextmanager
def simulating() -> Iterator[None]:
    """Releases that are made inside are simulations: nothing of them is paid for or kept, and they get no answer that was."""
    before = _MAKING.set(None)
    try:
        yield
    finally:
        _MAKING.reset(before)


def _paid_once(making: _Making, payment: Payment | None, manifest: Manifest) -> tuple[Manifest, str]:
    """Pay, unless the run that left this work folder did; what was asked for must be the same.

    Returns the manifest with its receipt, and the digest of the answers where the ledger has noted that all are there.
    """
    work = making.work
    asked, note = digest_of_request(manifest), work.note()
    dataset = None if payment is None else payment.dataset
    if note and (note["request"], note["dataset"]) != (asked, dataset):
        raise RequestError(
            f"{work.path} holds what another request paid for. Finish that one (tallytree resume {work.target}), drop it "
            f"(tallytree clean {work.target}), or choose another folder."
        )
    facts = {
        "request": asked,
        "kind": manifest["kind"],
        "dataset": dataset,
        "receipt": None,
        "overwrite": work.overwrite,
    }
    # A stream goes on run by run; what a run that died was up to is finished before the next one goes further.
    facts |= {name: manifest[name] for name in ("n_steps",) if name in manifest}
    if payment is None:
        work.write_note(note or facts | making.finishing | {"state": "paid", "key": ""})
        return manifest, ""
    key, found = note.get("key") or payment.key or uuid4().hex, None
    if note:
        found = _find_open(payment.ledger, payment.dataset, key)
    else:
        paying = {"state": "paying", "key": key, "ledger": _shown(payment.ledger)}
        work.write_note(facts | making.finishing | paying)
    entry = found.reservation if found is not None else reserve_for(replace(payment, key=key), manifest)
    work.write_note(work.note() | {"state": "paid", "receipt": entry.receipt()})
    return with_receipt(manifest, entry.receipt()), "" if found is None else found.measured_digest


def _find_open(ledger: str, dataset: str, key: str) -> OpenReservation | None:
    from tallytree.privacy.ledger import find_open  # loads SQLAlchemy

    return find_open(ledger, dataset, key)


def was_paid(work: Work, ledger: str) -> bool:
    """Whether a run that died while it paid has paid, by the ledger's own record."""
    note = work.note()
    return _find_open(ledger, note["dataset"], note["key"]) is not None


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
    intervals: int = 0,
) -> T | None:
    """Make a release in a folder, unless it was paid for and is there already; tell the ledger that it is out.

    The target is claimed before ``make`` pays. What a run that died has left there is gone on with, if it is the same request.

    Parameters
    ----------
    make
        Pays, measures and estimates.
    intervals
        Simulated releases behind the intervals that ``make`` puts into the tables; noted for whoever finishes the release.

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
        made = made_in(work, make, noisy=noisy, intervals=intervals)
        finish(work, made, payment=payment, noisy=noisy)
    return made


def made_in(work: Work, make: Callable[[], T], *, noisy: bool = True, intervals: int = 0) -> T:
    """Make a release for a claimed target: its answers are kept in the work folder as they are given."""
    token = _MAKING.set(_Making(work, {"noisy": noisy, "intervals": intervals}))
    try:
        return make()
    finally:
        _MAKING.reset(token)


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
    # What a ledger refuses is not paid. Where it could not be reached to the end, or the run was stopped, nobody knows.
    if state is None or (state == "paying" and isinstance(error, BudgetError | RequestError | VerificationError)):
        work.release()
        return
    work.leave()
    if isinstance(error, Exception | KeyboardInterrupt):
        told = "It was stopped." if isinstance(error, KeyboardInterrupt) else str(error) or type(error).__name__
        paid = "may be paid for already, which the ledger knows," if state == "paying" else "is paid for"
        raise PaidNotFinishedError(
            f"{told} The release to {work.target} {paid} and not finished; what was measured is kept and nothing is paid "
            f"twice. {work.standing()}To finish it: tallytree resume {work.target}, or the same command again."
        ) from error
