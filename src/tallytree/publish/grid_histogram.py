"""Releasing a histogram in several dimensions (qardaji2013 §5)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tallytree.errors import RequestError
from tallytree.ingest.binning import check_counts
from tallytree.measure.histogram import NoisyHistogram, measure_histogram
from tallytree.model.bins import Bins, bins_from_edges, numbered_bins
from tallytree.model.confidential_histogram import ConfidentialHistogram
from tallytree.model.range_tree import RangeTree, height
from tallytree.model.unit import Unit
from tallytree.options.choices import GridStrategyName
from tallytree.options.histogram import GridHistogramOptions
from tallytree.options.spelled import spelled
from tallytree.planning.noise_variances import level_variances
from tallytree.planning.ranges.grid_errors import flat_grid_error, grid_range_error
from tallytree.planning.ranges.level_budgets import equal_shares
from tallytree.privacy.stated_budget import refuse_many_changes
from tallytree.publish.keeping import paid_noise
from tallytree.publish.payment import payment_from
from tallytree.publish.strategies import Terms, terms_of
from tallytree.ranges.estimates import estimate_bins, range_errors
from tallytree.ranges.finishing import check_nonnegative, finish_bins
from tallytree.ranges.plan import plan_histogram
from tallytree.ranges.strategies import GridStrategy
from tallytree.released.grid_histogram import GridHistogram, axes_from_table, axes_table
from tallytree.released.histogram.manifest import histogram_manifest, plan_from_manifest
from tallytree.released.histogram.tables import noisy_of_folder, noisy_table
from tallytree.released.published import NO_MEASUREMENTS
from tallytree.storage.folder import Folder, Manifest


@spelled(GridHistogramOptions)
def grid_histogram(counts: Any, options: GridHistogramOptions) -> GridHistogram:
    """Release counts per cell of a grid that answer any box, with a differential privacy guarantee.

    Parameters
    ----------
    counts
        Exact counts, one dimension per axis.
    options
        What to ask and what to publish; may be spelled as keywords, ``grid_histogram(counts, epsilon=1, …)``.

    Examples
    --------
    >>> released = grid_histogram([[5, 0], [7, 2]], epsilon=1, insecure_seed=1)
    >>> released.box((0, 0), (2, 1)).standard_error > 0
    True
    """
    budget, rule = options.loss(), check_nonnegative(options.nonnegative)
    contributions, insecure_seed, integers = options.contributions, options.insecure_seed, options.integers
    table = check_counts(counts)
    bins = _axes(options.axes, table.shape)
    confidential = ConfidentialHistogram(bins, table, "counts were given", Unit(options.entity, "", contributions))
    chosen, reason = choose_grid(table.shape, options.strategy, options.branching, terms_of(budget, contributions))
    plan = plan_histogram(chosen, budget, contributions=contributions)
    refuse_many_changes(budget, plan.sensitivities)
    promised = {"nonnegative": rule, "integers": integers}
    secure = insecure_seed is None
    manifest = histogram_manifest(plan, confidential, published=promised, reason=reason, secure=secure)
    with paid_noise(payment_from(options), manifest, insecure_seed) as paid:
        noisy = measure_histogram(confidential, plan, paid.stream)
        paid.measured(paid.manifest, {"noisy.parquet": noisy_table(noisy), "axes.parquet": axes_table(bins)})
    return grid_from_noisy(bins, noisy, paid.manifest)


def grid_from_noisy(bins: tuple[Bins, ...], noisy: NoisyHistogram, manifest: Manifest) -> GridHistogram:
    """The histogram that follows from raw measurements: post-processing only."""
    errors, published = range_errors(noisy.plan.strategy, noisy.plan.noise), manifest["published"]
    estimates, rule = estimate_bins(errors, noisy.levels), check_nonnegative(published["nonnegative"])
    counts = finish_bins(errors, noisy.levels, estimates, nonnegative=rule, integers=published["integers"])
    shape = tuple(axis.n_bins for axis in bins)
    return GridHistogram(bins, counts.reshape(shape), estimates.reshape(shape), noisy.plan, manifest, noisy)


def estimate_grid_histogram(folder: Folder) -> GridHistogram:
    """A histogram estimated again from the raw measurements of a folder."""
    noisy = noisy_of_folder(folder, plan_from_manifest(folder.manifest, None))
    if noisy is None:
        raise RequestError(NO_MEASUREMENTS)
    return grid_from_noisy(axes_from_table(folder.table("axes.parquet")), noisy, folder.manifest)


def _axes(axes: Sequence[Any] | None, shape: tuple[int, ...]) -> tuple[Bins, ...]:
    if axes is None:
        return tuple(numbered_bins(size) for size in shape)
    bins = tuple(axis if isinstance(axis, Bins) else bins_from_edges(axis) for axis in axes)
    if tuple(axis.n_bins for axis in bins) != shape:
        raise RequestError(f"The counts have the shape {shape}; give one axis per dimension with as many bins.")
    return bins


def choose_grid(
    shape: tuple[int, ...], strategy: GridStrategyName, branching: int | None, terms: Terms
) -> tuple[GridStrategy, str]:
    """The strategy that was asked for, or the one with the least expected error over all boxes, and why."""
    if branching is not None and strategy != "hierarchical":
        raise RequestError("branching goes with strategy 'hierarchical'.")
    match strategy:
        case "flat":
            return GridStrategy("flat", shape, (1,), (Fraction(1),)), "asked for"
        case "hierarchical" if branching is not None:
            widths = RangeTree.regular(max(shape), branching).widths
            return GridStrategy("hierarchical", shape, widths, equal_shares(len(widths))), "asked for"
        case "hierarchical" | "auto":
            return _least_error(shape, terms, with_flat=strategy == "auto")


def _least_error(shape: tuple[int, ...], terms: Terms, *, with_flat: bool) -> tuple[GridStrategy, str]:
    """Try the smallest branching factor of every height; larger ones of the same height only add nodes.

    More than five levels leave too little budget to each: in two and more dimensions fewer are always better.
    """
    longest = max(shape)

    def variances(n_levels: int) -> tuple[float, ...]:
        return level_variances(equal_shares(n_levels), budget=terms.budget, noise=terms.noise)

    found: list[tuple[float, tuple[int, ...]]] = []
    if with_flat or longest <= 2:
        found.append((flat_grid_error(shape, variances(1)[0]), (1,)))
    for n_levels in range(2, min(height(longest, 2), 5) + 1):
        branching = next(b for b in range(2, longest + 1) if b**n_levels >= longest)
        widths = RangeTree.regular(longest, branching).widths
        if len(widths) == n_levels:
            found.append((grid_range_error(shape, widths, variances(n_levels)), widths))
    error, widths = min(found)
    name = "flat" if len(widths) == 1 else "hierarchical"
    cells = " x ".join(map(str, shape))
    reason = f"least expected error over all boxes of {cells} cells: a standard error of {error**0.5:,.4g}"
    return GridStrategy(name, shape, widths, equal_shares(len(widths))), reason
