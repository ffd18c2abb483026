"""The released counts of one region, and the questions one asks of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.attributes import Attributes
from tallytree.model.classes import SizeClasses, SizeNames, SizesUpTo
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.notebook import html_table


@dataclass(frozen=True, eq=False)
class RegionCounts:
    """How many groups of each size one region has: ``count[i]`` groups of ``size[i]``, sizes
    rising.

    Where sizes were counted in ``classes``, ``size`` is the smallest one of a class, and questions
    go by whole classes. Under a public bound the last of them is open, ``12+``: the mean, the number
    of entities and sizes of single groups are then at least what is answered, where
    ``reaches_bound`` says so.

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
    classes: SizeNames | None = None

    @property
    def reaches_bound(self) -> bool:
        """Whether there are groups of a public bound or more, whose sizes are not known."""
        return isinstance(self.classes, SizesUpTo) and self._largest() == self.classes.last

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.count.sum())

    @property
    def n_entities(self) -> int:
        """Number of entities: the sum of all sizes."""
        self._needs_sizes("number of entities")
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
        return self.between(size, size)

    def at_least(self, size: int) -> int:
        """Number of groups with ``size`` entities or more."""
        _at_least_zero(size)
        if self.classes is not None:
            self.classes.span(size, None)
        return int(self.count[self.size >= size].sum())

    def between(self, low: int, high: int) -> int:
        """Number of groups with ``low`` to ``high`` entities, both included."""
        _at_least_zero(low)
        if high < low:
            raise RequestError(f"A range of sizes runs from low to high, got {low} to {high}.")
        if self.classes is not None:
            self.classes.span(low, high)
        return int(self.count[(self.size >= low) & (self.size <= high)].sum())

    def names(self) -> list[int] | list[str]:
        """Sizes, or the names of their classes."""
        if self.classes is None:
            return [int(size) for size in self.size]
        return self.classes.names(self.classes.number(self.size))

    def kth_largest(self, k: int) -> int:
        """Size of the ``k``-th largest group; the largest is the first."""
        if not 1 <= k <= self.n_groups:
            raise RequestError(
                f"k is {k}; {self.path} has {self.n_groups:,} groups, so k must be from 1 to that."
            )
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
        self._needs_sizes("mean")
        self._needs_groups("mean")
        return self.n_entities / self.n_groups

    def _largest(self) -> int:
        return int(self.size[-1]) if len(self.size) else 0

    def _needs_sizes(self, what: str) -> None:
        if isinstance(self.classes, SizeClasses):
            raise RequestError(
                f"Sizes were released in classes, so there is no {what}; ask for classes or a "
                "quantile."
            )

    def _needs_groups(self, what: str) -> None:
        if not len(self.size):
            raise RequestError(f"{self.path} has no groups, so it has no {what}.")

    def __repr__(self) -> str:
        return f"RegionCounts({self.path!r}, {self._summary()})"

    def _summary(self) -> str:
        rest = (
            f"{self.classes.n_classes} classes of sizes"
            if isinstance(self.classes, SizeClasses)
            else f"{'at least ' if self.reaches_bound else ''}{self.n_entities:,} entities"
        )
        return f"{self.n_groups:,} groups, {rest}"

    def _repr_html_(self) -> str:
        caption = f"{self.path}: {self._summary()}"
        rows = ([size, int(count)] for size, count in zip(self.names(), self.count))
        return html_table(caption, ["size", "groups"], rows, n_rows=len(self.size))


def one_size(released: RegionCounts) -> list[str]:
    """What to say where all groups were released with one size, which tells nothing about sizes."""
    if len(released.size) != 1:
        return []
    return [
        f"All {released.n_groups:,} groups were released with size {released.names()[0]}. If a row "
        "is a whole group, name the column that says its size: --size COLUMN."
    ]


@dataclass(frozen=True)
class Interval:
    """An answer with its standard error and interval."""

    value: float
    std_error: float
    low: float
    high: float


class Slot(NamedTuple):
    """Which of the rows that each region has is meant: the one of all groups where there are no
    others.
    """

    n_slots: int = 1
    number: int = 0


ALL_GROUPS = Slot()


def together(
    hierarchy: Hierarchy,
    counts: CountsBySize,
    paths: Sequence[str],
    classes: SizeNames | None = None,
    slot: Slot = ALL_GROUPS,
) -> RegionCounts:
    """The counts of one region, or of several that do not overlap; numbers of classes become their
    smallest sizes.

    ``slot`` says which groups are meant, where ``counts`` holds several rows per region.
    """
    found = disjoint_regions(hierarchy, paths)
    rows = [region * slot.n_slots + slot.number for region in found]
    runs = np.concatenate([np.arange(counts.offsets[row], counts.offsets[row + 1]) for row in rows])
    added = counts_from_runs(
        np.zeros(len(runs), dtype=np.int64), counts.size[runs], counts.count[runs], 1
    )
    size = added.size if classes is None else classes.lowest(added.size)
    name = " + ".join(str(hierarchy.paths[region]) for region in found)
    return RegionCounts(name, size, added.count, classes)


def disjoint_regions(hierarchy: Hierarchy, paths: Sequence[str]) -> list[int]:
    """Numbers of regions that are added up, none of which lies in another."""
    found = sorted(hierarchy.find(path) for path in paths)
    if not found:
        raise RequestError("Name at least one region.")
    leaves = sorted(
        (int(hierarchy.leaf_starts[region]), int(hierarchy.leaf_ends[region])) for region in found
    )
    if any(end > start for (_, end), (start, _) in pairwise(leaves)):
        raise RequestError(f"Regions that are added up must not overlap: {', '.join(paths)}.")
    return found


def slot_of(attributes: Attributes, where: Sequence[str]) -> int:
    """The slot of values such as ``["tenure=rented"]``; attributes that are not named have all
    values.
    """
    told: dict[str, str] = {}
    for text in (where,) if isinstance(where, str) else where:
        name, _, value = text.partition("=")
        attributes.chosen([name])
        known = attributes.values[attributes.names.index(name)]
        if value not in known:
            raise RequestError(
                f"{name!r} has no value {value!r}; its values are {', '.join(known)}."
            )
        if name in told:
            raise RequestError(f"where= names {name!r} twice; a group has one value of it.")
        told[name] = value
    slot = 0
    for name, values in zip(attributes.names, attributes.values):
        slot = slot * (len(values) + 1) + (values.index(told[name]) + 1 if name in told else 0)
    return slot


def _at_least_zero(size: int) -> None:
    if size < 0:
        raise RequestError(f"A size is at least 0, not {size}.")
