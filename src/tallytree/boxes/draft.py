"""A tree of boxes while it grows: methods ask for noisy counts and decide from them where to split
further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Protocol

import numpy as np

from tallytree.model.arrays import BoolArray, FloatArray, IntArray
from tallytree.model.box_tree import BoxTree

# The query whose values are those of clusters of cells, each cell with the sum of its cluster.
CLUSTER = "cluster"
# Noisy bins that chose a number of parts and nothing else: kept because they were paid for, and
# left out of estimates; they are no boxes of the tree.
FOR_PARTS = "bin, for the number of parts"


class Descent(Protocol):
    """Decisions of one descent; each question is about boxes inside those that the question before
    told to split.
    """

    def worth(self, low: IntArray, high: IntArray) -> BoolArray:
        """Which boxes hold enough points to be split."""


class Survey(Protocol):
    """The door to the confidential points, as methods see it: everything asked is paid for and
    comes back noisy.

    The boxes of one question must not overlap. ``share`` is the part of the whole budget that the
    question costs every point in its boxes; no point may be asked for more than the whole.
    """

    @property
    def epsilon(self) -> float:
        """A pure ε whose noise is as large as that of the whole budget: what the slides' formulas
        call ε.
        """

    def count(self, low: IntArray, high: IntArray, share: Fraction, query: str) -> IntArray:
        """Noisy number of points in each box."""

    def sums(
        self, low: IntArray, high: IntArray, cluster: IntArray, share: Fraction, query: str
    ) -> IntArray:
        """Noisy number of points in each cluster, of boxes that do not overlap; clusters are
        numbered from 0.
        """

    def cut(
        self, low: IntArray, high: IntArray, axis: int, share: Fraction, query: str
    ) -> IntArray:
        """A private median of each box along an axis: the first cell of the upper half, inside the
        box.
        """

    def part(
        self,
        low: IntArray,
        high: IntArray,
        share: Fraction,
        query: str,
        prior: Sequence[FloatArray],
    ) -> IntArray:
        """A private boundary inside each stretch of bins of a line, between bins that differ;
        ``prior`` holds log weights.
        """

    def parts(self, tree: BoxTree, share: Fraction, query: str, price: float) -> IntArray:
        """A private tiling of the grid by nodes of a tree, of even counts each; one more node must
        save its ``price``.
        """

    def descend(self, share: Fraction, query: str) -> Descent:
        """Private decisions on the way down from the whole grid, of any number, for one share."""

    def boundaries(self, n_parts: int, largest: int, share: Fraction, query: str) -> IntArray:
        """Private boundaries between parts of a line with small squared deviations; counts are cut
        off at ``largest``.
        """

    def variance(self, share: Fraction) -> float:
        """Variance of a noisy count that costs ``share``."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts of some nodes, all with the same noise.

    ``nodes`` of the query :data:`FOR_PARTS` are the numbers of bins along the line instead.
    """

    query: str
    share: Fraction
    nodes: IntArray
    values: IntArray
    variance: float

    @property
    def of_boxes(self) -> bool:
        """Whether the counts are of boxes of the tree."""
        return self.query != FOR_PARTS

    def boxes(self, tree: BoxTree) -> tuple[IntArray, IntArray]:
        """First and one past last cell of what was counted, per dimension."""
        if self.of_boxes:
            return tree.low[self.nodes], tree.high[self.nodes]
        return self.nodes[:, None], self.nodes[:, None] + 1


@dataclass(eq=False)
class Draft:
    """Boxes in the order in which they came, with their parents, and what was measured so far."""

    shape: tuple[int, ...]
    survey: Survey
    low: list[IntArray] = field(default_factory=list)
    high: list[IntArray] = field(default_factory=list)
    parent: list[IntArray] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    closed: list[IntArray] = field(default_factory=list)
    n_nodes: int = 0

    def __post_init__(self) -> None:
        whole = np.array([self.shape], dtype=np.int64)
        self._append(np.zeros_like(whole), whole, np.array([-1]))

    @property
    def root(self) -> IntArray:
        """The whole grid, as a list of one node."""
        return np.zeros(1, dtype=np.int64)

    def boxes(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """First cell and one past the last of each node."""
        self.low, self.high = [np.concatenate(self.low)], [np.concatenate(self.high)]
        return self.low[0][nodes], self.high[0][nodes]

    def count(self, nodes: IntArray, share: Fraction, query: str) -> IntArray:
        """Measure nodes that do not overlap."""
        low, high = self.boxes(nodes)
        values = self.survey.count(low, high, share, query)
        self.record(nodes, values, share, query)
        return values

    def record(self, nodes: IntArray, values: IntArray, share: Fraction, query: str) -> None:
        """Note noisy counts that the survey gave for the boxes of these nodes."""
        self.measurements.append(
            Measurement(query, share, nodes, values, self.survey.variance(share))
        )

    def close(self, nodes: IntArray) -> None:
        """Publish nothing finer than these nodes: what was measured below them only sharpens their
        counts.
        """
        self.closed.append(nodes)

    def split_line(self, edges: IntArray) -> IntArray:
        """Split the root of a one-dimensional map at edges, its two ends included."""
        if len(edges) == 2:
            return self.root
        return self._append(
            edges[:-1, None], edges[1:, None], np.zeros(len(edges) - 1, dtype=np.int64)
        )

    def split_bins(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """Split nodes of a one-dimensional map into their bins, all of them children of the node
        itself.
        """
        low, high = self.boxes(nodes)
        lengths = (high - low)[:, 0]
        bins = _ranges(np.arange(self.shape[0]), low[:, 0], lengths)[:, None]
        return self._append(bins, bins + 1, np.repeat(nodes, lengths)), np.repeat(
            np.arange(len(nodes)), lengths
        )

    def split_grid(self, nodes: IntArray, pieces: IntArray | int) -> tuple[IntArray, IntArray]:
        """Split each node into ``pieces`` parts per dimension, at most as many as it has cells.

        A large grid hangs below its node by way of halves of halves, which are not measured:
        kernels then walk a tree of small families, and rules that go from parents to children work
        block by block. A node in one piece stays as it is.

        Returns
        -------
        cells, origin
            The nodes of the pieces, and for each the position in ``nodes`` of the node that it is a
            piece of.
        """
        low, high = self.boxes(nodes)
        parts = np.minimum(
            np.broadcast_to(np.asarray(pieces).reshape(-1, 1), low.shape), high - low
        )
        block = _Blocks(low, high, parts, np.zeros_like(low), parts, np.arange(len(nodes)), nodes)
        done, origin = [], []
        while len(block.nodes):
            whole = np.all(block.last - block.first == 1, axis=1)
            done.append(block.nodes[whole])
            origin.append(block.origin[whole])
            block = block.halves(~whole)
            if len(block.nodes):
                block.nodes = self._append(
                    block.cut(block.first), block.cut(block.last), block.nodes
                )
        return np.concatenate(done), np.concatenate(origin)

    def split_at(self, nodes: IntArray, axis: int, cuts: IntArray) -> IntArray:
        """Split each node in two along an axis, before the cell ``cuts``; the halves side by side."""
        low, high = self.boxes(nodes)
        low, high = np.repeat(low, 2, axis=0), np.repeat(high, 2, axis=0)
        high[0::2, axis] = cuts
        low[1::2, axis] = cuts
        return self._append(low, high, np.repeat(nodes, 2))

    def split_as(
        self, nodes: IntArray, tree: BoxTree, place: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Split nodes as the nodes ``place`` of a tree over the same grid are; returns the pieces
        and their places in it.
        """
        starts, lengths = tree.child_starts[place], np.diff(tree.child_starts)[place]
        below = _ranges(np.arange(tree.n_nodes), starts, lengths)
        return self._append(tree.low[below], tree.high[below], np.repeat(nodes, lengths)), below

    def united(self, nodes: IntArray) -> IntArray:
        """The same area in the fewest boxes: families that are here as a whole become their
        parents, up to the root.
        """
        self.parent = [np.concatenate(self.parent)]
        n_children = np.bincount(self.parent[0][1:], minlength=self.n_nodes)
        while True:
            above = self.parent[0][nodes]
            here = np.bincount(above[above >= 0], minlength=self.n_nodes)
            joined = (above >= 0) & (here == n_children)[above]
            if not joined.any():
                return nodes
            nodes = np.concatenate([nodes[~joined], np.unique(above[joined])])

    def finish(self) -> tuple[BoxTree, list[Measurement]]:
        """The tree with its nodes in order, and the measurements with the new numbers of their
        nodes; see ``leaves``.
        """
        tree, measured, place = self.so_far()
        self.closed = [place[nodes] for nodes in self.closed]
        return tree, measured

    def so_far(self) -> tuple[BoxTree, list[Measurement], IntArray]:
        """As ``finish``, for a draft that goes on; and the number that each of its nodes has in the
        tree.
        """
        low, high, parent = (np.concatenate(part) for part in (self.low, self.high, self.parent))
        order, layer = [self.root], self.root
        place = np.full(self.n_nodes, -1)
        place[0] = 0
        by_parent = np.argsort(parent, kind="stable")
        starts = np.searchsorted(parent[by_parent], np.arange(self.n_nodes + 1))
        n_children = np.diff(starts)
        while len(layer := _ranges(by_parent, starts[layer], n_children[layer])):
            order.append(layer)
        new_order = np.concatenate(order)
        place[new_order] = np.arange(self.n_nodes)
        child_starts = np.concatenate([[1], 1 + np.cumsum(n_children[new_order])])
        tree = BoxTree(self.shape, low[new_order], high[new_order], child_starts)
        measured = [
            replace(m, nodes=place[m.nodes]) if m.of_boxes else m for m in self.measurements
        ]
        return tree, measured, place

    def leaves(self, tree: BoxTree) -> BoolArray:
        """Of the finished tree: the nodes that tile the map, its leaves or the nodes that were
        closed.
        """
        stops = np.array(tree.is_leaf)
        for nodes in self.closed:
            stops[nodes] = True
        return stops & ~tree.below(stops)

    def _append(self, low: IntArray, high: IntArray, parent: IntArray) -> IntArray:
        nodes = np.arange(self.n_nodes, self.n_nodes + len(low))
        self.low.append(low)
        self.high.append(high)
        self.parent.append(parent)
        self.n_nodes += len(low)
        return nodes


