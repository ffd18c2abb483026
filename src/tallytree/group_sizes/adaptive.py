"""The adaptive mechanism: look, split the budget, measure level by level with what the levels above
told, and reconcile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Protocol

import numpy as np

from tallytree.group_sizes.estimate.heads import with_empty_heads
from tallytree.group_sizes.estimate.staircases import (
    Choices,
    MeasuredLevel,
    Staircases,
    choose_once,
    estimate_of_look,
    estimate_staircases,
    prior_below,
    prior_of_root,
)
from tallytree.group_sizes.measure.levels import Place
from tallytree.group_sizes.measure.staircases import measure_first_look, measure_staircases
from tallytree.group_sizes.plan.allocation import shares_for_levels
from tallytree.group_sizes.plan.families import shares_for_families
from tallytree.group_sizes.plan.first_look import FirstLook, first_look
from tallytree.group_sizes.plan.goals import goal_from
from tallytree.group_sizes.plan.memory import most_sizes
from tallytree.group_sizes.plan.plan import Plan, PublicFacts, QueryPlan, level_query, with_shares
from tallytree.group_sizes.reconcile.cells import consistent_cells, nested_cells
from tallytree.group_sizes.reconcile.people import counted_people, shift_of_entities
from tallytree.group_sizes.reconcile.staircases import Leaves, consistent_leaves, families_of_leaves
from tallytree.kernels.staircase.blocks import Prior
from tallytree.kernels.staircase.curves import Curves
from tallytree.lattice.shares import wanted_families
from tallytree.lattice.whole import whole_path
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.confidential import Confidential, ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.lattice import Family, Lattice
from tallytree.model.people import NO_PEOPLE, People
from tallytree.privacy.noisy import NoisyCounts, NoisyLevel, NoisyQuery
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class AdaptiveRun:
    """What the mechanism measured, what it estimated level by level, and the plan with the split
    that it chose.

    The finest level was measured and is not estimated yet: nothing lies below it, so its estimates
    can be made in pieces.
    """

    plan: Plan
    noisy: NoisyCounts
    levels: tuple[Staircases | None, ...]
    finest: tuple[MeasuredLevel, Choices]
    looked: Curves

    def leaf_counts(self, lattice: Lattice, people: People = NO_PEOPLE) -> CountsBySize:
        """All levels combined into consistent counts by size of the leaves, by attributes where
        there are some: post-processing only.
        """
        finest, choices = self.finest

        def pieces(level: MeasuredLevel) -> Callable[[slice], Staircases]:
            return lambda regions: estimate_staircases(level.piece(regions), choices, is_leaf=True)

        families = families_of(self.plan, lattice)
        above = {family: known for family, known in zip(families, self.levels) if known is not None}
        noise = {
            family: level.query.noise.variance
            for family, level in zip(families, self.plan.levels)
            if level.query is not None
        }
        path = whole_path(lattice, noise)
        is_nested = self.noisy.cell_groups is None or noise.keys() <= set(path)
        measured = dict(above)
        if people or not is_nested:
            measured[lattice.finest] = estimate_staircases(finest, choices, is_leaf=True)
        shift = self._told_by_people(lattice, measured, people) if people else None
        if self.noisy.cell_groups is None:
            tree, n_groups = lattice.hierarchy, self.noisy.n_groups
            leaves = Leaves(families_of_leaves(tree), pieces(finest), self.looked.height.shape[1])
            return consistent_leaves(
                tree, n_groups, self.levels[:-1], leaves, self.looked, self.plan.max_size, shift
            )
        n_groups, max_size = self.noisy.cell_groups, self.plan.max_size
        if is_nested:
            in_order = lambda order: pieces(finest.at(order))  # noqa: E731
            return nested_cells(
                lattice, path, n_groups, above, in_order, self.looked, max_size, shift
            )
        return consistent_cells(lattice, n_groups, measured, self.looked, max_size, shift)

    def _told_by_people(
        self, lattice: Lattice, measured: Mapping[Family, Staircases], people: People
    ) -> FloatArray:
        """What the classes of entities add to the number of entities of each of the finest cells."""
        groups = people.groups(lattice)
        sizes = {family: known.curves for family, known in measured.items()}
        return shift_of_entities(lattice, sizes, groups, counted_people(groups, self.noisy.people))

    def with_people(self, people: tuple[NoisyLevel, ...]) -> AdaptiveRun:
        """The same with what was measured of people."""
        return replace(self, noisy=replace(self.noisy, people=people))


class Measuring(Protocol):
    """Where exact counts are, and how questions about them are answered there."""

    def first_look(self, query: QueryPlan) -> IntArray:
        """Noisy sums over the fixed blocks of the first look."""

    def level(self, plan: Plan, place: int, prior: Prior) -> NoisyLevel:
        """Noisy answers about all regions of one place among the plan's levels."""


