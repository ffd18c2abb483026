"""Trees of boxes on a regular grid: what grids, quadtrees and kd-trees have in common.

A box is the cells from ``low`` up to, not including, ``high``, in every dimension. Children tile
their parent. A leaf's count is taken as spread evenly over its cells, which is the uniformity
assumption of the slides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeVar

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import BoolArray, FloatArray, IntArray, read_only

Numbers = TypeVar("Numbers", IntArray, FloatArray)


def prefix_sums(counts: Numbers) -> Numbers:
    """Sums over all cells below each grid point: one more entry than cells in every dimension."""
    sums = np.zeros([n + 1 for n in counts.shape], dtype=counts.dtype)
    sums[(slice(1, None),) * counts.ndim] = counts
    for axis in range(counts.ndim):
        np.cumsum(sums, axis=axis, out=sums)
    return sums


def box_sums(sums: Numbers, low: IntArray, high: IntArray) -> Numbers:
    """Sum of the cells of each box, from running sums: 2**d entries per box."""
    total = np.zeros(len(low), dtype=sums.dtype)
    for ends in product((0, 1), repeat=sums.ndim):
        corner = tuple(np.where(end, high[:, axis], low[:, axis]) for axis, end in enumerate(ends))
        if (sums.ndim - sum(ends)) % 2:
            total -= sums[corner]
        else:
            total += sums[corner]
    return total


def paint(shape: tuple[int, ...], low: IntArray, high: IntArray, values: IntArray) -> IntArray:
    """Sum of the values of the boxes that cover each cell; whole numbers, so that nothing is
    rounded.
    """
    canvas = np.zeros([n + 1 for n in shape], dtype=np.int64)
    for ends in product((0, 1), repeat=len(shape)):
        corner = tuple(np.where(end, high[:, axis], low[:, axis]) for axis, end in enumerate(ends))
        np.add.at(canvas, corner, values if sum(ends) % 2 == 0 else -values)
    for axis in range(len(shape)):
        np.cumsum(canvas, axis=axis, out=canvas)
    return canvas[(slice(None, -1),) * len(shape)]


@dataclass(frozen=True, eq=False)
class BoxTree:
    """Boxes numbered with parents before children and siblings side by side.

    Attributes
    ----------
    shape
        Cells of the grid in each dimension; the root is all of it.
    low, high
        One row per node: first cell, and one past the last.
    child_starts
        Children of node ``v`` are ``child_starts[v]:child_starts[v + 1]``.
    """

    shape: tuple[int, ...]
    low: IntArray
    high: IntArray
    child_starts: IntArray

    def __post_init__(self) -> None:
        n_nodes, dimensions = len(self.low), len(self.shape)
        starts = self.child_starts
        if (
            self.low.shape != (n_nodes, dimensions)
            or self.high.shape != self.low.shape
            or len(starts) != n_nodes + 1
        ):
            raise RequestError(
                "A tree of boxes has one row of low and high per node, and one more start of "
                "children."
            )
        if starts[0] != 1 or starts[-1] != n_nodes or np.any(np.diff(starts) < 0):
            raise RequestError(
                "The nodes of a tree of boxes are numbered with parents before children."
            )
        if (
            np.any(self.low[0] != 0)
            or tuple(self.high[0]) != self.shape
            or np.any(self.low >= self.high)
        ):
            raise RequestError(
                "The root of a tree of boxes is the whole grid, and no box is empty."
            )
        for array in (self.low, self.high, self.child_starts):
            read_only(array)

    @property
    def n_nodes(self) -> int:
        """Number of boxes."""
        return len(self.low)

    @cached_property
    def is_leaf(self) -> BoolArray:
        """Which nodes have no children."""
        return read_only(self.child_starts[1:] == self.child_starts[:-1])

    @cached_property
    def parent(self) -> IntArray:
        """Parent of every node, -1 for the root."""
        return read_only(
            np.concatenate([[-1], np.repeat(np.arange(self.n_nodes), np.diff(self.child_starts))])
        )

    @cached_property
    def layers(self) -> tuple[slice, ...]:
        """The nodes of each depth, the root's first."""
        first, last, layers = 0, 1, []
        while first < last:
            layers.append(slice(first, last))
            first, last = last, int(self.child_starts[last])
        return tuple(layers)

    @property
    def layer_starts(self) -> IntArray:
        """First node of each depth, and the number of nodes."""
        return np.array([layer.start for layer in self.layers] + [self.n_nodes])

    @cached_property
    def depth(self) -> IntArray:
        """Number of nodes above every node."""
        return read_only(
            np.repeat(np.arange(len(self.layers)), [part.stop - part.start for part in self.layers])
        )

    def below(self, marked: BoolArray) -> BoolArray:
        """Which nodes have a marked node somewhere above them."""
        found = np.zeros(self.n_nodes, dtype=bool)
        for layer in self.layers[1:]:
            above = self.parent[layer]
            found[layer] = found[above] | marked[above]
        return found

    @cached_property
    def volume(self) -> IntArray:
        """Cells per node."""
        return read_only(np.prod(self.high - self.low, axis=1))

    def tiles(self) -> bool:
        """Whether the children of every node tile it: they lie inside, do not overlap and fill it."""
        inner, rest = ~self.is_leaf, self.parent[1:]
        inside = np.all((self.low[1:] >= self.low[rest]) & (self.high[1:] <= self.high[rest]))
        filled = (
            np.bincount(rest, weights=self.volume[1:], minlength=self.n_nodes)[inner]
            == self.volume[inner]
        )
        leaves = np.flatnonzero(self.is_leaf)
        once = (
            paint(
                self.shape,
                self.low[leaves],
                self.high[leaves],
                np.ones(len(leaves), dtype=np.int64),
            )
            == 1
        )
        return bool(inside and np.all(filled) and np.all(once))


def uniform_density(tree: BoxTree, leaves: BoolArray, values: FloatArray | IntArray) -> FloatArray:
    """Count per cell when each leaf's value is spread evenly over its cells.

    ``leaves`` marks nodes that tile the grid: the leaves of the tree, or of a tree cut short.
    """
    nodes = np.flatnonzero(leaves)
    leaf_of_cell = paint(tree.shape, tree.low[nodes], tree.high[nodes], np.arange(len(nodes)))
    return (values[nodes] / tree.volume[nodes])[leaf_of_cell]
