"""Average variance over all boxes of a d-dimensional grid, exactly: flat, and trees of hypercubes
(qardaji2013 §5).

A level cuts every axis into blocks of one width, the last of an axis possibly short; its nodes are
the products of such blocks. Widths come coarsest first and end in 1, each a multiple of the next.
The workload is the product of all ranges of each axis, so that the forms xᵀGx of
:mod:`tallytree.strategies.errors` use G = G_1 ⊗ … ⊗ G_d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray
from tallytree.model.range_tree import RangeTree
from tallytree.strategies.errors import flat_range_error, n_ranges, sum_of_left_times_right


def flat_grid_error(shape: Sequence[int], variance: float = 2.0) -> float:
    """Average variance when every cell has noise of ``variance``: Π (n_k + 2)/3 cells in a box on
    average.
    """
    return math.prod(flat_range_error(n_bins, 1.0) for n_bins in shape) * variance


def grid_range_error(
    shape: Sequence[int],
    widths: Sequence[int],
    variances: Sequence[float],
    *,
    consistent: bool = True,
) -> float:
    """Average variance over all boxes when nodes are counted with noise of ``variances[level]``.

    Parameters
    ----------
    shape
        Bins per axis.
    widths
        Block width of each level, coarsest first, down to 1.
    variances
        Variance of one noisy count per level.
    consistent
        True for least squares over all counts (H_b^c, time and memory linear in the cells per
        level); False for the fewest noisy nodes (H_b, in closed form).
    """
    RangeTree(max(*widths, *shape) + 1, tuple(widths))
    if len(variances) != len(widths):
        raise RequestError(f"{len(widths)} levels need as many variances, got {len(variances)}.")
    total = (
        least_squares_sum(shape, widths, variances)
        if consistent
        else fewest_nodes_sum(shape, widths, variances)
    )
    return total / math.prod(n_ranges(n_bins) for n_bins in shape)


def fewest_nodes_sum(
    shape: Sequence[int], widths: Sequence[int], variances: Sequence[float]
) -> float:
    """Sum over all boxes of the variance of their fewest nodes.

    A node is used by the boxes that hold it but not its parent. Both numbers are products over the
    axes, hence so are their sums over all nodes of a level.
    """
    total = 0.0
    for level, (width, variance) in enumerate(zip(widths, variances)):
        uses = math.prod(holding_ranges(n_bins, width, width) for n_bins in shape)
        if level > 0:
            uses -= math.prod(holding_ranges(n_bins, width, widths[level - 1]) for n_bins in shape)
        total += uses * variance
    return total


def holding_ranges(n_bins: int, width: int, around: int) -> int:
    """Σ over the blocks of a width of the number of ranges that hold the block of width ``around``
    in which it lies.
    """
    n_full, short = divmod(n_bins, around)
    full = around // width * sum_of_left_times_right(n_bins, around, n_full)
    return full + -(-short // width) * (n_bins - short + 1)


def least_squares_sum(
    shape: Sequence[int], widths: Sequence[int], variances: Sequence[float]
) -> float:
    """trace(CG) for the least-squares covariance C, from the cells upwards (see
    ``range_errors.least_squares_sum``).

    D1, the covariance of a cell with the total of its node, is one number per cell and level; G is
    applied to each node's part of it axis by axis, in linear time.
    """
    cells = [n_bins * (n_bins + 1) * (n_bins + 2) // 6 for n_bins in shape]
    total = float(variances[-1]) * math.prod(cells)
    with_total = np.full(shape, float(variances[-1]))
    for level in reversed(range(len(widths) - 1)):
        width, variance = widths[level], variances[level]
        by_node = into_nodes(with_total, width)
        inside = tuple(range(1, 2 * len(shape), 2))
        own_total = variance + by_node.sum(axis=inside, keepdims=True)
        applied = by_node
        for axis, n_bins in enumerate(shape):
            applied = apply_gram(applied, 2 * axis + 1, n_bins, width)
        forms = (by_node * applied).sum(axis=inside, keepdims=True)
        total -= float((forms / own_total).sum())
        with_total = out_of_nodes(by_node * (variance / own_total), shape)
    return total


def into_nodes(cells: FloatArray, width: int) -> FloatArray:
    """Cells with each axis split into (block, place in the block); short blocks are filled with
    zeros.
    """
    padding = [(0, -n_bins % width) for n_bins in cells.shape]
    padded = np.pad(cells, padding)
    return padded.reshape([part for n_bins in padded.shape for part in (n_bins // width, width)])


def out_of_nodes(by_node: FloatArray, shape: Sequence[int]) -> FloatArray:
    """Inverse of :func:`into_nodes`."""
    merged = by_node.reshape(
        [by_node.shape[2 * axis] * by_node.shape[2 * axis + 1] for axis in range(len(shape))]
    )
    return merged[tuple(slice(0, n_bins) for n_bins in shape)]


def apply_gram(by_node: FloatArray, axis: int, n_bins: int, width: int) -> FloatArray:
    """Gx along one axis, block by block: (N + 1 − i)·Σ_{j ≤ i} j·x_j + i·Σ_{j > i} (N + 1 − j)·x_j."""
    blocks = by_node.shape[axis - 1]
    shape = [1] * by_node.ndim
    shape[axis - 1], shape[axis] = blocks, width
    left = np.arange(1, blocks * width + 1, dtype=np.float64).reshape(shape)
    right = n_bins + 1 - left
    up_to = np.cumsum(by_node * left, axis=axis)
    down = by_node * right
    beyond = down.sum(axis=axis, keepdims=True) - np.cumsum(down, axis=axis)
    return right * up_to + left * beyond
