"""From the noisy measurements of one level to the estimate that its view calls for."""

from __future__ import annotations

from tallytree.group_sizes.estimate.hybrid import estimate_hybrid
from tallytree.group_sizes.estimate.runs import Estimate
from tallytree.group_sizes.estimate.single_view import (
    estimate_cumulative,
    estimate_naive,
    estimate_sizes,
)
from tallytree.group_sizes.noisy import NoisyLevel
from tallytree.group_sizes.plan.plan import LevelPlan
from tallytree.model.arrays import IntArray


def estimate_view(plan: LevelPlan, noisy: NoisyLevel, n_groups: IntArray) -> Estimate:
    """Estimate the group sizes of a level's regions from its measurements.

    ``n_groups`` holds the number of groups that the estimate of each region must have.
    """
    match plan.view:
        case "naive":
            counts = noisy["counts"]
            return estimate_naive(counts.values, counts.offsets, n_groups, counts.noise.variance)
        case "sizes":
            sizes = noisy["sizes"]
            return estimate_sizes(
                sizes.values, sizes.offsets, n_groups, sizes.noise.variance, norm=plan.norm
            )
        case "cumulative":
            below = noisy["cumulative"]
            return estimate_cumulative(
                below.values, below.offsets, n_groups, below.noise.variance, norm=plan.norm
            )
        case "hybrid":
            below, tail = noisy["cumulative"], noisy["tail"]
            return estimate_hybrid(
                below.values,
                below.offsets,
                tail.values,
                tail.offsets,
                n_groups,
                below.noise.variance,
            )
        case "chain" | "staircase" | "bins" | "blocks" | "people":
            raise ValueError(
                f"the view {plan.view!r} is fitted over all levels, by its own mechanism"
            )
