"""Measuring every level by its view: numbers of groups, the largest size where it is not public,
and the levels from the root down.
"""

from __future__ import annotations

from tallytree.group_sizes.measure.levels import (
    measure_group_totals,
    measure_largest_size,
    measure_level,
)
from tallytree.group_sizes.mechanisms.mechanism import Measured, Settled
from tallytree.group_sizes.noisy import NoisyCounts, NoisyLevel, totals_by_level
from tallytree.group_sizes.plan.memory import most_groups
from tallytree.group_sizes.plan.plan import Plan
from tallytree.group_sizes.reconcile.totals import consistent_totals
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Altered, ConfidentialCounts
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.progress import Progress, silent


def measure_at_once(
    counts: ConfidentialCounts,
    plan: Plan,
    facts: PublicFacts,
    stream: KeyStream,
    progress: Progress,
) -> Measured:
    """Take every measurement of a plan that leaves nothing open."""
    return Measured(Settled(plan), measure_views(counts, plan, stream, progress))


def measure_views(
    counts: ConfidentialCounts, plan: Plan, stream: KeyStream, progress: Progress = silent
) -> NoisyCounts:
    """Take every measurement of a plan."""
    n_groups, totals = measure_totals(counts, plan, stream)
    max_size = plan.max_size
    if plan.largest_size is not None:
        max_size = min(measure_largest_size(counts, plan.largest_size, stream), plan.most_sizes)
    levels = []
    for level in plan.levels:
        progress(level.level, 2 * len(plan.levels), f"measuring {level.name}")
        here = counts.hierarchy.level_slice(level.level)
        levels.append(
            measure_level(counts, level, n_groups[here], max_size, stream, totals=plan.totals)
        )
    return NoisyCounts(n_groups, tuple(levels), totals=totals)


def measure_totals(
    counts: ConfidentialCounts, plan: Plan, stream: KeyStream
) -> tuple[IntArray, tuple[NoisyLevel, ...]]:
    """Number of groups of every region: public, or noisy and then made to add up; and the noisy
    ones.
    """
    if counts.public.groups_public:
        return counts.hierarchy.sum_from_leaves(counts.n_groups), ()
    noisy = measure_group_totals(counts, plan.group_totals, stream)
    return paid_totals(counts.hierarchy, plan, noisy), totals_by_level(
        counts.hierarchy, [query.noise for query in plan.group_totals], noisy
    )


def paid_totals(hierarchy: Hierarchy, plan: Plan, noisy: IntArray) -> IntArray:
    """Numbers of groups that add up, from noisy ones of every region."""
    variances = [query.noise.variance for query in plan.group_totals]
    return consistent_totals(hierarchy, noisy, variances, most_groups=most_groups(plan))


def altered_by_bounds(counts: ConfidentialCounts, plan: Plan) -> Altered:
    """Confidential, for the owner: what was done to values outside public bounds. Sizes above a
    public bound are measured as if they were the bound.
    """
    if plan.max_size is None or counts.public.classes is not None:
        return counts.altered
    own = counts.leaf_counts
    n_larger = int(own.count[own.size > plan.max_size].sum())
    return counts.altered.also(
        f"groups larger than {plan.max_size:,}, taken for that size", n_larger
    )
