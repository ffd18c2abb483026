"""Tables in parts: files of consecutive rows, each written whole by whoever made its rows, listed
in order by the manifest.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class PartFile:
    """Some consecutive rows of a table in a file of their own, with what a manifest says about it."""

    path: Path
    rows: int
    sha256: str

    @property
    def facts(self) -> dict[str, Any]:
        """What a manifest says about the file."""
        return {"rows": self.rows, "sha256": self.sha256}


Parts = Mapping[str, Sequence[PartFile]]


def part_name(table: str, number: int) -> str:
    """Name of a part of a table: ``counts-00012.parquet`` of ``counts.parquet``."""
    stem, dot, ending = table.rpartition(".")
    return f"{stem}-{number:05d}{dot}{ending}"


def gather_parts(folder: Path, parts: Parts) -> dict[str, list[str]]:
    """Give part files a second name in a folder, in their order; the names, table by table.

    A file system without links gets copies.
    """
    named: dict[str, list[str]] = {}
    for table, files in parts.items():
        named[table] = [part_name(table, number) for number in range(len(files))]
        for name, part in zip(named[table], files):
            try:
                os.link(part.path, folder / name)
            except OSError:
                shutil.copyfile(part.path, folder / name)
    return named


def digest_of_parts(parts: Parts) -> str:
    """SHA-256 over the checksums of all parts, in order."""
    listed = [[table, [part.sha256 for part in files]] for table, files in sorted(parts.items())]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()
