"""Releasing group sizes: plan, measure, estimate, reconcile, release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tallytree.consistency.dense_tables import check_solver, fit_dense_tables
from tallytree.consistency.matching import bottom_up, match_top_down
from tallytree.consistency.totals import consistent_totals
from tallytree.estimate.runs import Estimate
from tallytree.estimate.views import estimate_view
from tallytree.measure.group_sizes import measure_group_totals, measure_largest_size, measure_level
from tallytree.measure.noisy import NoisyCounts
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import ConfidentialCounts, Description
from tallytree.model.count_of_counts import CountsBySize, counts_from_dense, counts_on_all_levels
from tallytree.model.hierarchy import Hierarchy
from tallytree.planning.memory import cells_per_level, check_memory
from tallytree.planning.plan import Plan, PublicFacts, Request, plan_release
from tallytree.privacy.budget import Definition
from tallytree.privacy.randomness import KeyStream
from tallytree.publish.adaptive import run_adaptive
from tallytree.publish.payment import Payment, pay, payment_from
from tallytree.publish.progress import Progress, by_work, silent
from tallytree.release.manifest import group_sizes_manifest, with_fit, with_split
from tallytree.release.release import Release


class HeldElsewhere(Description, Protocol):
    """Exact counts that other machines hold, and that are measured there; see :mod:`tallytree.distributed`."""

    def check_plan(self, plan: Plan) -> None:
        """Refuse, before any budget is spent, a plan that cannot be carried out there."""

    def carry_out(self, plan: Plan, stream: KeyStream, progress: Progress) -> tuple[NoisyCounts, CountsBySize]:
        """Measure and reconcile; the measurements, and the released counts by size of the leaves."""


def release(
    counts: ConfidentialCounts | HeldElsewhere,
    *,
    epsilon: object = None,
    rho: object = None,
    definition: Definition = "pure",
    mechanism: str | None = None,
    view: str | Sequence[str] | None = None,
    merge: str = "weighted",
    budget: str | Sequence[Any] = "auto",
    max_size: int | str | None = None,
    norm: int | None = None,
    totals: str | None = None,
    repair: bool = False,
    time_limit: float | None = None,
    goal: str | Sequence[str] = "balanced",
    insecure_seed: int | None = None,
    ledger: str | Payment | None = None,
    dataset: str | None = None,
    progress: Progress = silent,
) -> Release:
    """Release how many groups have each size, in every region, with a differential privacy guarantee.

    Parameters
    ----------
    counts
        Exact counts from :func:`tallytree.read`.
    epsilon, rho, definition
        The privacy loss: ``epsilon`` for ``definition="pure"``, ``rho`` for ``"zcdp"``. Taken exactly: 0.1 is one tenth.
    mechanism
        ``"adaptive"`` (default), which measures blocks of sizes that follow from earlier answers and suits sizes of any kind;
        ``"matching"`` (kuo2018, Algorithms 1 and 2; default where a view is named, beyond a million regions, and on Spark) or
        ``"bottom-up"``; or one of
        fioretto2021, which need dense tables of
        regions × sizes: ``"tree-dp"``, ``"tree-exact"``, ``"tree-relaxed"``, ``"tree-program"``, ``"cumulative-relaxed"``,
        ``"cumulative-dp"``, ``"cumulative-exact"``, ``"chain"``, ``"topdown"``.
    view
        What ``"matching"`` and ``"bottom-up"`` measure: ``"hybrid"`` (default), ``"cumulative"``, ``"sizes"`` or ``"naive"``;
        one name, or one per level, root first. Other mechanisms have their own.
    merge
        How the two estimates of a matched group are combined: ``"weighted"`` by variance, or ``"average"``.
    budget
        ``"equal"``, or one share per level, root first, adding up to 1. ``"auto"`` (default) lets ``"adaptive"`` plan the
        split from public numbers of groups and a first look at the root that takes 3 % of the budget; other mechanisms
        share equally. The manifest says what was chosen.
    max_size
        Public bound on the size of a group. Views that need one pay for an estimate with ``"auto"`` (default); ``"adaptive"``
        needs none, and releases no larger group where one is given.
    norm
        1 or 2: which distance the isotonic fits minimise; each view has its own default.
    totals
        Which public numbers of groups the release keeps: of all ``"regions"``, or of the ``"root"`` alone, as fioretto2021
        has it. ``"tree-dp"``, ``"tree-program"``, ``"cumulative-dp"`` and ``"chain"`` know only the second.
    repair
        ``"tree-relaxed"`` only: round so that everything adds up; without it that mechanism is refused.
    time_limit
        Seconds that a solver may take; the manifest says whether it proved its result optimal.
    goal
        What a planned split is for: ``"balanced"`` (default), ``"leaves"``, ``"top"``, ``"no-level-behind"`` (every level
        gets the same), or targets such as ``"state: emd<=50"``, one or several, that are met as far as the budget goes.
    insecure_seed
        For tests and experiments only: repeatable noise. The release is marked "not private".
    ledger, dataset
        Budget account that pays before any noise is drawn: address of the ledger and name of the account. A
        :class:`~tallytree.publish.payment.Payment` as ``ledger`` also carries an idempotency key.
    progress
        Called at each step.

    Returns
    -------
    Release
        Nonnegative integers; children add up to parents; group totals hold.
    """
    if mechanism is None and not isinstance(counts, ConfidentialCounts):
        mechanism = "matching"
    request = Request(
        epsilon, rho, definition, mechanism, view, merge, budget, max_size, norm, totals, repair, time_limit, goal
    )
    facts = PublicFacts(counts.hierarchy, counts.groups_public, counts.max_quantity, counts.contributions)
    plan = plan_release(request, facts)
    check_solver(plan.mechanism)
    if not isinstance(counts, ConfidentialCounts):
        counts.check_plan(plan)
    elif counts.groups_public:
        cells = cells_per_level(plan, facts, counts.hierarchy.sum_from_leaves(counts.n_groups))
        check_memory(plan, cells)
        # Estimating takes about twice as long as measuring; the adaptive mechanism does both level by level.
        work = [(n_cells, 2 * n_cells) for n_cells in cells]
        in_turns = work if plan.mechanism == "adaptive" else zip(*work)
        progress = by_work(progress, [step for steps in in_turns for step in steps])
    manifest = group_sizes_manifest(plan, counts, secure=insecure_seed is None)
    manifest = pay(payment_from(ledger, dataset), manifest)
    stream = KeyStream.from_system() if insecure_seed is None else KeyStream.from_insecure_seed(insecure_seed)
    if plan.mechanism == "adaptive" and isinstance(counts, ConfidentialCounts):
        try:
            run = run_adaptive(counts, plan, facts, _group_totals(counts, plan, stream), stream, progress)
        finally:
            stream.forget()
        noisy, leaf_counts, fit = run.noisy, run.leaf_counts, dict[str, Any]()
        manifest = with_split(manifest, run.plan, counts)
    else:
        noisy, leaf_counts, fit = _carry_out(counts, plan, stream, progress)
    released = counts_on_all_levels(counts.hierarchy, leaf_counts)
    return Release(
        hierarchy=counts.hierarchy,
        counts=released,
        # With the root's total alone, the totals of other regions are not taken as public: only released ones go out.
        n_groups=noisy.n_groups if plan.totals == "regions" else np.append(noisy.n_groups[:1], released.n_groups()[1:]),
        manifest=with_fit(manifest, fit),
        noisy=noisy,
    )


def _carry_out(
    counts: ConfidentialCounts | HeldElsewhere, plan: Plan, stream: KeyStream, progress: Progress
) -> tuple[NoisyCounts, CountsBySize, dict[str, Any]]:
    """Measure and reconcile; the key of the noise is forgotten as soon as the last draw is made, whatever happens."""
    try:
        if not isinstance(counts, ConfidentialCounts):
            return *counts.carry_out(plan, stream, progress), {}
        noisy = measure_all(counts, plan, stream, progress)
    finally:
        stream.forget()
    return noisy, *reconcile(counts.hierarchy, plan, noisy, progress)


def measure_all(counts: ConfidentialCounts, plan: Plan, stream: KeyStream, progress: Progress = silent) -> NoisyCounts:
    """Take every measurement of a plan. The only step that reads confidential values."""
    n_groups = _group_totals(counts, plan, stream)
    max_size = plan.max_size
    if plan.largest_size is not None:
        max_size = min(measure_largest_size(counts, plan.largest_size, stream), plan.most_sizes)
    levels = []
    for level in plan.levels:
        progress(level.level, 2 * len(plan.levels), f"measuring {level.name}")
        here = counts.hierarchy.level_slice(level.level)
        levels.append(measure_level(counts, level, n_groups[here], max_size, stream, totals=plan.totals))
    return NoisyCounts(n_groups, tuple(levels))


def _group_totals(counts: ConfidentialCounts, plan: Plan, stream: KeyStream) -> IntArray:
    """Number of groups of every region: public, or noisy and then made to add up."""
    if counts.groups_public:
        return counts.hierarchy.sum_from_leaves(counts.n_groups)
    noisy = measure_group_totals(counts, plan.group_totals, stream)
    return consistent_totals(counts.hierarchy, noisy, [query.noise.variance for query in plan.group_totals])


def reconcile(
    hierarchy: Hierarchy, plan: Plan, noisy: NoisyCounts, progress: Progress = silent
) -> tuple[CountsBySize, dict[str, Any]]:
    """From noisy measurements to consistent counts by size of the leaves: post-processing only.

    The second value holds facts about the fit for the manifest.
    """

    def estimate(level: int) -> Estimate:
        progress(len(plan.levels) + level, 2 * len(plan.levels), f"estimating {plan.levels[level].name}")
        here = hierarchy.level_slice(level)
        return estimate_view(plan.levels[level], noisy.levels[level], noisy.n_groups[here])

    match plan.mechanism:
        case "bottom-up":
            return bottom_up(estimate(hierarchy.n_levels - 1)), {}
        case "matching":
            estimates = [estimate(level) for level in range(hierarchy.n_levels)]
            return match_top_down(hierarchy, estimates, merge=plan.merge), {}
        case _:
            progress(len(plan.levels), 2 * len(plan.levels), f"fitting all levels ({plan.mechanism})")
            fit = fit_dense_tables(hierarchy, plan, noisy)
            return counts_from_dense(fit.table[hierarchy.level_slice(hierarchy.n_levels - 1)]), fit.facts
