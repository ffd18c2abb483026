"""What a mechanism for group sizes is: an object with these few functions, handed the public facts
and the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tallytree.group_sizes.noisy import NoisyCounts, NoisyLevel
from tallytree.group_sizes.plan.plan import Plan
from tallytree.group_sizes.plan.traits import Traits
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.facts import PublicFacts
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.progress import Progress
from tallytree.storage.folder import Manifest


@dataclass(frozen=True, eq=False)
class Settled:
    """A plan in which nothing is left open.

    Attributes
    ----------
    plan
        With the shares and questions that were chosen after the first look.
    choice
        What else was chosen, such as bins of sizes; None where nothing was.
    """

    plan: Plan
    choice: Any = None


@dataclass(frozen=True, eq=False)
class Measured:
    """Everything that was measured.

    Attributes
    ----------
    settled
        The plan as it was carried out.
    noisy
        All noisy answers.
    progress_so_far
        Estimates that the mechanism made between measurements; None where it begins to estimate
        from the answers alone.
    """

    settled: Settled
    noisy: NoisyCounts
    progress_so_far: Any = None

    def with_people(self, people: tuple[NoisyLevel, ...]) -> Measured:
        """The same with the noisy tables of people."""
        return replace(self, noisy=replace(self.noisy, people=people)) if people else self


@dataclass(frozen=True, eq=False)
class Estimated:
    """What follows from the answers.

    Attributes
    ----------
    noisy
        The answers, with the numbers of groups that the counts keep to.
    leaves
        Consistent counts by size of the leaves, by attributes where there are some.
    facts
        Facts about the fit, which the manifest states.
    """

    noisy: NoisyCounts
    leaves: CountsBySize
    facts: dict[str, Any] = field(default_factory=dict)


class Mechanism(Protocol):
    """One way to release group sizes. ``measure`` alone sees confidential values."""

    @property
    def traits(self) -> Traits:
        """What planning must know."""

    def check(self) -> None:
        """Raise MissingExtraError where this machine lacks what the mechanism calls."""

    def measure(
        self,
        counts: ConfidentialCounts,
        plan: Plan,
        facts: PublicFacts,
        stream: KeyStream,
        progress: Progress,
    ) -> Measured:
        """Take every measurement of the plan but those of people."""

    def settle(self, plan: Plan, facts: PublicFacts, manifest: Manifest) -> Settled:
        """The plan as a manifest says that it was carried out."""

    def estimate(self, measured: Measured, facts: PublicFacts, progress: Progress) -> Estimated:
        """Consistent counts from the answers alone: post-processing."""

    def describe(self, manifest: Manifest, settled: Settled, facts: PublicFacts) -> Manifest:
        """The manifest with what was chosen after it had been written."""
