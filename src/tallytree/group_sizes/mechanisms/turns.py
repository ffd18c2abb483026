"""The turns of the adaptive mechanism: look, split the budget, then measure and estimate level by
level, each planned from the noisy answers of the levels above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from tallytree.group_sizes.estimate.heads import with_empty_heads
from tallytree.group_sizes.estimate.staircases import (
    MeasuredLevel,
    Staircases,
    choose_once,
    estimate_of_look,
    estimate_staircases,
    prior_below,
    prior_of_root,
)
from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.kernels.curves import Curves
from tallytree.group_sizes.mechanisms.mechanism import Measured, Settled
from tallytree.group_sizes.noisy import Groups, NoisyCounts, NoisyLevel, NoisyQuery
from tallytree.group_sizes.plan.allocation import shares_for_levels
from tallytree.group_sizes.plan.families import shares_for_families
from tallytree.group_sizes.plan.first_look import FirstLook, first_look
from tallytree.group_sizes.plan.goals import goal_from
from tallytree.group_sizes.plan.memory import most_sizes
from tallytree.group_sizes.plan.plan import (
    SIZE_LOOK,
    Plan,
    QueryPlan,
    noise_for_shares,
    with_shares,
)
from tallytree.lattice.shares import wanted_families
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.facts import PublicFacts
from tallytree.model.lattice import Family, Lattice
from tallytree.releases.progress import Progress, silent


class Measuring(Protocol):
    """Where exact counts are, and how questions about them are answered there."""

    def first_look(self, query: QueryPlan) -> IntArray:
        """Noisy sums over the fixed blocks of the first look."""

    def level(self, plan: Plan, place: int, prior: Prior) -> NoisyLevel:
        """Noisy answers about all regions of one place among the plan's levels."""


def measure_in_turns(
    measuring: Measuring,
    plan: Plan,
    facts: PublicFacts,
    groups: Groups,
    progress: Progress = silent,
) -> Measured:
    """Measure and estimate in turns: every level is planned from noisy answers of the levels above.

    Confidential values enter only through ``measuring``.
    """
    upper = measure_above(measuring, plan, facts, groups, progress)
    finest = measuring.level(upper.plan, len(upper.levels), upper.prior)
    answers = groups.answered(_with_look(upper.plan, [*upper.noisy, finest], upper.look))
    return Measured(Settled(upper.plan), answers, upper)


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


def estimate_above(
    lattice: Lattice, plan: Plan, noisy: NoisyCounts, progress: Progress = silent
) -> AboveFinest:
    """The same from answers that were given already; ``plan`` has the split that they were measured
    with.
    """
    assert plan.first_look is not None
    answers = noisy.levels[0]["first look"].values
    look = first_look(answers, int(noisy.n_groups[0]), plan.first_look.noise.std)
    levels = (without_look(noisy.levels[0]), *noisy.levels[1:])
    public = Groups(lattice, noisy.n_groups, noisy.cell_groups)
    told = _told_apart(levels)
    return _in_turns(
        public, plan, (answers, look), lambda place, prior: levels[place], progress, told
    )


def _told_apart(levels: Sequence[NoisyLevel]) -> int:
    """Sizes that answers tell apart."""
    ends = [
        query.values for level in levels for query in level.queries if query.name == "block ends"
    ]
    return max((int(values.max(initial=0)) for values in ends), default=0)