@dataclass(frozen=True, eq=False, repr=False)
class _Here(Confidential):
    """Counts in the memory of this process."""

    counts: ConfidentialCounts
    groups: Groups
    stream: KeyStream

    def first_look(self, query: QueryPlan) -> IntArray:
        return measure_first_look(self.counts.counts_of(Family(0, ())), query, self.stream)

    def level(self, plan: Plan, place: int, prior: Prior) -> NoisyLevel:
        family = families_of(plan, self.groups.lattice)[place]
        where = Place(self.stream, 0, self.groups.lattice.n_rows(family))
        return measure_staircases(
            self.counts.counts_of(family), plan.levels[place], self.groups.of(family), prior, where
        )


def run_adaptive(
    counts: ConfidentialCounts,
    plan: Plan,
    facts: PublicFacts,
    n_groups: IntArray,
    stream: KeyStream,
    measured: Callable[[Plan, NoisyCounts], None],
    progress: Progress = silent,
) -> AdaptiveRun:
    """Measure and estimate in turns, with counts in memory.

    With attributes the numbers of groups of all their combinations are public.
    """
    public = Groups(
        facts.lattice,
        n_groups,
        counts.cell_counts.n_groups() if counts.cell_counts is not None else None,
    )
    return measure_in_turns(_Here(counts, public, stream), plan, facts, public, measured, progress)


def measure_in_turns(
    measuring: Measuring,
    plan: Plan,
    facts: PublicFacts,
    groups: Groups,
    measured: Callable[[Plan, NoisyCounts], None],
    progress: Progress = silent,
) -> AdaptiveRun:
    """Measure and estimate in turns: every level is planned from noisy answers of the levels above.

    Confidential values enter only through ``measuring``. ``measured`` is told the plan and all
    answers as soon as the last one was given, before anything is estimated from it.
    """
    upper = measure_above(measuring, plan, facts, groups, progress)
    finest = measuring.level(upper.plan, len(upper.levels), upper.prior)
    answers = groups.answered(_with_look(upper.plan, [*upper.noisy, finest], upper.look))
    measured(upper.plan, answers)
    return _with_finest(upper, groups, finest, answers, progress)


def measure_above(
    measuring: Measuring,
    plan: Plan,
    facts: PublicFacts,
    groups: Groups,
    progress: Progress = silent,
) -> AboveFinest:
    """The same for all levels but the finest, which is left to be measured."""
    assert plan.first_look is not None
    answers = measuring.first_look(plan.first_look)
    look = first_look(answers, int(groups.n_groups[0]), plan.first_look.noise.std)
    split = split_after_look(plan, facts, look, groups)
    turn = partial(measuring.level, split)
    return _in_turns(groups, split, (answers, look), turn, progress)


def estimate_again(
    lattice: Lattice, plan: Plan, noisy: NoisyCounts, progress: Progress = silent
) -> AdaptiveRun:
    """The same from answers that were given already; ``plan`` has the split that they were measured
    with.
    """
    assert plan.first_look is not None
    answers = noisy.levels[0]["first look"].values
    look = first_look(answers, int(noisy.n_groups[0]), plan.first_look.noise.std)
    rest = tuple(query for query in noisy.levels[0].queries if query.name != "first look")
    levels = (replace(noisy.levels[0], queries=rest), *noisy.levels[1:])
    public = Groups(lattice, noisy.n_groups, noisy.cell_groups)
    ends = [
        query.values for level in levels for query in level.queries if query.name == "block ends"
    ]
    told = max((int(values.max(initial=0)) for values in ends), default=0)
    upper = _in_turns(
        public, plan, (answers, look), lambda place, prior: levels[place], progress, told
    )
    return _with_finest(upper, public, levels[-1], noisy, progress)


def _with_look(
    plan: Plan, levels: Sequence[NoisyLevel], answers: IntArray
) -> tuple[NoisyLevel, ...]:
    """The same answers with those of the first look among those of the root."""
    assert plan.first_look is not None
    look = NoisyQuery("first look", plan.first_look.noise, np.array([0, len(answers)]), answers)
    root, *below = levels
    return (replace(root, queries=(look, *root.queries)), *below)


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


@dataclass(frozen=True, eq=False)
class AboveFinest:
    """What was measured and estimated of all levels but the finest, and what they tell about that
    one.

    Attributes
    ----------
    plan
        With the split that was chosen.
    noisy, levels
        What was measured and estimated, level by level; None where nothing was.
    prior
        What is expected of the finest level.
    is_top
        Whether nothing above it was measured, but the first look.
    look, looked
        The answers of the first look, and the root as they alone show it.
    """

    plan: Plan
    noisy: tuple[NoisyLevel, ...]
    levels: tuple[Staircases | None, ...]
    prior: Prior
    is_top: bool
    look: IntArray
    looked: Curves

    def noisy_with_look(self) -> tuple[NoisyLevel, ...]:
        """What was measured, the first look among the answers of the root."""
        return _with_look(self.plan, self.noisy, self.look)


