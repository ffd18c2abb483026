"""The plan of a histogram: its strategy, and the noise that each level's part of the budget pays
for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tallytree.privacy.budget import Budget, noise_for
from tallytree.privacy.noise import Noise
from tallytree.privacy.sensitivity import Sensitivity, histogram_sensitivity
from tallytree.strategies.strategies import Strategy, sensitivities


@dataclass(frozen=True)
class Look:
    """The number of rows, asked before anything else: which share of the budget that costs, and its
    noise.
    """

    share: Fraction
    sensitivity: Sensitivity
    noise: Noise


@dataclass(frozen=True, eq=False)
class HistogramPlan:
    """What will be measured with which noise. Levels compose one after the other, so their parts
    add up to the budget.

    Attributes
    ----------
    noise
        One per level of the strategy; None for a level without a share, which is not measured.
    look
        What was asked before; the levels share what it leaves of the budget. None where nothing
        was.
    """

    strategy: Strategy
    budget: Budget
    sensitivities: tuple[Sensitivity, ...]
    noise: tuple[Noise | None, ...]
    look: Look | None = None

    def loss(self, level: int) -> Fraction:
        """What a level costs."""
        left = 1 if self.look is None else 1 - self.look.share
        return self.budget.total * left * self.strategy.shares[level]


def plan_histogram(
    strategy: Strategy, budget: Budget, *, contributions: int = 1, look: Fraction | None = None
) -> HistogramPlan:
    """Give each level of a strategy its part of the budget, and the noise that follows from it.

    ``look`` is the share of a question about the number of rows that comes first.
    """
    left = budget
    if look is not None:
        left = Budget(budget.definition, budget.total * (1 - look))
    bounds = sensitivities(strategy, contributions=contributions)
    noise = [
        noise_for(Budget(budget.definition, left.total * share), bound) if share > 0 else None
        for share, bound in zip(strategy.shares, bounds)
    ]
    asked = None if look is None else _look(look, budget, contributions)
    return HistogramPlan(strategy, budget, tuple(bounds), tuple(noise), asked)


def _look(share: Fraction, budget: Budget, contributions: int) -> Look:
    bound = histogram_sensitivity(contributions=contributions)
    return Look(share, bound, noise_for(Budget(budget.definition, budget.total * share), bound))
