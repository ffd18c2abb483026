"""Box queries on a map: estimates by running sums, and how uncertain they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.boxes.estimates import MapEstimates
from tallytree.boxes.intervals import BoxLaw
from tallytree.boxes.kernels.trees import box_uncertainty
from tallytree.boxes.nonuniformity import clustering, shared_along_borders, unknown_inside
from tallytree.errors import RequestError
from tallytree.kernels.trees.least_squares import variances_from_below
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.bins import Bins
from tallytree.model.box_tree import prefix_sums, uniform_density
from tallytree.model.frame import Frame
from tallytree.model.notebook import html_table
from tallytree.strategies.answers import whole_interval
from tallytree.strategies.intervals import check_confidence


@dataclass(frozen=True)
class MapAnswer:
    """How many points lie in a box.

    Attributes
    ----------
    estimate
        What is published.
    std_error
        Of the unbiased estimate behind it: noise, and what is not known about the places of points
        inside boxes that the query cuts (see :mod:`tallytree.boxes.nonuniformity`).
    by_area
        The part of the estimate that comes from boxes the query cuts, by the share of their area
        inside it: 0 where the uniformity assumption plays no role.
    low, high
        An interval that holds the true count with probability ``confidence``: from the exact law of
        the noise where the query cuts no box and boxes were laid out beforehand (see
        :mod:`tallytree.boxes.intervals`), else a normal one of ``std_error``, which is approximate.
    confidence
        Of the interval.
    """

    estimate: float
    std_error: float
    by_area: float
    low: float
    high: float
    confidence: float = 0.95


@dataclass(frozen=True, eq=False)
class MapAnswers:
    """Many answers as arrays, with the fields of :class:`MapAnswer`; all but estimates are worked
    out when asked for.

    ``first`` and ``last`` are the corners of the queries, in cells.
    """

    surface: MapSurface
    first: FloatArray
    last: FloatArray
    estimate: FloatArray
    confidence: float = 0.95

    @cached_property
    def _uncertainty(self) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
        return self.surface.uncertainty(self.first, self.last)

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        half = NormalDist().inv_cdf((1 + check_confidence(self.confidence)) / 2) * self.std_error
        centre = self.surface.answer(self.first, self.last, unbiased=True)
        around = whole_interval(centre, half, self.estimate)
        ends = around[0].astype(np.float64), around[1].astype(np.float64)
        whole = np.flatnonzero(self._uncertainty[2] == 0)
        if self.surface.law is not None and len(whole):
            first, last = self.first[whole], self.last[whole]
            corners = np.rint(first).astype(np.int64), np.rint(last).astype(np.int64)
            widths = self.surface.law.half_widths(*corners, self.confidence)
            for end, found in zip(
                ends, whole_interval(centre[whole], widths, self.estimate[whole])
            ):
                end[whole] = found
        return ends

    @property
    def std_error(self) -> FloatArray:
        """Standard errors: noise, and what is not known inside boxes that are cut."""
        return np.sqrt(self._uncertainty[0] + self._uncertainty[3])

    @property
    def by_area(self) -> FloatArray:
        """The part of each estimate that rests on the uniformity assumption."""
        return self._uncertainty[1]

    @property
    def low(self) -> FloatArray:
        """Lower ends of the intervals."""
        return self._ends[0]

    @property
    def high(self) -> FloatArray:
        """Upper ends of the intervals."""
        return self._ends[1]

    def __len__(self) -> int:
        return len(self.estimate)

    def __getitem__(self, index: int) -> MapAnswer:
        estimate, std_error, by_area = (
            float(part[index]) for part in (self.estimate, self.std_error, self.by_area)
        )
        return MapAnswer(
            estimate,
            std_error,
            by_area,
            float(self.low[index]),
            float(self.high[index]),
            self.confidence,
        )

    def __iter__(self) -> Iterator[MapAnswer]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"MapAnswers({len(self):,}, confidence {self.confidence:g})"

    def _repr_html_(self) -> str:
        rows = ([a.estimate, a.std_error, a.by_area, a.low, a.high] for a in self)
        columns = ["estimate", "std error", "by area", "low", "high"]
        return html_table(
            f"Answers with intervals at {self.confidence:g}", columns, rows, n_rows=len(self)
        )

    def table(self) -> pa.Table:
        """The answers as an Arrow table: estimate, std_error, by_area, low, high."""
        return pa.table(
            {
                name: getattr(self, name)
                for name in ("estimate", "std_error", "by_area", "low", "high")
            }
        )


@dataclass(frozen=True, eq=False)
class MapSurface:
    """Estimates as a density over the cells of the grid, with running sums: any box takes a few
    additions.

    ``law`` is that of the errors of whole boxes, where intervals are known.
    """

    estimates: MapEstimates
    law: BoxLaw | None = None

    @cached_property
    def density(self) -> FloatArray:
        """Published count per cell of the fine grid, each box's count spread evenly."""
        return uniform_density(self.estimates.tree, self.estimates.leaves, self.estimates.published)

    @cached_property
    def sums(self) -> FloatArray:
        """Running sums of the density."""
        return prefix_sums(self.density)

    @cached_property
    def _unbiased_sums(self) -> FloatArray:
        part = self.estimates
        return prefix_sums(uniform_density(part.tree, part.leaves, part.unbiased))

    @cached_property
    def _from_below(self) -> FloatArray:
        return variances_from_below(self.estimates.variances, self.estimates.tree.child_starts)

    def answer(self, low: FloatArray, high: FloatArray, *, unbiased: bool = False) -> FloatArray:
        """Estimates of boxes given in cells, fractions of cells by area: the published ones, or the
        unbiased ones.
        """
        sums = self._unbiased_sums if unbiased else self.sums
        total = np.zeros(len(low))
        for ends in product((False, True), repeat=sums.ndim):
            corner = np.where(ends, high, low)
            sign = -1.0 if (sums.ndim - sum(ends)) % 2 else 1.0
            total += sign * interpolate(sums, corner)
        return total

    @cached_property
    def clustering(self) -> float:
        """ρ of the map: how unevenly points are spread inside boxes, from 0 (evenly) to 1 (all in
        one place).
        """
        return clustering(self.estimates, self._from_below)

    @cached_property
    def along_border(self) -> float:
        """What boxes along a border share of the error inside them, from 2/(π c₀) of the slides up
        to 1.
        """
        return shared_along_borders(self.estimates)

    @cached_property
    def _unknown(self) -> tuple[FloatArray, FloatArray]:
        return unknown_inside(self.estimates, self.clustering, self.along_border)

    def uncertainty(
        self, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
        """Variance of the unbiased estimate of each box, the part of the published one that rests
        on uniformity, how many boxes the query cuts, and the variance of what is not known inside
        them.
        """
        part = self.estimates
        noise = part.variances, self._from_below, part.published.astype(np.float64), *self._unknown
        return box_uncertainty(part.tree, part.leaves, noise, low, high)


def interpolate(sums: FloatArray, points: FloatArray) -> FloatArray:
    """Running sums at points between grid points, linear in every dimension: exact for a density
    constant on cells.
    """
    whole = np.minimum(np.floor(points).astype(np.int64), np.array(sums.shape) - 2)
    rest = points - whole
    total = np.zeros(len(points))
    for ends in product((0, 1), repeat=sums.ndim):
        weight = np.prod(np.where(ends, rest, 1.0 - rest), axis=1)
        total += weight * sums[tuple(whole[:, axis] + end for axis, end in enumerate(ends))]
    return total


def boxes_in_cells(
    boxes: Sequence[Sequence[Sequence[object]]] | FloatArray, frame: Frame
) -> tuple[FloatArray, FloatArray]:
    """Queries in coordinates as queries in cells; a category stands for its cell, as either end."""
    try:
        given = np.asarray(
            _named(boxes, frame.axes) if frame.axes is not None else boxes, dtype=np.float64
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, RequestError):
            raise
        given = np.empty(0)
    if given.ndim != 3 or given.shape[1:] != (len(frame.shape), 2):
        raise RequestError(
            f"A box is one pair (low, high) for each of the {len(frame.shape)} columns, and many "
            "boxes are a list of these."
        )
    return frame.to_cells(given[:, :, 0], given[:, :, 1])


def _named(
    boxes: Sequence[Sequence[Sequence[object]]] | FloatArray, axes: Sequence[Bins]
) -> list[list[Any]]:
    """Queries with the names of categories replaced by their places."""
    return [
        [
            bins.span(*side) if bins.categories is not None else side
            for bins, side in zip(axes, box, strict=True)
        ]
        for box in boxes
    ]
