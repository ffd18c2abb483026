"""The work folder of a release: claimed before anything is paid, gone when the release is in its
place.

It lies beside the target under a name of its own and is readable by its owner alone. Whoever has it
works for the target: a second run is refused before it pays. What a run has paid for is kept in it
until the release is written, so that a run that died can be finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tallytree.errors import PaidNotFinishedError, StorageError
from tallytree.storage.note import is_note
from tallytree.storage.rename import move_new, swap
from tallytree.storage.sealing import OWN_CHECKSUM, is_whole, sealed

SUFFIX = ".tallytree"
ANSWERS, MEASURED, BUILT, REPLACED = "answers", "measured", "built", "replaced"
READING = "reading"
"""What says which data the answers are from: as confidential as the data, and deleted before all else."""
PARTS = "parts-"  # and a name that is new for every run
# Manifests, notes and a small release.
_LEAST_ROOM = 1 << 20
_LOCK, _NOTE = "lock", "note.json"
_LAST = {_NOTE: 1, _LOCK: 2}  # to be removed, after all else
# Of what a work folder holds; newer ones are refused.
FORMAT_VERSION = 1
# Files that the program itself puts beside the tables of a release after it was written.
SIGNATURE = "manifest.sig"
BESIDE = ("report.html", "card.json", "card.md", "card.yaml", SIGNATURE)


@dataclass(frozen=True)
class Work:
    """A claimed target.

    Attributes
    ----------
    target
        Where the release will be; links are followed, so that they stay links.
    path
        The work folder.
    overwrite
        Whether a release at the target may be replaced.
    """

    target: Path
    path: Path
    overwrite: bool
    lock: int

    def note(self) -> dict[str, Any]:
        """What the run wrote down about itself; empty for a fresh claim.

        Of an unreadable note nobody knows what was paid, so it is refused and everything kept.
        """
        file = self.path / _NOTE
        try:
            text = file.read_bytes().decode("utf-8")
            found = json.loads(text)
        except FileNotFoundError:
            if any((self.path / name).exists() for name in (ANSWERS, MEASURED)):
                raise self._unreadable(file) from None
            return {}
        except (OSError, ValueError, RecursionError):
            raise self._unreadable(file) from None
        if not isinstance(found, dict):
            raise self._unreadable(file)
        known = found.get("format_version", FORMAT_VERSION) == FORMAT_VERSION
        if known and not (is_whole(found, text) and is_note(found)):
            raise self._unreadable(file)
        return {name: value for name, value in found.items() if name != OWN_CHECKSUM}

    def readable_note(self) -> dict[str, Any]:
        """The note, for what drops or lists the work whatever it says; empty where it is damaged."""
        try:
            return self.note()
        except PaidNotFinishedError:
            return {}

    def _unreadable(self, file: Path) -> PaidNotFinishedError:
        return PaidNotFinishedError(
            f"{file} is missing, damaged or cannot be read. It says what was paid and measured for "
            f"{self.target}, so everything in {self.path} is kept. Bring the file back from a copy "
            f"and run tallytree resume {self.target}, or give the payment up: tallytree clean "
            f"{self.target}."
        )

    def write_note(self, facts: dict[str, Any]) -> None:
        """Write down facts about the run, flushed to disk; nothing confidential."""
        file = self.path / _NOTE
        facts = {"format_version": FORMAT_VERSION} | facts
        part = file.with_suffix(".part")
        with self._telling():
            number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(number, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(sealed(facts))
                stream.flush()
                os.fsync(stream.fileno())
            part.rename(file)
        sync(self.path)

    def forget_note(self) -> None:
        """Take back the note of a run that has paid nothing after all."""
        with self._telling():
            (self.path / _NOTE).unlink(missing_ok=True)
        sync(self.path)

    def refuse_newer(self) -> None:
        """Refuse what a newer version has left: it may be kept by other rules."""
        try:
            version = self.note().get("format_version", 1)
        except PaidNotFinishedError:
            self.leave()
            raise
        if version != FORMAT_VERSION:
            self.leave()
            raise StorageError(
                f"{self.path} was left by another version of tallytree, in format {version!r}; "
                "this one knows format "
                f"{FORMAT_VERSION}. Upgrade tallytree to finish it, or choose another folder."
            )

    def require_room(self, n_bytes: int) -> None:
        """Refuse to go on where the disk has too little room for what will be written, as far as it
        can be told.
        """
        free = shutil.disk_usage(self.path).free
        if free < n_bytes + _LEAST_ROOM:
            raise StorageError(
                f"{self.target.parent} has {free / 2**20:,.0f} MiB left, and the release needs "
                "about "
                f"{(n_bytes + _LEAST_ROOM) / 2**20:,.0f} MiB. Free some, or choose another folder; "
                "nothing was paid."
            )

    def folder(self, name: str) -> Path:
        """A folder inside the work folder, made where it is missing."""
        found = self.path / name
        with self._telling():
            found.mkdir(mode=0o700, exist_ok=True)
        sync(self.path)
        return found

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """What goes wrong while the work folder is written, in one sentence."""
        try:
            yield
        except OSError as error:
            raise StorageError(f"Cannot write to {self.path}: {error.strerror}.") from None

    def put_into_place(self, built: Path) -> None:
        """Move the finished folder to the target in one step.

        A release that is replaced is exchanged with the new one, so that one of the two is there at
        every moment. Where the system cannot exchange folders the old one is set aside first,
        inside the work folder.
        """
        if not os.path.lexists(self.target):
            move_new(built, self.target)
        elif not self.overwrite:
            raise FileExistsError(17, "It appeared while the release was made", str(self.target))
        else:
            check_replaceable(self.target)
            if not swap(built, self.target):
                self.target.rename(self.path / REPLACED)
                try:
                    move_new(built, self.target)
                except OSError:
                    self.bring_back()
                    raise
        sync(self.target.parent)

    def note_built(self, built: Path) -> None:
        """Write down which release is about to be put into its place, so that it is known again
        there.
        """
        self.write_note(self.note() | {"manifest": _digest(built)})

    def is_in_place(self) -> bool:
        """Whether the release that was made here is at the target already."""
        noted = self.readable_note().get("manifest")
        return noted is not None and noted == _digest(self.target)

    def standing(self) -> str:
        """Which of two releases is at the target, in a sentence; empty where there is none, or
        nothing was begun or left.
        """
        if self.is_in_place():
            return "The new release is in its place. "
        if self.readable_note() and os.path.lexists(self.target):
            return f"{self.target} still holds the release that was to be replaced. "
        return ""

    def bring_back(self) -> None:
        """Bring back a release that was set aside by a run that died, or failed, before the new one
        was in its place.
        """
        aside = self.path / REPLACED
        if aside.exists() and not os.path.lexists(self.target):
            move_new(aside, self.target)

    def release(self) -> None:
        """Give the target free and remove the work folder.

        What says how far the run had come goes last: if the run dies here, the rest is still found
        and known for what it is.
        """
        with suppress(OSError):
            for entry in sorted(
                self.path.iterdir(),
                key=lambda entry: (_LAST.get(entry.name, 0), not entry.name.startswith(READING)),
            ):
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)
            self.path.rmdir()
        self.leave()

    def leave(self) -> None:
        """Stop working, and leave what is in the work folder for another run."""
        with suppress(OSError):
            os.close(self.lock)


def claim(target: str | Path, *, overwrite: bool = False) -> Work:
    """Claim a target before anything is paid for it; StorageError says what is wrong with it."""
    place = check_target(target, overwrite=overwrite)
    path = work_folder(place)
    while True:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
            _refuse_foreign(path)
            lock = _opened_lock(path)
            # What will be paid for is kept in this folder, so its name and those of the folders
            # above must outlive a power cut.
            for above in path.parents:
                sync(above)
        except FileNotFoundError:
            continue  # the run that had it finished between the two lines
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(
                f"Cannot write to {place.parent}: {error.strerror}. Choose another output folder."
            ) from None
        if not _locked(lock):
            os.close(lock)
            raise StorageError(
                f"Another run is writing {place} at this moment. Wait for it, or choose another "
                "folder."
            )
        if _is_current(lock, path / _LOCK):
            break
        os.close(lock)
    work = Work(place, path, overwrite, lock)
    work.refuse_newer()
    try:
        work.bring_back()
        check_target(
            target, overwrite=overwrite
        )  # a run that finished meanwhile may have put its release there
    except OSError:
        (work.leave if work.note() else work.release)()
        raise
    return work


def _digest(folder: Path) -> str | None:
    """SHA-256 of the manifest in a folder; None where there is none that can be read."""
    try:
        return hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    except OSError:
        return None


def _is_current(lock: int, file: Path) -> bool:
    """Whether the lock is on the file that is there now, and not on one that was removed with its
    folder.
    """
    try:
        there = file.stat()
    except OSError:
        return False
    own = os.fstat(lock)
    return (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)


def reopen(target: str | Path) -> Work | None:
    """The work that a run left for a target, to be finished; None where there is none."""
    found = reopen_any(target)
    if found is not None:
        found.refuse_newer()
    return found


def reopen_any(target: str | Path) -> Work | None:
    """The same, to be looked at or dropped, whichever version left it."""
    given = Path(target)
    place = given.resolve() if given.is_symlink() else given.absolute()
    path = work_folder(place)
    try:
        _refuse_foreign(path)
        lock = _opened_lock(path)  # a run may have died between folder and lock
    except (FileNotFoundError, NotADirectoryError):
        return None
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"Cannot write to {path}: {error.strerror}. Remove it.") from None
    if not _locked(lock):
        os.close(lock)
        raise StorageError(f"Another run is writing {place} at this moment. Wait for it.")
    found = Work(place, path, False, lock)
    found.bring_back()
    return replace(found, overwrite=bool(found.readable_note().get("overwrite")))


def _opened_lock(path: Path) -> int:
    return os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _refuse_foreign(path: Path) -> None:
    """Refuse a work folder in which others may have put answers of their own."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        wrong = "is a link"
    elif hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        wrong = "belongs to another user"
    elif hasattr(os, "geteuid") and status.st_mode & 0o022:
        wrong = "may be written to by others"
    else:
        return
    raise StorageError(
        f"{path} {wrong}: what it holds may be forged, and what is put there read by others. "
        "Remove it, or choose another folder."
    )


