"""Methods that split recursively: quadtrees, kd-trees, hybrids of both (slides, "Recursive
Partition"), adaptive trees.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tallytree.boxes.draft import Draft
from tallytree.boxes.grids import ALL, check_nodes, noisy_total
from tallytree.boxes.shares import geometric_shares
from tallytree.model.arrays import IntArray
from tallytree.options.maps import MethodOptions

# Leaves of a tree of fixed depth: 4**8 for quadtrees, 4**6 for kd-trees, in any dimension.
QUADTREE_LEAVES_LOG2 = 16
KD_LEAVES_LOG2 = 12
# Share of the budget for medians (Cormode et al. 2012 take 0.3).
MEDIANS = Fraction(3, 10)


def halvings(shape: tuple[int, ...]) -> int:
    """How often the grid can be halved in every dimension until boxes are cells."""
    return max(1, max(shape) - 1).bit_length() if max(shape) > 1 else 0


def tree_depth(shape: tuple[int, ...], options: MethodOptions, leaves_log2: int) -> int:
    """Depth asked for or the default, at most down to the cells."""
    default = max(1, leaves_log2 // len(shape))
    depth = min(options.depth if options.depth is not None else default, max(1, halvings(shape)))
    check_nodes(1.4 * min(2.0 ** (depth * len(shape)), math.prod(shape)), "Choose a smaller depth.")
    return depth


def geometric_ratio(dimensions: int) -> float:
    """Ratio between the budgets of a level and the next: a box query cuts 2^(d−1) times as many
    nodes per level.

    Minimising Σ n_i / ε_i² under Σ ε_i = ε gives ε_i ∝ n_i^(1/3) (Cormode et al. 2012 §4.2; cube
    root of 2 for d = 2).
    """
    return 2.0 ** ((dimensions - 1) / 3)


def quadtree(draft: Draft, options: MethodOptions) -> None:
    """Halves in every dimension, fixed depth, every level with the same share."""
    _halve(draft, options, 1.0)


def quad_opt(draft: Draft, options: MethodOptions) -> None:
    """The same with geometric shares."""
    _halve(draft, options, geometric_ratio(len(draft.shape)))


def _halve(draft: Draft, options: MethodOptions, ratio: float) -> None:
    depth = tree_depth(draft.shape, options, QUADTREE_LEAVES_LOG2)
    nodes = draft.root
    for level, share in enumerate(geometric_shares(depth + 1, ratio)):
        if level > 0:
            nodes, _ = draft.split_grid(nodes, 2)
        draft.count(nodes, share, f"level {level}")


def kd_tree(draft: Draft, options: MethodOptions) -> None:
    """Halves at private medians, one dimension after the other."""
    _halve_at_medians(draft, tree_depth(draft.shape, options, KD_LEAVES_LOG2), 0)


def kd_hybrid(draft: Draft, options: MethodOptions) -> None:
    """The same, but for the first half of the levels, which halve the area."""
    depth = tree_depth(draft.shape, options, KD_LEAVES_LOG2)
    _halve_at_medians(draft, depth, -(-depth // 2))


def _halve_at_medians(draft: Draft, depth: int, first_kd: int) -> None:
    n_medians = (depth - first_kd) * len(draft.shape)
    for_counts = ALL - MEDIANS if n_medians else ALL
    shares = geometric_shares(depth + 1, geometric_ratio(len(draft.shape)), for_counts)
    nodes = draft.root
    draft.count(nodes, shares[0], "level 0")
    for level in range(depth):
        if level < first_kd:
            nodes, _ = draft.split_grid(nodes, 2)
        else:
            for axis in range(len(draft.shape)):
                nodes = split_at_medians(
                    draft, nodes, axis, MEDIANS / n_medians, f"median {level} {axis}"
                )
        draft.count(nodes, shares[level + 1], f"level {level + 1}")


def split_at_medians(
    draft: Draft, nodes: IntArray, axis: int, share: Fraction, query: str
) -> IntArray:
    """Split every node that can be split along the axis; the others stay."""
    low, high = draft.boxes(nodes)
    wide = high[:, axis] - low[:, axis] >= 2
    if not wide.any():
        return nodes
    cuts = draft.survey.cut(low[wide], high[wide], axis, share, query)
    return np.concatenate([nodes[~wide], draft.split_at(nodes[wide], axis, cuts)])


# The adaptive tree's constants, chosen once on the ten maps of DPBench and the same for everyone.
FIRST_CELLS_LOG2 = 6
WORTH_SPLITTING = 3.0
LEVEL_RATIO = 2.0 ** (1 / 12)


def first_level(points_times_epsilon: float, dimensions: int) -> int:
    """The depth of the first boxes: 64 of them or fewer, so that each may expect
    ``WORTH_SPLITTING`` / 2 points per 1 / ε.
    """
    room = math.log2(max(1.0, 2 * points_times_epsilon / WORTH_SPLITTING))
    return int(min(FIRST_CELLS_LOG2, room) / dimensions)


def adaptive_tree(draft: Draft, options: MethodOptions) -> None:
    """Halves in every dimension where the noisy count is worth it; the others keep their budget for
    a second look.

    Ours. Like the adaptive grid, but level by level: a node is split if its noisy count is several
    times what the noise of its children will be; otherwise it is measured once more with all that
    is left of its budget, since nothing below it will be asked. Every point pays the whole budget
    once, whatever happens around it.
    """
    last = halvings(draft.shape)
    n_points, share = noisy_total(draft, options)
    first = min(last, first_level(n_points * draft.survey.epsilon, len(draft.shape)))
    check_nodes(1.4 * math.prod(draft.shape), "Choose a lower resolution.")
    nodes = draft.root
    for _ in range(first):
        nodes, _ = draft.split_grid(nodes, 2)
    shares = geometric_shares(last - first + 1, LEVEL_RATIO, share)
    for step, own in enumerate(shares):
        noisy = draft.count(nodes, own, f"level {first + step}")
        left = sum(shares[step + 1 :], Fraction(0))
        if left == 0:
            return
        worth = noisy * float(shares[step + 1]) * draft.survey.epsilon > WORTH_SPLITTING
        low, high = draft.boxes(nodes)
        worth &= (high - low).max(axis=1) > 1
        if not worth.all():
            draft.count(nodes[~worth], left, f"level {first + step}, not split")
        if not worth.any():
            return
        nodes, _ = draft.split_grid(nodes[worth], 2)
