"""The default: blocks and rows of staircases, chosen from noisy answers, smoothed, and all levels
combined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tallytree.group_sizes.estimate.staircases import (
    Choices,
    MeasuredLevel,
    Staircases,
    choose_once,
    estimate_staircases,
)
from tallytree.group_sizes.manifest import with_split
from tallytree.group_sizes.measure.adaptive import measure_adaptive
from tallytree.group_sizes.mechanisms.mechanism import Estimated, Measured, Settled
from tallytree.group_sizes.mechanisms.turns import (
    AboveFinest,
    estimate_above,
    measured_level,
    without_look,
)
from tallytree.group_sizes.noisy import Groups, NoisyCounts, NoisyLevel
from tallytree.group_sizes.plan.plan import Plan, with_shares
from tallytree.group_sizes.plan.traits import OWN_TRAITS, Traits
from tallytree.group_sizes.reconcile.cells import consistent_cells, nested_cells
from tallytree.group_sizes.reconcile.people import counted_people, shift_of_entities
from tallytree.group_sizes.reconcile.staircases import Leaves, consistent_leaves, families_of_leaves
from tallytree.lattice.whole import whole_path
from tallytree.model.arrays import FloatArray
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.facts import PublicFacts
from tallytree.model.lattice import Family, Lattice
from tallytree.model.people import People
from tallytree.privacy.budget import written_fraction
from tallytree.releases.progress import Progress
from tallytree.storage.folder import Manifest


@dataclass(frozen=True)
class Adaptive:
    """Look, split the budget, measure level by level, and combine."""

    traits: Traits = OWN_TRAITS["adaptive"]
    measure = staticmethod(measure_adaptive)

    def check(self) -> None:
        """Nothing beyond the package is needed."""

    def settle(self, plan: Plan, facts: PublicFacts, manifest: Manifest) -> Settled:
        """The plan with the split that the manifest states, where it followed from the look."""
        if not plan.awaits_look:
            return Settled(plan)
        shares = [written_fraction(level["share"]) for level in manifest["privacy"]["levels"]]
        return Settled(with_shares(plan, facts, shares))

    def describe(self, manifest: Manifest, settled: Settled, facts: PublicFacts) -> Manifest:
        """The manifest with the split."""
        return with_split(manifest, settled.plan, facts)

    def estimate(self, measured: Measured, facts: PublicFacts, progress: Progress) -> Estimated:
        """All levels combined into consistent counts of the leaves."""
        plan, noisy = measured.settled.plan, measured.noisy
        above: AboveFinest | None = measured.progress_so_far
        if above is None:
            above = estimate_above(facts.lattice, plan, noisy, progress)
        n_places = len(plan.levels)
        progress(2 * n_places - 1, 2 * n_places, f"estimating {plan.levels[-1].name}")
        groups = Groups(facts.lattice, noisy.n_groups, noisy.cell_groups)
        finest = measured_level(
            without_look(noisy.levels[-1]), groups, facts.lattice.finest, above.prior
        )
        choices = choose_once(finest, is_top=above.is_top)
        return Estimated(noisy, _combine(noisy, above, (finest, choices), facts))


def _combine(
    noisy: NoisyCounts,
    above: AboveFinest,
    measured_finest: tuple[MeasuredLevel, Choices],
    facts: PublicFacts,
) -> CountsBySize:
    """Consistent counts by size of the leaves, by attributes where there are some.

    Nothing lies below the finest level, so its staircases are estimated in pieces as they are
    needed.
    """
    lattice, people, plan = facts.lattice, facts.people, above.plan
    finest, choices = measured_finest

    def pieces(level: MeasuredLevel) -> Callable[[slice], Staircases]:
        return lambda regions: estimate_staircases(level.piece(regions), choices, is_leaf=True)

    families = plan.families
    upper = {family: known for family, known in zip(families, above.levels) if known is not None}
    noise = {
        family: level.query.noise.variance
        for family, level in zip(families, plan.levels)
        if level.query is not None
    }
    path = whole_path(lattice, noise)
    is_nested = noisy.cell_groups is None or noise.keys() <= set(path)
    measured = dict(upper)
    if people or not is_nested:
        measured[lattice.finest] = estimate_staircases(finest, choices, is_leaf=True)
    shift = _shift_by_people(lattice, measured, people, noisy.people) if people else None
    if noisy.cell_groups is None:
        tree, n_groups = lattice.hierarchy, noisy.n_groups
        leaves = Leaves(families_of_leaves(tree), pieces(finest), above.looked.height.shape[1])
        return consistent_leaves(
            tree, n_groups, above.levels, leaves, above.looked, plan.max_size, shift
        )
    n_groups, max_size = noisy.cell_groups, plan.max_size
    if is_nested:
        in_order = lambda order: pieces(finest.at(order))  # noqa: E731
        return nested_cells(lattice, path, n_groups, upper, in_order, above.looked, max_size, shift)
    return consistent_cells(lattice, n_groups, measured, above.looked, max_size, shift)


def _shift_by_people(
    lattice: Lattice,
    measured: Mapping[Family, Staircases],
    people: People,
    tables: tuple[NoisyLevel, ...],
) -> FloatArray:
    """What the classes of entities add to the number of entities of each of the finest cells."""
    groups = people.groups(lattice)
    sizes = {family: known.curves for family, known in measured.items()}
    return shift_of_entities(lattice, sizes, groups, counted_people(groups, tables))
