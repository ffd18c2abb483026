"""A histogram as a flat table whose columns say what they are."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.model.bins import Bins
from tallytree.ranges.release import RangeHistogram
from tallytree.releases.export.sheet import (
    Codes,
    Column,
    Sheet,
    about_release,
    with_counts,
)


def histogram_sheet(histogram: RangeHistogram) -> Sheet:
    """Bin, where it lies, count, unbiased estimate, standard error, flag."""
    made, bins = histogram.table(), histogram.bins
    rows: dict[str, Any] = {"bin": made["bin"]}
    columns = [Column("bin", "key", "number of the bin")]
    for name, title in (("category", "category"), ("low", "lower edge"), ("high", "upper edge")):
        if name in made.column_names:
            own = name if name == "category" else f"{name}_edge"
            rows[own] = made[name]
            columns.append(Column(own, "label", f"{title} of the bin"))
    rows, columns = with_counts(rows, columns, made, np.asarray(made["standard_error"]))
    codes = {"bin": Codes(list(range(bins.n_bins)), _bin_labels(bins))}
    return Sheet(
        "counts",
        f"Histogram of {bins.n_bins:,} bins",
        about_release(histogram),
        pa.table(rows),
        tuple(columns),
        codes,
    )


def _bin_labels(bins: Bins) -> list[str]:
    if bins.categories is not None:
        return list(bins.categories)
    return [f"{low:g} to {high:g}" for low, high in pairwise(bins.edges.tolist())]
