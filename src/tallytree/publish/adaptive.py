"""The adaptive mechanism: look, split the budget, measure level by level with what the levels above told, and reconcile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tallytree.consistency.staircases import consistent_leaves
from tallytree.estimate.staircases import Staircases, estimate_of_look, estimate_staircases, prior_below, prior_of_root
from tallytree.kernels.staircase.blocks import Prior
from tallytree.kernels.staircase.curves import Curves
from tallytree.measure.group_sizes import Place
from tallytree.measure.noisy import NoisyCounts, NoisyLevel, NoisyQuery
from tallytree.measure.staircases import measure_first_look, measure_staircases
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.hierarchy import Hierarchy
from tallytree.planning.group_sizes.allocation import shares_for_levels
from tallytree.planning.group_sizes.first_look import FirstLook, first_look
from tallytree.planning.group_sizes.goals import goal_from
from tallytree.planning.group_sizes.memory import MOST_STAIRCASE_CELLS
from tallytree.planning.group_sizes.plan import LevelPlan, Plan, PublicFacts, level_query, with_shares
from tallytree.privacy.randomness import KeyStream
from tallytree.publish.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class AdaptiveRun:
    """What the mechanism measured and estimated level by level, and the plan with the split that it chose."""

    plan: Plan
    noisy: NoisyCounts
    levels: tuple[Staircases | None, ...]
    looked: Curves

    def _with_look(self, answers: IntArray) -> AdaptiveRun:
        """The same with the answers of the first look among those of the root."""
        assert self.plan.first_look is not None
        look = NoisyQuery("first look", self.plan.first_look.noise, np.array([0, len(answers)]), answers)
        root, *below = self.noisy.levels
        levels = (replace(root, queries=(look, *root.queries)), *below)
        return replace(self, noisy=replace(self.noisy, levels=levels))

    def leaf_counts(self, hierarchy: Hierarchy) -> CountsBySize:
        """All levels combined into consistent counts by size of the leaves: post-processing only."""
        return consistent_leaves(hierarchy, self.noisy.n_groups, list(self.levels), self.looked, self.plan.max_size)


def run_adaptive(
    counts: ConfidentialCounts,
    plan: Plan,
    facts: PublicFacts,
    n_groups: IntArray,
    stream: KeyStream,
    progress: Progress = silent,
) -> AdaptiveRun:
    """Measure and estimate in turns: every level is planned from noisy answers of the levels above.

    Confidential values enter only through ``measure_first_look`` and ``measure_staircases``.
    """
    hierarchy = counts.hierarchy
    assert plan.first_look is not None
    answers = measure_first_look(counts, plan.first_look, stream)
    look = first_look(answers, int(n_groups[0]), plan.first_look.noise.std)
    plan = split_after_look(plan, facts, look, n_groups)

    def measure(level: LevelPlan, prior: Prior) -> NoisyLevel:
        here = hierarchy.level_slice(level.level)
        place = Place(stream, 0, hierarchy.level_size(level.level))
        return measure_staircases(counts.counts_on_levels.regions(here), level, n_groups[here], prior, place)

    return _in_turns(hierarchy, plan, look, n_groups, measure, progress)._with_look(answers)


def estimate_again(hierarchy: Hierarchy, plan: Plan, noisy: NoisyCounts, progress: Progress = silent) -> AdaptiveRun:
    """The same from answers that were given already; ``plan`` has the split that they were measured with."""
    assert plan.first_look is not None
    answers = noisy.levels[0]["first look"].values
    look = first_look(answers, int(noisy.n_groups[0]), plan.first_look.noise.std)
    rest = tuple(query for query in noisy.levels[0].queries if query.name != "first look")
    levels = (replace(noisy.levels[0], queries=rest), *noisy.levels[1:])
    made = _in_turns(hierarchy, plan, look, noisy.n_groups, lambda level, prior: levels[level.level], progress)
    return made._with_look(answers)


def _in_turns(
    hierarchy: Hierarchy,
    plan: Plan,
    look: FirstLook,
    n_groups: IntArray,
    measure: Callable[[LevelPlan, Prior], NoisyLevel],
    progress: Progress,
) -> AdaptiveRun:
    """Estimate level by level from the root, with what ``measure`` tells about each."""
    n_sizes = look.n_sizes(_least_std(plan), MOST_STAIRCASE_CELLS // hierarchy.n_regions)
    if plan.max_size is not None:
        n_sizes = min(n_sizes, plan.max_size)
    prior = prior_of_root(look, n_sizes)
    noisy: list[NoisyLevel] = []
    levels: list[Staircases | None] = []
    for level in plan.levels:
        progress(2 * level.level, 2 * len(plan.levels), f"measuring {level.name}")
        here = hierarchy.level_slice(level.level)
        if level.query is None:
            noisy.append(NoisyLevel(level.level, ()))
            levels.append(None)
        else:
            noisy.append(measure(level, prior))
            progress(2 * level.level + 1, 2 * len(plan.levels), f"estimating {level.name}")
            is_leaf = level.level == hierarchy.n_levels - 1
            is_top = all(above.query is None for above in plan.levels[: level.level])
            estimated = estimate_staircases(noisy[-1], n_groups[here], prior, is_top=is_top, is_leaf=is_leaf)
            levels.append(estimated)
            if not is_leaf:
                own = np.arange(hierarchy.level_size(level.level))
                prior = prior_below(estimated, n_groups[here], own)
        prior = _handed_down(hierarchy, level.level, prior)
    return AdaptiveRun(plan, NoisyCounts(n_groups, tuple(noisy)), tuple(levels), estimate_of_look(look, n_sizes))


def split_after_look(plan: Plan, facts: PublicFacts, look: FirstLook, n_groups: IntArray) -> Plan:
    """The plan with the shares that the look suggests, unless the user gave shares."""
    if not plan.awaits_look:
        return plan
    groups = [n_groups[facts.hierarchy.level_slice(level)] for level in range(facts.hierarchy.n_levels)]

    def noise_std(share: Fraction) -> float:
        return level_query(plan, facts, len(groups) - 1, share).noise.std

    goal = goal_from(plan.request.goal, facts.hierarchy.level_names)
    return with_shares(plan, facts, shares_for_levels(look, groups, noise_std, goal))


def _least_std(plan: Plan) -> float:
    return min(level.query.noise.std for level in plan.levels if level.query is not None)


def _handed_down(hierarchy: Hierarchy, level: int, prior: Prior) -> Prior:
    """The same shapes, for the regions of the next level."""
    if level + 1 == hierarchy.n_levels:
        return prior
    parents = hierarchy.parent[hierarchy.level_slice(level + 1)] - hierarchy.level_starts[level]
    return prior._replace(row=prior.row[parents])
