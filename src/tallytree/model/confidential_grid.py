"""Confidential counts on a fine public grid: what points become before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.bins import Bins
from tallytree.model.box_tree import prefix_sums
from tallytree.model.confidential import UNALTERED, Altered, Confidential, Fact
from tallytree.model.confidential_histogram import ConfidentialHistogram
from tallytree.model.frame import Box
from tallytree.model.limits import saturated
from tallytree.model.part import Part
from tallytree.model.unit import ONE_ROW, Unit

LARGEST_SUM = 1 << 61


@dataclass(frozen=True)
class PublicGrid:
    """What is public about a grid, which the manifest of a map says.

    Attributes
    ----------
    box
        Lower and upper end of each dimension.
    columns
        Names of the dimensions.
    shape
        Cells per dimension.
    note
        What was done to points outside the box.
    unit
        What is protected.
    part
        The rows that were read: those of one part, or all of them (None).
    crs
        Coordinate system of the columns, such as ``EPSG:27700``; empty where nobody said.
    """

    box: Box
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    note: str = "counts per cell were given"
    unit: Unit = ONE_ROW
    part: Part | None = None
    crs: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialGrid(Confidential):
    """Exact counts per cell of a regular grid. Only :mod:`tallytree.boxes.measure` and evaluations
    look inside.

    Attributes
    ----------
    counts
        Confidential: entities per cell, one dimension per column.
    public
        What may be said about them.
    axes
        Public: the bins of each dimension, where their edges were stated; None where the box is cut
        evenly.
    altered
        Confidential: to how many points outside the box something was done.
    """

    counts: IntArray
    public: PublicGrid
    axes: tuple[Bins, ...] | None = None
    altered: Altered = UNALTERED

    def __post_init__(self) -> None:
        if self.counts.dtype != np.int64 or np.any(self.counts < 0):
            raise InputError("Counts per cell are whole numbers of at least 0.")
        sides = len(self.public.box), len(self.public.columns)
        if self.counts.shape != self.public.shape or sides != (self.counts.ndim,) * 2:
            raise RequestError(
                "A grid has as many sides in its box and as many columns as dimensions."
            )
        object.__setattr__(self, "counts", read_only(saturated(self.counts)))

    def facts(self) -> Iterator[Fact]:
        """As in :class:`~tallytree.model.confidential.ExactValues`."""
        axes = None if self.axes is None else [axis.spelled for axis in self.axes]
        public = self.public
        yield repr((public.box, public.columns, axes, public.unit))
        yield self.counts

    @cached_property
    def sums(self) -> IntArray:
        """Confidential: running sums, so that the count of any box takes a few additions.

        Counts are cut off where their sum might not fit 64 bits. That is a contraction, so
        sensitivities hold.
        """
        return prefix_sums(np.minimum(self.counts, LARGEST_SUM // self.counts.size))

    def _shown(self) -> str:
        return f"{' x '.join(map(str, self.public.shape))} cells"


def grid_of(histogram: ConfidentialHistogram) -> ConfidentialGrid:
    """A histogram as a grid whose columns are its axes."""
    columns = (
        ("value",)
        if len(histogram.axes) == 1
        else tuple(f"value_{n}" for n in range(len(histogram.axes)))
    )
    box = tuple((float(axis.edges[0]), float(axis.edges[-1])) for axis in histogram.axes)
    known = histogram.public
    public = PublicGrid(box, columns, histogram.counts.shape, known.note, known.unit, known.part)
    return ConfidentialGrid(histogram.counts, public, histogram.axes, histogram.altered)
