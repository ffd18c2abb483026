"""What is paid for is kept: measuring under a key that is always forgotten, and finishing what a
run that died has left.

A release that goes to a folder claims it first, then pays, then measures. Every noisy answer is
kept as it is given (:mod:`tallytree.privacy.journal`); when all are there they are kept once more,
with all that is needed to finish the release without the data. Everything after that is
post-processing, and can be done again, by another run, on another day.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from tallytree.errors import (
    BudgetError,
    DuplicateReleaseError,
    NothingRecordedError,
    PaidNotFinishedError,
    RequestError,
    VerificationError,
)
from tallytree.ledger.payment import (
    Payment,
    digest_of_request,
    is_released,
    pay,
    payment_from,
    receipt_of,
    report_release,
    reserve_for,
    with_receipt,
)
from tallytree.ledger.put_back import refuse_put_back
from tallytree.model.confidential import Altered, ExactValues
from tallytree.options.groups import Paying
from tallytree.privacy.guarantee import budget_of, refuse_hopeless_promise
from tallytree.privacy.journal import Journal
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.opening import open_folder, reading
from tallytree.releases.owner import tell_owner
from tallytree.releases.published import Published
from tallytree.releases.reading import forget_reading, keep_reading, now, refuse_measured
from tallytree.storage.folder import Folder, Manifest, build_folder
from tallytree.storage.parts import Parts, digest_of_parts
from tallytree.storage.work import ANSWERS, MEASURED, PARTS, Work, claim, reopen

if TYPE_CHECKING:
    from tallytree.ledger.accounts import OpenReservation
    from tallytree.ledger.advance import Advance

T = TypeVar("T", bound=Published)
# Of each number that is measured: eight in the journal, and at most as many in the tables of what
# was measured and in those of the release, which are compressed.
BYTES_PER_ANSWER = 24


@dataclass(frozen=True, eq=False)
class Keeping:
    """Who pays for a release, and where what is paid for is kept: handed to whatever measures.

    Attributes
    ----------
    payment
        The account that pays; None for a release without a ledger.
    work
        The claimed target beside which noisy answers are kept; None where nothing is kept.
    noisy
        Whether the release will be written with its raw measurements.
    intervals
        Simulated releases behind the intervals of the release; 0 for none.
    advance
        The step that a stream leaves which was paid for at its first run; None where ``payment`` is
        still to be made.
    """

    payment: Payment | None = None
    work: Work | None = None
    noisy: bool = True
    intervals: int = 0
    advance: Advance | None = None

    def finishing(self) -> dict[str, Any]:
        """What whoever finishes the release must know beside its answers."""
        return {"noisy": self.noisy, "intervals": self.intervals}


NOTHING_KEPT = Keeping()
"""Of releases in memory that nobody pays for, and of simulations."""


@dataclass(frozen=True)
class Target:
    """Where a release goes.

    Attributes
    ----------
    out
        Folder to write to; None for a release that stays in memory.
    overwrite
        Replace a release that is already there.
    noisy
        Write the raw measurements too.
    intervals
        Simulated releases behind the intervals in its tables; 0 leaves them out.
    """

    out: str | Path | None = None
    overwrite: bool = False
    noisy: bool = True
    intervals: int = 0


@dataclass(frozen=True, eq=False)
class PaidNoise:
    """A release that is paid for.

    Attributes
    ----------
    manifest
        Everything that is said about the release so far, with the receipt.
    stream
        Hands out noise; its key is forgotten when the measuring ends, however it ends.
    keeping
        Who paid, and where noisy answers are kept until the release is written.
    journal
        The noisy answers; None where nothing is kept.
    read_at
        When the data were read.
    """

    manifest: Manifest
    stream: KeyStream
    keeping: Keeping
    journal: Journal | None
    read_at: str

    def measured(
        self, manifest: Manifest, tables: Mapping[str, Any], parts: Parts | None = None
    ) -> None:
        """Say that everything is measured, before anything more is computed from it: the key is
        forgotten, all that is needed to finish the release without the data is kept, the
        fingerprint of the data is deleted, and the ledger notes the digest of the answers.

        ``parts`` are tables that other machines have written, in the folder that
        :meth:`folder_for_parts` gave them.
        """
        self.stream.forget()
        work, journal = self.keeping.work, self.journal
        if work is not None and journal is not None:
            shutil.rmtree(work.path / MEASURED, ignore_errors=True)
            build_folder(work.path / MEASURED, tables, manifest, parts, private=True)
            digest = digest_of_parts(parts) if parts else journal.digest()
            work.write_note(
                work.note() | {"state": "measured", "answers": digest, "read": self.read_at}
            )
            forget_reading(work)
            tell_measured(work, self.keeping.payment)

    def folder_for_parts(self) -> Path | None:
        """A folder in which other machines may write tables of this release; None where nothing is
        kept, or where more is computed from the tables before they go out.

        Its name is new: a task that outlives its run finds the folder gone, and adds nothing to
        those of the next one.
        """
        work = self.keeping.work
        if work is None or self.keeping.intervals:
            return None
        return work.folder(f"{PARTS}{uuid4().hex}")


@contextmanager
def paid_noise(
    keeping: Keeping,
    manifest: Manifest,
    insecure_seed: int | None,
    *,
    read: ExactValues | None,
    n_answers: int = 0,
    tell: Altered | None = None,
) -> Iterator[PaidNoise]:
    """Pay for a release, hand out a key for its noise, and forget the key afterwards, by an
    exception too.

    Where a target is claimed every noisy answer is kept as it is given, and a run that goes on
    after another one has died gets the answers that were kept; it draws the others under a fresh
    key and pays nothing.

    Parameters
    ----------
    keeping
        Who pays, and where answers are kept.
    manifest
        Everything that will be said about the release; written from its plan, so nothing in it is
        confidential.
    insecure_seed
        For tests and experiments only.
    read
        What is measured, so that a run that goes on measures the same. None where other machines
        hold it and draw the noise, so that answers are kept all together or not at all: what a run
        that died has left of them is deleted before there is another key, and once all are there no
        others are drawn.
    n_answers
        How many numbers will be measured, as far as it is known: without room on disk for them
        nothing is paid.
    tell
        What the owner asked to be told once the release is paid for.
    """
    refuse_hopeless_promise(manifest["privacy"])
    work, journal = keeping.work, None
    if work is None:
        paid = pay(keeping.payment, manifest)
    else:
        work.require_room(n_answers * BYTES_PER_ANSWER)
        paid, measured = _paid_once(work, keeping, manifest)
        if read is None:
            _drop_answers(work)
        note = work.note()
        journal = Journal(work.folder(ANSWERS), note.get("sealed", False), _to_owner(work, note))
        measured = measured or _left_step(keeping)
        if measured and journal.digest() != measured:
            raise PaidNotFinishedError(
                f"The answers in {work.path} are not those that the ledger noted, and no others "
                "may be drawn for this payment: the folder was copied or put back. Go on where "
                f"those answers are, and drop these: tallytree clean {work.target}."
            )
        if read is not None and not journal.sealed:
            keep_reading(work, journal, read)
    if tell is not None:
        tell_owner(tell)
    seed = insecure_seed
    stream = (
        KeyStream.from_system(journal)
        if seed is None
        else KeyStream.from_insecure_seed(seed, journal)
    )
    try:
        yield PaidNoise(paid, stream, keeping, journal, now())
    finally:
        stream.forget()


def _to_owner(work: Work, note: dict[str, Any]) -> str:
    """Which run began a release, and how to give it up, for messages to its owner."""
    began = ", ".join(f"{name} {version}" for name, version in note.get("versions", {}).items())
    return (
        f"It was begun on {note.get('machine', 'an unknown machine')} with "
        f"{began or 'unknown versions'}. Run the same command "
        "with these, on such a machine, or give the payment up and begin anew: tallytree clean "
        f"{work.target}."
    )


def _drop_answers(work: Work) -> None:
    """Delete what other machines have answered for a run that died, unless it is all: two sets
    would double the loss.
    """
    if work.note().get("state") == "measured":
        raise PaidNotFinishedError(
            "Everything is measured already, and no other answers may be drawn for this payment."
        )
    for left in (work.path / MEASURED, *work.path.glob(f"{PARTS}*")):
        if left.exists():
            shutil.rmtree(left)


def _left_step(keeping: Keeping) -> str:
    """Have the ledger note that a stream leaves its step; the digest of the answers where all are
    there.
    """
    payment, advance = keeping.payment, keeping.advance
    if payment is None or advance is None:
        return ""
    from tallytree.ledger.advance import note_advance  # loads SQLAlchemy

    return note_advance(payment.ledger, advance)


def tell_measured(work: Work, payment: Payment | None) -> None:
    """Note in the ledger that everything is measured; repeating it changes nothing, and other
    answers are refused.
    """
    if payment is None:
        return
    from tallytree.ledger.accounts import find_reservation, note_measured  # loads SQLAlchemy
    from tallytree.ledger.advance import note_rows

    note = work.note()
    receipt, answers = note["receipt"], note["answers"]
    if "left" in note:
        note_rows(payment.ledger, receipt, note["left"], digest=answers)
    else:
        note_measured(payment.ledger, find_reservation(payment.ledger, receipt), digest=answers)


def _paid_once(work: Work, keeping: Keeping, manifest: Manifest) -> tuple[Manifest, str]:
    """Pay, unless the run that left this work folder did; what was asked for must be the same.

    Returns the manifest with its receipt, and the digest of the answers where the ledger has noted
    that all are there.
    """
    payment = keeping.payment
    asked, note = digest_of_request(manifest), work.note()
    _refuse_other_key(work, payment)
    dataset = None if payment is None else payment.dataset
    if note and (note["request"], note["dataset"]) != (asked, dataset):
        raise RequestError(
            f"{work.path} holds what another request paid for. Finish that one (tallytree resume "
            f"{work.target}), drop it "
            f"(tallytree clean {work.target}), or choose another folder."
        )
    facts = {
        "request": asked,
        "kind": manifest["kind"],
        "dataset": dataset,
        "receipt": None,
        "overwrite": work.overwrite,
        "versions": manifest["versions"],
        "machine": platform.machine() or "an unnamed processor",
    }
    # A stream goes on run by run; what a run that died was up to is finished before the next one
    # goes further.
    facts |= {name: manifest[name] for name in ("n_steps",) if name in manifest}
    if payment is None:
        work.write_note(note or facts | keeping.finishing() | {"state": "paid", "key": ""})
        return manifest, ""
    advance = keeping.advance
    if advance is not None:
        receipt = advance.receipt
        facts |= {"receipt": receipt, "left": advance.left, "run": advance.run}
        paid = {"state": "paid", "key": payment.key, "ledger": _shown(payment.ledger)}
        work.write_note(note or facts | keeping.finishing() | paid)
        return manifest, ""
    key, found = note.get("key") or payment.key or uuid4().hex, None
    if note:
        found = _find_open(payment.ledger, payment.dataset, key)
    else:
        paying = {"state": "paying", "key": key, "ledger": _shown(payment.ledger)}
        work.write_note(facts | keeping.finishing() | paying)
    try:
        if found is None:
            loss = budget_of(manifest["privacy"])
            refuse_put_back(payment.ledger, payment.dataset, work.target, loss)
        entry = found.reservation if found else reserve_for(replace(payment, key=key), manifest)
    except NothingRecordedError:
        if not note:  # an earlier run may have paid
            work.forget_note()
        raise
    receipt = receipt_of(payment, entry)
    work.write_note(work.note() | {"state": "paid", "receipt": receipt})
    return with_receipt(manifest, receipt), "" if found is None else found.measured_digest


def _refuse_other_key(work: Work, payment: Payment | None) -> None:
    """A key that finished the release of another one would pay again when it is used next."""
    key = work.note().get("key")
    if key and payment is not None and payment.key not in ("", key):
        raise RequestError(
            f"{work.path} holds a release that was begun under the idempotency key {key!r}, not "
            f"{payment.key!r}. Finish it (tallytree resume {work.target}), drop it (tallytree "
            f"clean {work.target}), or choose another folder."
        )


def _find_open(ledger: str, dataset: str, key: str) -> OpenReservation | None:
    from tallytree.ledger.accounts import find_open  # loads SQLAlchemy

    return find_open(ledger, dataset, key)


def was_paid(work: Work, ledger: str) -> bool:
    """Whether a run that died while it paid has paid, by the ledger's own record."""
    note = work.note()
    return _find_open(ledger, note["dataset"], note["key"]) is not None