def _in_turns(
    groups: Groups,
    plan: Plan,
    seen: tuple[IntArray, FirstLook],
    measure: Callable[[int, Prior], NoisyLevel],
    progress: Progress,
    told: int = 0,
) -> AboveFinest:
    """Estimate level by level from the root, with what ``measure`` tells about each place among the
    plan's levels, the finest left out, which is the last. ``seen`` holds the answers of the first
    look, and what they say.

    Shapes come from the nearest measured family above: the one that shares most attributes, and of
    those the lowest level. Answers that another version was given may tell more sizes apart than
    would be asked for now: up to ``told``.
    """
    lattice, (answers, look) = groups.lattice, seen
    assert families_of(plan, lattice)[-1] == lattice.finest
    n_sizes = look.n_sizes(_least_std(plan), most_sizes(lattice), told)
    if plan.max_size is not None:
        n_sizes = min(n_sizes, max(plan.max_size, told))
    root = prior_of_root(look, n_sizes)
    noisy, levels, priors = turns_down(groups, plan, root, measure, len(plan.levels) - 1, progress)
    progress(2 * len(plan.levels) - 2, 2 * len(plan.levels), f"measuring {plan.levels[-1].name}")
    prior, is_top = _expected(lattice, priors, root, lattice.finest)
    looked = estimate_of_look(look, n_sizes)
    return AboveFinest(plan, tuple(noisy), tuple(levels), prior, is_top, answers, looked)


def turns_down(
    groups: Groups,
    plan: Plan,
    root: Prior,
    measure: Callable[[int, Prior], NoisyLevel],
    n_places: int,
    progress: Progress = silent,
    *,
    estimate_last: bool = True,
) -> tuple[list[NoisyLevel], list[Staircases | None], dict[Family, Prior]]:
    """What was measured and estimated at the first places among the plan's levels, and what each
    family tells of those below; ``root`` is what the first look tells. Whoever asks for
    measurements alone need not estimate the last.
    """
    noisy: list[NoisyLevel] = []
    levels: list[Staircases | None] = []
    priors: dict[Family, Prior] = {}
    for place, (level, family) in enumerate(
        zip(plan.levels[:n_places], families_of(plan, groups.lattice))
    ):
        progress(2 * place, 2 * len(plan.levels), f"measuring {level.name}")
        if level.query is None:
            noisy.append(NoisyLevel(level.level, (), level.by))
            levels.append(None)
            continue
        prior, is_top = _expected(groups.lattice, priors, root, family)
        noisy.append(measure(place, prior))
        if place == n_places - 1 and not estimate_last:
            break
        progress(2 * place + 1, 2 * len(plan.levels), f"estimating {level.name}")
        own = _measured(noisy[-1], groups, family, prior)
        estimated = estimate_staircases(own, choose_once(own, is_top=is_top), is_leaf=False)
        levels.append(estimated)
        priors[family] = prior_below(estimated, own.n_groups, np.arange(len(own.n_groups)))
    return noisy, levels, priors


def _expected(
    lattice: Lattice, priors: Mapping[Family, Prior], root: Prior, family: Family
) -> tuple[Prior, bool]:
    """What is expected of a family, from the nearest that was measured above it, and whether that
    is the first look.
    """
    above = [other for other in priors if other.covers(family)]
    nearest = max(above, key=lambda other: (len(other.margin), other.level)) if above else None
    prior = root if nearest is None else priors[nearest]
    rows = lattice.rows_above(Family(0, ()) if nearest is None else nearest, family)
    return prior._replace(row=prior.row[rows]), nearest is None


def _measured(noisy: NoisyLevel, groups: Groups, family: Family, prior: Prior) -> MeasuredLevel:
    """What is known of a family before it is estimated; the root's cells may be seen to lack the
    smallest sizes.
    """
    own = MeasuredLevel(noisy, groups.of(family), prior)
    return with_empty_heads(own) if family.level == 0 and family.margin else own


def _with_finest(
    upper: AboveFinest, groups: Groups, finest: NoisyLevel, noisy: NoisyCounts, progress: Progress
) -> AdaptiveRun:
    """The run with the answers of the finest level too; ``noisy`` holds those of all."""
    n_places = len(upper.plan.levels)
    progress(2 * n_places - 1, 2 * n_places, f"estimating {upper.plan.levels[-1].name}")
    own = _measured(finest, groups, groups.lattice.finest, upper.prior)
    choices = choose_once(own, is_top=upper.is_top)
    return AdaptiveRun(upper.plan, noisy, (*upper.levels, None), (own, choices), upper.looked)


def split_after_look(plan: Plan, facts: PublicFacts, look: FirstLook, groups: Groups) -> Plan:
    """The plan with the shares that the look suggests, unless the user gave shares."""
    if not plan.awaits_look:
        return plan
    lattice = facts.lattice

    def noise_std(share: Fraction) -> float:
        return level_query(plan, facts, len(plan.levels) - 1, share).noise.std

    if facts.attributes:
        of = {family: groups.of(family) for family in lattice.families}
        wanted = wanted_families(plan.request.want, lattice)
        return with_shares(plan, facts, shares_for_families(look, lattice, of, noise_std, wanted))
    levels = [groups.of(family) for family in lattice.families]
    goal = goal_from(plan.request.goal, facts.hierarchy.level_names)
    return with_shares(plan, facts, shares_for_levels(look, levels, noise_std, goal))


def _least_std(plan: Plan) -> float:
    return min(level.query.noise.std for level in plan.levels if level.query is not None)
