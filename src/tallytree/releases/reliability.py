"""How far a published count can be relied on, by a rule that is stated with it. Nothing is dropped:
readers decide.
"""

from __future__ import annotations

import numpy as np

from tallytree.model.arrays import FloatArray

# Offices differ little: a coefficient of variation below about 15 % is published without a word,
# one above about 30 % is not published, or with a warning.
CARE_FROM, UNRELIABLE_FROM = 0.15, 0.30
RELIABLE, CARE, UNRELIABLE = "reliable", "use with care", "unreliable"
RULE = (
    f"by the standard error as a share of the count: up to {CARE_FROM:.0%} {RELIABLE}, up to "
    f"{UNRELIABLE_FROM:.0%} {CARE}, "
    f"above {UNRELIABLE}; empty where the standard error is not known"
)


def reliability(count: FloatArray, std_error: FloatArray) -> list[str | None]:
    """The flag of each count; None where its standard error is not known.

    Examples
    --------
    >>> reliability(np.array([100.0, 100.0, 100.0, 0.0, 5.0]), np.array([15.0, 16.0, 31.0, 0.5, np.nan]))
    ['reliable', 'use with care', 'unreliable', 'unreliable', None]
    """
    with np.errstate(over="ignore"):  # beside a count of 0 any error is infinitely large
        share = std_error / np.maximum(np.abs(count), np.finfo(np.float64).tiny)
    names = np.array([RELIABLE, CARE, UNRELIABLE], dtype=object)
    flags = names[np.searchsorted([CARE_FROM, UNRELIABLE_FROM], share, side="left")]
    flags[np.isnan(std_error)] = None
    return list(flags)
