"""Where the cells of a grid lie: a public box cut evenly, or at stated edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.bins import Bins

Box = tuple[tuple[float, float], ...]

# Exact counts and their running sums, two arrays of 8 bytes per cell.
MOST_CELLS = 1 << 27
# A coordinate so close to a line between cells, in cells and per cell of the side, was meant to lie
# on it.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Frame:
    """The cells of a grid in the coordinates of its columns.

    Attributes
    ----------
    box
        Lower and upper end of every column.
    shape
        Cells per column.
    axes
        The bins of every column, where their edges were stated; None where every side of the box is
        cut evenly.
    """

    box: Box
    shape: tuple[int, ...]
    axes: tuple[Bins, ...] | None = None

    def __post_init__(self) -> None:
        if self.axes is not None and tuple(axis.n_bins for axis in self.axes) != self.shape:
            raise RequestError(
                f"The counts have the shape {self.shape}; give edges of as many cells for every "
                "column."
            )
        if len(self.box) != len(self.shape):
            raise RequestError(
                f"The box has {len(self.box)} sides for {len(self.shape)} columns; give one each."
            )

    def lines(self, axis: int, cells: IntArray | FloatArray) -> FloatArray:
        """Coordinates of lines between cells, numbered from 0; between two lines in proportion."""
        if self.axes is not None:
            return np.asarray(
                np.interp(cells, np.arange(self.shape[axis] + 1), self.axes[axis].edges),
                dtype=np.float64,
            )
        low, high = self.box[axis]
        return np.asarray(low + (high - low) / self.shape[axis] * cells, dtype=np.float64)

    def to_cells(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Corners in coordinates, one row each, as corners in cells; refuses what lies outside or
        has no extent.
        """
        sides = np.array(self.box)
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))) or (
            np.any(low < sides[:, 0]) or np.any(high > sides[:, 1])
        ):
            reach = ", ".join(f"{a:g} to {b:g}" for a, b in self.box)
            raise RequestError(
                f"A box lies outside the map, which runs from {reach}. Cut it to that."
            )
        if np.any(low >= high):
            raise RequestError("A box runs from low to high in every column; one has no extent.")
        return self._cells(low), self._cells(high)

    def _cells(self, places: FloatArray) -> FloatArray:
        """Coordinates as cells and fractions of them; those that were meant to lie on a line lie on
        it.
        """
        found = np.empty_like(places)
        for axis, ((low, high), n_cells) in enumerate(zip(self.box, self.shape)):
            if self.axes is not None:
                found[:, axis] = np.interp(
                    places[:, axis], self.axes[axis].edges, np.arange(n_cells + 1)
                )
            else:
                found[:, axis] = (places[:, axis] - low) * (n_cells / (high - low))
        whole = np.rint(found)
        near = np.abs(found - whole) <= ROUNDING * np.array(self.shape)
        return np.minimum(np.where(near, whole, found), np.array(self.shape, dtype=np.float64))


def frame_of(axes: Sequence[Bins]) -> Frame:
    """The frame of a grid whose edges are stated."""
    box = tuple((float(axis.edges[0]), float(axis.edges[-1])) for axis in axes)
    return Frame(box, check_cells([axis.n_bins for axis in axes]), tuple(axes))


def check_box(box: Sequence[Sequence[float]], n_columns: int | None = None) -> Box:
    """A public box as pairs of numbers, each side with extent."""
    try:
        sides = tuple((float(low), float(high)) for low, high in box)
    except (TypeError, ValueError):
        raise RequestError(f"A box is one pair (low, high) per column, got {box!r}.") from None
    if n_columns is not None and len(sides) != n_columns:
        raise RequestError(
            f"The box has {len(sides)} sides for {n_columns} columns; give one (low, high) per "
            "column."
        )
    for low, high in sides:
        if not (
            math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)
        ):
            raise RequestError(
                f"A side of the box runs from a number to a larger one, got {low:g} to {high:g}: "
                "the box has no area."
            )
    return sides


def check_cells(shape: Sequence[int]) -> tuple[int, ...]:
    """Cells per dimension, refused before any memory is taken where there would be too many."""
    if any(isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1 for n in shape):
        raise RequestError(
            "The resolution is a whole number of cells per column, at least 1; got "
            f"{tuple(shape)!r}."
        )
    cells = math.prod(int(n) for n in shape)
    if cells > MOST_CELLS:
        raise RequestError(
            f"A grid of {' x '.join(f'{int(n):,}' for n in shape)} cells would take "
            f"{cells * 16 // 2**30:,} GiB; at most "
            f"{MOST_CELLS:,} cells are counted. Choose a lower resolution or fewer columns."
        )
    return tuple(int(n) for n in shape)
