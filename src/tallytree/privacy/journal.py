"""Noisy answers kept on disk as they are given, so that a run that dies can go on without drawing any of them again.

Each answer is written and flushed to disk before anything is computed from it. A run that goes on asks the same questions in
the same order, because what is asked follows from public facts and earlier answers alone; answers in the journal are given
back, and only the questions that were never answered draw noise, under a fresh key.

Why this has the loss of one run. Fix the data. In one run the answer to question i is its exact value plus noise that is
independent of all other noise. In a run that went on after question j, answers 1 … j are those that were drawn first, and
answers j + 1 … have noise from another key, independent too. So the transcript has the same distribution as in one run, for
every j and however often a run dies. An answer that was drawn and not yet flushed when the run died influenced nothing, and
nobody has seen it. What must never happen is a second draw for an answer that is kept, or a key on disk: with it the
noise could be taken off again. Neither keys nor exact values are written here, and the folder is readable by its owner alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tallytree.errors import StorageError, VerificationError
from tallytree.model.arrays import IntArray

_MAGIC = b"tallytree answers 1\n"


@dataclass(eq=False)
class Journal:
    """The answers of one release, in a folder of their own, one file per answer, numbered as they were given.

    A ``sealed`` one holds all of them: no other is drawn.
    """

    folder: Path
    sealed: bool = False
    _files: dict[str, Path] = field(default_factory=dict, repr=False)
    _checksums: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for file in sorted(self.folder.glob("*.answer")):
            place, _, checksum = _read(file)
            self._files[place], self._checksums[place] = file, checksum

    def __len__(self) -> int:
        return len(self._files)

    def answer(self, place: str, n_values: int, draw: Callable[[], IntArray]) -> IntArray:
        """The answer that is kept for a place, or else a fresh one, which is kept before it is given out."""
        if place not in self._files:
            if self.sealed:
                raise VerificationError(f"{self.folder} lacks an answer that this run asks for, and no other is drawn.")
            drawn = draw()
            self._keep(place, drawn)
            return drawn
        _, kept, _ = _read(self._files[place])
        if len(kept) != n_values:
            raise VerificationError(
                f"{self.folder} holds answers to other questions than this run asks; it was made for another request."
            )
        return kept

    def _keep(self, place: str, values: IntArray) -> None:
        file = self.folder / f"{len(self._files):06d}.answer"
        body = json.dumps(place).encode() + b"\n" + np.ascontiguousarray(values, dtype="<i8").tobytes()
        checksum = hashlib.sha256(body).hexdigest()
        try:
            with file.with_suffix(".part").open("wb") as stream:
                stream.write(_MAGIC + checksum.encode() + b"\n" + body)
                stream.flush()
                os.fsync(stream.fileno())
            file.with_suffix(".part").rename(file)
            sync_folder(self.folder)
        except OSError as error:
            raise StorageError(f"Cannot keep the noisy answers in {self.folder}: {error.strerror}.") from error
        self._files[place], self._checksums[place] = file, checksum

    def digest(self) -> str:
        """SHA-256 over the checksums of all answers by their places: what the ledger notes once everything is measured."""
        return hashlib.sha256(json.dumps(sorted(self._checksums.items())).encode()).hexdigest()


def _read(file: Path) -> tuple[str, IntArray, str]:
    """Place, values and checksum of a kept answer."""
    try:
        magic, checksum, place, values = file.read_bytes().split(b"\n", 3)
    except (OSError, ValueError):
        raise VerificationError(
            f"{file} cannot be read; the answers of this release are damaged.", (file.name,)
        ) from None
    if magic + b"\n" != _MAGIC or hashlib.sha256(place + b"\n" + values).hexdigest().encode() != checksum:
        raise VerificationError(f"{file} was changed; the answers of this release are damaged.", (file.name,))
    return json.loads(place), np.frombuffer(values, dtype="<i8").astype(np.int64), checksum.decode()


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
