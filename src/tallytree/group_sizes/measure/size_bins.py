"""Measuring counts of groups in bins of sizes, where a whole group is protected.

A group lies in one bin and one block of one region per level; see ``size_bins_sensitivity`` and
``size_blocks_sensitivity``. The bins follow from public facts and the first look's noisy answers,
so neighbours that were told the same are asked the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tallytree.group_sizes.mechanisms.mechanism import Measured, Settled
from tallytree.group_sizes.noisy import Groups, NoisyCounts, NoisyLevel, NoisyQuery
from tallytree.group_sizes.plan.plan import SIZE_LOOK, LevelPlan, Plan, with_bins_asked
from tallytree.group_sizes.plan.size_bins import SizeBins, bins_after_look, look_edges, single_sizes
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.facts import PublicFacts
from tallytree.privacy.noise import add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.progress import Progress


def measure_in_bins(
    counts: ConfidentialCounts,
    plan: Plan,
    facts: PublicFacts,
    stream: KeyStream,
    progress: Progress,
) -> Measured:
    """Look, choose bins of sizes, and measure every level in them.

    Where numbers of groups are not public, they are not known before the answers are combined.
    """
    if plan.first_look is None and plan.size_look is None:
        assert plan.max_size is not None
        bins = single_sizes(plan.max_size, least_size=facts.least_size, gaussian=plan.gaussian)
        return measure_levels_in_bins(counts, plan, facts, bins, stream, progress)
    edges = look_edges(plan.max_size, least_size=facts.least_size)
    look = measure_size_look(counts, edges, plan, stream)
    groups = public_groups(counts)
    bins = bins_planned(plan, facts, look, edges, groups)
    measured = measure_levels_in_bins(counts, plan, facts, bins, stream, progress)
    return replace(measured, noisy=with_look(measured.noisy, look))


def bins_planned(
    plan: Plan, facts: PublicFacts, look: NoisyQuery, edges: IntArray, groups: Groups | None
) -> SizeBins:
    """The bins that follow from a look; ``groups`` are the public numbers of groups."""
    regions = [facts.lattice.n_rows(family) for family in plan.families]
    stds = [level.query.noise.std for level in plan.levels if level.query is not None]
    known = None if groups is None else int(groups.n_groups[0])
    return bins_after_look(
        look.values, look.noise.std, regions, stds, edges, gaussian=plan.gaussian, n_groups=known
    )


def measure_levels_in_bins(
    counts: ConfidentialCounts,
    plan: Plan,
    facts: PublicFacts,
    bins: SizeBins,
    stream: KeyStream,
    progress: Progress,
) -> Measured:
    """Measure every level in bins of sizes."""
    plan = with_bins_asked(plan, facts, bins)
    levels = []
    for place, (level, family) in enumerate(zip(plan.levels, plan.families)):
        progress(place, len(plan.levels) + 1, f"measuring {level.name}")
        levels.append(measure_size_bins(counts.counts_of(family), bins, level, stream))
    groups = public_groups(counts)
    if groups is not None:
        return Measured(Settled(plan, bins), groups.answered(levels))
    unknown = np.zeros(facts.hierarchy.n_regions, dtype=np.int64)
    return Measured(Settled(plan, bins), NoisyCounts(unknown, tuple(levels)))


def public_groups(counts: ConfidentialCounts) -> Groups | None:
    """Numbers of groups that are public; None where they are not."""
    if not counts.public.groups_public:
        return None
    cells = counts.cell_counts.n_groups() if counts.cell_counts is not None else None
    return Groups(counts.lattice, counts.hierarchy.sum_from_leaves(counts.n_groups), cells)


def measure_size_look(
    counts: ConfidentialCounts, edges: IntArray, plan: Plan, stream: KeyStream
) -> NoisyQuery:
    """Noisy numbers of groups of the root in each of the look's bins."""
    query, name = plan.size_look, SIZE_LOOK
    if query is None:  # whole groups have one look, which is in bins
        query, name = plan.first_look, "first look"
    assert query is not None
    exact = SizeBins(edges).table_of(counts.counts_on_levels.region(0))[0]
    noisy = add_noise(exact, query.noise, stream, level=0, query=name, question=[edges])
    return NoisyQuery(name, query.noise, np.array([0, len(noisy)]), noisy)


def with_look(noisy: NoisyCounts, look: NoisyQuery) -> NoisyCounts:
    """The same answers with those of a look before those of the root."""
    root, *below = noisy.levels
    return replace(noisy, levels=(replace(root, queries=(look, *root.queries)), *below))


def measure_size_bins(
    truth: CountsBySize, bins: SizeBins, plan: LevelPlan, stream: KeyStream
) -> NoisyLevel:
    """Noisy answers of all regions of a level: weighted counts of bins, then of blocks.

    ``truth`` is confidential: the counts by size of the level's regions, by attributes where the
    plan has some.
    """
    assert plan.query is not None
    exact = answers_of(bins.table_of(truth), bins)
    offsets = np.arange(len(exact) + 1) * exact.shape[1]
    name = plan.question(plan.view)
    noisy = add_noise(
        exact,
        plan.query.noise,
        stream,
        level=plan.level,
        query=name,
        offsets=offsets,
        question=[bins.edges, bins.block_starts, np.array(bins.weights)],
    )
    return NoisyLevel(
        plan.level, (NoisyQuery(plan.view, plan.query.noise, offsets, noisy.ravel()),), plan.by
    )


def answers_of(table: IntArray, bins: SizeBins) -> IntArray:
    """What is asked about counts of bins: the counts themselves, or weighted and with weighted sums
    over blocks.
    """
    if not bins.block:
        return table
    fine, coarse = bins.weights
    return np.concatenate(
        [fine * table, coarse * np.add.reduceat(table, bins.block_starts, axis=1)], axis=1
    )


def n_answers(bins: SizeBins) -> int:
    """How many numbers are asked of each region."""
    return bins.n_bins + (len(bins.block_starts) if bins.block else 0)
