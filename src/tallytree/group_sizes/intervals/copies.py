"""Releasing a release again: possible truths drawn from the released tables, and a copy made from
each.

Everything that decides how far a release lies from its truth stands in its manifest, and a copy
takes it from there: the request and the split of the budget; how many entities of one unit count
(``contributions``) and how much each may add (``max_quantity``), which scale the noise; and whether
the numbers of groups are public or were estimated. Nothing confidential is read.

A possible truth gives each group of a leaf a size at random, with the shares that the release has
there. The released tables themselves will not do: mechanisms that average over sizes publish smooth
tables, which they reproduce better than rough ones. Where numbers of groups are private, those of a
possible truth spread around the released ones as these do around the true ones.

This is done twice. Truths drawn from the release itself would only have sizes that were released,
none above its largest. So possible truths are drawn from trial releases that were made of such
truths: these lie around the release as the release lies around its truth, with longer and shorter
tails. What noise and smoothing may have hidden is added at random (see
:mod:`tallytree.group_sizes.intervals.unseen`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tallytree.group_sizes.accuracy import data_like
from tallytree.group_sizes.estimate.siblings import differences_from_json
from tallytree.group_sizes.estimate.size_bins import doubts
from tallytree.group_sizes.intervals.heaps import heaped
from tallytree.group_sizes.intervals.unseen import (
    unlike_regions,
    with_heaps,
    with_hidden_entities,
)
from tallytree.group_sizes.manifest import bins_of, facts_of, scale_of
from tallytree.group_sizes.mechanisms.table import mechanism_named
from tallytree.group_sizes.plan.plan import SIZE_LOOK, plan_release
from tallytree.group_sizes.plan.shapes import (
    redrawn,
    redrawn_classes,
    scattered_tables,
    scattered_totals,
)
from tallytree.group_sizes.publish import release as release_counts
from tallytree.group_sizes.reconcile.totals import consistent_totals
from tallytree.group_sizes.release.people import PeopleCounts, people_counts
from tallytree.group_sizes.release.region import RegionCounts, Slot, slot_of, together
from tallytree.group_sizes.release.release import Release
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import AssumedCounts
from tallytree.model.count_of_counts import (
    CountsBySize,
    counts_from_runs,
    counts_on_all_levels,
    sum_over_regions,
)
from tallytree.model.people import NO_PEOPLE, dealt
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.privacy.accounting import noise_from_json
from tallytree.privacy.budget import written_fraction
from tallytree.privacy.guarantee import budget_of
from tallytree.releases.keeping import check_copies
from tallytree.releases.progress import Progress, silent
from tallytree.storage.folder import Manifest

UNKNOWN = int(np.iinfo(np.int64).max)
"""A bound that is not public."""

# Copies never share the noise of a release that was made with a small insecure seed, nor that of
# trials.
_FIRST_SEED, _FIRST_TRIAL_SEED = 1 << 40, 1 << 41
# Possible truths drawn from one trial release.
_TRUTHS_PER_TRIAL = 2


@dataclass(frozen=True, eq=False)
class PublicBounds:
    """What everyone knows about the truth, and no interval may leave.

    Attributes
    ----------
    most_groups
        Number of groups that each region has at most; ``UNKNOWN`` where no total is public.
    max_size
        Size that no group exceeds; ``UNKNOWN`` where none is public.
    """

    most_groups: IntArray
    max_size: int


def public_bounds(release: Release) -> PublicBounds:
    """What the manifest declares public about numbers of groups and sizes."""
    totals = release.manifest["totals"]
    most_groups = np.full(release.hierarchy.n_regions, UNKNOWN)
    if totals["source"] == "public":
        most_groups = (
            release.n_groups
            if totals["kept"] == "every region"
            else np.full_like(most_groups, release.n_groups[0])
        )
    max_size = release.manifest["mechanism"].get("max_size")
    if release.classes is not None:  # sizes in classes stand for the smallest one of theirs
        max_size = release.classes.lows[-1]
    return PublicBounds(most_groups, UNKNOWN if max_size is None else int(max_size))


@dataclass(frozen=True, eq=False)
class Copies:
    """A release, possible truths drawn from it, and a copy made from each by releasing it again.

    Of a release with attributes they hold every slot of every region. ``people`` are those of every
    truth and its copy.
    """

    release: Release
    truths: tuple[CountsBySize, ...]
    copies: tuple[CountsBySize, ...]
    people: tuple[tuple[PeopleCounts, PeopleCounts], ...] = ()

    def region(
        self, path: str | Sequence[str], where: Sequence[str] = ()
    ) -> tuple[RegionCounts, list[tuple[RegionCounts, RegionCounts]]]:
        """One region, or several added up, in the release, and in every possible truth and its
        copy; of groups with some values of attributes, or of all.
        """
        paths = [path] if isinstance(path, str) else path
        slot = Slot(self.release.lattice.n_slots, slot_of(self.release.attributes, where))

        def at(counts: CountsBySize) -> RegionCounts:
            return together(self.release.hierarchy, counts, paths, self.release.size_names, slot)

        released = self.release.regions(paths, where)
        return released, [(at(truth), at(copy)) for truth, copy in zip(self.truths, self.copies)]

    def __repr__(self) -> str:
        return f"Copies({len(self.copies)} of {self.release!r})"


def copy_release(
    release: Release, *, copies: int = 40, seed: int = 0, progress: Progress = silent
) -> Copies:
    """Release a release again, as its manifest says it was made.

    The seed only makes intervals repeatable; no privacy depends on it, since a release is public.
    Half as many trial releases are made as copies.
    """
    check_copies(copies)
    options = _options(release)
    truths, made, people = [], [], []
    trial = release
    for number in range(copies):
        progress(number, copies, "simulating the release")
        if number % _TRUTHS_PER_TRIAL == 0:
            trial_seed = _FIRST_TRIAL_SEED + seed + number
            trial_options = replace(options, insecure_seed=trial_seed)
            trial = release_counts(_possible_truth(release, seed=trial_seed), trial_options)
        own_seed = _FIRST_SEED + seed + number
        possible = _possible_truth(trial, seed=own_seed, of_trial=True)
        copy = release_counts(possible, replace(options, insecure_seed=own_seed))
        if possible.cell_counts is not None and copy.margins is not None:
            truths.append(release.lattice.margins(possible.cell_counts))
            made.append(copy.margins)
        else:
            truths.append(counts_on_all_levels(release.hierarchy, possible.leaf_counts))
            made.append(copy.counts)
        if copy.people is not None and possible.entity_counts is not None:
            cells = release.lattice.sums(
                possible.public.people.family(release.lattice), possible.entity_counts
            )
            people.append(
                (people_counts(possible.public.people, release.lattice, cells), copy.people)
            )
    return Copies(release, tuple(truths), tuple(made), tuple(people))


def _options(release: Release) -> ReleaseOptions:
    """What was asked for, with the split of the budget over levels that came of it.

    A split planned from a noisy look would come out otherwise in a copy, and the noise of every
    level with it.
    """
    manifest = release.manifest
    options, mechanism = dict(manifest["request"]), manifest["mechanism"]
    if mechanism["name"] == "adaptive" or "chosen" in mechanism:
        options["budget"] = [level["share"] for level in manifest["privacy"]["levels"]]
    if "chosen" in mechanism:
        # Nothing is chosen anew: a copy has what the look at bins of sizes left of the budget.
        options |= _without_size_look(manifest) | {"mechanism": mechanism["name"]}
    return ReleaseOptions.told(options)


def _without_size_look(manifest: Manifest) -> dict[str, Any]:
    """The budget without the part of the look that chose the mechanism; bins of sizes look again
    themselves, with the same part.
    """
    if manifest["mechanism"]["name"] != "adaptive":
        return {}
    budget = budget_of(manifest["privacy"])
    looks = [query for query in manifest["privacy"]["side_queries"] if query["query"] == SIZE_LOOK]
    rest = budget.total - sum(written_fraction(look[budget.symbol]) for look in looks)
    names = {"epsilon": None, "rho": None, "delta": None, "definition": budget.definition}
    return {**names, budget.symbol: str(rest)}


def _possible_truth(release: Release, *, seed: int, of_trial: bool = False) -> AssumedCounts:
    """Data that a release might have been made of; of a trial with all that it may have hidden."""
    assumed = data_like(release)
    if assumed.entity_counts is not None:
        bare = replace(
            assumed, public=replace(assumed.public, people=NO_PEOPLE), entity_counts=None
        )
        sizes = _possible_sizes(release, bare, seed=seed, of_trial=of_trial)
        return _with_people(sizes, release, seed=seed)
    return _possible_sizes(release, assumed, seed=seed, of_trial=of_trial)


def _with_people(sizes: AssumedCounts, release: Release, *, seed: int) -> AssumedCounts:
    """The same with classes of its entities, drawn with the shares that the release has in each
    cell.
    """
    assert release.people is not None
    lattice, people = release.lattice, release.people.people
    entities = (sizes.leaf_counts if sizes.cell_counts is None else sizes.cell_counts).n_entities()
    drawn = redrawn_classes(
        release.people.cells, lattice.sums(people.family(lattice), entities), seed=seed
    )
    row_of = lattice.rows_of_cells(people.family(lattice))
    return replace(
        sizes,
        public=replace(sizes.public, people=people),
        entity_counts=dealt(entities, drawn, row_of),
    )


def _possible_sizes(
    release: Release, assumed: AssumedCounts, *, seed: int, of_trial: bool
) -> AssumedCounts:
    """The same of sizes alone."""
    open_facts = release.manifest["mechanism"].get("fit", {})
    leans = "told_apart" in open_facts

    def drawn(shares: CountsBySize, n_groups: IntArray) -> CountsBySize:
        if leans and of_trial:
            shares = unlike_regions(shares, release.hierarchy, seed=seed)
        sizes = redrawn(shares, n_groups, seed=seed)
        return _with_unseen(release, sizes, open_facts, seed, of_trial) if leans else sizes

    if assumed.cell_counts is not None:
        n_cells = assumed.public.attributes.n_cells
        cells = drawn(assumed.cell_counts, assumed.cell_counts.n_groups())
        cells = _in_heaps(release, cells, seed=seed)
        leaves = sum_over_regions(
            cells, np.arange(cells.n_regions) // n_cells, cells.n_regions // n_cells
        )
        return replace(assumed, leaf_counts=leaves, n_groups=leaves.n_groups(), cell_counts=cells)
    if "bins" in release.manifest["mechanism"]:
        leaves = _in_heaps(release, _possible_bins(release, seed=seed), seed=seed)
    elif assumed.public.groups_public:
        leaves = drawn(assumed.leaf_counts, assumed.n_groups)
    else:
        leaves = drawn(_with_shares_everywhere(release), _possible_totals(release, seed=seed))
    return replace(assumed, leaf_counts=leaves, n_groups=leaves.n_groups())


def _with_unseen(
    release: Release, sizes: CountsBySize, open_facts: dict[str, Any], seed: int, of_trial: bool
) -> CountsBySize:
    """Sizes with the entities that only sums of noisy rows show, and of a trial with heaps where
    there may be some, as far as a bound on sizes allows.
    """
    entities, std = open_facts["hidden"]
    found = with_hidden_entities(sizes, open_facts["told_apart"], (entities, std), seed=seed)
    if of_trial and open_facts["heaped"]:
        levels = release.manifest["privacy"]["levels"]
        top = next(level for level in levels if level["share"] != "0")
        found = with_heaps(found, open_facts["told_apart"], noise_from_json(top).std, seed=seed)
    # Sizes in classes are numbers of classes here.
    classes = release.classes
    bound = public_bounds(release).max_size if classes is None else classes.n_classes - 1
    return found if bound == UNKNOWN else found.between(0, bound)


def _in_heaps(release: Release, counts: CountsBySize, *, seed: int) -> CountsBySize:
    """The same where values are counted, which lie in heaps more often than sizes of groups do."""
    if scale_of(release.manifest) is None:
        return counts
    root = release.counts.regions(slice(0, 1))
    return heaped(counts, root, bins_of(release.manifest), seed=seed)


def _possible_bins(release: Release, *, seed: int) -> CountsBySize:
    """Groups by size of the leaves, where bins of sizes were measured: as many in each bin as may
    truly be there.

    Estimates of regions lean on those above them, so a truth drawn from their shares alone would
    have regions more alike than they are, and copies of it would lie nearer to it. How far they
    differ is what the release found; sizes within a bin are drawn with the shares of the release.
    """
    tree, facts = release.hierarchy, release.manifest["mechanism"]
    bins = bins_of(release.manifest)
    table = bins.table_of(release.counts)
    variances = [noise_from_json(level).variance for level in release.manifest["privacy"]["levels"]]
    found = facts["fit"]["differences"]
    differences = [differences_from_json(of_level) for of_level in found]
    drawn = scattered_tables(
        tree, table, doubts(tree, table, variances, differences, bins), seed=seed
    )
    leaves = release.counts.regions(tree.level_slice(tree.n_levels - 1))
    if release.manifest["totals"]["source"] == "public":
        drawn = _with_row_sums(drawn, leaves.n_groups())
    # Bins of leaves as regions of their own, so that sizes are drawn within each.
    cell = leaves.region_of_run() * bins.n_bins + bins.bin_of(leaves.size)
    cells, within = np.unique(cell, return_inverse=True)
    of_cells = counts_from_runs(within, leaves.size, leaves.count, len(cells))
    sizes = redrawn(of_cells, drawn.ravel()[cells], seed=seed)
    leaf = cells[sizes.region_of_run()] // bins.n_bins
    return counts_from_runs(leaf, sizes.size, sizes.count, tree.n_leaves)


def _with_row_sums(table: IntArray, sums: IntArray) -> IntArray:
    """Whole numbers in proportion to each row of a table, with these sums; an empty row has all in
    its first column.
    """
    cumulative = np.cumsum(table, axis=1).astype(np.float64)
    share = cumulative / np.maximum(cumulative[:, -1:], 1.0)
    share[cumulative[:, -1] == 0] = 1.0
    scaled = np.rint(share * sums[:, None]).astype(np.int64)
    return np.diff(scaled, axis=1, prepend=0)


def _possible_totals(release: Release, *, seed: int) -> IntArray:
    """Numbers of groups of the leaves as far from the released ones as these are from the truth.

    The released totals, with noise like that of the release once more, made to add up in the same
    way. A normal law does for the noise: only its spread matters here, the copies draw the real
    one.
    """
    tree = release.hierarchy
    facts = facts_of(release.manifest, tree)
    asked = plan_release(ReleaseOptions.told(release.manifest["request"]), facts)
    plan = mechanism_named(asked.mechanism).settle(asked, facts, release.manifest).plan
    noises = [query.noise for query in plan.group_totals]
    std = np.array([noise.std for noise in noises])[tree.level_of]
    noisy = scattered_totals(release.n_groups, std, seed=seed)
    return consistent_totals(tree, noisy, [noise.variance for noise in noises])[
        tree.level_slice(tree.n_levels - 1)
    ]


def _with_shares_everywhere(release: Release) -> CountsBySize:
    """The released counts of the leaves; a leaf without groups has those of the next region above
    that has some.
    """
    tree = release.hierarchy
    like = np.arange(tree.n_regions)
    empty = release.counts.n_groups() == 0
    for level in range(1, tree.n_levels):
        here = np.arange(tree.n_regions)[tree.level_slice(level)]
        like[here] = np.where(empty[here], like[tree.parent[here]], here)
    like = like[tree.level_slice(tree.n_levels - 1)]
    lengths = np.diff(release.counts.offsets)[like]
    first = np.repeat(
        release.counts.offsets[like] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths
    )
    runs = first + np.arange(lengths.sum())
    region = np.repeat(np.arange(len(like)), lengths)
    return counts_from_runs(
        region, release.counts.size[runs], release.counts.count[runs], len(like)
    )
