"""Two tables of noisy counts side by side: how far each count differs, and what is clear of noise.

The error of a difference is that of two independent estimates, s² = s₁² + s₂². How rarely noise
alone makes one so large is judged by the law of a difference of two Laplace variables of that
variance, P(|d| > x) = (1 + x/s) exp(−2x/s): noise of pure releases has such tails, Gaussian noise
thinner ones, so that no release is judged too boldly. Among the many counts of a level, those are
clear that Benjamini and Hochberg's procedure finds at the stated rate: of the changes that it calls
clear, at most that share is expected to be noise. The numbers of a published table are taken as
exact: s is then that of the release alone, and the law that of one Laplace variable, P(|d| > x) =
exp(−√2 x/s).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.model.arrays import BoolArray, FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy

# Whole counts that never moved in the copies may still be off by one half.
LEAST_ERROR = 0.5


EXACT = "The published numbers are taken as exact; rounding or sampling in them makes more changes look clear."


COMPOSITION = (
    "Whoever is in the data of both releases bears the loss of both; the losses stand side by side "
    "only where nobody is in "
    "both."
)


@dataclass(frozen=True)
class LevelChanges:
    """How many counts of a level were compared, and how many changes are clear."""

    level: str
    counts: int
    clear_alone: int
    clear: int


@dataclass(frozen=True, eq=False)
class Comparison:
    """Differences of two releases.

    Attributes
    ----------
    table
        Level, region, size, first, second, difference, std_error, low, high, p_value, clear_alone,
        clear: one row per count that one of the releases has. ``low`` and ``high`` hold a single
        difference as often as ``confidence`` says; ``clear_alone`` says that its own p-value is
        below the rate, ``clear`` that Benjamini and Hochberg's procedure finds it among all counts
        of its level.
    levels
        Numbers per level.
    rate
        Share of clear changes that may be noise.
    left_out
        Regions that only one of the releases has.
    note
        What to keep in mind about the two.
    """

    table: pa.Table
    levels: tuple[LevelChanges, ...]
    rate: float
    left_out: int
    note: str = COMPOSITION

    def to_json(self) -> dict[str, Any]:
        """The numbers per level as JSON-ready facts."""
        return {
            "rate": self.rate,
            "regions_left_out": self.left_out,
            "note": self.note,
            "levels": [vars(level) for level in self.levels],
        }

    def __repr__(self) -> str:
        found = ", ".join(f"{one.level}: {one.clear:,} of {one.counts:,}" for one in self.levels)
        return f"Comparison(clear changes at rate {self.rate:g}: {found})"


def benjamini_hochberg(p_value: FloatArray, rate: float) -> BoolArray:
    """Which hypotheses the procedure of Benjamini and Hochberg (1995) rejects.

    The k smallest p-values, for the largest k of which the k-th is at most k/n times the rate.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.9, 0.03, 0.02]), 0.05).tolist()
    [True, False, True, True]
    """
    n = len(p_value)
    ordered = np.sort(p_value)
    passing = np.flatnonzero(ordered <= rate * np.arange(1, n + 1) / max(n, 1))
    if not len(passing):
        return np.zeros(n, dtype=bool)
    return np.asarray(p_value <= ordered[passing[-1]])


def p_values(difference: IntArray, error: FloatArray, *, single: bool = False) -> FloatArray:
    """How often noise alone makes a difference at least as large; differences are whole, so half a
    step is given back.
    """
    return outside(np.maximum(np.abs(difference) - 0.5, 0) / error, single=single)


def outside(far: FloatArray, *, single: bool) -> FloatArray:
    """Chance of a difference of so many standard deviations or more: of two Laplace variables, or
    of a single one.
    """
    return np.asarray(np.exp(-np.sqrt(2) * far) if single else (1 + far) * np.exp(-2 * far))


def half_width(error: FloatArray, rate: float, *, single: bool = False) -> FloatArray:
    """Where the law of a difference leaves the rate outside, by bisection."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if outside(np.array(middle), single=single) > rate else (low, middle)
        )
    return high * error


def common_regions(first: Hierarchy, second: Hierarchy) -> tuple[IntArray, int]:
    """The numbers of the regions that two hierarchies share, a row each, and how many others there
    are.
    """
    known = {path: place for place, path in enumerate(second.paths)}
    pairs = np.array(
        [(r, known[path]) for r, path in enumerate(first.paths) if path in known],
        dtype=np.int64,
    )
    if not len(pairs):
        raise RequestError(
            "The releases have no region in common; compare needs the same levels and root."
        )
    return pairs, first.n_regions + second.n_regions - 2 * len(pairs)


def changes_of(
    hierarchy: Hierarchy,
    region: IntArray,
    columns: dict[str, Any],
    p_value: FloatArray,
    rate: float,
    left_out: int,
    note: str = COMPOSITION,
) -> Comparison:
    """The comparison of numbers of some regions: which of their differences are clear, level by
    level.
    """
    if not 0 < rate < 1:
        raise RequestError(f"A rate of false alarms lies between 0 and 1, not at {rate}.")
    level = hierarchy.level_of[region]
    clear = np.zeros(len(level), dtype=bool)
    for number in range(hierarchy.n_levels):
        here = np.flatnonzero(level == number)
        clear[here] = benjamini_hochberg(p_value[here], rate)
    table = pa.table(
        {
            "level": pa.array(np.array(hierarchy.level_names, dtype=object)[level], pa.string()),
            "region": pa.array(hierarchy.paths[region], pa.string()),
            **columns,
            "p_value": p_value,
            "clear_alone": p_value < rate,
            "clear": clear,
        }
    )
    levels = tuple(
        LevelChanges(
            name,
            int((level == i).sum()),
            int((p_value[level == i] < rate).sum()),
            int(clear[level == i].sum()),
        )
        for i, name in enumerate(hierarchy.level_names)
    )
    return Comparison(table, levels, rate, left_out, note)
