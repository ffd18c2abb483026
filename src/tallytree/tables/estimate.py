"""Estimates of every region's cells from all noisy tables: what its own tables and those below it
tell, as numbers of the basis. Post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.lattice.precision import model_variance
from tallytree.lattice.zeros import given_zeros
from tallytree.model.arrays import FloatArray
from tallytree.tables.measure import NoisyTable
from tallytree.tables.plan import TablePlan, known_parts

# Numbers of the leaves that are in memory at once.
AT_ONCE = 1 << 22


class Estimates:
    """What the tables at and below each region tell of its cells.

    Levels above the leaves are kept; the leaves, which are most of all, are worked out twice, some
    at a time: when they are added up to the regions above them, and when these share out what they
    know.
    """

    def __init__(self, plan: TablePlan, noisy: Sequence[NoisyTable]) -> None:
        self.plan, self._noisy = plan, {table.key: table for table in noisy}
        self._weights = {
            table.key: 1 / (table.noise.variance * model_variance(plan.axes, table.key.parts))
            for table in plan.tables
        }
        tree = plan.facts.hierarchy
        self.component = plan.axes.component
        self._above: list[FloatArray] = [np.zeros((0, plan.axes.n_cells), dtype=np.float32)] * (
            tree.n_levels - 1
        )
        for level in range(tree.n_levels - 2, -1, -1):
            self._above[level] = self._from_below(level)

    def of(self, level: int, first: int, last: int) -> FloatArray:
        """Of regions ``first:last`` of a level, ``(n_regions, n_cells)``."""
        if level < self.plan.facts.hierarchy.n_levels - 1:
            return self._above[level][first:last]
        told = self._told(level, first, last)
        precision = self.plan.upward[self._regions(level, first, last)]
        told *= (1 / precision)[:, self.component]
        return self._given_rules(told, self.precision(level, first, last))

    def precision(self, level: int, first: int, last: int) -> FloatArray:
        """Of each number of these estimates."""
        upward = self.plan.upward[self._regions(level, first, last)]
        return upward.astype(np.float64)[:, self.component]

    def _regions(self, level: int, first: int, last: int) -> slice:
        start = int(self.plan.facts.hierarchy.level_starts[level])
        return slice(start + first, start + last)

    def _told(self, level: int, first: int, last: int) -> FloatArray:
        """What the tables of regions alone tell, times its precision."""
        found = np.zeros((last - first, self.plan.axes.n_cells), dtype=np.float64)
        for key, table in self._noisy.items():
            if key.level == level:
                sums = table.values[first:last].astype(np.float64)
                found += self._weights[key] * self.plan.axes.from_sums(key.parts, sums)
        for known in self.plan.facts.known:
            if known.level == level:
                sums = known.counts[first:last].astype(np.float64)
                parts = known_parts(self.plan.axes, known)
                found += self.plan.known_precision * self.plan.axes.from_sums(parts, sums)
        return found

    def _from_below(self, level: int) -> FloatArray:
        """The estimates of a level: its own tables, and the sums of its children."""
        plan, tree = self.plan, self.plan.facts.hierarchy
        here = tree.level_slice(level)
        found = np.empty((tree.level_size(level), plan.axes.n_cells))
        start = int(tree.level_starts[level + 1])
        for first, last in pieces(plan, level):
            children = tree.child_starts[here.start + first : here.start + last + 1] - start
            below = self.of(level + 1, int(children[0]), int(children[-1]))
            sums = np.add.reduceat(below, children[:-1] - children[0], axis=0)
            regions = self._regions(level, first, last)
            together = plan.upward[regions] - plan.own[level]
            told = self._told(level, first, last) + sums * together[:, self.component]
            precision = plan.upward[regions][:, self.component]
            found[first:last] = self._given_rules(told / precision, precision)
        return found

    def _given_rules(self, numbers: FloatArray, precision: FloatArray) -> FloatArray:
        """Estimates of some regions, given that impossible cells are 0."""
        return given_zeros(self.plan.axes, numbers, precision, self.plan.facts.possible)


def pieces(plan: TablePlan, level: int) -> list[tuple[int, int]]:
    """Consecutive regions of a level, some at a time: by how many numbers their children have."""
    tree = plan.facts.hierarchy
    starts = tree.child_starts[tree.level_starts[level] : tree.level_starts[level + 1] + 1]
    upto = (starts - starts[0]) * plan.axes.n_cells
    found, first = [], 0
    while first < len(upto) - 1:
        last = int(np.searchsorted(upto, upto[first] + AT_ONCE, side="right")) - 1
        last = max(first + 1, last)
        found.append((first, last))
        first = last
    return found
