"""The default where entities have quantities: look at bins of sizes, then go on with bins or with
staircases, whichever are predicted to be nearer.

The look is the only answer that the choice follows from, beside public facts, so neighbours that
were told the same go on alike; what is asked afterwards has sensitivities of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tallytree.errors import RequestError
from tallytree.group_sizes.manifest import choice_of, with_choice
from tallytree.group_sizes.measure.size_bins import (
    bins_planned,
    measure_levels_in_bins,
    measure_size_look,
    public_groups,
    with_look,
)
from tallytree.group_sizes.mechanisms.adaptive import Adaptive
from tallytree.group_sizes.mechanisms.mechanism import Estimated, Measured, Mechanism, Settled
from tallytree.group_sizes.mechanisms.size_bins import InSizeBins
from tallytree.group_sizes.plan.choice import Choice, choose
from tallytree.group_sizes.plan.plan import Plan, plan_chosen, with_shares
from tallytree.group_sizes.plan.size_bins import look_edges
from tallytree.group_sizes.plan.traits import OWN_TRAITS, Traits
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.facts import PublicFacts
from tallytree.privacy.budget import written_fraction
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.progress import Progress
from tallytree.storage.folder import Manifest
from tallytree.tuning.choice import SHARE_OF_LEAVES

_STAIRCASES, _IN_BINS = Adaptive(), InSizeBins()


@dataclass(frozen=True, eq=False)
class _Chosen:
    """What was chosen, with what the mechanism chose itself."""

    choice: Choice
    settled: Settled


@dataclass(frozen=True)
class Auto:
    """Staircases or bins of sizes."""

    traits: Traits = OWN_TRAITS["auto"]

    def check(self) -> None:
        """Nothing beyond the package is needed."""

    def measure(
        self,
        counts: ConfidentialCounts,
        plan: Plan,
        facts: PublicFacts,
        stream: KeyStream,
        progress: Progress,
    ) -> Measured:
        """Look, choose, and measure by what was chosen."""
        edges = look_edges(plan.max_size, least_size=facts.least_size)
        look = measure_size_look(counts, edges, plan, stream)
        groups = public_groups(counts)
        plans = [
            (split, bins_planned(split, facts, look, edges, groups))
            for split in _splits(plan_chosen(plan, facts, "size-bins"), facts)
        ]
        choice, (in_bins, bins) = choose(
            _staircases(plan, facts), plans, facts, look, edges, groups
        )
        if choice.mechanism == "size-bins":
            measured = measure_levels_in_bins(counts, in_bins, facts, bins, stream, progress)
        else:
            chosen = plan_chosen(plan, facts, "adaptive", choice.reach)
            measured = _STAIRCASES.measure(counts, chosen, facts, stream, progress)
        settled = Settled(measured.settled.plan, _Chosen(choice, measured.settled))
        return replace(measured, settled=settled, noisy=with_look(measured.noisy, look))

    def settle(self, plan: Plan, facts: PublicFacts, manifest: Manifest) -> Settled:
        """The plan of the mechanism that the manifest names."""
        choice = choice_of(manifest)
        chosen = plan_chosen(plan, facts, choice.mechanism, choice.reach)
        if choice.mechanism == "size-bins":
            levels = manifest["privacy"]["levels"]
            chosen = with_shares(
                chosen, facts, [written_fraction(level["share"]) for level in levels]
            )
        settled = _mechanism(choice).settle(chosen, facts, manifest)
        return Settled(settled.plan, _Chosen(choice, settled))

    def estimate(self, measured: Measured, facts: PublicFacts, progress: Progress) -> Estimated:
        """The estimate of the mechanism that was chosen."""
        chosen = _chosen(measured.settled)
        own = replace(measured, settled=chosen.settled)
        return _mechanism(chosen.choice).estimate(own, facts, progress)

    def describe(self, manifest: Manifest, settled: Settled, facts: PublicFacts) -> Manifest:
        """The manifest with what was chosen, and what that chose."""
        chosen = _chosen(settled)
        manifest = with_choice(manifest, settled.plan, facts, chosen.choice)
        return _mechanism(chosen.choice).describe(manifest, chosen.settled, facts)


def _staircases(plan: Plan, facts: PublicFacts) -> Plan | None:
    """The plan for staircases; None where epsilon and delta are not proved for so many changes."""
    try:
        return plan_chosen(plan, facts, "adaptive")
    except RequestError:
        return None


def _splits(plan: Plan, facts: PublicFacts) -> tuple[Plan, Plan]:
    """Bins with the same share for every level, and with most for the last."""
    n_above = len(plan.levels) - 1
    if not n_above:
        return plan, plan
    rest = (1 - SHARE_OF_LEAVES) / n_above
    return plan, with_shares(plan, facts, [rest] * n_above + [SHARE_OF_LEAVES])


def _mechanism(choice: Choice) -> Mechanism:
    return _STAIRCASES if choice.mechanism == "adaptive" else _IN_BINS


def _chosen(settled: Settled) -> _Chosen:
    assert isinstance(settled.choice, _Chosen)
    return settled.choice
