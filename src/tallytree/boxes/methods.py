"""The one table of methods for maps, and for histograms whose bins are boxes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, get_args

from tallytree.boxes.adaptive import adaptive
from tallytree.boxes.draft import Draft, Measurement
from tallytree.boxes.grids import adaptive_grid, flat, hierarchical, uniform_grid
from tallytree.boxes.limits import FEW_BINS, FEW_CELLS
from tallytree.boxes.trees import adaptive_tree, kd_hybrid, kd_tree, quad_opt, quadtree
from tallytree.errors import RequestError
from tallytree.extensions import extension
from tallytree.model.arrays import FloatArray
from tallytree.model.box_tree import BoxTree
from tallytree.options.choices import MapMethod
from tallytree.options.maps import MethodOptions

NAMES: tuple[MapMethod, ...] = tuple(name for name in get_args(MapMethod) if name != "auto")


class Clusters(Protocol):
    """Cells that are counted together wherever they lie."""

    def cells(
        self, tree: BoxTree, measurements: Sequence[Measurement], *, nonnegative: bool
    ) -> FloatArray:
        """Every cell with the mean of its cluster, the other nodes with 0."""

    def agree(self, measurements: Sequence[Measurement]) -> bool:
        """Whether all cells of a cluster hold the same sum."""


@dataclass(frozen=True)
class Method:
    """One way to divide a grid into boxes and count them.

    Attributes
    ----------
    grow
        Grows a tree of boxes and asks for noisy counts.
    one_column
        Whether it merges neighbours along the one column there must be.
    chooses
        Whether it chooses boundaries by the exponential mechanism or by noisy comparisons, whose
        loss is not that of Gaussian noise.
    exact_errors
        Whether its boxes are laid out beforehand, or by private choices whose randomness is not
        that of the counts, so that the law of errors is known.
    sparse
        Whether counts are made nonnegative by how sparse they are; else as near to least squares
        as can be.
    smoothed
        Whether counts are drawn to even shares as far as the noisy ones bear it.
    clusters
        Of a method whose cells have the mean of their cluster.
    """

    grow: Callable[[Draft, MethodOptions], None]
    one_column: bool = False
    chooses: bool = False
    exact_errors: bool = False
    sparse: bool = False
    smoothed: bool = False
    clusters: Clusters | None = None


METHODS: dict[str, Method] = {
    "flat": Method(flat, exact_errors=True),
    "hierarchical": Method(hierarchical, exact_errors=True),
    "uniform-grid": Method(uniform_grid),
    "adaptive-grid": Method(adaptive_grid),
    "quadtree": Method(quadtree, exact_errors=True),
    "quad-opt": Method(quad_opt, exact_errors=True),
    "kd-tree": Method(kd_tree, chooses=True, exact_errors=True),
    "kd-hybrid": Method(kd_hybrid, chooses=True, exact_errors=True),
    "adaptive-tree": Method(adaptive_tree, sparse=True),
    "adaptive": Method(adaptive, smoothed=True),
}


def method_named(name: str) -> Method:
    """A method by name; those of papers are loaded when they are asked for."""
    if name in METHODS:
        return METHODS[name]
    method: Method = extension("boxes")[name]
    return method


# From so many rows per bin, times ε, on, strategies that do not look at the counts of a line have
# less error on average than what looks, and intervals that are exact. (Ranges, 24 shapes: 1.05 and
# 1.01 of the error of `adaptive` at 240 and 390 rows per bin, 0.96 at 3,900. Where most bins are
# empty `adaptive` has a third of theirs, which the number of rows does not tell.)
DENSE = 1000.0


def is_dense(points_times_epsilon: float, shape: tuple[int, ...]) -> bool:
    """Whether points are so many that what to ask need not follow from them."""
    return points_times_epsilon > DENSE * math.prod(shape)


def automatic_method(shape: tuple[int, ...]) -> MapMethod:
    """The method that ``auto`` takes, from the public size of the grid alone."""
    return (
        "flat" if math.prod(shape) <= (FEW_BINS if len(shape) == 1 else FEW_CELLS) else "adaptive"
    )


def refuse_unfit(method: MapMethod, n_columns: int) -> None:
    """Refuse a method that cannot divide a grid of so many columns; all others can divide any
    number.
    """
    if method == "auto":
        return
    if method_named(method).one_column and n_columns != 1:
        others = ", ".join(name for name in NAMES if not method_named(name).one_column)
        raise RequestError(
            f"{method} merges neighbours along one column, and {n_columns} columns have no such "
            "order; with more than one "
            f"column the method is one of {others}."
        )


def grow(draft: Draft, options: MethodOptions) -> MapMethod:
    """Grow the draft by the method asked for; returns the method used."""
    method = automatic_method(draft.shape) if options.mechanism == "auto" else options.mechanism
    refuse_unfit(method, len(draft.shape))
    method_named(method).grow(draft, replace(options, mechanism=method))
    return method
