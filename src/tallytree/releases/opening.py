"""Opening a release folder: the manifest is read once, and its shape checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tallytree.errors import TallytreeError, VerificationError
from tallytree.storage.folder import DAMAGE, MANIFEST, Folder, Manifest, read_manifest
from tallytree.storage.sealing import OWN_CHECKSUM

# What a reader of any kind relies on.
_NEEDED = {
    "kind": str,
    "privacy": Mapping,
    "public": Mapping,
    "mechanism": Mapping,
    "versions": Mapping,
}


def open_folder(path: str | Path) -> Folder:
    """The folder of a release; VerificationError where its manifest is not one."""
    manifest = read_manifest(path)
    with reading(path):
        files = manifest["files"]
        if not isinstance(files, Mapping) or not all(
            isinstance(facts, Mapping) for facts in files.values()
        ):
            raise TypeError("files is not a table of checksums")
        split = _parts_of(manifest, files)
        for name, kind in _NEEDED.items():
            if not isinstance(manifest[name], kind):
                raise TypeError(f"{name} is not what it should be")
    added = ("files", "format_version", "parts", OWN_CHECKSUM)
    own = {name: value for name, value in manifest.items() if name not in added}
    return Folder(Path(path), own, files, split)


def _parts_of(manifest: Manifest, files: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Which files each table is made of, where it is not one; every file belongs to one table,
    once.
    """
    split = {table: tuple(names) for table, names in manifest.get("parts", {}).items()}
    named = [name for names in split.values() for name in names]
    if ("parts" in manifest) != bool(split):
        raise ValueError("parts names no table")
    if (
        not all(split.values())
        or len(set(named)) < len(named)
        or not {*named} <= {*files}
        or {*split} & {*files}
    ):
        raise ValueError("parts are not files of one table each")
    return split


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """While a folder is read: whatever damage makes it stumble is one sentence, a
    VerificationError.

    Numbers that are none must not become others: casting NaN to a whole number is an error here,
    not a warning.
    """
    try:
        with np.errstate(invalid="raise"):
            yield
    except TallytreeError:
        raise
    except DAMAGE as error:
        raise unreadable(path, error) from None


def unreadable(path: str | Path, error: Exception) -> VerificationError:
    """A folder whose parts do not fit together, in one sentence."""
    what = (
        f"{error.args[0]!r} is missing"
        if isinstance(error, KeyError) and error.args
        else str(error) or type(error).__name__
    )
    first_line = what.splitlines()[0][:200] if what else type(error).__name__
    return VerificationError(
        f"{path} is not a whole release: {first_line.rstrip('.')}.", (MANIFEST,)
    )
