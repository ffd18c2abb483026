"""Public numbers of groups, and the tables that a plan measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tallytree.group_sizes.plan.plan import Plan, QueryPlan
from tallytree.model.arrays import IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Family, Lattice
from tallytree.privacy.noisy import NoisyCounts, NoisyLevel, NoisyQuery

# The name of the query about numbers of groups, where they are not public.
TOTALS = "groups"


def families_of(plan: Plan, lattice: Lattice) -> tuple[Family, ...]:
    """The family that each level of a plan is about."""
    return tuple(Family(level.level, lattice.attributes.chosen(level.by)) for level in plan.levels)


@dataclass(frozen=True, eq=False)
class Groups:
    """Numbers of groups of every region, and where groups have attributes of every combination of
    values of every leaf. ``noisy_totals`` are what the first follow from, where they are not public.
    """

    lattice: Lattice
    n_groups: IntArray
    cell_groups: IntArray | None
    noisy_totals: tuple[NoisyLevel, ...] = ()

    def of(self, family: Family) -> IntArray:
        """Numbers of groups of the rows of a family."""
        if self.cell_groups is None:
            return self.n_groups[self.lattice.hierarchy.level_slice(family.level)]
        return self.lattice.sums(family, self.cell_groups)

    def answered(self, levels: Sequence[NoisyLevel]) -> NoisyCounts:
        """These groups with the answers of all levels."""
        return NoisyCounts(self.n_groups, tuple(levels), self.cell_groups, totals=self.noisy_totals)


def totals_by_level(
    hierarchy: Hierarchy, queries: Sequence[QueryPlan], noisy: IntArray
) -> tuple[NoisyLevel, ...]:
    """Noisy numbers of groups of all regions as the answers of each level, one per region."""
    found = []
    for level, query in enumerate(queries):
        values = noisy[hierarchy.level_slice(level)]
        answers = NoisyQuery(TOTALS, query.noise, np.arange(len(values) + 1), values)
        found.append(NoisyLevel(level, (answers,)))
    return tuple(found)
