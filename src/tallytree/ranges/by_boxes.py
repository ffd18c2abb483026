"""A histogram asked about as what it is, a map of one column: boxes of bins, chosen by noisy answers.

Loaded where ``adaptive`` is asked for, or where ``auto`` asks for the number of rows first.
"""

from __future__ import annotations

from tallytree.boxes.bins import bin_counts, bin_estimates
from tallytree.boxes.manifest import planned_manifest
from tallytree.boxes.measure import NoisyMap, measure_unless_dense
from tallytree.boxes.publish import (
    estimate_again,
    keep_measured,
    map_from_noisy,
    map_rule,
    refuse_unproved,
    release_map,
)
from tallytree.boxes.release import SpatialRelease
from tallytree.errors import RequestError
from tallytree.model.confidential_grid import grid_of
from tallytree.model.confidential_histogram import ConfidentialHistogram
from tallytree.options.histogram import HistogramOptions
from tallytree.options.maps import MethodOptions
from tallytree.privacy.budget import Budget
from tallytree.ranges.manifest import box_histogram_manifest, histogram_manifest
from tallytree.ranges.measure import measure_histogram
from tallytree.ranges.plan import HistogramPlan
from tallytree.ranges.publish import histogram_from_noisy, keep_answers
from tallytree.ranges.release import RangeHistogram
from tallytree.releases.keeping import Keeping, paid_noise
from tallytree.storage.folder import Folder
from tallytree.strategies.finishing import check_nonnegative


def release_adaptively(
    confidential: ConfidentialHistogram,
    budget: Budget,
    options: HistogramOptions,
    reason: str,
    keeping: Keeping,
) -> RangeHistogram:
    """Release a histogram as what it is, a map of one column: boxes of bins, chosen and smoothed by
    ``adaptive``.
    """
    if options.branching is not None or options.budget != "equal" or options.workload != "ranges":
        raise RequestError(
            "adaptive chooses its questions itself: it takes no branching, budget or workload."
        )
    grid, how = grid_of(confidential), MethodOptions(mechanism="adaptive")
    refuse_unproved(grid, budget, how)
    made = release_map(
        grid,
        budget,
        how,
        nonnegative=map_rule(options.nonnegative),
        integers=options.integers,
        insecure_seed=options.insecure_seed,
        keeping=keeping,
        tell=confidential.altered if options.tell_owner else None,
        described=lambda planned: box_histogram_manifest(planned, reason),
    )
    return histogram_of_boxes(made)


def release_after_look(
    confidential: ConfidentialHistogram,
    plan: HistogramPlan,
    options: HistogramOptions,
    reason: str,
    keeping: Keeping,
) -> RangeHistogram:
    """Pay, ask for the number of rows, and go on by it: by the planned strategy where they are
    many, else adaptively.
    """
    grid, secure = grid_of(confidential), options.insecure_seed is None
    rule, integers = check_nonnegative(options.nonnegative), bool(options.integers)
    ways = {"nonnegative": map_rule(options.nonnegative), "integers": integers}
    planned = planned_manifest(
        grid.public, plan.budget, MethodOptions(), published=ways, secure=secure
    )
    planned = box_histogram_manifest(planned, "the number of rows is asked first")
    tell, bins = confidential.altered if options.tell_owner else None, confidential.axes[0]
    with paid_noise(keeping, planned, options.insecure_seed, read=confidential, tell=tell) as paid:
        found = measure_unless_dense(grid, plan.budget, paid.stream)
        if isinstance(found, NoisyMap):
            looked = f"about {found.measurements[0].values[0]:,} points for {bins.n_bins:,} bins, not many"
            manifest = keep_measured(
                paid, found, box_histogram_manifest(paid.manifest, looked), grid
            )
        else:
            published = {"nonnegative": rule, "integers": integers}
            looked = f"about {found:,} points for {bins.n_bins:,} bins, which are many: {reason}"
            manifest = histogram_manifest(
                plan, confidential.public, published=published, reason=looked, secure=secure
            )
            receipt = {
                name: paid.manifest["privacy"][name]
                for name in ("ledger",)
                if name in paid.manifest["privacy"]
            }
            manifest = {**manifest, "privacy": {**manifest["privacy"], **receipt}}
            noisy = measure_histogram(confidential, plan, paid.stream, looked=found)
            keep_answers(paid, noisy, manifest, bins)
    if isinstance(found, NoisyMap):
        return histogram_of_boxes(
            map_from_noisy(found.tree, found.leaves, found.measurements, manifest, grid.axes)
        )
    return histogram_from_noisy(bins, noisy, manifest)


def estimate_boxes_again(folder: Folder) -> RangeHistogram:
    """The histogram of boxes that the raw measurements of a folder give."""
    return histogram_of_boxes(estimate_again(folder))


def histogram_of_boxes(boxes: SpatialRelease) -> RangeHistogram:
    """A map of one column with stated edges as a histogram."""
    (bins,) = boxes.axes or ()
    found, estimates = bin_counts(boxes.estimates), bin_estimates(boxes.estimates)
    return RangeHistogram(bins, found, estimates, None, boxes.manifest, boxes.noisy, boxes)
