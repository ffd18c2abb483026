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
from tallytree.model.frame import Box, Frame
from tallytree.model.limits import saturated
from tallytree.model.part import Part
from tallytree.model.unit import ONE_ROW, Unit

LARGEST_SUM = 1 << 61


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialGrid(Confidential):
    """Exact counts per cell of a regular grid. Only :mod:`tallytree.boxes.measure` and evaluations
    look inside.

    Attributes
    ----------
    counts
        Confidential: entities per cell, one dimension per column.
    box
        Public: lower and upper end of each dimension.
    columns
        Names of the dimensions.
    note
        What was done to points outside the box; goes into the manifest.
    unit
        What is protected.
    part
        The rows that were read: those of one part, or all of them (None).
    axes
        Public: the bins of each dimension, where their edges were stated; None where the box is cut
        evenly.
    crs
        Public: coordinate system of the columns, such as ``EPSG:27700``; empty where nobody said.
    altered
        Confidential: to how many points outside the box something was done.
    """

    counts: IntArray
    box: Box
    columns: tuple[str, ...]
    note: str = "counts per cell were given"
    unit: Unit = ONE_ROW
    part: Part | None = None
    axes: tuple[Bins, ...] | None = None
    crs: str = ""
    altered: Altered = UNALTERED

    def __post_init__(self) -> None:
        if self.counts.dtype != np.int64 or np.any(self.counts < 0):
            raise InputError("Counts per cell are whole numbers of at least 0.")
        if not self.counts.ndim == len(self.box) == len(self.columns):
            raise RequestError(
                "A grid has as many sides in its box and as many columns as dimensions."
            )
        object.__setattr__(self, "counts", read_only(saturated(self.counts)))

    def facts(self) -> Iterator[Fact]:
        """As in :class:`~tallytree.model.confidential.ExactValues`."""
        axes = None if self.axes is None else [axis.spelled for axis in self.axes]
        yield repr((self.box, self.columns, axes, self.unit))
        yield self.counts

    @cached_property
    def frame(self) -> Frame:
        """Public: where the cells lie."""
        return Frame(self.box, self.shape, self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Public: cells per dimension."""
        return self.counts.shape

    @cached_property
    def sums(self) -> IntArray:
        """Confidential: running sums, so that the count of any box takes a few additions.

        Counts are cut off where their sum might not fit 64 bits. That is a contraction, so
        sensitivities hold.
        """
        return prefix_sums(np.minimum(self.counts, LARGEST_SUM // self.counts.size))

    def _shown(self) -> str:
        return f"{' x '.join(map(str, self.shape))} cells"


def grid_of(histogram: ConfidentialHistogram) -> ConfidentialGrid:
    """A histogram as a grid whose columns are its axes."""
    columns = (
        ("value",)
        if len(histogram.axes) == 1
        else tuple(f"value_{n}" for n in range(len(histogram.axes)))
    )
    return ConfidentialGrid(
        histogram.counts,
        tuple((float(axis.edges[0]), float(axis.edges[-1])) for axis in histogram.axes),
        columns,
        histogram.public.note,
        histogram.public.unit,
        histogram.public.part,
        histogram.axes,
        altered=histogram.altered,
    )
