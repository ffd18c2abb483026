"""Tables that are measured on a hierarchy: one level of regions, one partition of each axis.

The finest cells of a region are all combinations of values, in their order. A measured table adds
them up to the classes of one partition per axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from tallytree.lattice.axes import Axis
from tallytree.model.arrays import FloatArray, IntArray


class TableKey(NamedTuple):
    """A table: its level, and the partition of each axis."""

    level: int
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Axes:
    """The axes of a table, one per attribute.

    Examples
    --------
    >>> from tallytree.lattice.axes import plain_axis
    >>> both = Axes((plain_axis(2), plain_axis(3)))
    >>> both.n_cells, both.partitions
    (6, ((0, 0), (0, 1), (1, 0), (1, 1)))
    """

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Values of each axis."""
        return tuple(axis.n_values for axis in self.axes)

    @property
    def n_cells(self) -> int:
        """Finest cells of a region."""
        return math.prod(self.shape)

    @property
    def partitions(self) -> tuple[tuple[int, ...], ...]:
        """Every choice of one partition per axis."""
        return tuple(product(*(range(len(axis.starts)) for axis in self.axes)))

    @property
    def finest(self) -> tuple[int, ...]:
        """Single values on every axis."""
        return tuple(len(axis.starts) - 1 for axis in self.axes)

    def classes(self, parts: tuple[int, ...]) -> tuple[int, ...]:
        """Classes on each axis."""
        return tuple(axis.n_classes[part] for axis, part in zip(self.axes, parts))

    def n_rows(self, parts: tuple[int, ...]) -> int:
        """Numbers of a table per region."""
        return math.prod(self.classes(parts))

    def row_of_cell(self, parts: tuple[int, ...]) -> IntArray:
        """The number of a table in which each finest cell is counted."""
        row = np.zeros(1, dtype=np.int64)
        for axis, part in zip(self.axes, parts):
            row = (row[:, None] * axis.n_classes[part] + axis.class_of(part)).ravel()
        return row

    @cached_property
    def component(self) -> IntArray:
        """The component of each number of the basis of all axes, by its place in
        :attr:`partitions`.
        """
        place = np.zeros(1, dtype=np.int64)
        for axis in self.axes:
            place = (place[:, None] * len(axis.starts) + axis.component).ravel()
        return place

    def transformed(self, cells: FloatArray) -> FloatArray:
        """Finest cells, ``(n_regions, n_cells)``, as numbers of the basis of all axes.

        Cost: a product with one matrix per axis.
        """
        return self._applied(cells, [axis.basis for axis in self.axes])

    def restored(self, numbers: FloatArray) -> FloatArray:
        """The inverse of :meth:`transformed`, which is its transpose."""
        return self._applied(numbers, [axis.basis.T for axis in self.axes])

    def from_sums(self, parts: tuple[int, ...], sums: FloatArray) -> FloatArray:
        """A table, ``(n_regions, n_rows)``, as the numbers of the basis that it tells of; all
        others are 0.
        """
        n_regions = len(sums)
        told = self._applied(
            sums, [axis.from_sums(part) for axis, part in zip(self.axes, parts)]
        ).reshape(n_regions, *self.classes(parts))
        found = np.zeros((n_regions, *self.shape), dtype=told.dtype)
        found[(slice(None), *(slice(0, n) for n in told.shape[1:]))] = told
        return found.reshape(n_regions, self.n_cells)

    def _applied(self, table: FloatArray, matrices: list[FloatArray]) -> FloatArray:
        """Each axis, the second one of the table and on, times its matrix."""
        n_regions = len(table)
        for matrix in matrices:
            # The axis in front is taken to the end, so that after all of them the order is the
            # old one.
            parts = table.reshape(n_regions, len(matrix), -1)
            table = np.matmul(parts.transpose(0, 2, 1), matrix.astype(table.dtype, copy=False))
        return table.reshape(n_regions, -1)
