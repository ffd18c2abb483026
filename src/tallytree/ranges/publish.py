"""Releasing a range histogram: bins, strategy, noise, estimates."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tallytree.boxes.limits import (
    FEW_BINS,
    MOST_CONTRIBUTIONS_WITH_DELTA,
    MOST_NODES,
    SHARE_OF_TOTAL,
)
from tallytree.errors import RequestError
from tallytree.ingest.binning import bin_values, check_counts, note_of
from tallytree.ingest.grids import UNIT_NEEDS_TABLE, WHERE_NEEDS_TABLE
from tallytree.ingest.values import BinnedValues, read_values
from tallytree.model.arrays import IntArray
from tallytree.model.bins import (
    Bins,
    bins_from_edges,
    bins_of_categories,
    bins_of_width,
    equal_bins,
    numbered_bins,
)
from tallytree.model.confidential import UNALTERED, Altered
from tallytree.model.confidential_histogram import ConfidentialHistogram, PublicHistogram
from tallytree.model.part import Part
from tallytree.model.place import ANYWHERE
from tallytree.model.unit import ENTITY, Unit, unit_from
from tallytree.options.choices import Nonnegative
from tallytree.options.groups import Saving, rows_to_read
from tallytree.options.histogram import BinOptions, HistogramOptions
from tallytree.options.spelled import spelled_alone
from tallytree.privacy.budget import Budget, refuse_many_changes
from tallytree.ranges.manifest import (
    asks_boxes,
    histogram_manifest,
    plan_from_manifest,
)
from tallytree.ranges.measure import NoisyHistogram, measure_histogram
from tallytree.ranges.plan import HistogramPlan, plan_histogram
from tallytree.ranges.release import RangeHistogram, load_histogram
from tallytree.ranges.strategies import choose
from tallytree.ranges.tables import (
    bins_from_table,
    layout_table,
    noisy_of_folder,
    noisy_table,
    rows_from_table,
    strategy_tables,
)
from tallytree.releases.keeping import (
    NOTHING_KEPT,
    Keeping,
    PaidNoise,
    Target,
    paid_noise,
    released,
)
from tallytree.releases.published import NO_MEASUREMENTS
from tallytree.storage.folder import Folder, Manifest
from tallytree.strategies.estimates import estimate_bins, range_errors
from tallytree.strategies.finishing import check_nonnegative, finish_bins


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class HistogramKeywords(HistogramOptions, Saving):
    """The keywords of :func:`histogram`: its options, data in another form, and where the release
    goes.
    """

    counts: Any = None


@spelled_alone(HistogramKeywords)
def histogram(
    values: Any,
    options: HistogramOptions,
    *,
    counts: Any = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    noisy: bool = True,
) -> RangeHistogram:
    """Release a histogram that answers any range, with a differential privacy guarantee.

    Parameters
    ----------
    values
        One value per entity, to be counted in bins; or, where no bins are described, the counts
        themselves; or, with ``column``, a table of any form that :func:`tallytree.read` takes.
    options
        What to count and how; may be spelled as keywords, ``histogram(values, epsilon=1, …)``.
    counts
        Counts per bin instead of values; edges or categories may go with them.
    out, overwrite, noisy
        As for :func:`tallytree.release`.

    Examples
    --------
    >>> ages = histogram([31, 35, 62, 8, 44], width=10, bounds=(0, 100), epsilon=1, insecure_seed=1)
    >>> int(ages.counts.sum()) == ages.total().estimate
    True
    """

    def make(keeping: Keeping) -> RangeHistogram:
        return make_histogram(values, options, keeping, counts=counts)

    return released(options, Target(out, overwrite, noisy), make, load_histogram)


def make_histogram(
    values: Any, options: HistogramOptions, keeping: Keeping, *, counts: Any = None
) -> RangeHistogram:
    """Read, plan, pay, measure and estimate."""
    loss = options.loss()
    confidential = _confidential(values, counts, options)
    if isinstance(options.mechanism, str) and options.mechanism == "adaptive":
        from tallytree.ranges.by_boxes import release_adaptively

        return release_adaptively(confidential, loss, options, "asked for", keeping)
    look = SHARE_OF_TOTAL["adaptive"] if _looks_first(options, confidential, loss) else None
    left = loss if look is None else Budget(loss.definition, loss.total * (1 - look))
    chosen, reason = choose(options, confidential.axes[0], left, options.contributions)
    plan = plan_histogram(chosen, loss, contributions=options.contributions, look=look)
    refuse_many_changes(loss, plan.sensitivities)
    if plan.look is not None:
        from tallytree.ranges.by_boxes import release_after_look

        return release_after_look(confidential, plan, options, reason, keeping)
    return release_histogram(
        confidential,
        plan,
        reason=reason,
        nonnegative=check_nonnegative(options.nonnegative),
        integers=options.integers,
        insecure_seed=options.insecure_seed,
        keeping=keeping,
        tell=confidential.altered if options.tell_owner else None,
    )


def release_histogram(
    confidential: ConfidentialHistogram,
    plan: HistogramPlan,
    *,
    reason: str,
    nonnegative: Nonnegative,
    integers: bool,
    insecure_seed: int | None,
    keeping: Keeping = NOTHING_KEPT,
    tell: Altered | None = None,
) -> RangeHistogram:
    """Pay for a planned histogram, measure it, estimate its bins and put the release together."""
    manifest = histogram_manifest(
        plan,
        confidential.public,
        published={"nonnegative": nonnegative, "integers": bool(integers)},
        reason=reason,
        secure=insecure_seed is None,
    )
    bins = confidential.axes[0]
    with paid_noise(keeping, manifest, insecure_seed, read=confidential, tell=tell) as paid:
        noisy = measure_histogram(confidential, plan, paid.stream)
        keep_answers(paid, noisy, paid.manifest, bins)
    return histogram_from_noisy(bins, noisy, paid.manifest)


def _looks_first(
    options: HistogramOptions, confidential: ConfidentialHistogram, budget: Budget
) -> bool:
    """Whether ``auto`` asks for the number of rows first: for ranges or prefixes of many bins,
    which boxes may serve better.
    """
    n_bins = confidential.axes[0].n_bins
    if not isinstance(options.mechanism, str) or options.mechanism != "auto":
        return False
    if (
        not isinstance(options.workload, str)
        or options.workload == "identity"
        or options.nonnegative == "subtree"
    ):
        return False
    many = budget.asked is not None and options.contributions > MOST_CONTRIBUTIONS_WITH_DELTA
    return not many and options.branching is None and FEW_BINS < n_bins <= MOST_NODES / 2


def keep_answers(paid: PaidNoise, noisy: NoisyHistogram, manifest: Manifest, bins: Bins) -> None:
    """Say that all levels of a strategy are measured."""
    tables = {"noisy.parquet": noisy_table(noisy), "bins.parquet": layout_table(bins)}
    paid.measured(manifest, tables | strategy_tables(noisy.plan.strategy))


def histogram_from_noisy(bins: Bins, noisy: NoisyHistogram, manifest: Manifest) -> RangeHistogram:
    """The histogram that follows from raw measurements: post-processing only."""
    errors, published = range_errors(noisy.plan.strategy, noisy.plan.noise), manifest["published"]
    estimates = estimate_bins(errors, noisy.levels)
    rule = check_nonnegative(published["nonnegative"])
    counts = finish_bins(
        errors, noisy.levels, estimates, nonnegative=rule, integers=published["integers"]
    )
    return RangeHistogram(bins, counts, estimates, noisy.plan, manifest, noisy)


def estimate_histogram(folder: Folder) -> RangeHistogram:
    """A histogram estimated again from the raw measurements of a folder."""
    if asks_boxes(folder.manifest):
        from tallytree.ranges.by_boxes import estimate_boxes_again

        return estimate_boxes_again(folder)
    bins = bins_from_table(
        folder.table("bins.parquet" if folder.has("bins.parquet") else "counts.parquet")
    )
    rows = (
        rows_from_table(folder.table("strategy.parquet"), bins.n_bins)
        if folder.has("strategy.parquet")
        else None
    )
    noisy = noisy_of_folder(folder, plan_from_manifest(folder.manifest, rows))
    if noisy is None:
        raise RequestError(NO_MEASUREMENTS)
    return histogram_from_noisy(bins, noisy, folder.manifest)


def _bins(options: BinOptions) -> Bins | None:
    """The described bins, None where none are described."""
    bins, width, bounds, categories = (
        options.bins,
        options.width,
        options.bounds,
        options.categories,
    )
    ways = {"bins": bins, "edges": options.edges, "width": width, "categories": categories}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        raise RequestError(f"Describe the bins in one way, not by {' and '.join(given)}.")
    by_number = isinstance(bins, int)
    if (by_number or width is not None) != (bounds is not None):
        raise RequestError(
            "bins= (a number) and width= need bounds=(low, high), and only they do. The bounds "
            "must be public: those of the "
            "data would give its extremes away."
        )
    if width is not None:
        return bins_of_width(width, bounds)  # type: ignore[arg-type]
    if categories is not None:
        return bins_of_categories(categories)
    if by_number:
        return equal_bins(bins, bounds)  # type: ignore[arg-type]
    cuts = options.edges if options.edges is not None else bins
    return bins_from_edges(cuts) if cuts is not None else None  # type: ignore[arg-type]


def _counted(
    values: Any,
    counts: Any,
    bins: Bins | None,
    options: HistogramOptions,
    unit: Unit,
    part: Part | None,
) -> tuple[IntArray, str, Altered]:
    """Counts per bin of values, of given counts or of a column of a table, and what was done to
    values outside, and to how many.
    """
    if (values is None) == (counts is None):
        raise RequestError("Give either values or counts=, one of the two.")
    if options.column is not None:
        if bins is None or values is None:
            raise RequestError(
                "column= needs a table, and its bins: edges, bins, width or categories."
            )
        how: dict[str, Any] = {"count": options.count, "where": part, **asdict(options.place())}
        how |= (
            {"categories": bins.categories}
            if bins.categories is not None
            else {"edges": bins.edges}
        )
        if options.unit != ENTITY:
            how |= {"unit": options.unit, "contributions": options.contributions}
        return _settled(read_values(values, options.column, **how), bins, options, unit)
    if options.count is not None or options.place() != ANYWHERE:
        raise RequestError(
            "count=, table=, sql= and encoding= go with column=, the column of a table to count."
        )
    if options.unit != ENTITY:
        raise RequestError(UNIT_NEEDS_TABLE)
    if part is not None:
        raise RequestError(WHERE_NEEDS_TABLE)
    if counts is None and bins is not None:
        return _settled(bin_values(values, bins), bins, options, unit)
    return check_counts(values if counts is None else counts), "counts were given", UNALTERED


def _settled(
    found: BinnedValues, bins: Bins, options: HistogramOptions, unit: Unit
) -> tuple[IntArray, str, Altered]:
    altered = found.altered(options.outside, unit)
    return found.settle(options.outside), note_of(options.outside, bins), altered


def _confidential(values: Any, given: Any, options: HistogramOptions) -> ConfidentialHistogram:
    bins = _bins(options)
    part = rows_to_read(options.where, options)
    counted = (
        given is not None or options.count is not None or (options.column is None and bins is None)
    )
    unit = unit_from(options.unit, options.entity, options.contributions, counted=counted)
    counts, note, altered = _counted(values, given, bins, options, unit, part)
    if counts.ndim != 1:
        raise RequestError(
            f"A range histogram has one dimension, got {counts.ndim}. Use tallytree.spatial."
        )
    axis = bins if bins is not None else numbered_bins(len(counts))
    if len(counts) != axis.n_bins:
        raise RequestError(
            f"There are {len(counts)} counts for {axis.n_bins} bins; give one count per bin."
        )
    return ConfidentialHistogram((axis,), counts, PublicHistogram(note, unit, part), altered)
