"""From noisy counts to what is published: constrained inference, pruning, nonnegative and whole
numbers. Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tallytree.boxes.kernels.sparse import split_sparsely
from tallytree.boxes.smoothing import smooth_tree
from tallytree.kernels.trees.least_squares import (
    combined_from_below,
    tree_least_squares,
    variances_from_below,
)
from tallytree.kernels.trees.nonnegative import (
    nonnegative_least_squares,
    split_downwards,
    zero_subtrees,
)
from tallytree.kernels.trees.rounding import round_tree
from tallytree.model.arrays import BoolArray, FloatArray, IntArray, read_only
from tallytree.model.box_tree import BoxTree, Numbers

MapRule = bool | Literal["least-squares", "subtree"]


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
        Least-squares estimates from all measurements: they add up, and may be negative and
        fractional.
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
    nonnegative: MapRule = True,
    integers: bool = True,
    sparse: bool = False,
    smoothed: bool = False,
    clustered: FloatArray | None = None,
) -> MapEstimates:
    """Constrained inference over the whole tree, then what is published.

    ``leaves`` tile the map where that is not left to the leaves of the tree; ``prune`` may stop
    still higher. Counts are made nonnegative from coarse to fine, as near to least squares as can
    be; ``sparse`` does so by how sparse the noisy ones are, ``smoothed`` by how they divide;
    ``clustered`` has counts of the leaves that are published as they are. The other rules are those
    of histograms.
    """
    from_below = variances_from_below(variances, tree.child_starts)
    unbiased = tree_least_squares(values, variances, tree.child_starts, from_below=from_below)
    published = nonnegative_counts(
        tree,
        unbiased,
        values,
        variances,
        nonnegative=nonnegative,
        sparse=sparse,
        smoothed=smoothed,
        clustered=clustered,
    )
    tiles = tree.is_leaf if leaves is None else leaves
    if prune is not None:
        tiles = pruned_leaves(tree, tiles, published, prune)
    counts = round_tree(published, tree.child_starts) if integers else np.array(published)
    return MapEstimates(tree, variances, unbiased, counts, np.array(tiles))


def nonnegative_counts(
    tree: BoxTree,
    unbiased: FloatArray,
    values: FloatArray,
    variances: FloatArray,
    *,
    nonnegative: MapRule,
    sparse: bool = False,
    smoothed: bool = False,
    clustered: FloatArray | None = None,
) -> FloatArray:
    """Counts that add up, from unbiased ones and the noisy values behind them; see
    :func:`estimate_map` for the rules.
    """
    starts = tree.child_starts
    if clustered is not None:
        return sums_of_leaves(tree, clustered)
    match nonnegative:
        case False:
            return unbiased
        case "least-squares":
            return _least_squares(tree, values, variances)
        case "subtree":
            return sums_of_leaves(tree, zero_subtrees(unbiased, starts))
    if smoothed:
        return smooth_tree(tree, values, variances).counts
    from_below = variances_from_below(variances, starts)
    if not sparse:
        return split_downwards(unbiased, from_below, starts)
    combined = combined_from_below(values, variances, starts, from_below)
    return split_sparsely(unbiased[0], combined, from_below, starts, tree.layer_starts)


def _least_squares(tree: BoxTree, values: FloatArray, variances: FloatArray) -> FloatArray:
    """The nonnegative optimum, whose kernel wants all leaves on one level: leaves above it get only
    children down to it.
    """
    layers, origin, n_children, first = [np.zeros(1, dtype=np.int64)], [], [], 1
    depths = len(tree.layers)
    for depth in range(depths):
        layer = layers[depth]
        children = np.diff(tree.child_starts)[layer]
        origin.append(layer)
        n_children.append(np.maximum(children, 1) if depth < depths - 1 else children)
        if depth < depths - 1:
            below = np.repeat(layer, n_children[-1])
            nth = np.arange(len(below)) - np.repeat(
                np.cumsum(n_children[-1]) - n_children[-1], n_children[-1]
            )
            layers.append(
                np.where(
                    np.repeat(children, n_children[-1]) > 0, tree.child_starts[below] + nth, below
                )
            )
    nodes = np.concatenate(origin)
    level_starts = np.concatenate([[0], np.cumsum([len(layer) for layer in layers])])
    child_starts = first + np.concatenate([[0], np.cumsum(np.concatenate(n_children))])
    copies = np.concatenate(
        [tree.is_leaf[layer] & (depth < depths - 1) for depth, layer in enumerate(layers)]
    )
    own = np.where(copies, np.inf, variances[nodes])
    found = nonnegative_least_squares(values[nodes], own, child_starts, level_starts)
    result = np.empty(tree.n_nodes)
    result[nodes] = found
    return result


def sums_of_leaves(tree: BoxTree, values: Numbers) -> Numbers:
    """Every box as the sum of its leaves; what other boxes hold is ignored."""
    sums = np.where(tree.is_leaf, values, np.zeros_like(values))
    for layer in tree.layers[:0:-1]:
        np.add.at(sums, tree.parent[layer], sums[layer])
    return sums


def pruned_leaves(
    tree: BoxTree, leaves: BoolArray, estimates: FloatArray, threshold: float
) -> BoolArray:
    """The highest nodes on each way down that have an estimate below the threshold or are leaves
    already.

    Cormode et al. 2012 §7: below such a node noise outweighs what finer counts tell. Nodes that
    were only put in to keep families small count like the others.
    """
    stops = leaves | (estimates < threshold)
    return stops & ~tree.below(stops)
