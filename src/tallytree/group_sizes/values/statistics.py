"""What follows from the counts by value of one region: sums, means, quantiles, Gini, shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.scale import ValueScale

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
TOP = 0.1
"""The part of the rows, those with the largest values, whose share of the sum is told."""


@dataclass(frozen=True, eq=False)
class RegionValues:
    """How many rows of one region have each value: ``count[i]`` rows are ``steps[i]`` steps above
    the least value, rising. Everything else follows, from values as they were counted: rounded down.

    Examples
    --------
    >>> from tallytree.model.scale import value_scale
    >>> euros = value_scale("pay", step=10, least=0, largest=1000)
    >>> town = RegionValues("total/town", euros, np.array([1, 2, 9]), np.array([3, 4, 1]))
    >>> town.n_rows, town.sum(), town.mean(), town.median(), town.quantile(0.9)
    (8, 200.0, 25.0, 20, 90)
    >>> town.at_least(20), town.between(10, 20)
    (5, 7)
    """

    path: str
    scale: ValueScale
    steps: IntArray
    count: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.count.sum())

    def values(self) -> FloatArray | IntArray:
        """The values that rows have, rising."""
        return self.scale.values(self.steps)

    def sum(self) -> float:
        """The sum of all values."""
        if not len(self.steps):
            return 0.0
        return float((self.values().astype(np.float64) * self.count).sum())

    def mean(self) -> float:
        """The mean value."""
        self._needs_rows("mean")
        return self.sum() / self.n_rows

    def median(self) -> float:
        """The middle value."""
        return self.quantile(0.5)

    def quantile(self, q: float) -> float:
        """The smallest value that at least a fraction ``q`` of the rows does not exceed."""
        if not 0 <= q <= 1:
            raise RequestError(f"A quantile lies from 0 to 1, not at {q}.")
        self._needs_rows("quantile")
        rank = max(1, math.ceil(q * self.n_rows))
        return self.scale.value(int(self.steps[np.searchsorted(np.cumsum(self.count), rank)]))

    def gini(self) -> float:
        """The Gini coefficient: half the mean difference of two rows over the mean, 0 where all
        have the same value.
        """
        values = self._shared("Gini coefficient")
        held, rows = np.cumsum(values * self.count), self.n_rows
        if not held[-1]:
            return 0.0
        # Twice the area under the Lorenz curve, trapezoid by trapezoid.
        area = float(((2 * held - values * self.count) * self.count).sum())
        return 1 - area / (rows * float(held[-1]))

    def top_share(self, part: float = TOP) -> float:
        """The share of the sum that the largest values have, those of this part of the rows."""
        if not 0 < part <= 1:
            raise RequestError(f"A part of the rows lies above 0 and up to 1, not at {part}.")
        values = self._shared("share of the sum")
        wanted = part * self.n_rows
        above = np.cumsum(self.count[::-1]) - self.count[::-1]
        taken = np.clip(wanted - above, 0, self.count[::-1])
        total = float((values * self.count).sum())
        return float((values[::-1] * taken).sum()) / total if total else part

    def at_least(self, value: float) -> int:
        """Number of rows with this value or more; a value between two steps counts as the lower
        one, as those of rows do.
        """
        return int(self.count[self.steps >= self._step(value)].sum())

    def between(self, low: float, high: float) -> int:
        """Number of rows with a value from ``low`` to ``high``, both included."""
        if high < low:
            raise RequestError(f"A range of values runs from low to high, got {low} to {high}.")
        first, last = self._step(low), self._step(high)
        return int(self.count[(self.steps >= first) & (self.steps <= last)].sum())

    def _step(self, value: float) -> int:
        """The step that a value counts at, which may lie outside the scale."""
        return math.floor(Fraction(str(value)) / self.scale.step) - self.scale.first

    def _shared(self, what: str) -> FloatArray:
        """Values as floats, none below 0."""
        self._needs_rows(what)
        if self.scale.first < 0:
            raise RequestError(f"There is no {what} where values may be below 0.")
        return self.values().astype(np.float64)

    def _needs_rows(self, what: str) -> None:
        if not len(self.steps):
            raise RequestError(f"{self.path} has no rows, so it has no {what}.")

    def __repr__(self) -> str:
        return f"RegionValues({self.path!r}, {self.n_rows:,} rows)"


def statistic_names(scale: ValueScale) -> tuple[str, ...]:
    """The statistics of every region, by their names in tables."""
    shared = () if scale.first < 0 else ("gini", "top_tenth_share")
    return ("rows", "sum", "mean", *(_quantile_name(q) for q in QUANTILES), *shared)


def _quantile_name(q: float) -> str:
    return "median" if q == 0.5 else f"quantile_{q:g}"


def statistics_of(region: RegionValues) -> FloatArray:
    """The statistics of a region, in the order of their names; NaN where there is none."""
    names = statistic_names(region.scale)
    if not region.n_rows:
        return np.array([0.0, 0.0] + [math.nan] * (len(names) - 2))
    found = [float(region.n_rows), region.sum(), region.mean()]
    found += [region.quantile(q) for q in QUANTILES]
    if region.scale.first >= 0:
        found += [region.gini(), region.top_share()]
    return np.array(found)
