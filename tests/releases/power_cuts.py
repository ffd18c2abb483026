"""What a disk holds after a power cut: what was flushed, and nothing else.

A file keeps the content it had when it was last flushed (``fsync``), a folder the names it had when
it was last flushed. What was never flushed is lost: a file is empty, a folder has no names. No real
file system is as forgetful; a program that keeps its promises on this one keeps them on all.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path


class ForgetfulDisk:
    """Notes what is flushed inside a folder while a program runs, and can write down what a power
    cut would leave.

    Attributes
    ----------
    cut
        Called before every flush with its number, so that the state in which the program would be
        at a power cut can be kept.
    """

    def __init__(self, root: Path, cut: Callable[[int], None]) -> None:
        self.root, self.cut = root, cut
        self.files: dict[int, bytes] = {}
        self.folders: dict[int, dict[str, int]] = {}
        self.n_flushed = 0
        for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
            self.folders[folder.stat().st_ino] = names_in(folder)
        for path in root.rglob("*"):
            if path.is_file():
                self.files[path.stat().st_ino] = path.read_bytes()

    def fsync(self, descriptor: int) -> None:
        """Stands in for ``os.fsync``."""
        self.flush(Path(f"/proc/self/fd/{descriptor}").readlink())

    def flush(self, place: Path) -> None:
        """Told before a file, or the names in a folder, are flushed."""
        if place != self.root and self.root not in place.parents:
            return
        self.cut(self.n_flushed)
        self.n_flushed += 1
        facts = place.stat()
        if stat.S_ISDIR(facts.st_mode):
            self.folders[facts.st_ino] = names_in(place)
        else:
            self.files[facts.st_ino] = place.read_bytes()

    def leave(self, place: Path, *, names: bool) -> None:
        """Write what is left into a new folder; with ``names``, names survived although they were
        not flushed.
        """
        alive = {path.stat().st_ino: path for path in (self.root, *self.root.rglob("*"))}

        def restore(inode: int, target: Path) -> None:
            now = alive.get(inode)
            if inode in self.folders or (now is not None and now.is_dir()):
                target.mkdir(mode=0o700)
                shown = names_in(now) if names and now is not None else self.folders.get(inode, {})
                for name, inner in shown.items():
                    restore(inner, target / name)
            else:
                target.write_bytes(self.files.get(inode, b""))

        restore(self.root.stat().st_ino, place)


def names_in(folder: Path) -> dict[str, int]:
    return {entry.name: entry.inode() for entry in os.scandir(folder)}
