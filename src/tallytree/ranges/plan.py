"""The plan of a histogram: its strategy, and the noise that each level's part of the budget pays for."""

from __future__ import annotations

from dataclasses import dataclass

from tallytree.privacy.budget import Budget, noise_for
from tallytree.privacy.noise import Noise
from tallytree.privacy.sensitivity import Sensitivity
from tallytree.ranges.strategies import Strategy, sensitivities


@dataclass(frozen=True, eq=False)
class HistogramPlan:
    """What will be measured with which noise. Levels compose one after the other, so their parts add up to the budget.

    Attributes
    ----------
    noise
        One per level of the strategy; None for a level without a share, which is not measured.
    """

    strategy: Strategy
    budget: Budget
    sensitivities: tuple[Sensitivity, ...]
    noise: tuple[Noise | None, ...]


def plan_histogram(strategy: Strategy, budget: Budget, *, contributions: int = 1) -> HistogramPlan:
    """Give each level of a strategy its part of the budget, and the noise that follows from it."""
    bounds = sensitivities(strategy, contributions=contributions)
    noise = [
        noise_for(Budget(budget.definition, budget.total * share), bound) if share > 0 else None
        for share, bound in zip(strategy.shares, bounds)
    ]
    return HistogramPlan(strategy, budget, tuple(bounds), tuple(noise))
