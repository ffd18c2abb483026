"""Releasing group sizes: plan, measure, estimate, reconcile, release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.adaptive import estimate_again, run_adaptive
from tallytree.group_sizes.estimate.runs import Estimate
from tallytree.group_sizes.estimate.views import estimate_view
from tallytree.group_sizes.manifest import (
    bins_of,
    facts_of,
    group_sizes_manifest,
    mechanism_of,
    people_of,
    size_names_of,
    with_bins,
    with_differences,
    with_fit,
    with_split,
)
from tallytree.group_sizes.measure.levels import (
    measure_group_totals,
    measure_largest_size,
    measure_level,
)
from tallytree.group_sizes.measure.people import measure_people
from tallytree.group_sizes.plan.memory import cells_per_level, check_memory, most_groups
from tallytree.group_sizes.plan.plan import (
    Plan,
    PublicFacts,
    plan_release,
    with_bins_asked,
    with_shares,
)
from tallytree.group_sizes.reconcile.matching import bottom_up, match_top_down
from tallytree.group_sizes.reconcile.people import counted_people, whole_people
from tallytree.group_sizes.reconcile.totals import consistent_totals
from tallytree.group_sizes.release.noisy_tables import measured_tables, noisy_from_table
from tallytree.group_sizes.release.people import people_counts
from tallytree.group_sizes.release.release import Release, load_release, with_margins
from tallytree.group_sizes.release.tables import (
    cell_groups_from_table,
    regions_of_folder,
    regions_reader,
)
from tallytree.group_sizes.release.written import WrittenRelease, WrittenTables
from tallytree.group_sizes.size_bins import MeasuredBins, estimate_bins, measure_bins
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Altered, ConfidentialCounts, Description
from tallytree.model.count_of_counts import CountsBySize, counts_from_dense, counts_on_all_levels
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.model.people import People
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.options.groups import Saving
from tallytree.options.spelled import spelled
from tallytree.papers.fioretto2021.dense_tables import check_solver, fit_dense_tables
from tallytree.privacy.budget import written_fraction
from tallytree.privacy.noisy import NoisyCounts, NoisyLevel
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
from tallytree.storage.folder import Folder, Manifest
from tallytree.storage.memory import give_back
from tallytree.storage.parts import Parts


class HeldElsewhere(Description, Protocol):
    """Exact counts that other machines hold, and that are measured there; see
    :mod:`tallytree.spark`.
    """

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
    try:
        made = _release(counts, options, keeping, progress)
    finally:
        if not isinstance(counts, ConfidentialCounts):
            counts.forget()
    # Whoever is told of intervals writes no parts, for they go into the tables.
    if not keeping.intervals or isinstance(made, WrittenRelease):
        return made
    from tallytree.group_sizes.intervals.intervals import (
        with_intervals,
    )  # which makes releases itself

    return with_intervals(made, copies=keeping.intervals, progress=progress)


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
    insecure_seed = options.insecure_seed
    options = _bounded_by_classes(options, counts)
    facts = facts_about(counts)
    plan = plan_release(options, facts)
    check_solver(plan.mechanism)
    cells: Sequence[int] = ()
    if not isinstance(counts, ConfidentialCounts):
        counts.check_plan(plan)
    elif counts.groups_public:
        totals = counts.hierarchy.sum_from_leaves(counts.n_groups)
        cells = cells_per_level(plan, facts, totals)
        check_memory(plan, cells)
        # Estimating takes about twice as long as measuring; the adaptive mechanism does both level
        # by level.
        work = [(n_cells, 2 * n_cells) for n_cells in cells]
        in_turns = work if plan.mechanism == "adaptive" else zip(*work)
        progress = by_work(progress, [step for steps in in_turns for step in steps])
    manifest = group_sizes_manifest(plan, counts, secure=insecure_seed is None)
    tell = _altered(counts, plan) if options.tell_owner else None
    read, n_answers = counts if isinstance(counts, ConfidentialCounts) else None, int(sum(cells))
    with paid_noise(
        keeping, manifest, insecure_seed, read=read, n_answers=n_answers, tell=tell
    ) as paid:
        stream, manifest = paid.stream, paid.manifest
        people: tuple[NoisyLevel, ...] = ()

        def measured(split: Plan, answers: NoisyCounts) -> None:
            nonlocal people
            assert isinstance(counts, ConfidentialCounts)
            people = measure_people(counts, plan, stream)
            whole = replace(answers, people=people)
            paid.measured(
                with_split(manifest, split, counts), measured_tables(facts.lattice, whole)
            )

        if not isinstance(counts, ConfidentialCounts):
            written = _written_there(counts, plan, paid, progress)
            if written is not None:
                return written
            plan, noisy, leaf_counts = counts.carry_out(plan, stream, progress)
            manifest = (
                with_split(manifest, plan, counts) if plan.mechanism == "adaptive" else manifest
            )
            paid.measured(manifest, measured_tables(facts.lattice, noisy))
        elif plan.mechanism == "adaptive":
            run = run_adaptive(
                counts, plan, facts, _group_totals(counts, plan, stream), stream, measured, progress
            )
            run = run.with_people(people)
            noisy, manifest = run.noisy, with_split(manifest, run.plan, counts)
        elif plan.mechanism == "size-bins":
            bins = measure_bins(counts, plan, facts, stream, progress)
            people = measure_people(counts, plan, stream)
            manifest = with_bins(manifest, bins.plan, counts, bins.bins)
            paid.measured(
                manifest, measured_tables(facts.lattice, replace(bins.noisy(facts), people=people))
            )
        else:
            noisy = measure_all(counts, plan, stream, progress)
            paid.measured(manifest, measured_tables(facts.lattice, noisy))
    if isinstance(counts, ConfidentialCounts):
        if plan.mechanism == "adaptive":
            leaf_counts = run.leaf_counts(facts.lattice, facts.people)
            del run  # its tables need more room than the release
            give_back()
        elif plan.mechanism == "size-bins":
            found = estimate_bins(bins, facts, progress)
            noisy, leaf_counts = replace(found.noisy, people=people), found.leaf_counts
            manifest = with_differences(manifest, found.differences_json)
        else:
            leaf_counts, fit = reconcile(counts.hierarchy, plan, noisy, progress)
            manifest = with_fit(manifest, fit)
    return put_together(facts.lattice, plan, noisy, leaf_counts, manifest)


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
    hierarchy = counts.hierarchy

    def measured(split: Plan, n_groups: IntArray, noisy: Parts) -> None:
        regions = regions_reader(hierarchy, n_groups)
        paid.measured(with_split(paid.manifest, split, counts), {"regions.parquet": regions}, noisy)

    written = counts.carry_out_in(folder, plan, paid.stream, measured, progress)
    if written is None:
        return None
    manifest = with_split(paid.manifest, written.plan, counts)
    return WrittenRelease(hierarchy, manifest, written, work.target)


def _altered(counts: ConfidentialCounts | HeldElsewhere, plan: Plan) -> Altered:
    """What was done to values outside public bounds; sizes above a public bound are measured as if
    they were the bound.
    """
    if not isinstance(counts, ConfidentialCounts):
        raise RequestError(
            "tell_owner= (--tell-owner) counts what one machine has read; leave it out on Spark."
        )
    if plan.max_size is None or counts.classes is not None:
        return counts.altered
    own = counts.leaf_counts
    n_larger = int(own.count[own.size > plan.max_size].sum())
    return counts.altered.also(
        f"groups larger than {plan.max_size:,}, taken for that size", n_larger
    )


def _bounded_by_classes(options: ReleaseOptions, counts: Description) -> ReleaseOptions:
    """Numbers of classes have a public bound: that of the last class. So have sizes of which so
    many entities count.
    """
    if counts.unit.group and counts.people:
        largest = counts.unit.contributions
        if options.max_size not in (None, "auto", largest):
            raise RequestError(
                f"Of each group {largest} entities count (contributions=), so leave out max_size=."
            )
        return replace(options, max_size=largest)
    if counts.classes is None:
        return options
    largest = counts.classes.n_classes - 1
    if options.min_size is not None:
        raise RequestError("Sizes are counted in classes, the first of which says the least size.")
    if options.max_size not in (None, "auto", largest):
        raise RequestError(
            "Sizes are counted in classes, which bound them already; leave out max_size=."
        )
    return replace(options, max_size=largest)


def facts_about(counts: ConfidentialCounts | HeldElsewhere) -> PublicFacts:
    """What may be known about counts without paying for it."""
    return PublicFacts(
        counts.hierarchy,
        counts.groups_public,
        counts.max_quantity,
        counts.unit.contributions,
        whole_groups=bool(counts.unit.group),
        least_size=counts.least_size,
        attributes=counts.attributes,
        people=counts.people,
    )


def put_together(
    lattice: Lattice, plan: Plan, noisy: NoisyCounts, leaf_counts: CountsBySize, manifest: Manifest
) -> Release:
    """The release of consistent counts of the leaves, which are by attributes where there are some,
    and of their people.
    """
    # Estimates know of no least size, and views of sizes of no bound: groups beyond are taken to it.
    named = size_names_of(manifest)
    leaf_counts = leaf_counts.between(plan.least_size, None if named is None else named.last_number)
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
    changed = {
        name: value for name, value in (("norm", norm), ("merge", merge)) if value is not None
    }
    if changed and manifest["mechanism"]["name"] not in ("matching", "bottom-up"):
        raise RequestError(
            f"{manifest['mechanism']['name']!r} has no {' or '.join(changed)} to choose; leave it "
            "out."
        )
    plan = plan_release(ReleaseOptions.told({**manifest["request"], **changed}), facts)
    if plan.mechanism == "adaptive":
        plan = with_shares(
            plan,
            facts,
            [written_fraction(level["share"]) for level in manifest["privacy"]["levels"]],
        )
    if not folder.has("noisy.parquet"):
        raise RequestError(NO_MEASUREMENTS)
    answers = folder.table("noisy.parquet", names=("region", "query"))
    lattice = facts.lattice
    if plan.mechanism == "size-bins":
        bins = bins_of(manifest)
        plan = with_bins_asked(plan, facts, bins)
        given = noisy_from_table(lattice, plan, answers, n_groups, None)
        found = estimate_bins(MeasuredBins(plan, given.levels, bins), facts)
        noisy, manifest = (
            replace(found.noisy, people=given.people),
            with_differences(manifest, found.differences_json),
        )
        return put_together(lattice, plan, noisy, found.leaf_counts, manifest)
    cell_groups = (
        cell_groups_from_table(lattice, folder.table("cells.parquet"))
        if lattice.attributes
        else None
    )
    noisy = noisy_from_table(lattice, plan, answers, n_groups, cell_groups)
    fit: dict[str, Any] = {}
    if plan.mechanism == "adaptive":
        leaf_counts = estimate_again(lattice, plan, noisy).leaf_counts(lattice, facts.people)
    else:
        leaf_counts, fit = reconcile(hierarchy, plan, noisy)
    if changed:
        manifest = {
            **manifest,
            "request": plan.request.to_json(),
            "mechanism": manifest["mechanism"] | mechanism_of(plan),
        }
    return put_together(lattice, plan, noisy, leaf_counts, with_fit(manifest, fit))


def measure_all(
    counts: ConfidentialCounts, plan: Plan, stream: KeyStream, progress: Progress = silent
) -> NoisyCounts:
    """Take every measurement of a plan. The only step that reads confidential values."""
    n_groups = _group_totals(counts, plan, stream)
    max_size = plan.max_size
    if plan.largest_size is not None:
        max_size = min(measure_largest_size(counts, plan.largest_size, stream), plan.most_sizes)
    levels = []
    for level in plan.levels:
        progress(level.level, 2 * len(plan.levels), f"measuring {level.name}")
        here = counts.hierarchy.level_slice(level.level)
        levels.append(
            measure_level(counts, level, n_groups[here], max_size, stream, totals=plan.totals)
        )
    return NoisyCounts(n_groups, tuple(levels))


def _group_totals(counts: ConfidentialCounts, plan: Plan, stream: KeyStream) -> IntArray:
    """Number of groups of every region: public, or noisy and then made to add up."""
    if counts.groups_public:
        return counts.hierarchy.sum_from_leaves(counts.n_groups)
    return paid_totals(
        counts.hierarchy, plan, measure_group_totals(counts, plan.group_totals, stream)
    )


def paid_totals(hierarchy: Hierarchy, plan: Plan, noisy: IntArray) -> IntArray:
    """Numbers of groups that add up, from noisy ones of every region."""
    variances = [query.noise.variance for query in plan.group_totals]
    return consistent_totals(hierarchy, noisy, variances, most_groups=most_groups(plan))


def reconcile(
    hierarchy: Hierarchy, plan: Plan, noisy: NoisyCounts, progress: Progress = silent
) -> tuple[CountsBySize, dict[str, Any]]:
    """From noisy measurements to consistent counts by size of the leaves: post-processing only.

    The second value holds facts about the fit for the manifest.
    """

    def estimate(level: int) -> Estimate:
        progress(
            len(plan.levels) + level, 2 * len(plan.levels), f"estimating {plan.levels[level].name}"
        )
        here = hierarchy.level_slice(level)
        return estimate_view(plan.levels[level], noisy.levels[level], noisy.n_groups[here])

    match plan.mechanism:
        case "bottom-up":
            return bottom_up(estimate(hierarchy.n_levels - 1)), {}
        case "matching":
            estimates = [estimate(level) for level in range(hierarchy.n_levels)]
            return match_top_down(hierarchy, estimates, merge=plan.merge), {}
        case _:
            progress(
                len(plan.levels), 2 * len(plan.levels), f"fitting all levels ({plan.mechanism})"
            )
            fit = fit_dense_tables(hierarchy, plan, noisy)
            return counts_from_dense(
                fit.table[hierarchy.level_slice(hierarchy.n_levels - 1)]
            ), fit.facts
