"""One release, one data set: which data the kept answers of an unfinished release were measured
from.

Rounds that share a level's budget cost it once because an entity fills one cell of *one* staircase.
Answers from two data sets would each lose that much. So a fingerprint of what was read
(:mod:`tallytree.privacy.fingerprint`) is kept beside the answers, in a file of its own that its
owner alone can read: written and flushed before the first answer is drawn, compared before anything
is asked, and deleted as soon as everything is measured. It is as confidential as the data.

While no answer is kept there is nothing to be mixed with: the fingerprint is written anew, under a
new key.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from tallytree.errors import PaidNotFinishedError, StorageError
from tallytree.model.confidential import ExactValues
from tallytree.privacy.fingerprint import Fingerprint
from tallytree.privacy.journal import Journal
from tallytree.storage.work import READING, Work, reopen, sync


def keep_reading(work: Work, journal: Journal, read: ExactValues) -> None:
    """Keep the fingerprint of what was read; where answers are kept already, refuse to go on with
    other data.
    """
    if not len(journal):
        _write(work, Fingerprint.of(read.facts()))
        return
    kept = _kept(work)
    if kept is None:
        raise PaidNotFinishedError(
            f"What says which data the answers in {work.path} were measured from is missing or "
            "damaged, and answers from two "
            "data sets must not be mixed. Give its payment up and begin anew: tallytree clean "
            f"{work.target}."
        )
    if not kept.fits(read.facts()):
        raise PaidNotFinishedError(
            f"The release to {work.target} was begun, and partly measured, from other data than "
            "these; answers from two data "
            "sets must not be mixed. Put the data back as they were and run the same command "
            "again, or give the payment up "
            f"and begin anew: tallytree clean {work.target}."
        )


def forget_reading(work: Work) -> None:
    """Delete the fingerprint: nothing more will be asked."""
    (work.path / READING).unlink(missing_ok=True)
    sync(work.path)


def now() -> str:
    """The time at which something was read, to the minute."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def refuse_measured(work: Work) -> None:
    """Refuse to read data for a release of which everything is measured: what would be read decides
    nothing any more.
    """
    note = work.note()
    if note.get("state") == "measured":
        forget_reading(work)  # the run that measured may not have come so far
        raise PaidNotFinishedError(
            f"Everything is measured already for {work.target}, from data that were read on "
            f"{note['read']}, and the data are "
            f"not read again. {work.standing()}To finish it: tallytree resume {work.target}. To "
            "give its payment up: "
            f"tallytree clean {work.target}."
        )


def refuse_measured_at(target: str | Path) -> None:
    """The same before anything is claimed or read."""
    work = reopen(target)
    if work is not None:
        try:
            refuse_measured(work)
        finally:
            work.leave()


def _kept(work: Work) -> Fingerprint | None:
    try:
        return Fingerprint.from_bytes((work.path / READING).read_bytes())
    except OSError:
        return None


def _write(work: Work, fingerprint: Fingerprint) -> None:
    file = work.path / READING
    part = file.with_suffix(".part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(fingerprint.to_bytes())
            stream.flush()
            os.fsync(stream.fileno())
        part.rename(file)
    except OSError as error:
        raise StorageError(f"Cannot write to {work.path}: {error.strerror}.") from None
    sync(work.path)
