"""The mechanisms of kuo2018: every level is measured by a view of its own, estimated by itself, and
matched with the others.
"""

from __future__ import annotations

from tallytree.group_sizes.estimate.runs import Estimate
from tallytree.group_sizes.estimate.views import estimate_view
from tallytree.group_sizes.mechanisms.at_once import AtOnce
from tallytree.group_sizes.mechanisms.mechanism import Estimated, Measured
from tallytree.group_sizes.plan.traits import OWN_TRAITS
from tallytree.group_sizes.reconcile.matching import bottom_up, match_top_down
from tallytree.model.facts import PublicFacts
from tallytree.releases.progress import Progress


def match_levels(measured: Measured, facts: PublicFacts, progress: Progress) -> Estimated:
    """Estimate every level and match groups of parents and children, from the root down (Alg. 1)."""
    plan, hierarchy = measured.settled.plan, facts.hierarchy
    levels = range(hierarchy.n_levels)
    estimates = [estimate_level(measured, facts, level, progress) for level in levels]
    return Estimated(measured.noisy, match_top_down(hierarchy, estimates, merge=plan.merge))


def add_up_leaves(measured: Measured, facts: PublicFacts, progress: Progress) -> Estimated:
    """Estimate the leaves; all other levels are their sums (§6.2.2)."""
    leaves = estimate_level(measured, facts, facts.hierarchy.n_levels - 1, progress)
    return Estimated(measured.noisy, bottom_up(leaves))


def estimate_level(
    measured: Measured, facts: PublicFacts, level: int, progress: Progress
) -> Estimate:
    """One level by itself, from its own answers."""
    levels, noisy = measured.settled.plan.levels, measured.noisy
    progress(len(levels) + level, 2 * len(levels), f"estimating {levels[level].name}")
    here = facts.hierarchy.level_slice(level)
    return estimate_view(levels[level], noisy.levels[level], noisy.n_groups[here])


MATCHING = AtOnce(OWN_TRAITS["matching"], match_levels)
BOTTOM_UP = AtOnce(OWN_TRAITS["bottom-up"], add_up_leaves)
