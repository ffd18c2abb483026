"""Mechanisms whose plan leaves nothing open: all levels are measured, then all are estimated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tallytree.group_sizes.measure.views import measure_at_once
from tallytree.group_sizes.mechanisms.mechanism import Estimated, Measured, Settled
from tallytree.group_sizes.plan.plan import Plan
from tallytree.group_sizes.plan.traits import Traits
from tallytree.model.facts import PublicFacts
from tallytree.releases.progress import Progress
from tallytree.storage.folder import Manifest


def _nothing_lacks() -> None:
    """Nothing beyond the package is needed."""


@dataclass(frozen=True)
class AtOnce:
    """A mechanism by what it asks and how it fits all answers.

    Attributes
    ----------
    traits
        What planning must know.
    fit
        From everything measured to consistent counts.
    check
        Raises MissingExtraError where this machine lacks what ``fit`` calls.
    """

    traits: Traits
    fit: Callable[[Measured, PublicFacts, Progress], Estimated]
    check: Callable[[], None] = _nothing_lacks
    measure = staticmethod(measure_at_once)

    def settle(self, plan: Plan, facts: PublicFacts, manifest: Manifest) -> Settled:
        """The plan itself."""
        return Settled(plan)

    def estimate(self, measured: Measured, facts: PublicFacts, progress: Progress) -> Estimated:
        """The fit."""
        return self.fit(measured, facts, progress)

    def describe(self, manifest: Manifest, settled: Settled, facts: PublicFacts) -> Manifest:
        """The manifest itself."""
        return manifest
