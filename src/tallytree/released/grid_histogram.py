"""A released histogram in several dimensions: counts per cell that answer any box, with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.measure.histogram import NoisyHistogram
from tallytree.model.arrays import FloatArray, IntArray, read_only
from tallytree.model.bins import Bins
from tallytree.model.notebook import html_table
from tallytree.ranges.answers import Answer, Answers, whole_interval
from tallytree.ranges.estimates import range_errors
from tallytree.ranges.grid import GridErrors
from tallytree.ranges.intervals import SMALL_ERRORS, check_level, half_widths, whole_half_widths
from tallytree.ranges.plan import HistogramPlan
from tallytree.released.checks import Verification
from tallytree.released.histogram.manifest import GRID_KIND, plan_from_manifest
from tallytree.released.histogram.tables import check_histogram, noisy_of_folder, noisy_table
from tallytree.released.published import Published
from tallytree.released.questions import Question, Reply, parse_range
from tallytree.storage.folder import Folder, Manifest

Ends = Sequence[object]
AnyArray = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class GridHistogram(Published):
    """Counts per cell of a grid, made to answer counts in boxes.

    Attributes
    ----------
    axes
        The bins of each dimension.
    counts
        Published counts, one dimension per axis; every box is the sum of its cells.
    estimates
        The unbiased estimates behind them.
    plan, manifest, noisy
        As for :class:`tallytree.released.histogram.release.RangeHistogram`.
    """

    kind: ClassVar[str] = GRID_KIND
    title: ClassVar[str] = "a histogram in several dimensions"
    answers: ClassVar[frozenset[str]] = frozenset({"ranges", "confidence"})

    axes: tuple[Bins, ...]
    counts: FloatArray | IntArray
    estimates: FloatArray
    plan: HistogramPlan
    manifest: Manifest
    noisy: NoisyHistogram | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        shape = tuple(axis.n_bins for axis in self.axes)
        if self.counts.shape != shape or self.estimates.shape != shape:
            raise RequestError("A grid histogram needs one count and one estimate per cell.")
        read_only(self.counts)
        read_only(self.estimates)

    @cached_property
    def errors(self) -> GridErrors:
        """How uncertain the unbiased estimates are."""
        errors = range_errors(self.plan.strategy, self.plan.noise)
        if not isinstance(errors, GridErrors):
            raise RequestError("A histogram in several dimensions needs a strategy over a grid.")
        return errors

    @cached_property
    def _sums(self) -> tuple[AnyArray, AnyArray]:
        return summed_area(self.counts), summed_area(self.estimates)

    def box(self, low: Ends, high: Ends, *, level: float = 0.95) -> Answer:
        """How many entities lie in the box from ``low`` to ``high``, one end per axis, as in
        ``RangeHistogram.range``."""
        return self.boxes([(low, high)], level=level)[0]

    def boxes(self, boxes: Sequence[tuple[Ends, Ends]], *, level: float = 0.95) -> Answers:
        """Many boxes at once, each a pair of its low and its high corner."""
        return self.cell_boxes(*self.spans(boxes), level=level)

    def spans(self, boxes: Sequence[tuple[Ends, Ends]]) -> tuple[IntArray, IntArray]:
        """First and one past last cells of boxes, one row each."""
        lows = np.empty((len(boxes), len(self.axes)), dtype=np.int64)
        highs = np.empty_like(lows)
        for number, box in enumerate(boxes):
            if len(box) != 2 or any(isinstance(end, str) or len(end) != len(self.axes) for end in box):
                raise RequestError(
                    f"A box has two corners of {len(self.axes)} numbers each, low and high; got {box!r}."
                )
            for axis, (bins, low, high) in enumerate(zip(self.axes, *box)):
                lows[number, axis], highs[number, axis] = bins.span(low, high)
        return lows, highs

    def cell_boxes(self, lows: IntArray, highs: IntArray, *, level: float = 0.95) -> Answers:
        """Many boxes given by numbers of cells, lows included and highs not; one row each."""
        check_level(level)
        variance, cumulant = self.errors.box_moments(lows, highs)
        published, unbiased = (box_sums(sums, lows, highs) for sums in self._sums)
        noise = self.plan.noise[0]
        if len(self.plan.noise) == 1 and noise is not None and np.sqrt(variance.max(initial=0)) <= SMALL_ERRORS:
            half = whole_half_widths(noise, np.prod(highs - lows, axis=1), level)
        else:
            half = half_widths(variance, cumulant, level)
        return Answers(published, np.sqrt(variance), *whole_interval(unbiased, half, published), level=level)

    def total(self, *, level: float = 0.95) -> Answer:
        """How many entities there are."""
        return self.cell_boxes(
            np.zeros((1, len(self.axes)), dtype=np.int64), np.array([self.counts.shape]), level=level
        )[0]

    def table(self) -> pa.Table:
        """All cells as an Arrow table: their bin along each axis, count and estimate."""
        places = np.indices(self.counts.shape).reshape(len(self.axes), -1)
        columns = {f"bin_{axis}": place for axis, place in enumerate(places)}
        return pa.table({**columns, "count": self.counts.ravel(), "estimate": self.estimates.ravel()})

    def verify(self) -> Verification:
        """Check that counts are as promised and follow from the raw measurements, where these are at hand."""
        return check_histogram(self.counts.ravel(), self.estimates.ravel(), self.errors, self.manifest, self.noisy)

    def _reply(self, question: Question) -> Reply:
        """Boxes; without a question, the total."""
        confidence = 0.95 if question.confidence is None else question.confidence
        rows: list[list[object]] = []
        for text in question.ranges:
            ends = [parse_range(part) for part in text.split(",")]
            a = self.box([low for low, _ in ends], [high for _, high in ends], level=confidence)
            rows.append([text, a.estimate, a.standard_error, a.low, a.high])
        if not rows:
            a = self.total(level=confidence)
            rows.append(["everything", a.estimate, a.standard_error, a.low, a.high])
        columns = ("box", "estimate", "standard_error", "low", "high")
        return Reply(
            "boxes", columns, rows, {"confidence": confidence, "answers": [dict(zip(columns, r)) for r in rows]}
        )

    def tables(self, *, noisy: bool) -> dict[str, pa.Table]:
        """Cells, axes and the raw measurements."""
        tables = {"counts.parquet": self.table(), "axes.parquet": axes_table(self.axes)}
        if noisy and self.noisy is not None:
            tables["noisy.parquet"] = noisy_table(self.noisy)
        return tables

    def __repr__(self) -> str:
        return self._described(f"{' x '.join(f'{axis.n_bins:,}' for axis in self.axes)} cells")

    def _repr_html_(self) -> str:
        rows = [[number, repr(axis)] for number, axis in enumerate(self.axes)]
        caption = f"Grid histogram, {self.plan.strategy.name}"
        return html_table(caption, ["axis", "bins"], rows, note=self.manifest["privacy"]["statement"])


def summed_area(values: AnyArray) -> AnyArray:
    """Sums over all boxes that start at the first cell, with a border of zeros."""
    sums = np.pad(values, [(1, 0)] * values.ndim)
    for axis in range(values.ndim):
        np.cumsum(sums, axis=axis, out=sums)
    return sums


def box_sums(sums: AnyArray, lows: IntArray, highs: IntArray) -> AnyArray:
    """Sums over boxes from a table of :func:`summed_area`: corners with alternating signs."""
    total: AnyArray = np.zeros(len(lows), dtype=sums.dtype)
    for corner in product([False, True], repeat=sums.ndim):
        ends = tuple(np.where(upper, highs[:, axis], lows[:, axis]) for axis, upper in enumerate(corner))
        total = total + sums[ends] if (sums.ndim - sum(corner)) % 2 == 0 else total - sums[ends]
    return total


def axes_table(axes: tuple[Bins, ...]) -> pa.Table:
    """One row per bin of each axis: axis, bin, low, high, category."""
    rows = [
        (number, place, axis.edges[place], axis.edges[place + 1], axis.categories[place] if axis.categories else None)
        for number, axis in enumerate(axes)
        for place in range(axis.n_bins)
    ]
    columns = zip(*rows)
    names = ("axis", "bin", "low", "high", "category")
    types = (pa.int64(), pa.int64(), pa.float64(), pa.float64(), pa.string())
    return pa.table({name: pa.array(column, kind) for name, column, kind in zip(names, columns, types)})


def axes_from_table(table: pa.Table) -> tuple[Bins, ...]:
    """The axes that :func:`axes_table` wrote."""
    number, low, high = (table[name].to_numpy() for name in ("axis", "low", "high"))
    names = np.array(table["category"].to_pylist(), dtype=object)
    axes = []
    for axis in range(int(number.max()) + 1):
        here = number == axis
        categories = tuple(names[here]) if names[here][0] is not None else None
        axes.append(Bins(np.append(low[here], high[here][-1]), categories))
    return tuple(axes)


def load_grid_histogram(folder: Folder) -> GridHistogram:
    """The histogram in several dimensions of a folder, with its raw measurements where they were saved."""
    table, axes = folder.table("counts.parquet"), axes_from_table(folder.table("axes.parquet"))
    plan = plan_from_manifest(folder.manifest, None)
    shape = tuple(axis.n_bins for axis in axes)
    counts, estimates = (np.array(table[name].to_numpy()).reshape(shape) for name in ("count", "estimate"))
    return GridHistogram(axes, counts, estimates, plan, folder.manifest, noisy_of_folder(folder, plan))
