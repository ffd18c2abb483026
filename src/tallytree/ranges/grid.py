"""Histograms in several dimensions: cells of a grid, nested blocks of b^d children, estimates and their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tallytree.kernels.boxes.moments import BoxNoise, box_moments
from tallytree.kernels.range_moments import quartics
from tallytree.kernels.trees.least_squares import tree_least_squares, variances_from_below
from tallytree.model.arrays import FloatArray, IntArray, offsets_from_lengths, read_only


@dataclass(frozen=True)
class GridLayout:
    """Nested blocks over a grid as numbered nodes, children of one node side by side.

    Level ``l`` cuts every axis into blocks of ``widths[l]`` cells, the last ones of an axis may be short; the last
    level is the cells. A root that is not counted is put on top unless the first level is a single block. Within a
    level nodes are numbered by parent, then in row-major order; ``orders[l]`` holds their row-major numbers.
    """

    shape: tuple[int, ...]
    widths: tuple[int, ...]

    def level_shape(self, level: int) -> tuple[int, ...]:
        """Blocks along each axis."""
        return tuple(-(-size // self.widths[level]) for size in self.shape)

    def level_size(self, level: int) -> int:
        """Number of blocks of a level."""
        return math.prod(self.level_shape(level))

    @property
    def has_bare_root(self) -> bool:
        """Whether the root was added and is not counted."""
        return self.level_size(0) > 1

    @cached_property
    def level_starts(self) -> IntArray:
        """Nodes of level ``l``, an added root being level 0, are ``level_starts[l]:level_starts[l + 1]``."""
        sizes = [self.level_size(level) for level in range(len(self.widths))]
        return read_only(offsets_from_lengths(np.array([1, *sizes] if self.has_bare_root else sizes)))

    @property
    def n_nodes(self) -> int:
        """Number of nodes, an added root included."""
        return int(self.level_starts[-1])

    @property
    def leaves(self) -> slice:
        """The nodes that are cells."""
        return slice(int(self.level_starts[-2]), int(self.level_starts[-1]))

    @cached_property
    def _numbering(self) -> tuple[list[IntArray], list[IntArray]]:
        """Row-major numbers of the nodes of each level in tree order, and how many children the nodes above have."""
        orders, n_children = [], []
        rank_above = np.zeros(1, dtype=np.int64)
        for level in range(len(self.widths)):
            shape = self.level_shape(level)
            if level == 0:
                parent = np.zeros(math.prod(shape), dtype=np.int64)
            else:
                ratio = self.widths[level - 1] // self.widths[level]
                places = np.unravel_index(np.arange(math.prod(shape)), shape)
                above = np.ravel_multi_index([place // ratio for place in places], self.level_shape(level - 1))
                parent = rank_above[above]
            order = np.argsort(parent, kind="stable")
            orders.append(order)
            n_children.append(np.bincount(parent, minlength=len(rank_above)))
            rank_above = np.empty_like(order)
            rank_above[order] = np.arange(len(order))
        return orders, n_children

    @property
    def orders(self) -> list[IntArray]:
        """Row-major number of each node of each level, in tree order."""
        return self._numbering[0]

    @cached_property
    def child_starts(self) -> IntArray:
        """Children of node ``v`` are ``child_starts[v]:child_starts[v + 1]``."""
        n_children = self._numbering[1] if self.has_bare_root else self._numbering[1][1:]
        leaves = np.zeros(self.level_size(len(self.widths) - 1), dtype=np.int64)
        return read_only(1 + offsets_from_lengths(np.concatenate([*n_children, leaves])))

    @cached_property
    def bounds(self) -> tuple[IntArray, IntArray]:
        """First and one past last cell of each node along each axis."""
        lows = [np.zeros((1, len(self.shape)), dtype=np.int64)] if self.has_bare_root else []
        highs = [np.array([self.shape], dtype=np.int64)] if self.has_bare_root else []
        for level, width in enumerate(self.widths):
            places = np.stack(np.unravel_index(self.orders[level], self.level_shape(level)), axis=1) * width
            lows.append(places)
            highs.append(np.minimum(places + width, np.array(self.shape)))
        return np.concatenate(lows), np.concatenate(highs)

    def to_leaves(self, cells: FloatArray) -> FloatArray:
        """Values per cell, row-major, in the order of the leaves."""
        return cells[self.orders[-1]]

    def from_leaves(self, leaves: FloatArray | IntArray) -> FloatArray | IntArray:
        """Values per leaf, back in row-major order."""
        cells = np.empty_like(leaves)
        cells[self.orders[-1]] = leaves
        return cells

    def block_sums(self, counts: IntArray) -> list[IntArray]:
        """Sums of cells over the blocks of each level, row-major, the coarsest first; ``counts`` are row-major too."""
        sums = [counts.reshape(self.shape)]
        for coarse, fine in zip(self.widths[-2::-1], self.widths[:0:-1]):
            block = sums[-1]
            for axis in range(len(self.shape)):
                block = np.add.reduceat(block, np.arange(0, block.shape[axis], coarse // fine), axis=axis)
            sums.append(block)
        return [block.ravel() for block in sums[::-1]]


@dataclass(frozen=True, eq=False)
class GridErrors:
    """Noise per level of a grid, the coarsest first; infinite variance for a level that was not measured."""

    layout: GridLayout
    variance: FloatArray
    cumulant: FloatArray

    def _per_node(self, by_level: FloatArray, root: float) -> FloatArray:
        levels = np.concatenate([[root], by_level]) if self.layout.has_bare_root else by_level
        return np.repeat(levels, np.diff(self.layout.level_starts))

    @cached_property
    def node_variances(self) -> FloatArray:
        """Noise variance of every node."""
        return self._per_node(self.variance, np.inf)

    @cached_property
    def from_below(self) -> FloatArray:
        """Variance of the best estimate of each node from the blocks at and below it."""
        return variances_from_below(self.node_variances, self.layout.child_starts)

    @cached_property
    def _noise(self) -> BoxNoise:
        cumulants = self._per_node(self.cumulant, 0.0)
        quartic = quartics(self.layout.child_starts, self.node_variances, cumulants, self.from_below)
        low, high = self.layout.bounds
        return BoxNoise(self.layout.child_starts, low, high, self.node_variances, cumulants, self.from_below, quartic)

    def box_moments(self, lows: IntArray, highs: IntArray) -> tuple[FloatArray, FloatArray]:
        """Variance and fourth cumulant of the estimates of boxes of cells, lows included and highs not; one row
        each."""
        return box_moments(self._noise, lows, highs)

    def node_values(self, noisy: Sequence[IntArray]) -> FloatArray:
        """Noisy answers of every node; 0 at nodes that were not measured, where it is ignored."""
        layout = self.layout
        bare = [np.zeros(1)] if layout.has_bare_root else []
        levels = [
            answers[layout.orders[level]] if len(answers) else np.zeros(layout.level_size(level))
            for level, answers in enumerate(noisy)
        ]
        return np.concatenate([*bare, *levels]).astype(np.float64)

    def node_estimates(self, noisy: Sequence[IntArray]) -> FloatArray:
        """Least-squares estimate of every node."""
        values, variances = self.node_values(noisy), self.node_variances
        return tree_least_squares(values, variances, self.layout.child_starts, from_below=self.from_below)