def set_aside(target: Path) -> Path | None:
    """Where the release of a target is that a run set aside and did not live to replace; None where
    it is in its place.
    """
    aside = work_folder(target.absolute()) / REPLACED
    return aside if not os.path.lexists(target) and os.path.lexists(aside) else None


def left_over(folder: Path) -> dict[Path, str]:
    """Targets in a folder whose work was left unfinished by a run that ended, and which release is
    there, in a sentence.
    """
    found = {}
    for path in sorted(folder.glob(f".*{SUFFIX}")):
        target = folder / path.name[1 : -len(SUFFIX)]
        try:
            work = reopen_any(target)
        except (OSError, StorageError):  # it runs at this moment, or belongs to someone else
            continue
        if work is not None:
            found[target] = work.standing()
            work.leave()
    return found


def work_folder(target: Path) -> Path:
    """Where the work for a target is kept."""
    return target.parent / f".{target.name}{SUFFIX}"


def check_target(target: str | Path, *, overwrite: bool = False) -> Path:
    """Refuse a target that cannot be written, before any budget is spent; the place that is meant,
    with links followed.
    """
    given = Path(target)
    if "://" in str(target):
        raise StorageError(
            f"{target} is not a folder of a file system that is mounted here. Write to a folder, "
            "and copy that: for example "
            "hadoop fs -put, aws s3 cp --recursive, gcloud storage cp --recursive."
        )
    try:
        if given.is_symlink() and not given.exists():
            raise StorageError(f"{given} is a link that leads nowhere. Choose another folder.")
        place = given.resolve() if given.is_symlink() else given.absolute()
        if not place.name or place.resolve() == Path.cwd() or os.path.ismount(place):
            raise StorageError(
                f"{given} is the current folder or a whole file system, and cannot be replaced. "
                "Name a folder in it."
            )
        os.lstat(place.parent / work_folder(place).name)
    except FileNotFoundError:
        pass
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"Cannot write to {given}: {error.strerror}. Choose another output folder."
        ) from None
    except ValueError:
        raise StorageError(
            f"{str(given)!r} is not the name of a folder. Choose another output folder."
        ) from None
    for parent in place.parents:
        if parent.exists():
            if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
                raise StorageError(f"Cannot write to {parent}. Choose another output folder.")
            break
    if os.path.lexists(place):
        if not overwrite:
            raise StorageError(
                f"{given} already exists. Choose another folder, or pass overwrite (--overwrite)."
            )
        check_replaceable(place)
    return place


def check_replaceable(target: Path) -> None:
    """Refuse to replace anything but an empty folder, or a release with nothing of somebody else's
    in it.
    """
    if not target.is_dir():
        raise StorageError(
            f"{target} is not a release, so it is not overwritten. Choose another folder."
        )
    there = {entry.name for entry in target.iterdir()}
    if not there:
        return
    try:
        listed = json.loads((target / "manifest.json").read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, LookupError, TypeError):
        raise StorageError(
            f"{target} is not a release, so it is not overwritten. Choose another folder."
        ) from None
    foreign = sorted(there - {"manifest.json", *listed, *BESIDE})
    if foreign:
        shown = ", ".join(foreign[:3]) + (" …" if len(foreign) > 3 else "")
        raise StorageError(
            f"{target} holds files that do not belong to its release ({shown}). Move them, or "
            "choose another folder."
        )


def _locked(lock: int) -> bool:
    """Whether the lock could be taken; the system gives it free when the process ends, however it
    ends.
    """
    try:
        import fcntl
    except ImportError:  # not on this system: the folder itself is the claim
        return os.fstat(lock).st_size == 0
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def sync(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
