"""The lattice of tables that attributes make of a hierarchy: levels of regions times subsets of the
attributes.

A *family* is one level and one subset of attributes: a table with one row per region and
combination of their values. The family of the leaves with all attributes is the finest; rows of
every other one are sums of its rows, which are called cells. Rows of a family are numbered region
by region, combinations in the order of their values. Without attributes families are levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tallytree.model.arrays import IntArray
from tallytree.model.attributes import Attributes
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs, sum_over_regions
from tallytree.model.hierarchy import Hierarchy

Number = TypeVar("Number", np.int64, np.float64)


class Family(NamedTuple):
    """A level of the hierarchy, and places of attributes in rising order."""

    level: int
    margin: tuple[int, ...]

    def covers(self, finer: Family) -> bool:
        """Whether every row of the other family lies in one row of this one."""
        return self.level <= finer.level and set(self.margin) <= set(finer.margin)


@dataclass(frozen=True)
class Lattice:
    """All families of a hierarchy and some attributes."""

    hierarchy: Hierarchy
    attributes: Attributes

    @property
    def families(self) -> tuple[Family, ...]:
        """Every family, each after those that cover it: fewer attributes first, then from the root
        down.
        """
        places = range(len(self.attributes.names))
        margins = [margin for n in range(len(places) + 1) for margin in combinations(places, n)]
        return tuple(
            Family(level, margin) for margin in margins for level in range(self.hierarchy.n_levels)
        )

    @property
    def finest(self) -> Family:
        """The leaves with all attributes."""
        return Family(self.hierarchy.n_levels - 1, tuple(range(len(self.attributes.names))))

    def n_cells(self, family: Family) -> int:
        """Combinations of values of a family's attributes."""
        return math.prod(self.attributes.shape[place] for place in family.margin)

    def n_rows(self, family: Family) -> int:
        """Rows of a family."""
        return self.hierarchy.level_size(family.level) * self.n_cells(family)

    def rows_of_cells(self, family: Family) -> IntArray:
        """The row of a family in which each cell lies."""
        tree = self.hierarchy
        region = np.repeat(
            np.arange(tree.level_size(family.level)), self._leaves_per_region(family.level)
        )
        combination = np.zeros(self.attributes.n_cells, dtype=np.int64)
        places = np.unravel_index(np.arange(self.attributes.n_cells), self.attributes.shape or (1,))
        for place in family.margin:
            combination = combination * self.attributes.shape[place] + places[place]
        rows: IntArray = (region[:, None] * self.n_cells(family) + combination).ravel()
        return rows

    def rows_above(self, coarse: Family, fine: Family) -> IntArray:
        """The row of a coarse family in which each row of a finer one lies."""
        if not self.attributes:
            return self.hierarchy.regions_above(coarse.level, fine.level)
        above = np.empty(self.n_rows(fine), dtype=np.int64)
        above[self.rows_of_cells(fine)] = self.rows_of_cells(coarse)
        return above

    def sums(self, family: Family, of_cells: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Values of cells (first axis), added up to the rows of a family."""
        rest: tuple[int, ...] = of_cells.shape[1:]
        table = of_cells.reshape(self.hierarchy.n_leaves, *self.attributes.shape, *rest)
        left_out = tuple(
            1 + place for place in range(len(self.attributes.names)) if place not in family.margin
        )
        table = table.sum(axis=left_out) if left_out else table
        starts = self.hierarchy.leaf_starts[self.hierarchy.level_slice(family.level)]
        found: npt.NDArray[Number] = np.add.reduceat(table, starts, axis=0).reshape(
            self.n_rows(family), *rest
        )
        return found

    def spread(self, family: Family, of_rows: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Values of a family's rows (first axis), handed to each of their cells: the transpose of
        :meth:`sums`.
        """
        rest: tuple[int, ...] = of_rows.shape[1:]
        shape = [
            size if place in family.margin else 1
            for place, size in enumerate(self.attributes.shape)
        ]
        table = of_rows.reshape(self.hierarchy.level_size(family.level), *shape, *rest)
        by_leaf = np.repeat(table, self._leaves_per_region(family.level), axis=0)
        full = np.broadcast_to(by_leaf, (self.hierarchy.n_leaves, *self.attributes.shape, *rest))
        return full.reshape(self.n_rows(self.finest), *rest)

    def counts(self, family: Family, of_cells: CountsBySize) -> CountsBySize:
        """Counts by size of cells, added up to the rows of a family."""
        return sum_over_regions(of_cells, self.rows_of_cells(family), self.n_rows(family))

    @property
    def n_slots(self) -> int:
        """Rows of all families together that each region has: every value of every attribute, or
        all values.
        """
        return math.prod(size + 1 for size in self.attributes.shape)

    def slots(self, margin: Sequence[int]) -> IntArray:
        """Number of each combination of values of some attributes among the slots of a region; 0
        stands for all values.
        """
        slots = np.zeros(1, dtype=np.int64)
        for place, size in enumerate(self.attributes.shape):
            values = np.arange(1, size + 1) if place in margin else np.zeros(1, dtype=np.int64)
            slots = (slots[:, None] * (size + 1) + values).ravel()
        return slots

    def slot_values(self, slots: IntArray) -> list[IntArray]:
        """Of each attribute: the number of its value at each slot, -1 for all values."""
        found = []
        for size in reversed(self.attributes.shape):
            slots, value = np.divmod(slots, size + 1)
            found.append(value - 1)
        return found[::-1]

    def rows_in_margins(self, family: Family) -> IntArray:
        """Where the rows of a family stand among the slots of all regions."""
        here = self.hierarchy.level_slice(family.level)
        rows: IntArray = (
            np.arange(here.start, here.stop)[:, None] * self.n_slots + self.slots(family.margin)
        ).ravel()
        return rows

    def margins(self, of_cells: CountsBySize) -> CountsBySize:
        """Counts by size of every row of every family, slot by slot of each region, from those of
        the finest cells.
        """
        parts = [
            (self.rows_in_margins(family), self.counts(family, of_cells))
            for family in self.families
        ]
        return counts_from_runs(
            np.concatenate([rows[counts.region_of_run()] for rows, counts in parts]),
            np.concatenate([counts.size for _, counts in parts]),
            np.concatenate([counts.count for _, counts in parts]),
            self.hierarchy.n_regions * self.n_slots,
        )

    def nested(self, path: Sequence[Family]) -> tuple[Hierarchy, tuple[IntArray, ...]]:
        """A path of families, each covering the next, as a hierarchy of its own, the root alone
        first.

        Also, for each of its levels, the row of the family that stands at each place.
        """
        if not self.attributes and tuple(path) == self.families:
            levels = range(self.hierarchy.n_levels)
            return self.hierarchy, tuple(
                np.arange(self.hierarchy.level_size(level)) for level in levels
            )
        orders, parents = [np.zeros(1, dtype=np.int64)], [np.array([-1], dtype=np.int64)]
        starts = [0, 1]
        for coarse, fine in pairwise(path):
            place = np.empty(self.n_rows(coarse), dtype=np.int64)
            place[orders[-1]] = np.arange(len(place))
            above = place[self.rows_above(coarse, fine)]
            orders.append(np.argsort(above, kind="stable"))
            parents.append(above[orders[-1]] + starts[-2])
            starts.append(starts[-1] + len(above))
        names = tuple(
            f"{self.hierarchy.level_names[family.level]} {family.margin}" for family in path
        )
        labels = np.array([str(row) for order in orders for row in order], dtype=object)
        return Hierarchy(
            names, np.array(starts, dtype=np.int64), np.concatenate(parents), labels
        ), tuple(orders)

    def _leaves_per_region(self, level: int) -> IntArray:
        here = self.hierarchy.level_slice(level)
        return self.hierarchy.leaf_ends[here] - self.hierarchy.leaf_starts[here]
