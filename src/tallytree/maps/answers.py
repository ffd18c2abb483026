"""Box queries on a map: estimates by running sums, and how uncertain they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.kernels.boxes.trees import box_uncertainty
from tallytree.kernels.trees.least_squares import variances_from_below
from tallytree.maps.estimates import MapEstimates
from tallytree.model.arrays import FloatArray
from tallytree.model.box_tree import prefix_sums, uniform_density
from tallytree.model.confidential_grid import Box
from tallytree.model.notebook import html_table


@dataclass(frozen=True)
class MapAnswer:
    """How many points lie in a box.

    Attributes
    ----------
    estimate
        What is published.
    standard_error
        Of the unbiased estimate behind it, from the noise alone. What it costs to take points as evenly spread inside
        boxes that the query cuts is not known and not included.
    by_area
        The part of the estimate that comes from boxes the query cuts, by the share of their area inside it: 0 where the
        uniformity assumption plays no role.
    """

    estimate: float
    standard_error: float
    by_area: float


@dataclass(frozen=True, eq=False)
class MapAnswers:
    """Many answers as arrays, with the fields of :class:`MapAnswer`; the last two are worked out when asked for."""

    surface: MapSurface
    low: FloatArray
    high: FloatArray
    estimate: FloatArray

    @cached_property
    def _uncertainty(self) -> tuple[FloatArray, FloatArray]:
        return self.surface.uncertainty(self.low, self.high)

    @property
    def standard_error(self) -> FloatArray:
        """Standard errors from the noise alone."""
        return np.sqrt(self._uncertainty[0])

    @property
    def by_area(self) -> FloatArray:
        """The part of each estimate that rests on the uniformity assumption."""
        return self._uncertainty[1]

    def __len__(self) -> int:
        return len(self.estimate)

    def __getitem__(self, index: int) -> MapAnswer:
        return MapAnswer(float(self.estimate[index]), float(self.standard_error[index]), float(self.by_area[index]))

    def __iter__(self) -> Iterator[MapAnswer]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"MapAnswers({len(self):,})"

    def _repr_html_(self) -> str:
        rows = ([a.estimate, a.standard_error, a.by_area] for a in self)
        return html_table("Answers", ["estimate", "standard error", "by area"], rows, n_rows=len(self))

    def table(self) -> pa.Table:
        """The answers as an Arrow table: estimate, standard_error, by_area."""
        return pa.table({name: getattr(self, name) for name in ("estimate", "standard_error", "by_area")})


@dataclass(frozen=True, eq=False)
class MapSurface:
    """Estimates as a density over the cells of the grid, with running sums: any box takes a few additions."""

    estimates: MapEstimates

    @cached_property
    def density(self) -> FloatArray:
        """Published count per cell of the fine grid, each box's count spread evenly."""
        return uniform_density(self.estimates.tree, self.estimates.leaves, self.estimates.published)

    @cached_property
    def sums(self) -> FloatArray:
        """Running sums of the density."""
        return prefix_sums(self.density)

    @cached_property
    def _from_below(self) -> FloatArray:
        return variances_from_below(self.estimates.variances, self.estimates.tree.child_starts)

    def answer(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Estimates of boxes given in cells, fractions of cells by area."""
        total = np.zeros(len(low))
        for ends in product((False, True), repeat=self.sums.ndim):
            corner = np.where(ends, high, low)
            sign = -1.0 if (self.sums.ndim - sum(ends)) % 2 else 1.0
            total += sign * interpolate(self.sums, corner)
        return total

    def uncertainty(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variance of the unbiased estimate of each box, and the part of the published one that rests on uniformity."""
        part = self.estimates
        noise = part.variances, self._from_below, part.published.astype(np.float64)
        return box_uncertainty(part.tree, part.leaves, noise, low, high)


def interpolate(sums: FloatArray, points: FloatArray) -> FloatArray:
    """Running sums at points between grid points, linear in every dimension: exact for a density constant on cells."""
    whole = np.minimum(np.floor(points).astype(np.int64), np.array(sums.shape) - 2)
    rest = points - whole
    total = np.zeros(len(points))
    for ends in product((0, 1), repeat=sums.ndim):
        weight = np.prod(np.where(ends, rest, 1.0 - rest), axis=1)
        total += weight * sums[tuple(whole[:, axis] + end for axis, end in enumerate(ends))]
    return total


def boxes_in_cells(
    boxes: Sequence[Sequence[Sequence[float]]] | FloatArray, box: Box, shape: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Queries in coordinates as queries in cells; refuses what lies outside the map or has no extent."""
    try:
        given = np.asarray(boxes, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim != 3 or given.shape[1:] != (len(shape), 2):
        raise RequestError(
            f"A box is one pair (low, high) for each of the {len(shape)} columns, and many boxes are a list of these."
        )
    low, high = given[:, :, 0], given[:, :, 1]
    sides = np.array(box)
    if not np.all(np.isfinite(given)) or np.any(low < sides[:, 0]) or np.any(high > sides[:, 1]):
        reach = ", ".join(f"{a:g} to {b:g}" for a, b in box)
        raise RequestError(f"A box lies outside the map, which runs from {reach}. Cut it to that.")
    if np.any(low >= high):
        raise RequestError("A box runs from low to high in every column; one has no extent.")
    scale = np.array(shape) / (sides[:, 1] - sides[:, 0])
    return (low - sides[:, 0]) * scale, np.minimum((high - sides[:, 0]) * scale, np.array(shape))