@dataclass(eq=False)
class _Blocks:
    """Blocks of pieces of nodes: pieces ``first`` up to ``last`` of ``parts``, in every dimension,
    of the box low … high.
    """

    low: IntArray
    high: IntArray
    parts: IntArray
    first: IntArray
    last: IntArray
    origin: IntArray
    nodes: IntArray

    def cut(self, piece: IntArray) -> IntArray:
        """Where a piece begins."""
        return self.low + (self.high - self.low) * piece // self.parts

    def halves(self, chosen: np.ndarray) -> _Blocks:
        """The halves, in every dimension that has two pieces or more, of the chosen blocks;
        siblings side by side.
        """
        rows, dimensions = np.flatnonzero(chosen), self.low.shape[1]
        first, last = self.first[rows], self.last[rows]
        middle = (first + last + 1) // 2
        firsts, lasts, kept = [], [], []
        for ends in product((False, True), repeat=dimensions):
            upper = np.array(ends)
            firsts.append(np.where(upper, middle, first))
            lasts.append(np.where(upper, last, middle))
            kept.append(np.all(firsts[-1] < lasts[-1], axis=1))
        keep = np.stack(kept, axis=1).ravel()
        rows = np.repeat(rows, 1 << dimensions)[keep]
        new_first = np.stack(firsts, axis=1).reshape(-1, dimensions)[keep]
        new_last = np.stack(lasts, axis=1).reshape(-1, dimensions)[keep]
        return _Blocks(
            self.low[rows],
            self.high[rows],
            self.parts[rows],
            new_first,
            new_last,
            self.origin[rows],
            self.nodes[rows],
        )


def _ranges(values: IntArray, starts: IntArray, lengths: IntArray) -> IntArray:
    """values[start : start + length] for every start, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return values[np.arange(total) + np.repeat(starts - ends + lengths, lengths)]


def combine_measurements(
    n_nodes: int, measurements: list[Measurement]
) -> tuple[FloatArray, FloatArray]:
    """One value and variance per node: the average of its measurements by inverse variance;
    infinite where there is none.

    Sums of clusters are no measurements of single nodes and left out; so are bins that a method
    measured for its number of parts alone.
    """
    weight, weighted = np.zeros(n_nodes), np.zeros(n_nodes)
    for one in (one for one in measurements if one.of_boxes and one.query != CLUSTER):
        weight[one.nodes] += 1 / one.variance
        weighted[one.nodes] += one.values / one.variance
    with np.errstate(divide="ignore"):
        return np.where(weight > 0, weighted / np.maximum(weight, 1e-300), 0.0), 1 / weight
