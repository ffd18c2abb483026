"""Weighted least squares onto tables that add up over the tree: hay2010's two passes for uneven
trees and any weights.

Bottom up, a region's own value and the sum of its children are combined by inverse variance; top
down, what the parent has more or less than its children is shared out in proportion to their
variances. One column never looks at another.
"""

from __future__ import annotations

import numpy as np

from tallytree.errors import InputError
from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy

NO_COLUMN = -1


@serial
def _project_in_place(
    table, child_starts, n_internal, variance, share, fixed_column, fixed_root, start, stop
):
    """``share[v]``: weight of a region's own value against its children; ``variance``: after
    combining, per region.
    """
    below = np.empty(stop - start)
    for region in range(n_internal - 1, -1, -1):
        below[:] = 0.0
        for child in range(child_starts[region], child_starts[region + 1]):
            for column in range(start, stop):
                below[column - start] += table[child, column]
        own = share[region]
        for column in range(start, stop):
            table[region, column] = (
                own * table[region, column] + (1.0 - own) * below[column - start]
            )
    if start <= fixed_column < stop:
        table[0, fixed_column] = fixed_root
    for region in range(n_internal):
        below[:] = 0.0
        total_variance = 0.0
        for child in range(child_starts[region], child_starts[region + 1]):
            total_variance += variance[child]
            for column in range(start, stop):
                below[column - start] += table[child, column]
        for column in range(start, stop):
            below[column - start] = table[region, column] - below[column - start]
        for child in range(child_starts[region], child_starts[region + 1]):
            part = variance[child] / total_variance
            for column in range(start, stop):
                table[child, column] += part * below[column - start]


def variances_after_combining(
    hierarchy: Hierarchy, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Variance of each region once its subtree is combined, and the weight of its own value in that
    combination.

    ``weights`` is (n_levels,), the results are (n_regions,).
    """
    variance = 1.0 / weights[hierarchy.level_of]
    share = np.ones(hierarchy.n_regions)
    for level in range(hierarchy.n_levels - 1, 0, -1):
        above = hierarchy.level_slice(level - 1)
        starts = hierarchy.child_starts[above] - hierarchy.level_starts[level]
        children = np.add.reduceat(variance[hierarchy.level_slice(level)], starts)
        share[above] = children / (children + variance[above])
        variance[above] = variance[above] * share[above]
    return variance, share


def project_on_tree_in_place(
    hierarchy: Hierarchy,
    table: FloatArray,
    weights: FloatArray | None = None,
    *,
    last_root: float | None = None,
) -> None:
    """Replace a table by the nearest one in which every region is the sum of its children, column
    by column.

    Parameters
    ----------
    table
        ``(n_regions, n_columns)``, contiguous float64; changed in place.
    weights
        Weight of a squared deviation per level; ones if not given.
    last_root
        Value that the root's last column must take.

    Cost: two passes over the table.
    """
    weights = (
        np.ones(hierarchy.n_levels) if weights is None else np.asarray(weights, dtype=np.float64)
    )
    if len(weights) != hierarchy.n_levels or not (weights > 0).all():
        raise InputError(
            f"Give one positive weight for each of the {hierarchy.n_levels} levels, got {weights}."
        )
    if (
        table.shape[0] != hierarchy.n_regions
        or table.dtype != np.float64
        or not table.flags.c_contiguous
    ):
        raise InputError(f"Give a contiguous table of floats with {hierarchy.n_regions} rows.")
    variance, share = variances_after_combining(hierarchy, weights)
    n_columns = table.shape[1]
    column, root = (NO_COLUMN, 0.0) if last_root is None else (n_columns - 1, last_root)
    n_internal = int(hierarchy.level_starts[-2])
    starts: IntArray = hierarchy.child_starts
    run_in_chunks(
        lambda start, stop: _project_in_place(
            table, starts, n_internal, variance, share, column, root, start, stop
        ),
        n_columns,
        smallest=max(1, 20_000 // hierarchy.n_regions),
    )