def what_answers_leave_open(
    lattice: Lattice, plan: Plan, noisy: NoisyCounts, root: CountsBySize
) -> dict[str, Any]:
    """What intervals must know of the answers beside the released counts of the root: whether
    curves are smooth although heaps are likelier (``heaped``), from which size on groups are
    known by their rows alone (``told_apart``), and how many entities of groups of that size and
    more the root's rows show beyond those released, with the standard deviation (``hidden``).
    """
    assert plan.first_look is not None
    look = first_look(
        noisy.levels[0]["first look"].values, int(noisy.n_groups[0]), plan.first_look.noise.std
    )
    levels = (without_look(noisy.levels[0]), *noisy.levels[1:])
    n_sizes = _n_sizes(look, plan, lattice, _told_apart(levels))
    top = next(place for place, level in enumerate(plan.levels) if level.query is not None)
    family, prior = plan.levels[top].family, prior_of_root(look, n_sizes)
    prior = prior._replace(row=prior.row[lattice.rows_above(Family(0, ()), family)])
    groups = Groups(lattice, noisy.n_groups, noisy.cell_groups)
    own = measured_level(levels[top], groups, family, prior)
    is_large = root.size >= n_sizes
    n_large, seen, std = int(root.count[is_large].sum()), 0, 0.0
    if family == Family(0, ()) and n_large:
        rows = levels[top]["tail"].values[-n_large:]
        released = int(((root.size - n_sizes) * root.count)[is_large].sum())
        seen = int((rows - n_sizes).sum()) - released
        # Groups without a row of their own are as unsure as those that have one.
        std = math.sqrt(n_large * levels[top]["tail"].noise.variance)
    return {
        "heaped": choose_once(own, is_top=True).is_heaped,
        "told_apart": n_sizes,
        "hidden": [seen, round(std)],
    }


def _with_look(
    plan: Plan, levels: Sequence[NoisyLevel], answers: IntArray
) -> tuple[NoisyLevel, ...]:
    """The same answers with those of the first look among those of the root."""
    assert plan.first_look is not None
    look = NoisyQuery("first look", plan.first_look.noise, np.array([0, len(answers)]), answers)
    root, *below = levels
    return (replace(root, queries=(look, *root.queries)), *below)


def without_look(level: NoisyLevel) -> NoisyLevel:
    """A level without the answers of looks, which are kept among those of the root."""
    looks = ("first look", SIZE_LOOK)
    rest = tuple(query for query in level.queries if query.name not in looks)
    return replace(level, queries=rest)


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
    assert plan.levels[-1].family == lattice.finest
    n_sizes = _n_sizes(look, plan, lattice, told)
    root = prior_of_root(look, n_sizes)
    noisy, levels, priors = turns_down(groups, plan, root, measure, len(plan.levels) - 1, progress)
    progress(2 * len(plan.levels) - 2, 2 * len(plan.levels), f"measuring {plan.levels[-1].name}")
    prior, is_top = _expected(lattice, priors, root, lattice.finest)
    looked = estimate_of_look(look, n_sizes)
    return AboveFinest(plan, tuple(noisy), tuple(levels), prior, is_top, answers, looked)


def _n_sizes(look: FirstLook, plan: Plan, lattice: Lattice, told: int) -> int:
    """Sizes to tell apart, of which answers already tell so many, and a look at bins of sizes as many
    as ``plan.reach``.
    """
    told = max(told, plan.reach)
    n_sizes = look.n_sizes(_least_std(plan), most_sizes(lattice), told)
    return n_sizes if plan.max_size is None else min(n_sizes, max(plan.max_size, told))


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
    for place, level in enumerate(plan.levels[:n_places]):
        family = level.family
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
        own = measured_level(noisy[-1], groups, family, prior)
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


def measured_level(
    noisy: NoisyLevel, groups: Groups, family: Family, prior: Prior
) -> MeasuredLevel:
    """What is known of a family before it is estimated; the root's cells may be seen to lack the
    smallest sizes.
    """
    own = MeasuredLevel(noisy, groups.of(family), prior)
    return with_empty_heads(own) if family.level == 0 and family.margin else own


def split_after_look(plan: Plan, facts: PublicFacts, look: FirstLook, groups: Groups) -> Plan:
    """The plan with the shares that the look suggests, unless the user gave shares."""
    if not plan.awaits_look:
        return plan
    lattice = facts.lattice

    noise_std = noise_for_shares(plan, facts, len(plan.levels) - 1)
    if facts.attributes:
        of = {family: groups.of(family) for family in lattice.families}
        wanted = wanted_families(plan.request.want, lattice)
        return with_shares(plan, facts, shares_for_families(look, lattice, of, noise_std, wanted))
    levels = [groups.of(family) for family in lattice.families]
    goal = goal_from(plan.request.goal, facts.hierarchy.level_names)
    return with_shares(plan, facts, shares_for_levels(look, levels, noise_std, goal))


def _least_std(plan: Plan) -> float:
    return min(level.query.noise.std for level in plan.levels if level.query is not None)
