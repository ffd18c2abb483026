"""Releasing group sizes: plan, measure, estimate, reconcile, release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.manifest import (
    facts_of,
    group_sizes_manifest,
    mechanism_of,
    people_of,
    size_names_of,
    with_fit,
    with_split,
)
from tallytree.group_sizes.measure.people import measure_people
from tallytree.group_sizes.measure.views import altered_by_bounds
from tallytree.group_sizes.mechanisms.mechanism import Measured, Mechanism, Settled
from tallytree.group_sizes.mechanisms.table import mechanism_named
from tallytree.group_sizes.mechanisms.turns import what_answers_leave_open
from tallytree.group_sizes.noisy import NoisyCounts
from tallytree.group_sizes.plan.memory import cells_per_level, check_memory
from tallytree.group_sizes.plan.plan import Plan, plan_release
from tallytree.group_sizes.reconcile.people import counted_people, whole_people
from tallytree.group_sizes.release.noisy_tables import measured_tables, noisy_from_table
from tallytree.group_sizes.release.people import people_counts
from tallytree.group_sizes.release.release import Release, load_release, with_margins
from tallytree.group_sizes.release.tables import cell_groups_from_table, regions_of_folder
from tallytree.group_sizes.release.written import WrittenRelease, WrittenTables
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import (
    CountsBySize,
    counts_on_all_levels,
    sum_over_regions,
)
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.model.people import People
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.options.groups import Saving
from tallytree.options.spelled import spelled
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.keeping import (
    Keeping,
    PaidNoise,
    Target,
    check_copies,
    paid_noise,
    released,
)
from tallytree.releases.progress import Progress, by_work, silent
from tallytree.releases.published import NO_MEASUREMENTS
from tallytree.releases.region_tables import regions_reader
from tallytree.storage.folder import Folder, Manifest
from tallytree.storage.memory import give_back
from tallytree.storage.parts import Parts


class HeldElsewhere(Protocol):
    """Exact counts that other machines hold, and that are measured there; see
    :mod:`tallytree.spark`.
    """

    @property
    def public(self) -> PublicFacts:
        """What is public about them."""

    @property
    def hierarchy(self) -> Hierarchy:
        """Which regions there are."""

    @property
    def n_groups(self) -> IntArray:
        """Groups per leaf, where they are public."""

    def check_plan(self, plan: Plan) -> None:
        """Refuse, before any budget is spent, a plan that cannot be carried out there."""

    def carry_out(
        self, plan: Plan, stream: KeyStream, progress: Progress
    ) -> tuple[Plan, NoisyCounts, CountsBySize]:
        """Measure and reconcile; the plan with the split that was chosen, the measurements, and the
        released counts by size of the leaves.
        """

    def carry_out_in(
        self,
        folder: Path,
        plan: Plan,
        stream: KeyStream,
        measured: Callable[[Plan, IntArray, Parts], None],
        progress: Progress,
    ) -> WrittenTables | None:
        """The same with tables that are written there, in part files in a folder; None where that
        cannot be done.

        ``measured`` is told the plan, the numbers of groups and the parts of the noisy answers as
        soon as all are written.
        """

    def forget(self) -> None:
        """Drop copies of exact counts that other machines keep: called when a release ends, however
        it ends.
        """


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ReleaseKeywords(ReleaseOptions, Saving):
    """The keywords of :func:`release`: its options, where the release goes, and what is neither."""

    intervals: int = 0
    progress: Progress = silent


@spelled(ReleaseKeywords)
def release(
    counts: ConfidentialCounts | HeldElsewhere,
    options: ReleaseOptions,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    noisy: bool = True,
    intervals: int = 0,
    progress: Progress = silent,
) -> Release:
    """Release how many groups have each size, in every region, with a differential privacy
    guarantee.

    Parameters
    ----------
    counts
        Exact counts from :func:`tallytree.read`.
    options
        How to release; may be spelled as keywords, ``release(counts, epsilon=1)``.
    out
        Folder to write, claimed before anything is paid; None for a release that stays in memory,
        which no account pays for. What a run that died has paid for and measured is kept beside it:
        the same call, or :func:`tallytree.resume`, goes on with it and pays nothing more.
    overwrite
        Replace a release that is already there.
    noisy
        Write the raw noisy measurements too.
    intervals
        Add standard errors and intervals, from simulating the release this often (40, say); 0
        leaves them out.
    progress
        Called at each step.

    Returns
    -------
    Release
        Nonnegative integers; children add up to parents; group totals hold.

    Examples
    --------
    >>> release = tt.release(counts, epsilon=1)
    >>> release.region("US").n_groups
    4
    """

    def make(keeping: Keeping) -> Release | WrittenRelease:
        return make_release(counts, options, keeping, progress)

    made = released(options, Target(out, overwrite, noisy, intervals), make, load_release)
    return made.loaded if isinstance(made, WrittenRelease) else made


def make_release(
    counts: ConfidentialCounts | HeldElsewhere,
    options: ReleaseOptions,
    keeping: Keeping,
    progress: Progress = silent,
) -> Release | WrittenRelease:
    """Plan, pay, measure and estimate. Where other machines hold the counts of a release to a
    folder, they write their tables into it, in parts.
    """
    _refuse_tables(counts)
    if keeping.intervals:
        check_copies(keeping.intervals)
    made = _made(counts, options, keeping, progress)
    # Whoever is told of intervals writes no parts, for they go into the tables.
    if not keeping.intervals or isinstance(made, WrittenRelease):
        return made
    from tallytree.group_sizes.intervals.intervals import (
        with_intervals,
    )  # which makes releases itself

    return with_intervals(made, copies=keeping.intervals, progress=progress)


def make_counts(
    counts: ConfidentialCounts,
    options: ReleaseOptions,
    keeping: Keeping,
    progress: Progress = silent,
) -> Release:
    """The same of counts that this machine holds, without intervals of single counts, whatever is
    kept of them.
    """
    made = _made(counts, options, keeping, progress)
    assert isinstance(made, Release)
    return made


def _made(
    counts: ConfidentialCounts | HeldElsewhere,
    options: ReleaseOptions,
    keeping: Keeping,
    progress: Progress,
) -> Release | WrittenRelease:
    try:
        return _release(counts, options, keeping, progress)
    finally:
        if not isinstance(counts, ConfidentialCounts):
            counts.forget()


def _refuse_tables(counts: object) -> None:
    """Of a table nobody has said yet what its rows are."""
    if not isinstance(counts, ConfidentialCounts) and not hasattr(counts, "carry_out"):
        library, kind = type(counts).__module__.split(".")[0], type(counts).__name__
        raise RequestError(
            f"release takes the counts that tallytree.read gives; got a {library}.{kind}. Read it "
            "first, to say what "
            'a row is and what is public: counts = tallytree.read(table, group="household", '
            'levels=["state"], public="groups").'
        )


def _release(
    counts: ConfidentialCounts | HeldElsewhere,
    options: ReleaseOptions,
    keeping: Keeping,
    progress: Progress,
) -> Release | WrittenRelease:
    options = _bounded_by_classes(options, counts.public)
    if not isinstance(counts, ConfidentialCounts) and options.mechanism is None:
        options = _staircases(options)
    facts = counts.public
    plan = plan_release(options, facts)
    mechanism = mechanism_named(plan.mechanism)
    mechanism.check()
    manifest = group_sizes_manifest(plan, facts, secure=options.insecure_seed is None)
    if not isinstance(counts, ConfidentialCounts):
        return _release_elsewhere(counts, options, plan, manifest, keeping, progress)
    cells: Sequence[int] = ()
    if facts.groups_public:
        totals = counts.hierarchy.sum_from_leaves(counts.n_groups)
        cells = cells_per_level(plan, facts, totals)
        check_memory(plan, cells)
        progress = _by_work(progress, cells, in_turns=mechanism.traits.in_turns)
    with paid_noise(
        keeping,
        manifest,
        options.insecure_seed,
        read=counts,
        n_answers=int(sum(cells)),
        tell=altered_by_bounds(counts, plan) if options.tell_owner else None,
    ) as paid:
        measured = mechanism.measure(counts, plan, facts, paid.stream, progress)
        people = measure_people(counts, measured.settled.plan, paid.stream)
        measured = measured.with_people(people)
        manifest = mechanism.describe(paid.manifest, measured.settled, facts)
        paid.measured(manifest, measured_tables(facts.lattice, measured.noisy, facts.counted))
    made = _estimated(mechanism, measured, facts, manifest, progress)
    give_back()  # what was measured needs more room than the release
    return made


def _by_work(progress: Progress, cells: Sequence[int], *, in_turns: bool) -> Progress:
    """Progress by the predicted work: estimating takes about twice as long as measuring, level by
    level or afterwards.
    """
    work = [(n_cells, 2 * n_cells) for n_cells in cells]
    steps = work if in_turns else zip(*work)
    return by_work(progress, [step for part in steps for step in part])


def _estimated(
    mechanism: Mechanism,
    measured: Measured,
    facts: PublicFacts,
    manifest: Manifest,
    progress: Progress = silent,
) -> Release:
    """The release that follows from everything measured: post-processing only."""
    estimated = mechanism.estimate(measured, facts, progress)
    manifest = with_fit(manifest, estimated.facts)
    plan = measured.settled.plan
    return put_together(facts.lattice, plan, estimated.noisy, estimated.leaves, manifest)


def _release_elsewhere(
    counts: HeldElsewhere,
    options: ReleaseOptions,
    plan: Plan,
    manifest: Manifest,
    keeping: Keeping,
    progress: Progress,
) -> Release | WrittenRelease:
    """The same with counts that other machines hold, measure and reconcile."""
    if options.tell_owner:
        raise RequestError(
            "tell_owner= (--tell-owner) counts what one machine has read; leave it out on Spark."
        )
    counts.check_plan(plan)
    lattice, mechanism = counts.public.lattice, mechanism_named(plan.mechanism)
    with paid_noise(keeping, manifest, options.insecure_seed, read=None) as paid:
        written = _written_there(counts, plan, paid, progress)
        if written is not None:
            return written
        plan, noisy, leaf_counts = counts.carry_out(plan, paid.stream, progress)
        manifest = mechanism.describe(paid.manifest, Settled(plan), counts.public)
        paid.measured(manifest, measured_tables(lattice, noisy))
    return put_together(lattice, plan, noisy, leaf_counts, manifest)


def _written_there(
    counts: HeldElsewhere, plan: Plan, paid: PaidNoise, progress: Progress
) -> WrittenRelease | None:
    """A release whose tables the machines that hold its counts write themselves; None where they
    cannot.
    """
    folder = paid.folder_for_parts()
    work = paid.keeping.work
    if folder is None or work is None:
        return None
    hierarchy = counts.public.hierarchy

    def measured(split: Plan, n_groups: IntArray, noisy: Parts) -> None:
        regions = regions_reader(hierarchy, n_groups)
        paid.measured(
            with_split(paid.manifest, split, counts.public), {"regions.parquet": regions}, noisy
        )

    written = counts.carry_out_in(folder, plan, paid.stream, measured, progress)
    if written is None:
        return None
    manifest = with_split(paid.manifest, written.plan, counts.public)
    return WrittenRelease(hierarchy, manifest, written, work.target)


def _staircases(options: ReleaseOptions) -> ReleaseOptions:
    """The default where other machines hold the counts, which measure no bins of sizes."""
    return options if options.view is not None else replace(options, mechanism="adaptive")


def _bounded_by_classes(options: ReleaseOptions, facts: PublicFacts) -> ReleaseOptions:
    """Numbers of classes have a public bound: that of the last class. So have sizes of which so
    many entities count.
    """
    if facts.unit.group and facts.people:
        largest = facts.unit.contributions
        if options.max_size not in (None, "auto", largest):
            raise RequestError(
                f"Of each group {largest} entities count (contributions=), so leave out max_size=."
            )
        return replace(options, max_size=largest)
    if facts.classes is None:
        return options
    largest = facts.classes.n_classes - 1
    if options.min_size is not None:
        raise RequestError("Sizes are counted in classes, the first of which says the least size.")
    if options.max_size not in (None, "auto", largest):
        raise RequestError(
            "Sizes are counted in classes, which bound them already; leave out max_size=."
        )
    return replace(options, max_size=largest)


def put_together(
    lattice: Lattice, plan: Plan, noisy: NoisyCounts, leaf_counts: CountsBySize, manifest: Manifest
) -> Release:
    """The release of consistent counts of the leaves, which are by attributes where there are some,
    and of their people.
    """
    # Estimates know of no least size, and views of sizes of no bound: groups beyond are taken to it.
    named = size_names_of(manifest)
    leaf_counts = leaf_counts.between(plan.least_size, None if named is None else named.last_number)
    if plan.levels[-1].view == "staircase":
        root = sum_over_regions(leaf_counts, np.zeros(leaf_counts.n_regions, dtype=np.int64), 1)
        manifest = with_fit(manifest, what_answers_leave_open(lattice, plan, noisy, root))
    made = _sizes_together(lattice, plan, noisy, leaf_counts, manifest)
    people = people_of(manifest)
    if not people:
        return made
    groups = people.groups(lattice)
    known = (
        groups_known(lattice, noisy, people) if manifest["totals"]["source"] == "public" else None
    )
    entities = lattice.sums(people.family(lattice), leaf_counts.n_entities())
    whole = whole_people(groups, counted_people(groups, noisy.people, known), entities)
    return replace(made, people=people_counts(people, lattice, whole))


def groups_known(lattice: Lattice, noisy: NoisyCounts, people: People) -> IntArray:
    """Numbers of groups of the finest cells that people are counted in."""
    of_cells = noisy.cell_groups
    if of_cells is None:
        of_cells = noisy.n_groups[lattice.hierarchy.level_slice(lattice.hierarchy.n_levels - 1)]
    return lattice.sums(people.family(lattice), of_cells)


def _sizes_together(
    lattice: Lattice, plan: Plan, noisy: NoisyCounts, leaf_counts: CountsBySize, manifest: Manifest
) -> Release:
    hierarchy = lattice.hierarchy
    if noisy.cell_groups is not None:
        bare = Release(
            hierarchy=hierarchy,
            counts=leaf_counts,
            n_groups=noisy.n_groups,
            manifest=manifest,
            noisy=noisy,
        )
        return with_margins(lattice, lattice.margins(leaf_counts), bare, noisy.cell_groups)
    released = counts_on_all_levels(hierarchy, leaf_counts)
    # With the root's total alone, the totals of other regions are not taken as public: only
    # released ones go out.
    root_only = np.append(noisy.n_groups[:1], released.n_groups()[1:])
    n_groups = noisy.n_groups if plan.totals == "regions" else root_only
    return Release(
        hierarchy=hierarchy, counts=released, n_groups=n_groups, manifest=manifest, noisy=noisy
    )


def estimate_group_sizes(
    folder: Folder, *, norm: int | None = None, merge: str | None = None
) -> Release:
    """A release from the raw measurements of a folder, estimated again: post-processing only.

    ``norm`` and ``merge`` replace those of the request, where its mechanism has them; what was
    measured and its split stay.
    """
    manifest = folder.manifest
    hierarchy, n_groups = regions_of_folder(folder)
    facts = facts_of(manifest, hierarchy)
    changed: dict[str, Any] = {
        name: value for name, value in (("norm", norm), ("merge", merge)) if value is not None
    }
    plan = plan_release(ReleaseOptions.told({**manifest["request"], **changed}), facts)
    mechanism = mechanism_named(plan.mechanism)
    if changed and mechanism.traits.view is not None:
        raise RequestError(
            f"{plan.mechanism!r} has no {' or '.join(changed)} to choose; leave it out."
        )
    if not folder.has("noisy.parquet"):
        raise RequestError(NO_MEASUREMENTS)
    settled, lattice = mechanism.settle(plan, facts, manifest), facts.lattice
    cell_groups = None
    if lattice.attributes and facts.groups_public:
        cell_groups = cell_groups_from_table(lattice, folder.table("cells.parquet"))
    answers = folder.table("noisy.parquet", names=("region", "query"))
    noisy = noisy_from_table(lattice, settled.plan, answers, n_groups, cell_groups)
    if changed:
        manifest = {
            **manifest,
            "request": plan.request.to_json(),
            "mechanism": manifest["mechanism"] | mechanism_of(plan, facts),
        }
    return _estimated(mechanism, Measured(settled, noisy), facts, manifest)
