"""Noisy answers kept on disk as they are given, so that a run that dies can go on without drawing
any of them again.

Each answer is written and flushed to disk before anything is computed from it. A run that goes on
asks the same questions in the same order, because what is asked follows from public facts and
earlier answers alone; answers in the journal are given back, and only the questions that were never
answered draw noise, under a fresh key.

Another version of the program, or another processor, may work out other ends of blocks or other
bins from the same answers. What was measured would then be two sets of questions, each with a part
of the budget, about which nothing is proved. So the digest of each question (its noise, and all
public numbers that say what is counted) is kept with its answer, and a run goes on only while its
questions are those that were kept, one after the other.

Why this has the loss of one run. Fix the data. In one run the answer to question i is its exact
value plus noise that is independent of all other noise. In a run that went on after question j,
answers 1 … j are those that were drawn first, and answers j + 1 … have noise from another key,
independent too. So the transcript has the same distribution as in one run, for every j and however
often a run dies. An answer that was drawn and not yet flushed when the run died influenced nothing,
and nobody has seen it. What must never happen is a second draw for an answer that is kept, or a key
on disk: with it the noise could be taken off again. Neither keys nor exact values are written here,
and the folder is readable by its owner alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tallytree.errors import PaidNotFinishedError, StorageError, VerificationError
from tallytree.model.arrays import IntArray

_MAGIC = b"tallytree answers 1\n"


class Question(NamedTuple):
    """Where an answer has its noise from, and the digest of what was asked there."""

    place: str
    digest: str


@dataclass(eq=False)
class Journal:
    """The answers of one release, in a folder of their own, one file per answer, numbered as they
    were given.

    A ``sealed`` one holds all of them: no other is drawn. ``owner`` is what messages tell its owner
    of the run that began it and of giving it up.
    """

    folder: Path
    sealed: bool = False
    owner: str = ""
    _checksums: list[tuple[Question, str]] = field(default_factory=list, repr=False)
    _given: int = 0

    def __post_init__(self) -> None:
        for number, file in enumerate(sorted(self.folder.glob("*.answer"))):
            if file != self._file(number):
                raise VerificationError(
                    f"{self.folder} lacks {self._file(number).name}; its answers are damaged."
                )
            question, _, checksum = _read(file)
            self._checksums.append((question, checksum))

    def __len__(self) -> int:
        return len(self._checksums)

    def answer(self, question: Question, n_values: int, draw: Callable[[], IntArray]) -> IntArray:
        """The answer that is kept for the next question, or else a fresh one, which is kept before
        it is given out.
        """
        if self._given == len(self):
            if self.sealed:
                raise VerificationError(
                    f"{self.folder} lacks an answer that this run asks for, and no other is drawn."
                )
            drawn = draw()
            self._keep(question, drawn)
            self._given += 1
            return drawn
        asked, kept, _ = _read(self._file(self._given))
        if asked != question or len(kept) != n_values:
            raise PaidNotFinishedError(
                f"The answers in {self.folder} are to other questions than this run asks, and "
                "answers to both must "
                "not be mixed. Another version of tallytree or of the libraries below it, or "
                "another kind of processor, "
                f"works out other questions from the same answers. {self.owner}"
            )
        self._given += 1
        return kept

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:06d}.answer"

    def _keep(self, question: Question, values: IntArray) -> None:
        file = self._file(len(self))
        body = (
            json.dumps(question).encode()
            + b"\n"
            + np.ascontiguousarray(values, dtype="<i8").tobytes()
        )
        checksum = hashlib.sha256(body).hexdigest()
        try:
            part = os.open(file.with_suffix(".part"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(part, "wb") as stream:
                stream.write(_MAGIC + checksum.encode() + b"\n" + body)
                stream.flush()
                os.fsync(stream.fileno())
            file.with_suffix(".part").rename(file)
            sync_folder(self.folder)
        except OSError as error:
            raise StorageError(
                f"Cannot keep the noisy answers in {self.folder}: {error.strerror}."
            ) from error
        self._checksums.append((question, checksum))

    def digest(self) -> str:
        """SHA-256 over the checksums of all answers by their questions: what the ledger notes once
        all is measured.
        """
        return hashlib.sha256(json.dumps(sorted(self._checksums)).encode()).hexdigest()


def _read(file: Path) -> tuple[Question, IntArray, str]:
    """Question, values and checksum of a kept answer."""
    try:
        magic, checksum, asked, values = file.read_bytes().split(b"\n", 3)
    except (OSError, ValueError):
        raise VerificationError(
            f"{file} cannot be read; the answers of this release are damaged.", (file.name,)
        ) from None
    if (
        magic + b"\n" != _MAGIC
        or hashlib.sha256(asked + b"\n" + values).hexdigest().encode() != checksum
    ):
        raise VerificationError(
            f"{file} was changed; the answers of this release are damaged.", (file.name,)
        )
    return (
        Question(*json.loads(asked)),
        np.frombuffer(values, dtype="<i8").astype(np.int64),
        checksum.decode(),
    )


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
