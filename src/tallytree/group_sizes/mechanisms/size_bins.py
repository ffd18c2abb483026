"""Counts of groups in bins of sizes: look, choose the bins, measure every level, combine and make
whole. Whole groups are protected in this way, and entities whose quantities are large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tallytree.group_sizes.estimate.size_bins import fit_size_bins
from tallytree.group_sizes.manifest import bins_of, with_bins
from tallytree.group_sizes.measure.size_bins import measure_in_bins, n_answers
from tallytree.group_sizes.mechanisms.mechanism import Estimated, Measured, Settled
from tallytree.group_sizes.noisy import Groups
from tallytree.group_sizes.plan.plan import Plan, with_bins_asked
from tallytree.group_sizes.plan.size_bins import SizeBins, single_sizes
from tallytree.group_sizes.plan.traits import OWN_TRAITS, Traits
from tallytree.group_sizes.reconcile.size_bins import fill_bins, whole_totals
from tallytree.lattice.whole import whole_columns
from tallytree.model.count_of_counts import sum_over_regions
from tallytree.model.facts import PublicFacts
from tallytree.releases.progress import Progress
from tallytree.storage.folder import Manifest


@dataclass(frozen=True)
class InSizeBins:
    """Count groups in bins of sizes: a whole group changes one of them, an entity two."""

    traits: Traits = OWN_TRAITS["size-bins"]
    measure = staticmethod(measure_in_bins)

    def check(self) -> None:
        """Nothing beyond the package is needed."""

    def settle(self, plan: Plan, facts: PublicFacts, manifest: Manifest) -> Settled:
        """The plan with the bins of the manifest, or those that follow from the public bound."""
        bins = bins_of(manifest)
        looks = plan.first_look is not None or plan.size_look is not None
        if not looks and plan.max_size is not None:
            bins = single_sizes(plan.max_size, least_size=facts.least_size, gaussian=plan.gaussian)
        return Settled(with_bins_asked(plan, facts, bins), bins)

    def describe(self, manifest: Manifest, settled: Settled, facts: PublicFacts) -> Manifest:
        """The manifest with the bins."""
        return with_bins(manifest, settled.plan, facts, settled.choice)

    def estimate(self, measured: Measured, facts: PublicFacts, progress: Progress) -> Estimated:
        """Consistent counts of the leaves; how far regions differ from their siblings, level by
        level below the root, is a fact of the fit.
        """
        plan, noisy, bins = measured.settled.plan, measured.noisy, _bins(measured)
        lattice, families = facts.lattice, measured.settled.plan.families
        progress(len(plan.levels), len(plan.levels) + 1, "combining all levels")
        tree, orders = lattice.nested(families)
        tables, variances = [], []
        for level, family, order in zip(noisy.levels, families, orders):
            answers = level.queries[-1]
            tables.append(answers.values.reshape(lattice.n_rows(family), n_answers(bins))[order])
            variances.append(answers.noise.variance)
        totals = None
        if facts.groups_public:
            public = Groups(lattice, noisy.n_groups, noisy.cell_groups)
            totals = np.concatenate(
                [public.of(family)[order] for family, order in zip(families, orders)]
            )
        estimates, differences = fit_size_bins(tree, tables, variances, bins, totals)
        n_groups = whole_totals(tree, estimates) if totals is None else totals
        leaves = fill_bins(tree, whole_columns(tree, estimates, n_groups), bins)
        cells = sum_over_regions(leaves, orders[-1], leaves.n_regions)
        fit = {"differences": [difference.to_json() for difference in differences]}
        if totals is not None:
            return Estimated(noisy, cells, fit)
        by_leaf = cells.n_groups().reshape(-1, facts.attributes.n_cells).sum(axis=1)
        known = replace(
            noisy,
            n_groups=facts.hierarchy.sum_from_leaves(by_leaf),
            cell_groups=cells.n_groups() if facts.attributes else None,
        )
        return Estimated(known, cells, fit)


def _bins(measured: Measured) -> SizeBins:
    """The bins that were asked about."""
    bins = measured.settled.choice
    assert isinstance(bins, SizeBins)
    return bins
