"""Methods of others that adapt to the data, under their names: DAWA and PrivTree. Departures are
told where they are made.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tallytree.boxes.draft import Draft
from tallytree.boxes.grids import check_nodes
from tallytree.boxes.shares import geometric_shares
from tallytree.boxes.trees import geometric_ratio, halvings
from tallytree.model.arrays import BoolArray
from tallytree.model.box_tree import BoxTree
from tallytree.options.maps import MethodOptions
from tallytree.papers.rivals.hilbert import split_along_curve

# DAWA: a quarter of the budget for the parts, as in DPBench.
FOR_PARTS = Fraction(1, 4)
# Parts are counted level by level where there are more than these, by the number of columns
# (qardaji2013 §3 and §5: below, one level is best), and levels are this many halvings apart.
FEW_PARTS = {1: 45, 2: 4096}
LEVEL_HALVINGS = 4
# PrivTree: half of the budget for the tree.
FOR_SPLITS = Fraction(1, 2)


def dawa(draft: Draft, options: MethodOptions) -> None:
    """Parts of nearly equal counts, chosen privately, then counts of the parts (Li, Hay, Miklau,
    Wang 2014).

    Stage one chooses the tiling of least cost: absolute deviations inside parts plus a price per
    part (§3). Two columns are ordered by the Hilbert curve, as in the paper. Departures: parts are
    halves of halves of the line or curve, stretches of 2^k cells that begin at multiples of 2^k;
    deviations are from medians, not means, which halves what one entity can change; every cost has
    noise, and the price of a part is raised by its scale, see
    :func:`tallytree.privacy.sensitivity.tiling_sensitivity`. Stage two counts the parts, or where
    there are many, the levels above them too; the paper weighs the nodes of a binary tree over the
    parts by the workload instead. Three columns and more, of which the paper says nothing, are
    halved in all of them at once.
    """
    check_nodes(
        (2.0 if len(draft.shape) == 2 else 1.4) * math.prod(draft.shape),
        "Choose a lower resolution.",
    )
    fine = Draft(draft.shape, draft.survey)
    if len(draft.shape) == 2:
        split_along_curve(fine)
    else:
        cells = fine.root
        for _ in range(halvings(draft.shape)):
            cells, _ = fine.split_grid(cells, 2)
    tree = fine.so_far()[0]
    for_counts = 1 - FOR_PARTS
    price = math.sqrt(draft.survey.variance(for_counts) / 2)
    _count_parts(draft, tree, draft.survey.parts(tree, FOR_PARTS, "parts", price) == 1, for_counts)


def _count_parts(draft: Draft, tree: BoxTree, chosen: BoolArray, share: Fraction) -> None:
    """Count the chosen nodes of a tree with a share that every cell pays once, and the levels above
    where they are many.
    """
    dimensions = len(draft.shape)
    # A step down the tree halves one column of a line or of a curve, else all of them.
    halved = 1 if dimensions <= 2 else dimensions
    step = max(1, LEVEL_HALVINGS // halved)
    last = int(tree.depth[chosen].max())
    many = chosen.sum() > FEW_PARTS.get(dimensions, chosen.sum())
    depths = [*range(step, last, step), last] if many else [last]
    shares = geometric_shares(
        len(depths), geometric_ratio(dimensions) ** (step * halved / dimensions), share
    )
    nodes, place, depth = draft.root, np.zeros(1, dtype=np.int64), 0
    for number, stop in enumerate(depths):
        left = sum(shares[number:], Fraction(0))
        parts = [np.empty(0, dtype=np.int64)]
        while len(nodes):
            parts.append(nodes[chosen[place]])
            nodes, place = nodes[~chosen[place]], place[~chosen[place]]
            if depth == stop or len(nodes) == 0:
                break
            nodes, place = draft.split_as(nodes, tree, place)
            depth += 1
        found = np.concatenate(parts)
        if len(found):
            draft.count(found, left, f"part, depth {stop}")
        if len(nodes):
            draft.count(nodes, shares[number], f"depth {stop}")


def privtree(draft: Draft, options: MethodOptions) -> None:
    """Boxes are halved in every dimension as long as their noisy, biased count is above 0 (Zhang,
    Xiao, Xie 2016, Algorithm 2).

    As in the paper the threshold is 0, the bias grows by δ per level, and half of the budget counts
    the leaves. Departures: noise is discrete, so δ is a whole number, rounded up; boxes of one cell
    are not split; counts of boxes are least-squares sums of leaves, made nonnegative.
    """
    check_nodes(1.4 * math.prod(draft.shape), "Choose a lower resolution.")
    descent = draft.survey.descend(FOR_SPLITS, "splits")
    nodes, leaves = draft.root, []
    for _ in range(halvings(draft.shape) + 1):
        low, high = draft.boxes(nodes)
        split = (high - low).max(axis=1) > 1
        split[split] = descent.worth(low[split], high[split])
        leaves.append(nodes[~split])
        nodes = nodes[split]
        if len(nodes) == 0:
            break
        nodes, _ = draft.split_grid(nodes, 2)
    draft.count(np.concatenate(leaves), 1 - FOR_SPLITS, "leaf")
