"""Consistent counts from noisy cumulative counts: fioretto2021 Model 2 relaxed (M_c^r) and
Algorithm 2 (M_c^dp).

Per region the cumulative counts rise (C3), per size children add up to their parent (C4).
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.isotonic import isotonic_l2, isotonic_l2_whole
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.joint_fit import (
    JointFit,
    bounds_of,
    check_table,
    fit_rows_on_tree,
)
from tallytree.papers.fioretto2021.kernels.allocation import allocate_over_tree


def relax_cumulative(
    hierarchy: Hierarchy,
    noisy: IntArray,
    totals: IntArray | int,
    *,
    weights: FloatArray | None = None,
) -> JointFit:
    """Nearest real cumulative counts that rise with size and add up over the tree;
    :func:`make_whole` makes them whole.

    Parameters
    ----------
    noisy
        Noisy cumulative counts, ``(n_regions, n_sizes)``, sizes 0 … K. With totals per region the
        last column is not read.
    totals
        Public groups per region, or at the root alone (a single number).
    weights
        Weight of a squared deviation per level; ones if not given.
    """
    check_table(hierarchy, noisy)
    root_only = np.ndim(totals) == 0
    bound = bounds_of(hierarchy, totals)
    n_free = noisy.shape[1] if root_only else noisy.shape[1] - 1
    if n_free == 0:
        return JointFit(bound[:, None].astype(np.float64), 0, 0.0)
    offsets = np.arange(hierarchy.n_regions + 1) * n_free

    def rising(table: FloatArray) -> FloatArray:
        rows = isotonic_l2(table.ravel(), offsets, lower=0.0, upper=bound).reshape(table.shape)
        if root_only:
            rows[0, -1] = bound[0]
        return rows

    last_root = float(bound[0]) if root_only else None
    target = noisy[:, :n_free].astype(np.float64)
    fit = fit_rows_on_tree(hierarchy, target, rising, weights=weights, last_root=last_root)
    if root_only:
        return fit
    return JointFit(np.concatenate([fit.table, bound[:, None]], axis=1), fit.rounds, fit.gap)


def fit_each_region(noisy: IntArray, total: int) -> IntArray:
    """Whole counts by size of each region on its own from noisy cumulative counts: Algorithm 2,
    lines 1 to 5.

    The counts of a region add up to its fitted last cumulative count, between 0 and ``total``.
    """
    offsets = np.arange(noisy.shape[0] + 1) * noisy.shape[1]
    cumulative = isotonic_l2_whole(noisy.ravel(), offsets, lower=0, upper=total).reshape(
        noisy.shape
    )
    return np.diff(cumulative, axis=1, prepend=0)


def fit_cumulative_then_tree(
    hierarchy: Hierarchy, noisy: IntArray, total: int, *, weights: IntArray | None = None
) -> IntArray:
    """Algorithm 2: each region's cumulative counts made to rise, then the exact allocation over the
    tree.
    """
    check_table(hierarchy, noisy)
    return allocate_over_tree(hierarchy, fit_each_region(noisy, total), total, weights=weights)
