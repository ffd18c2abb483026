"""Public numbers of groups, and the tables that a plan measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallytree.group_sizes.noisy import NoisyCounts, NoisyLevel
from tallytree.group_sizes.plan.plan import Plan
from tallytree.model.arrays import IntArray
from tallytree.model.lattice import Family, Lattice


def families_of(plan: Plan, lattice: Lattice) -> tuple[Family, ...]:
    """The family that each level of a plan is about."""
    return tuple(Family(level.level, lattice.attributes.chosen(level.by)) for level in plan.levels)


@dataclass(frozen=True, eq=False)
class Groups:
    """Numbers of groups of every region, and where groups have attributes of every combination of
    values of every leaf.
    """

    lattice: Lattice
    n_groups: IntArray
    cell_groups: IntArray | None

    def of(self, family: Family) -> IntArray:
        """Numbers of groups of the rows of a family."""
        if self.cell_groups is None:
            return self.n_groups[self.lattice.hierarchy.level_slice(family.level)]
        return self.lattice.sums(family, self.cell_groups)

    def answered(self, levels: Sequence[NoisyLevel]) -> NoisyCounts:
        """These groups with the answers of all levels."""
        return NoisyCounts(self.n_groups, tuple(levels), self.cell_groups)
