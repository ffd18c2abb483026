"""Measuring staircases in turns, with exact counts in the memory of this process."""

from __future__ import annotations

from dataclasses import dataclass

from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.measure.levels import Place
from tallytree.group_sizes.measure.staircases import measure_first_look, measure_staircases
from tallytree.group_sizes.measure.views import measure_totals
from tallytree.group_sizes.mechanisms.mechanism import Measured
from tallytree.group_sizes.mechanisms.turns import measure_in_turns
from tallytree.group_sizes.noisy import Groups, NoisyLevel
from tallytree.group_sizes.plan.plan import Plan, QueryPlan
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Confidential, ConfidentialCounts
from tallytree.model.facts import PublicFacts
from tallytree.model.lattice import Family
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.progress import Progress


@dataclass(frozen=True, eq=False, repr=False)
class _Here(Confidential):
    """Counts in the memory of this process."""

    counts: ConfidentialCounts
    groups: Groups
    stream: KeyStream

    def first_look(self, query: QueryPlan) -> IntArray:
        return measure_first_look(self.counts.counts_of(Family(0, ())), query, self.stream)

    def level(self, plan: Plan, place: int, prior: Prior) -> NoisyLevel:
        family = plan.levels[place].family
        where = Place(self.stream, 0, self.groups.lattice.n_rows(family))
        return measure_staircases(
            self.counts.counts_of(family), plan.levels[place], self.groups.of(family), prior, where
        )


def measure_adaptive(
    counts: ConfidentialCounts,
    plan: Plan,
    facts: PublicFacts,
    stream: KeyStream,
    progress: Progress,
) -> Measured:
    """Look, split and measure level by level.

    With attributes the numbers of groups of all their combinations are public.
    """
    cells = counts.cell_counts.n_groups() if counts.cell_counts is not None else None
    n_groups, totals = measure_totals(counts, plan, stream)
    groups = Groups(facts.lattice, n_groups, cells, totals)
    return measure_in_turns(_Here(counts, groups, stream), plan, facts, groups, progress)
