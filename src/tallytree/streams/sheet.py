"""A stream as a flat table whose columns say what they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tallytree.releases.export.sheet import (
    Codes,
    Column,
    Sheet,
    about_release,
    with_counts,
)
from tallytree.streams.release import StreamRelease


def stream_sheet(release: StreamRelease) -> Sheet:
    """Step (its number, or its first day), count so far, unbiased estimate, standard error, flag."""
    made = release.table()
    steps = made["step"] if release.steps.every is None else made["step"].cast(pa.string())
    rows, columns = (
        {"step": steps},
        [Column("step", "key", "step after which was counted: its number, or its first day")],
    )
    rows, columns = with_counts(rows, columns, made, np.asarray(made["std_error"]))
    names = steps.to_pylist()
    codes = {"step": Codes(names, [str(name) for name in names])}
    about = (*about_release(release), "Counts are of all steps so far.")
    return Sheet(
        "counts",
        f"Stream of {release.n_steps:,} steps",
        about,
        pa.table(rows),
        tuple(columns),
        codes,
    )
