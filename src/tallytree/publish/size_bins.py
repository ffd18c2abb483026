"""The mechanism for protecting whole groups: look, choose bins of sizes, measure every level, combine and make whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tallytree.consistency.size_bins import fill_bins, whole_bins, whole_totals
from tallytree.estimate.siblings import Differences
from tallytree.estimate.size_bins import fit_size_bins
from tallytree.measure.noisy import NoisyCounts, NoisyQuery
from tallytree.measure.size_bins import measure_size_bins, measure_size_look
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize, sum_over_regions
from tallytree.model.lattice import Family
from tallytree.planning.group_sizes.plan import Plan, PublicFacts, with_view
from tallytree.planning.group_sizes.size_bins import SizeBins, bins_after_look, look_edges, single_sizes
from tallytree.privacy.noise import DiscreteGaussian
from tallytree.privacy.randomness import KeyStream
from tallytree.publish.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class SizeBinsRun:
    """What the mechanism measured and estimated, the plan with its questions, the bins they are about, and how far regions
    were found to differ from their siblings, level by level below the root.

    ``leaf_counts`` are by attributes where there are some.
    """

    plan: Plan
    noisy: NoisyCounts
    leaf_counts: CountsBySize
    bins: SizeBins
    differences: tuple[Differences, ...]


def run_size_bins(
    counts: ConfidentialCounts, plan: Plan, facts: PublicFacts, stream: KeyStream, progress: Progress = silent
) -> SizeBinsRun:
    """Confidential values enter only through ``measure_size_look`` and ``measure_size_bins``."""
    lattice = facts.lattice
    families = [Family(level.level, facts.attributes.chosen(level.by)) for level in plan.levels]
    tree, orders = lattice.nested(families)
    look: tuple[NoisyQuery, ...] = ()
    if plan.first_look is None:
        assert plan.max_size is not None
        bins = single_sizes(plan.max_size, least_size=facts.least_size, gaussian=_gaussian(plan))
    else:
        edges = look_edges(plan.max_size, least_size=facts.least_size)
        answers = measure_size_look(counts, edges, plan.first_look, stream)
        look = (NoisyQuery("first look", plan.first_look.noise, np.array([0, len(answers)]), answers),)
        regions = [lattice.n_rows(family) for family in families]
        stds = [level.query.noise.std for level in plan.levels if level.query is not None]
        std = plan.first_look.noise.std
        bins = bins_after_look(answers, std, regions, stds, edges, gaussian=_gaussian(plan))
        plan = with_view(plan, facts, "blocks" if bins.block else "bins")
    levels, tables, variances = [], [], []
    for place, (level, family) in enumerate(zip(plan.levels, families)):
        progress(place, len(plan.levels) + 1, f"measuring {level.name}")
        answered, table = measure_size_bins(counts.counts_of(family), bins, level, stream)
        levels.append(answered)
        tables.append(table[orders[place]])
        variances.append(answered.queries[0].noise.variance)
    progress(len(plan.levels), len(plan.levels) + 1, "combining all levels")
    estimates, differences = fit_size_bins(tree, tables, variances, bins)
    whole = whole_bins(tree, estimates, whole_totals(tree, estimates))
    levels[0] = replace(levels[0], queries=(*look, *levels[0].queries))
    leaves = fill_bins(tree, whole, bins)
    cells = sum_over_regions(leaves, orders[-1], leaves.n_regions)
    by_leaf = cells.n_groups().reshape(-1, facts.attributes.n_cells).sum(axis=1)
    cell_groups = cells.n_groups() if facts.attributes else None
    noisy = NoisyCounts(facts.hierarchy.sum_from_leaves(by_leaf), tuple(levels), cell_groups)
    return SizeBinsRun(plan, noisy, cells, bins, differences)


def _gaussian(plan: Plan) -> bool:
    query = plan.levels[-1].query
    return query is not None and isinstance(query.noise, DiscreteGaussian)
