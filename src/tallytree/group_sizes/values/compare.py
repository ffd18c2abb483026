"""Two tables of values side by side: how far each statistic differs, and what is clear of noise.

Errors and rates as in :mod:`tallytree.releases.comparison`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.group_sizes.values.intervals import with_statistics_intervals
from tallytree.group_sizes.values.release import ValuesRelease
from tallytree.releases.comparison import (
    Comparison,
    changes_of,
    common_regions,
    half_width,
    outside,
)
from tallytree.releases.progress import Progress, silent


def compare_values(
    first: ValuesRelease,
    second: Any,
    *,
    rate: float = 0.05,
    copies: int = 40,
    progress: Progress = silent,
    **source: Any,
) -> Comparison:
    """Differences (second − first) of the statistics of two tables of values, where both have a
    region; intervals that are missing are simulated.
    """
    if not isinstance(second, ValuesRelease) or source:
        raise RequestError("A table of values is compared with another one, and nothing is read.")
    if (first.scale.step, first.scale.first, first.scale.last) != (
        second.scale.step,
        second.scale.first,
        second.scale.last,
    ):
        raise RequestError(
            "The tables have other steps or bounds; release both with the same to compare them."
        )
    one, other = (
        made
        if made.statistics.errors
        else with_statistics_intervals(made, copies=copies, progress=progress)
        for made in (first, second)
    )
    pairs, left_out = common_regions(first.hierarchy, second.hierarchy)
    names = one.statistics.names
    value, error = (
        [
            (part.statistics.value if which is None else part.statistics.errors[which])[
                pairs[:, column] * part.lattice.n_slots
            ].ravel()
            for column, part in enumerate((one, other))
        ]
        for which in (None, "std_error")
    )
    known = ~np.isnan(value[0] + value[1] + error[0] + error[1])
    region = np.repeat(pairs[:, 0], len(names))[known]
    difference, std_error = (value[1] - value[0])[known], np.hypot(*error)[known]
    least = np.maximum(std_error, 1e-12 * np.maximum(np.abs(value[0][known]), 1e-300))
    p_value = outside(np.abs(difference) / least, single=False)
    half = half_width(std_error, rate)
    columns = {
        "statistic": pa.array(np.tile(np.array(names, dtype=object), len(pairs))[known]),
        "first": value[0][known],
        "second": value[1][known],
        "difference": difference,
        "std_error": std_error,
        "low": difference - half,
        "high": difference + half,
    }
    return changes_of(first.hierarchy, region, columns, p_value, rate, left_out)
