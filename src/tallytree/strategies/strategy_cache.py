"""Optimised strategies on disk: they depend on the workload and the kind of noise alone, never on
data.

One small file per workload in the user's cache folder (``$XDG_CACHE_HOME/tallytree/strategies``, by
default ``~/.cache/tallytree/strategies``). A file is only a hint: whoever measures computes the
sensitivity from the matrix itself, whoever plans its error, and a file that is missing, broken or
not writable costs the time to optimise again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from tallytree.model.arrays import IntArray

FORMAT = 1  # goes up when the optimiser gets better, so that older files are not used


def cache_folder() -> Path:
    """The folder of cached strategies."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "tallytree" / "strategies"


def read_rows(folder: Path, key: str, n_bins: int, largest: int) -> IntArray | None:
    """The rows of a cached strategy, or None if there is no sound file."""
    try:
        with np.load(cache_file(folder, key), allow_pickle=False) as stored:
            rows = stored["rows"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    if rows.ndim != 2 or rows.shape[1] != n_bins or len(rows) < n_bins or rows.dtype != np.int32:
        return None
    return rows.astype(np.int64) if np.abs(rows.astype(np.int64)).max() <= largest else None


def write_rows(folder: Path, key: str, rows: IntArray) -> None:
    """Store the rows of a strategy: whole or not at all, and quietly not if the folder cannot be
    written.
    """
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, suffix=".npz")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez_compressed(file, rows=rows.astype(np.int32))
            Path(name).replace(cache_file(folder, key))
        except OSError:
            Path(name).unlink(missing_ok=True)


def cache_file(folder: Path, key: str) -> Path:
    """Where the strategy of a workload is kept."""
    return folder / f"{key}.v{FORMAT}.npz"
