"""The released counts of one region, and the questions one asks of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.notebook import html_table
from tallytree.released.questions import Question


@dataclass(frozen=True, eq=False)
class RegionCounts:
    """How many groups of each size one region has: ``count[i]`` groups of ``size[i]``, sizes rising.

    Examples
    --------
    >>> village = RegionCounts("total/village", np.array([1, 2, 5]), np.array([3, 4, 1]))
    >>> village.n_groups, village.n_entities, village.of_size(2), village.at_least(2), village.kth_largest(1)
    (8, 16, 4, 5, 5)
    >>> village.quantile(0.5), village.mean()
    (2, 2.0)
    """

    path: str
    size: IntArray
    count: IntArray

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.count.sum())

    @property
    def n_entities(self) -> int:
        """Number of entities: the sum of all sizes."""
        if float(self.size.max(initial=0)) * float(self.count.sum()) < 2.0**62:
            return int((self.size * self.count).sum())
        return sum(size * count for size, count in zip(self.size.tolist(), self.count.tolist()))

    def counts(self) -> IntArray:
        """H: number of groups of each size, from size 0 to the largest."""
        table = np.zeros(self._largest() + 1, dtype=np.int64)
        table[self.size] = self.count
        return table

    def cumulative(self) -> IntArray:
        """H_c: number of groups of at most each size, from size 0 to the largest."""
        return np.cumsum(self.counts())

    def sizes(self) -> IntArray:
        """H_g: the size of every group, in rising order. As long as there are groups."""
        return np.repeat(self.size, self.count)

    def of_size(self, size: int) -> int:
        """Number of groups with exactly ``size`` entities."""
        _at_least_zero(size)
        return int(self.count[self.size == size].sum())

    def at_least(self, size: int) -> int:
        """Number of groups with ``size`` entities or more."""
        _at_least_zero(size)
        return int(self.count[self.size >= size].sum())

    def kth_largest(self, k: int) -> int:
        """Size of the ``k``-th largest group; the largest is the first."""
        if not 1 <= k <= self.n_groups:
            raise RequestError(f"k is {k}; {self.path} has {self.n_groups:,} groups, so k must be from 1 to that.")
        return int(self.size[::-1][np.searchsorted(np.cumsum(self.count[::-1]), k)])

    def quantile(self, q: float) -> int:
        """Smallest size that at least a fraction ``q`` of the groups does not exceed."""
        if not 0 <= q <= 1:
            raise RequestError(f"A quantile lies from 0 to 1, not at {q}.")
        self._needs_groups("quantile")
        rank = max(1, math.ceil(q * self.n_groups))
        return int(self.size[np.searchsorted(np.cumsum(self.count), rank)])

    def mean(self) -> float:
        """Mean size of a group."""
        self._needs_groups("mean")
        return self.n_entities / self.n_groups

    def _largest(self) -> int:
        return int(self.size[-1]) if len(self.size) else 0

    def _needs_groups(self, what: str) -> None:
        if not len(self.size):
            raise RequestError(f"{self.path} has no groups, so it has no {what}.")

    def __repr__(self) -> str:
        return f"RegionCounts({self.path!r}, {self.n_groups:,} groups, {self.n_entities:,} entities)"

    def _repr_html_(self) -> str:
        caption = f"{self.path}: {self.n_groups:,} groups, {self.n_entities:,} entities"
        rows = ([int(size), int(count)] for size, count in zip(self.size, self.count))
        return html_table(caption, ["size", "groups"], rows, n_rows=len(self.size))


@dataclass(frozen=True)
class Interval:
    """An answer with its standard error and interval."""

    value: float
    std_error: float
    low: float
    high: float


def questions_of(question: Question) -> dict[str, Callable[[RegionCounts], float]]:
    """What was asked about a region, in words and as a function of its counts."""
    size, at_least, largest, quantile = question.size, question.at_least, question.largest, question.quantile
    asked: dict[str, Callable[[RegionCounts], float]] = {}
    if size is not None:
        asked[f"groups of size {size}"] = lambda counts: counts.of_size(size)
    if at_least is not None:
        asked[f"groups of at least {at_least}"] = lambda counts: counts.at_least(at_least)
    if largest is not None:
        asked[f"size of group {largest} from the largest"] = lambda counts: counts.kth_largest(largest)
    if quantile is not None:
        asked[f"quantile {quantile:g}"] = lambda counts: counts.quantile(quantile)
    if question.mean:
        asked["mean size"] = lambda counts: counts.mean()
    if question.total:
        asked["groups"] = lambda counts: counts.n_groups
        asked["entities"] = lambda counts: counts.n_entities
    return asked


def _at_least_zero(size: int) -> None:
    if size < 0:
        raise RequestError(f"A size is at least 0, not {size}.")
