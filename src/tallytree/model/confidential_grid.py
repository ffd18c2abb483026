"""Confidential counts on a fine public grid: what points become before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.box_tree import prefix_sums
from tallytree.model.confidential import Confidential
from tallytree.model.limits import saturated
from tallytree.model.part import Part
from tallytree.model.unit import ONE_ROW, Unit

Box = tuple[tuple[float, float], ...]

# Exact counts and their running sums, two arrays of 8 bytes per cell.
MOST_CELLS = 1 << 27
LARGEST_SUM = 1 << 61


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialGrid(Confidential):
    """Exact counts per cell of a regular grid. Only :mod:`tallytree.measure` and evaluations look inside.

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
    """

    counts: IntArray
    box: Box
    columns: tuple[str, ...]
    note: str = "counts per cell were given"
    unit: Unit = ONE_ROW
    part: Part | None = None

    def __post_init__(self) -> None:
        if self.counts.dtype != np.int64 or np.any(self.counts < 0):
            raise InputError("Counts per cell are whole numbers of at least 0.")
        if not self.counts.ndim == len(self.box) == len(self.columns):
            raise RequestError("A grid has as many sides in its box and as many columns as dimensions.")
        object.__setattr__(self, "counts", read_only(saturated(self.counts)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Public: cells per dimension."""
        return self.counts.shape

    @cached_property
    def sums(self) -> IntArray:
        """Confidential: running sums, so that the count of any box takes a few additions.

        Counts are cut off where their sum might not fit 64 bits. That is a contraction, so sensitivities hold.
        """
        return prefix_sums(np.minimum(self.counts, LARGEST_SUM // self.counts.size))

    def _shown(self) -> str:
        return f"{' x '.join(map(str, self.shape))} cells"


def check_box(box: Sequence[Sequence[float]], n_columns: int | None = None) -> Box:
    """A public box as pairs of numbers, each side with extent."""
    try:
        sides = tuple((float(low), float(high)) for low, high in box)
    except (TypeError, ValueError):
        raise RequestError(f"A box is one pair (low, high) per column, got {box!r}.") from None
    if n_columns is not None and len(sides) != n_columns:
        raise RequestError(f"The box has {len(sides)} sides for {n_columns} columns; give one (low, high) per column.")
    for low, high in sides:
        if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
            raise RequestError(
                f"A side of the box runs from a number to a larger one, got {low:g} to {high:g}: the box has no area."
            )
    return sides


def check_cells(shape: Sequence[int]) -> tuple[int, ...]:
    """Cells per dimension, refused before any memory is taken where there would be too many."""
    if any(isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1 for n in shape):
        raise RequestError(f"The resolution is a whole number of cells per column, at least 1; got {tuple(shape)!r}.")
    cells = math.prod(int(n) for n in shape)
    if cells > MOST_CELLS:
        raise RequestError(
            f"A grid of {' x '.join(f'{int(n):,}' for n in shape)} cells would take {cells * 16 / 2**30:,.0f} GiB; at most "
            f"{MOST_CELLS:,} cells are counted. Choose a lower resolution or fewer columns."
        )
    return tuple(int(n) for n in shape)