def _shown(ledger: str) -> str | None:
    """The address of a ledger that is a file; others may hold a password and are not written down."""
    return None if "@" in ledger or "://" in ledger else str(Path(ledger).absolute())


def check_copies(copies: int) -> None:
    """Refuse a number of copies that no interval can be made from; also before a release is paid
    for.
    """
    if copies < 2:
        raise RequestError(f"Intervals need at least 2 copies of the release, not {copies}.")


def released(
    options: Paying, target: Target, make: Callable[[Keeping], T], load: Callable[[Folder], T]
) -> T:
    """A release that Python asks for: in its folder, as the command line makes it, or in memory
    where none is named.
    """
    if target.out is not None:
        return release_to(target, make, load, payment_from(options))[0]
    if target.overwrite or not target.noisy:
        raise RequestError(
            "overwrite= and noisy= say how a folder is written; add out=, the folder."
        )
    return make(Keeping(payment_from(options), intervals=target.intervals))


def release_to(
    target: Target,
    make: Callable[[Keeping], T],
    load: Callable[[Folder], T],
    payment: Payment | None = None,
) -> tuple[T, bool]:
    """Make a release in a folder, unless it was paid for and is there already; tell the ledger that
    it is out.

    The target is claimed before ``make`` pays. What a run that died has left there is gone on with,
    if it is the same request. Behind every function and command that releases to a folder.

    Parameters
    ----------
    make
        Pays, measures and estimates.
    load
        Loads the release of a folder.

    Returns
    -------
    tuple[Published, bool]
        The release, and whether the folder held it already, under the same idempotency key.
    """
    if target.out is None:
        raise RequestError("out= (--out) is missing: the folder to write.")
    if payment is not None and is_released(payment, target.out):
        try:
            # Pays and draws nothing, since the key was used; another request under it is refused.
            make(Keeping(payment))
        except DuplicateReleaseError:
            report_release(payment, target.out)
            left = reopen(target.out)
            if left is not None:
                left.release()
            with reading(target.out):
                return load(open_folder(target.out)), True
        raise AssertionError("a key that was used has paid again")
    work = claim(target.out, overwrite=target.overwrite)
    with kept_on_failure(work):
        refuse_measured(work)
        made = make(Keeping(payment, work, target.noisy, target.intervals))
        if payment is not None and not made.manifest["privacy"].get("ledger"):
            raise RequestError(
                "The function that makes the release did not pay: hand it the Keeping that it is "
                "called with. Nothing was paid or written."
            )
        finish(work, made, payment=payment, noisy=target.noisy)
    return made, False


@contextmanager
def kept_on_failure(work: Work) -> Iterator[None]:
    """Where making a release fails: drop the claim if nothing was paid, otherwise keep everything
    and say how to go on.
    """
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
    try:
        state = work.note().get("state")
    except PaidNotFinishedError:
        work.leave()
        raise
    # What a ledger refuses is not paid. Where it could not be reached to the end, or the run was
    # stopped, nobody knows.
    if state is None or (
        state == "paying" and isinstance(error, BudgetError | RequestError | VerificationError)
    ):
        work.release()
        return
    work.leave()
    if isinstance(error, PaidNotFinishedError):  # says itself what to do
        return
    if isinstance(error, Exception | KeyboardInterrupt):
        told = (
            "It was stopped."
            if isinstance(error, KeyboardInterrupt)
            else str(error) or type(error).__name__
        )
        paid = (
            "may be paid for already, which the ledger knows,"
            if state == "paying"
            else "is paid for"
        )
        again = "" if state == "measured" else ", or the same command again"
        raise PaidNotFinishedError(
            f"{told} The release to {work.target} {paid} and not finished; what was measured is "
            "kept and nothing is paid "
            f"twice. {work.standing()}To finish it: tallytree resume {work.target}{again}."
        ) from error
