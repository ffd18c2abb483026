"""From the name of a method to a grown tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from tallytree.boxes.adaptive import adaptive
from tallytree.boxes.draft import Draft
from tallytree.boxes.grids import adaptive_grid, flat, hierarchical, uniform_grid
from tallytree.boxes.trees import adaptive_tree, kd_tree, quadtree
from tallytree.errors import RequestError
from tallytree.options.choices import MapMethod
from tallytree.options.maps import MethodOptions
from tallytree.papers.rivals.clusters import ahp
from tallytree.papers.rivals.maps import dawa, privtree
from tallytree.papers.rivals.partitions import (
    noisy_first,
    noisy_merge,
    structure_first,
    structure_merge,
)

GROW: dict[str, Callable[[Draft, MethodOptions], None]] = {
    "flat": flat,
    "hierarchical": hierarchical,
    "uniform-grid": uniform_grid,
    "adaptive-grid": adaptive_grid,
    "quadtree": quadtree,
    "quad-opt": quadtree,
    "kd-tree": kd_tree,
    "kd-hybrid": kd_tree,
    "adaptive-tree": adaptive_tree,
    "adaptive": adaptive,
    "dawa": dawa,
    "privtree": privtree,
    "ahp": ahp,
    "noisy-first": noisy_first,
    "structure-first": structure_first,
    "noisy-merge": noisy_merge,
    "structure-merge": structure_merge,
}

# Methods that merge the bins of one column.
LINE = ("noisy-first", "structure-first", "noisy-merge", "structure-merge")

# Methods whose counts are made nonnegative by how sparse they are; the others stay as near to least
# squares as can be.
SPARSE = ("adaptive-tree",)
# Methods whose counts are drawn to even shares as far as the noisy ones bear it.
SMOOTHED = ("adaptive",)
# Methods whose cells have the mean of their cluster.
CLUSTERED = ("ahp",)

# Up to so many cells the flat method is best or close to it, whatever the data (qardaji2013 §5: up
# to 4,096 in two dimensions where all cells are dense, some 45 in one; adaptive trees are ahead
# earlier where they are not).
FEW_CELLS, FEW_BINS = 1024, 64


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
    if method in LINE and n_columns != 1:
        others = ", ".join(name for name in GROW if name not in LINE)
        raise RequestError(
            f"{method} merges neighbours along one column, and {n_columns} columns have no such "
            "order; with more than one "
            f"column the method is one of {others}."
        )


def grow(draft: Draft, options: MethodOptions) -> MapMethod:
    """Grow the draft by the method asked for; returns the method used."""
    method = automatic_method(draft.shape) if options.mechanism == "auto" else options.mechanism
    refuse_unfit(method, len(draft.shape))
    GROW[method](draft, replace(options, mechanism=method))
    return method
