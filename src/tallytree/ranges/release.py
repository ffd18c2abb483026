"""A released range histogram: counts per bin that answer any range, with error bars and the
manifest of their origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.kernels.range_moments import running_sum
from tallytree.model.arrays import FloatArray, IntArray, read_only
from tallytree.model.bins import Bins
from tallytree.model.notebook import html_table
from tallytree.options.text import value_range
from tallytree.ranges.manifest import KIND, asks_boxes, plan_from_manifest
from tallytree.ranges.measure import NoisyHistogram
from tallytree.ranges.plan import HistogramPlan
from tallytree.ranges.quantiles import (
    check_quantile,
    normal_width,
    quantile_interval,
    quantile_position,
)
from tallytree.ranges.tables import (
    bins_from_table,
    bins_table,
    check_histogram,
    noisy_of_folder,
    noisy_table,
    rows_from_table,
    strategy_tables,
)
from tallytree.releases.checks import Check, Verification
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.storage.folder import Folder, Manifest
from tallytree.strategies.answers import Answer, Answers, answer_ranges, whole_interval
from tallytree.strategies.density import Density
from tallytree.strategies.estimates import AnyErrors, range_errors
from tallytree.strategies.intervals import check_confidence, half_widths
from tallytree.strategies.strategies import TreeStrategy
from tallytree.strategies.tree import TreeErrors, fewest_blocks

if TYPE_CHECKING:
    from tallytree.boxes.bins import BoxErrors
    from tallytree.boxes.draft import Measurement
    from tallytree.boxes.release import SpatialRelease


@dataclass(frozen=True)
class Quantile:
    """A quantile and where the true one may lie: a number, or the name of a category.

    ``std_error`` is half the interval over the width of a normal one; None for categories.
    """

    value: float | str
    std_error: float | None
    low: float | str
    high: float | str
    confidence: float = 0.95


@dataclass(frozen=True, eq=False)
class RangeHistogram(Published):
    """Counts per bin, made to answer range counts.

    Attributes
    ----------
    bins
        The bins.
    counts
        Published counts, one per bin; every range is the sum of its bins.
    estimates
        The unbiased estimates behind them; they may be negative and fractional.
    plan
        Strategy and noise; None where boxes were asked about.
    manifest
        Strategy, privacy, what is public: everything that ``manifest.json`` will hold.
    noisy
        The raw measurements, or None when they were left out.
    boxes
        The map of one column behind it, where boxes were asked about that noisy answers chose; None
        for strategies.

    Examples
    --------
    >>> import tallytree as tt
    >>> ages = tt.histogram([31, 35, 62, 8, 44], width=10, bounds=(0, 100), epsilon=1, insecure_seed=1)
    >>> ages.range(30, 50).std_error < 10
    True
    """

    kind: ClassVar[str] = KIND
    title: ClassVar[str] = "a histogram"
    answers: ClassVar[frozenset[str]] = frozenset({"ranges", "quantile", "confidence"})

    bins: Bins
    counts: FloatArray | IntArray
    estimates: FloatArray
    plan: HistogramPlan | None
    manifest: Manifest
    noisy: NoisyHistogram | tuple[Measurement, ...] | None = field(default=None, repr=False)
    boxes: SpatialRelease | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if len(self.counts) != self.bins.n_bins or len(self.estimates) != self.bins.n_bins:
            raise RequestError("A histogram needs one count and one estimate per bin.")
        read_only(self.counts)
        read_only(self.estimates)

    @cached_property
    def errors(self) -> AnyErrors | BoxErrors:
        """How uncertain the unbiased estimates are."""
        if self.plan is None:
            from tallytree.boxes.bins import BoxErrors

            return BoxErrors(self._boxes.surface)
        return range_errors(self.plan.strategy, self.plan.noise)

    @property
    def _boxes(self) -> SpatialRelease:
        if self.boxes is None:
            raise RequestError("A histogram has a strategy, or boxes.")
        return self.boxes

    @property
    def density(self) -> Density | None:
        """The average count of a bin beside what a flat histogram needs; None for other strategies.
        From noisy counts.
        """
        noise = None if self.plan is None else self.plan.noise[0]
        if self.mechanism != "flat" or noise is None:
            return None
        return Density.of(float(self.estimates.sum()), self.bins.n_bins, noise.variance)

    @cached_property
    def _published_sums(self) -> FloatArray | IntArray:
        return np.concatenate([np.zeros(1, dtype=self.counts.dtype), np.cumsum(self.counts)])

    @cached_property
    def _unbiased_sums(self) -> FloatArray:
        return running_sum(self.estimates)

    def range(self, low: object, high: object, *, confidence: float = 0.95) -> Answer:
        """How many entities lie from edge ``low`` up to edge ``high``; for categories, from one to
        the other inclusive.
        """
        return self.ranges([(low, high)], confidence=confidence)[0]

    def ranges(
        self, ranges: Sequence[tuple[object, object]] | FloatArray, *, confidence: float = 0.95
    ) -> Answers:
        """Many ranges at once, each a pair of low and high."""
        return self._answer(self.bins.spans(ranges), confidence)

    def prefix_sums(self, *, confidence: float = 0.95) -> Answers:
        """How many entities lie below each edge but the first: one answer per bin, the last one the
        total.
        """
        ends = np.arange(1, self.bins.n_bins + 1)
        return self._answer((np.zeros_like(ends), ends), confidence)

    def total(self, *, confidence: float = 0.95) -> Answer:
        """How many entities there are."""
        return self._answer((np.array([0]), np.array([self.bins.n_bins])), confidence)[0]

    def bin_answers(self, *, confidence: float = 0.95) -> Answers:
        """Every bin with its uncertainty."""
        starts = np.arange(self.bins.n_bins)
        return self._answer((starts, starts + 1), confidence)

    def _answer(self, spans: tuple[IntArray, IntArray], confidence: float) -> Answers:
        strategy = None if self.plan is None else self.plan.strategy
        is_flat = isinstance(strategy, TreeStrategy) and strategy.tree.n_levels == 1
        return answer_ranges(
            self._published_sums,
            self._unbiased_sums,
            self.errors,
            spans,
            confidence=check_confidence(confidence),
            bin_noise=self.plan.noise[0] if self.plan is not None and is_flat else None,
        )

    def quantile(self, q: float, *, confidence: float = 0.95) -> Quantile:
        """The value that the share ``q`` of all entities lies below; within a bin entities count as
        spread evenly.
        """
        share = check_quantile(q)
        position = quantile_position(self._published_sums, share)
        first, last = quantile_interval(
            self._unbiased_sums, self.errors, share, check_confidence(confidence)
        )
        if self.bins.categories is not None:
            names = self.bins.categories
            place = min(int(np.ceil(position)) - 1 if position > 0 else 0, len(names) - 1)
            return Quantile(
                names[place],
                None,
                names[min(first, place)],
                names[max(last - 1, place)],
                confidence,
            )
        edges = self.bins.edges
        value = float(np.interp(position, np.arange(len(edges)), edges))
        low, high = min(float(edges[first]), value), max(float(edges[last]), value)
        return Quantile(value, (high - low) / 2 / normal_width(confidence), low, high, confidence)

    def quantiles(self, shares: Sequence[float], *, confidence: float = 0.95) -> list[Quantile]:
        """Several quantiles."""
        return [self.quantile(q, confidence=confidence) for q in shares]

    def fewest_blocks(self, low: object, high: object, *, confidence: float = 0.95) -> Answer:
        """A range as the sum of the fewest noisy blocks, without inference: hay2010's H̃, for
        comparison.
        """
        if not isinstance(self.noisy, NoisyHistogram) or not isinstance(self.errors, TreeErrors):
            raise RequestError(
                "Fewest blocks need the raw measurements of a 'flat' or 'hierarchical' histogram."
            )
        span = self.bins.spans([(low, high)])
        estimate, variance, cumulant = fewest_blocks(self.errors, self.noisy.levels, *span)
        ends = whole_interval(
            estimate, half_widths(variance, cumulant, check_confidence(confidence)), estimate
        )
        return Answers(estimate, np.sqrt(variance), *ends, confidence=confidence)[0]

    def table(self) -> pa.Table:
        """All bins as an Arrow table: bin, low and high or category, count, estimate,
        standard_error.
        """
        return bins_table(self.bins, self.counts, self.estimates, self.errors)

    def verify(self) -> Verification:
        """Check that counts are as promised and follow from the raw measurements, where these are
        at hand.
        """
        if self.plan is None:
            from tallytree.boxes.bins import bin_counts, bin_estimates

            follow = np.array_equal(self.counts, bin_counts(self._boxes.estimates))
            spread = np.allclose(
                self.estimates, bin_estimates(self._boxes.estimates), rtol=1e-9, atol=1e-6
            )
            bins = Check(
                "bins are even parts of boxes",
                follow and spread,
                "" if follow and spread else "they differ",
            )
            return Verification((*self._boxes.verify().checks, bins))
        noisy = self.noisy if isinstance(self.noisy, NoisyHistogram) else None
        errors = cast("AnyErrors", self.errors)  # it has a strategy
        return check_histogram(self.counts, self.estimates, errors, self.manifest, noisy)

    def _reply(self, question: Question) -> Reply:
        """Ranges and a quantile; without a question, every bin."""
        confidence = 0.95 if question.confidence is None else question.confidence
        rows: list[list[object]] = []
        if question.ranges:
            pairs = [self.as_asked(value_range(text)) for text in question.ranges]
            for text, a in zip(
                question.ranges, self.ranges(pairs, confidence=confidence), strict=True
            ):
                rows.append([f"{text} count", a.estimate, a.std_error, a.low, a.high])
        if question.quantile is not None:
            q = self.quantile(question.quantile, confidence=confidence)
            rows.append([f"quantile {question.quantile:g}", q.value, q.std_error, q.low, q.high])
        if not rows:
            bins = self.table()
            every = bins.to_pylist()
            return Reply(
                "bins", bins.column_names, [list(row.values()) for row in every], {"bins": every}
            )
        columns = ("question", "estimate", "std_error", "low", "high")
        facts = {"confidence": confidence, "answers": [dict(zip(columns, row)) for row in rows]}
        return Reply(
            "answers",
            columns,
            [["–" if cell is None else cell for cell in row] for row in rows],
            facts,
        )

    def as_asked(self, pair: tuple[object, object]) -> tuple[object, object]:
        """Ends of a range of categories are names, even where they look like numbers."""
        names = self.bins.categories
        if names is None or isinstance(pair[0], str):
            return pair
        low, high = (f"{end:g}" if f"{end:g}" in names else str(end) for end in pair)
        return low, high

    def tables(self, *, noisy: bool) -> dict[str, pa.Table]:
        """Bins, the boxes or the coefficients of a strategy matrix behind them, and the raw
        measurements.
        """
        if self.plan is None:
            boxes = self._boxes.tables(noisy=noisy)
            return boxes | {
                "counts.parquet": self.table(),
                "boxes.parquet": boxes["counts.parquet"],
            }
        tables = {"counts.parquet": self.table(), **strategy_tables(self.plan.strategy)}
        if noisy and isinstance(self.noisy, NoisyHistogram):
            tables["noisy.parquet"] = noisy_table(self.noisy)
        return tables

    def __repr__(self) -> str:
        return self._described(repr(self.bins))

    def _repr_html_(self) -> str:
        edges, names = self.bins.edges, self.bins.categories
        labels = (
            names
            if names is not None
            else (f"{low:g} to {high:g}" for low, high in pairwise(edges))
        )
        rows = zip(labels, self.counts.tolist())
        caption = f"Range histogram of {self.bins.n_bins:,} bins, {self.mechanism}"
        note = self.manifest["privacy"]["statement"]
        return html_table(caption, ["bin", "count"], rows, n_rows=self.bins.n_bins, note=note)


def load_histogram(folder: Folder) -> RangeHistogram:
    """The range histogram of a folder, with its raw measurements where they were saved."""
    table = folder.table("counts.parquet")
    bins = bins_from_table(table)
    counts, estimates = (np.array(table[name].to_numpy()) for name in ("count", "estimate"))
    if asks_boxes(folder.manifest):
        from tallytree.boxes.release import load_map

        boxes = load_map(folder)
        return RangeHistogram(bins, counts, estimates, None, folder.manifest, boxes.noisy, boxes)
    has_rows = folder.has("strategy.parquet")
    rows = rows_from_table(folder.table("strategy.parquet"), bins.n_bins) if has_rows else None
    plan = plan_from_manifest(folder.manifest, rows)
    return RangeHistogram(
        bins, counts, estimates, plan, folder.manifest, noisy_of_folder(folder, plan)
    )
