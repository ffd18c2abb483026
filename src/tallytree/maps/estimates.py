"""From noisy counts to what is published: constrained inference, pruning, nonnegative and whole numbers. Post-processing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.kernels.trees.least_squares import (
    combined_from_below,
    tree_least_squares,
    variances_from_below,
)
from tallytree.kernels.trees.nonnegative import split_downwards
from tallytree.kernels.trees.rounding import round_tree
from tallytree.kernels.trees.sparse import split_sparsely
from tallytree.maps.smoothing import smooth_tree
from tallytree.model.arrays import BoolArray, FloatArray, IntArray, read_only
from tallytree.model.box_tree import BoxTree


@dataclass(frozen=True, eq=False)
class MapEstimates:
    """Estimates of every box of a tree.

    Attributes
    ----------
    tree
        The boxes.
    variances
        Variance of each node's combined measurements; infinite where nothing was measured.
    unbiased
        Least-squares estimates from all measurements: they add up, and may be negative and fractional.
    published
        What is published: adds up too; nonnegative and whole where that was asked for.
    leaves
        The boxes that tile the map: leaves of the tree, or of what pruning left of it.
    """

    tree: BoxTree
    variances: FloatArray
    unbiased: FloatArray
    published: FloatArray | IntArray
    leaves: BoolArray

    def __post_init__(self) -> None:
        for array in (self.variances, self.unbiased, self.published, self.leaves):
            read_only(array)


def estimate_map(
    tree: BoxTree,
    values: FloatArray,
    variances: FloatArray,
    *,
    leaves: BoolArray | None = None,
    prune: float | None = None,
    nonnegative: bool = True,
    integers: bool = True,
    sparse: bool = False,
    smoothed: bool = False,
) -> MapEstimates:
    """Constrained inference over the whole tree, then what is published.

    ``leaves`` tile the map where that is not left to the leaves of the tree; ``prune`` may stop still higher. ``sparse``
    makes counts nonnegative by how sparse the noisy ones are, ``smoothed`` by how they divide, instead of as near to least
    squares as can be.
    """
    starts = tree.child_starts
    from_below = variances_from_below(variances, starts)
    unbiased = published = tree_least_squares(values, variances, starts, from_below=from_below)
    if nonnegative and smoothed:
        published = smooth_tree(tree, values, variances).counts
    elif nonnegative and sparse:
        combined = combined_from_below(values, variances, starts, from_below)
        published = split_sparsely(unbiased[0], combined, from_below, starts, tree.layer_starts)
    elif nonnegative:
        published = split_downwards(unbiased, from_below, starts)
    tiles = tree.is_leaf if leaves is None else leaves
    if prune is not None:
        tiles = pruned_leaves(tree, tiles, published, prune)
    counts: FloatArray | IntArray = round_tree(published, starts) if integers else np.array(published)
    return MapEstimates(tree, variances, unbiased, counts, np.array(tiles))


def pruned_leaves(tree: BoxTree, leaves: BoolArray, estimates: FloatArray, threshold: float) -> BoolArray:
    """The highest nodes on each way down that have an estimate below the threshold or are leaves already.

    Cormode et al. 2012 §7: below such a node noise outweighs what finer counts tell. Nodes that were only put in to keep
    families small count like the others.
    """
    stops = leaves | (estimates < threshold)
    return stops & ~tree.below(stops)
