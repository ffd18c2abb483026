"""The mechanism for protecting whole groups: look, choose bins of sizes, measure every level,
combine and make whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tallytree.group_sizes.estimate.siblings import Differences
from tallytree.group_sizes.estimate.size_bins import fit_size_bins
from tallytree.group_sizes.measure.size_bins import measure_size_bins, measure_size_look, n_answers
from tallytree.group_sizes.plan.plan import Plan, PublicFacts, with_bins_asked
from tallytree.group_sizes.plan.size_bins import SizeBins, bins_after_look, look_edges, single_sizes
from tallytree.group_sizes.reconcile.size_bins import fill_bins, whole_totals
from tallytree.lattice.whole import whole_columns
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize, sum_over_regions
from tallytree.model.lattice import Family
from tallytree.privacy.noisy import NoisyCounts, NoisyLevel, NoisyQuery
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class MeasuredBins:
    """What the mechanism measured: answers of the first look among those of the root, the plan with
    its questions, and the bins that they are about.
    """

    plan: Plan
    levels: tuple[NoisyLevel, ...]
    bins: SizeBins

    def noisy(self, facts: PublicFacts) -> NoisyCounts:
        """The answers before anything is estimated from them: how many groups there are is not
        known yet, so none are.
        """
        return NoisyCounts(np.zeros(facts.hierarchy.n_regions, dtype=np.int64), self.levels)


@dataclass(frozen=True, eq=False)
class EstimatedBins:
    """What follows from the answers: consistent counts of the leaves, by attributes where there are
    some, and how far regions were found to differ from their siblings, level by level below the
    root.
    """

    noisy: NoisyCounts
    leaf_counts: CountsBySize
    differences: tuple[Differences, ...]

    @property
    def differences_json(self) -> list[list[float]]:
        """The differences as manifests keep them."""
        return [found.to_json() for found in self.differences]


def measure_bins(
    counts: ConfidentialCounts,
    plan: Plan,
    facts: PublicFacts,
    stream: KeyStream,
    progress: Progress = silent,
) -> MeasuredBins:
    """Confidential values enter only through ``measure_size_look`` and ``measure_size_bins``."""
    lattice, families = facts.lattice, _families(plan, facts)
    look: tuple[NoisyQuery, ...] = ()
    if plan.first_look is None:
        assert plan.max_size is not None
        bins = single_sizes(plan.max_size, least_size=facts.least_size, gaussian=plan.gaussian)
    else:
        edges = look_edges(plan.max_size, least_size=facts.least_size)
        answers = measure_size_look(counts, edges, plan.first_look, stream)
        look = (
            NoisyQuery("first look", plan.first_look.noise, np.array([0, len(answers)]), answers),
        )
        regions = [lattice.n_rows(family) for family in families]
        stds = [level.query.noise.std for level in plan.levels if level.query is not None]
        std = plan.first_look.noise.std
        bins = bins_after_look(answers, std, regions, stds, edges, gaussian=plan.gaussian)
        plan = with_bins_asked(plan, facts, bins)
    levels = []
    for place, (level, family) in enumerate(zip(plan.levels, families)):
        progress(place, len(plan.levels) + 1, f"measuring {level.name}")
        levels.append(measure_size_bins(counts.counts_of(family), bins, level, stream))
    levels[0] = replace(levels[0], queries=(*look, *levels[0].queries))
    return MeasuredBins(plan, tuple(levels), bins)


def estimate_bins(
    measured: MeasuredBins, facts: PublicFacts, progress: Progress = silent
) -> EstimatedBins:
    """Consistent counts from the answers alone: post-processing only."""
    plan, bins = measured.plan, measured.bins
    progress(len(plan.levels), len(plan.levels) + 1, "combining all levels")
    tree, orders = facts.lattice.nested(_families(plan, facts))
    tables, variances = [], []
    for level, family, order in zip(measured.levels, _families(plan, facts), orders):
        answers = level.queries[-1]
        tables.append(answers.values.reshape(facts.lattice.n_rows(family), n_answers(bins))[order])
        variances.append(answers.noise.variance)
    estimates, differences = fit_size_bins(tree, tables, variances, bins)
    whole = whole_columns(tree, estimates, whole_totals(tree, estimates))
    leaves = fill_bins(tree, whole, bins)
    cells = sum_over_regions(leaves, orders[-1], leaves.n_regions)
    by_leaf = cells.n_groups().reshape(-1, facts.attributes.n_cells).sum(axis=1)
    cell_groups = cells.n_groups() if facts.attributes else None
    noisy = NoisyCounts(facts.hierarchy.sum_from_leaves(by_leaf), measured.levels, cell_groups)
    return EstimatedBins(noisy, cells, differences)


def _families(plan: Plan, facts: PublicFacts) -> list[Family]:
    return [Family(level.level, facts.attributes.chosen(level.by)) for level in plan.levels]
