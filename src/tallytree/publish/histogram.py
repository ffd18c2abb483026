"""Releasing a range histogram: bins, strategy, noise, estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.ingest.binning import NOTES, check_counts, check_outside, count_values
from tallytree.ingest.grids import UNIT_NEEDS_TABLE, WHERE_NEEDS_TABLE
from tallytree.ingest.values import Outside, read_values
from tallytree.measure.histogram import NoisyHistogram, measure_histogram
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.bins import (
    Bins,
    bins_from_edges,
    bins_of_categories,
    bins_of_width,
    equal_bins,
    numbered_bins,
)
from tallytree.model.confidential_histogram import ConfidentialHistogram
from tallytree.model.part import Part, part_from
from tallytree.model.unit import ENTITY, unit_from
from tallytree.privacy.budget import Definition
from tallytree.privacy.stated_budget import stated_budget
from tallytree.publish.keeping import paid_noise
from tallytree.publish.payment import Payment, payment_from
from tallytree.publish.strategies import StrategyRequest, choose
from tallytree.ranges.estimates import estimate_bins, range_errors
from tallytree.ranges.finishing import Nonnegative, check_nonnegative, finish_bins
from tallytree.ranges.plan import HistogramPlan, plan_histogram
from tallytree.release.histogram import RangeHistogram
from tallytree.release.histogram_manifest import histogram_manifest, plan_from_manifest
from tallytree.release.histogram_tables import (
    bins_from_table,
    layout_table,
    noisy_of_folder,
    noisy_table,
    rows_from_table,
    strategy_tables,
)
from tallytree.release.published import NO_MEASUREMENTS
from tallytree.storage.folder import Folder, Manifest


def histogram(
    values: Any = None,
    *,
    epsilon: object = None,
    rho: object = None,
    definition: Definition = "pure",
    counts: Any = None,
    bins: int | Sequence[float] | None = None,
    edges: Sequence[float] | FloatArray | None = None,
    width: float | None = None,
    categories: Sequence[object] | None = None,
    bounds: tuple[float, float] | None = None,
    outside: str = "error",
    column: str | None = None,
    count: str | None = None,
    table: str | None = None,
    sql: str | None = None,
    where: str | tuple[str, str] | Part | None = None,
    strategy: str | FloatArray | IntArray | Sequence[Any] = "auto",
    branching: int | None = None,
    budget: str | Sequence[Any] = "equal",
    workload: Any = "ranges",
    nonnegative: str | bool = "top-down",
    integers: bool = True,
    unit: str = ENTITY,
    contributions: int = 1,
    entity: str = "row",
    insecure_seed: int | None = None,
    ledger: str | Payment | None = None,
    dataset: str | None = None,
) -> RangeHistogram:
    """Release a histogram that answers any range, with a differential privacy guarantee.

    Parameters
    ----------
    values
        One value per entity, to be counted in bins; or, where no bins are described, the counts themselves.
    epsilon, rho, definition
        The privacy loss: ``epsilon`` for ``definition="pure"``, ``rho`` for ``"zcdp"``. Taken exactly: 0.1 is one
        tenth.
    counts
        Counts per bin instead of values; edges or categories may go with them.
    bins, edges, width, categories, bounds
        The public bins: their ``edges`` (a list given as ``bins`` is taken as edges); or ``bins`` of equal size or bins
        of a ``width`` between ``bounds``; or ``categories`` in order. Never taken from the data: that would give it
        away.
    column, count, table, sql
        Where ``values`` is a table (anything that :func:`tallytree.read` takes): the column to count, optionally the column
        that says how many entities a row stands for, and which table of a database or query on it.
    where
        ``"COLUMN=VALUE"``: of a table, only the rows whose column has exactly this label; see :func:`tallytree.read`.
    outside
        Values outside the bins: ``"error"``, ``"clip"`` to the nearest bin, or ``"drop"``.
    strategy
        ``"auto"`` (least expected error for the workload), ``"flat"``, ``"hierarchical"``, ``"wavelet"``,
        ``"optimised"``, ``"eigen-select"``, ``"low-rank"``, or a matrix with one row per query.
    branching, budget
        For ``"hierarchical"``: children per block (the best one if not given), and how levels share the budget:
        ``"equal"``, ``"geometric"``, ``"optimal-blocks"``, ``"optimal"``, or one share per level, the coarsest first.
    workload
        What the strategy should be good at: ``"ranges"`` (all of them), ``"prefixes"``, ``"identity"``, or a list of
        (low, high). Every range can be asked of the result, whatever the workload.
    nonnegative, integers
        What is published: see :data:`tallytree.ranges.finishing.Nonnegative` (True is ``"top-down"``, False ``"no"``),
        in whole numbers or not. ``nonnegative="no", integers=False`` publishes the unbiased estimates.
    unit, contributions, entity
        ``unit``: with ``column``, the column that names the protected unit, of whose rows at most ``contributions`` are then
        counted. Without it, how many rows one protected unit has at most, which is taken on trust. ``entity`` is what that
        unit is called in the privacy statement.
    insecure_seed
        For tests and experiments only: repeatable noise. The release is marked "not private".
    ledger, dataset
        Budget account that pays before any noise is drawn; see :func:`tallytree.release`.

    Examples
    --------
    >>> ages = histogram([31, 35, 62, 8, 44], width=10, bounds=(0, 100), epsilon=1, insecure_seed=1)
    >>> int(ages.counts.sum()) == ages.total().estimate
    True
    """
    loss = stated_budget(epsilon, rho, definition)
    rule = check_nonnegative(nonnegative)
    confidential = _confidential(
        _Source(values, counts, column, count, table, sql, unit, part_from(where)),
        _bins(bins, edges, width, categories, bounds),
        check_outside(outside),
        contributions,
        entity,
    )
    axis = confidential.axes[0]
    chosen, reason = choose(StrategyRequest(strategy, branching, budget, workload), axis, loss, contributions)
    plan = plan_histogram(chosen, loss, contributions=contributions)
    return release_histogram(
        confidential,
        plan,
        reason=reason,
        nonnegative=rule,
        integers=integers,
        insecure_seed=insecure_seed,
        payment=payment_from(ledger, dataset),
    )


def release_histogram(
    confidential: ConfidentialHistogram,
    plan: HistogramPlan,
    *,
    reason: str,
    nonnegative: Nonnegative,
    integers: bool,
    insecure_seed: int | None,
    payment: Payment | None = None,
) -> RangeHistogram:
    """Pay for a planned histogram, measure it, estimate its bins and put the release together."""
    manifest = histogram_manifest(
        plan,
        confidential,
        published={"nonnegative": nonnegative, "integers": bool(integers)},
        reason=reason,
        secure=insecure_seed is None,
    )
    bins = confidential.axes[0]
    with paid_noise(payment, manifest, insecure_seed) as paid:
        noisy = measure_histogram(confidential, plan, paid.stream)
        tables = {"noisy.parquet": noisy_table(noisy), "bins.parquet": layout_table(bins)}
        paid.measured(paid.manifest, tables | strategy_tables(plan.strategy))
    return histogram_from_noisy(bins, noisy, paid.manifest)


def histogram_from_noisy(bins: Bins, noisy: NoisyHistogram, manifest: Manifest) -> RangeHistogram:
    """The histogram that follows from raw measurements: post-processing only."""
    errors, published = range_errors(noisy.plan.strategy, noisy.plan.noise), manifest["published"]
    estimates = estimate_bins(errors, noisy.levels)
    rule = check_nonnegative(published["nonnegative"])
    counts = finish_bins(errors, noisy.levels, estimates, nonnegative=rule, integers=published["integers"])
    return RangeHistogram(bins, counts, estimates, noisy.plan, manifest, noisy)


def estimate_histogram(folder: Folder) -> RangeHistogram:
    """A histogram estimated again from the raw measurements of a folder."""
    bins = bins_from_table(folder.table("bins.parquet" if folder.has("bins.parquet") else "counts.parquet"))
    rows = rows_from_table(folder.table("strategy.parquet"), bins.n_bins) if folder.has("strategy.parquet") else None
    noisy = noisy_of_folder(folder, plan_from_manifest(folder.manifest, rows))
    if noisy is None:
        raise RequestError(NO_MEASUREMENTS)
    return histogram_from_noisy(bins, noisy, folder.manifest)


def _bins(
    bins: int | Sequence[float] | None,
    edges: Sequence[float] | FloatArray | None,
    width: float | None,
    categories: Sequence[object] | None,
    bounds: tuple[float, float] | None,
) -> Bins | None:
    """The described bins, None where none are described."""
    ways = {"bins": bins, "edges": edges, "width": width, "categories": categories}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        raise RequestError(f"Describe the bins in one way, not by {' and '.join(given)}.")
    by_number = isinstance(bins, int | np.integer)
    if (by_number or width is not None) != (bounds is not None):
        raise RequestError(
            "bins= (a number) and width= need bounds=(low, high), and only they do. The bounds must be public: those of the "
            "data would give its extremes away."
        )
    if width is not None:
        return bins_of_width(width, bounds)  # type: ignore[arg-type]
    if categories is not None:
        return bins_of_categories(categories)
    if by_number:
        return equal_bins(bins, bounds)  # type: ignore[arg-type]
    cuts = edges if edges is not None else bins
    return bins_from_edges(cuts) if cuts is not None else None  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class _Source:
    """What a user gave to be counted: values, counts, or a column of a table."""

    values: Any
    counts: Any
    column: str | None
    count: str | None
    table: str | None
    sql: str | None
    unit: str = ENTITY
    where: Part | None = None

    def counted(self, bins: Bins | None, outside: Outside, contributions: int) -> tuple[IntArray, str]:
        """Counts per bin, and what was done to values outside."""
        if (self.values is None) == (self.counts is None):
            raise RequestError("Give either values or counts=, one of the two.")
        if self.column is None and any(option is not None for option in (self.count, self.table, self.sql)):
            raise RequestError("count=, table= and sql= go with column=, the column of a table to count.")
        if self.column is None and self.unit != ENTITY:
            raise RequestError(UNIT_NEEDS_TABLE)
        if self.column is None and self.where is not None:
            raise RequestError(WHERE_NEEDS_TABLE)
        if self.column is not None:
            if bins is None or self.values is None:
                raise RequestError("column= needs a table, and its bins: edges, bins, width or categories.")
            how: dict[str, Any] = {"count": self.count, "table": self.table, "sql": self.sql, "where": self.where}
            how |= {"categories": bins.categories} if bins.categories is not None else {"edges": bins.edges}
            if self.unit != ENTITY:
                how |= {"unit": self.unit, "contributions": contributions}
            read = read_values(self.values, self.column, **how)
            return read.settle(outside), NOTES[outside]
        if self.counts is None and bins is not None:
            return count_values(self.values, bins, outside=outside), NOTES[outside]
        return check_counts(self.values if self.counts is None else self.counts), "counts were given"


def _confidential(
    source: _Source, bins: Bins | None, outside: Outside, contributions: int, entity: str
) -> ConfidentialHistogram:
    unit = unit_from(source.unit, entity, contributions)
    counts, note = source.counted(bins, outside, contributions)
    if counts.ndim != 1:
        raise RequestError(f"A range histogram has one dimension, got {counts.ndim}. Use tallytree.grid_histogram.")
    axis = bins if bins is not None else numbered_bins(len(counts))
    if len(counts) != axis.n_bins:
        raise RequestError(f"There are {len(counts)} counts for {axis.n_bins} bins; give one count per bin.")
    return ConfidentialHistogram((axis,), counts, note, unit, source.where)
