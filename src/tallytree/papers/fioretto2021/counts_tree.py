"""Consistent counts from noisy counts by size: fioretto2021 Model 1 relaxed (M_H^r), for both
settings of public totals.
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.tables.simplex import project_to_simplex
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.joint_fit import bounds_of, check_table, fit_rows_on_tree
from tallytree.papers.fioretto2021.kernels.allocation import relax_over_tree


def relax_counts(
    hierarchy: Hierarchy,
    noisy: IntArray,
    totals: IntArray | int,
    *,
    weights: IntArray | None = None,
) -> FloatArray:
    """Nearest nonnegative real counts that add up over the tree and to the public totals; weights
    per level.

    With the root's total alone the program is solved exactly by prices; with every region's total
    by projections, close to the optimum.
    """
    check_table(hierarchy, noisy)
    if np.ndim(totals) == 0:
        return relax_over_tree(hierarchy, noisy, int(totals), weights=weights)
    bound = bounds_of(hierarchy, totals)
    offsets = np.arange(hierarchy.n_regions + 1) * noisy.shape[1]

    def with_totals(table: FloatArray) -> FloatArray:
        return project_to_simplex(table.ravel(), offsets, bound).reshape(table.shape)

    real_weights = None if weights is None else weights.astype(np.float64)
    return fit_rows_on_tree(
        hierarchy, noisy.astype(np.float64), with_totals, weights=real_weights
    ).table


def count_violations(hierarchy: Hierarchy, table: IntArray) -> int:
    """Constraint violations as Table 7 counts them (#CV): regions and sizes whose children do not
    add up (condition 2).
    """
    violations = 0
    for level in range(1, hierarchy.n_levels):
        sums = hierarchy.sum_to_parents(level, table[hierarchy.level_slice(level)])
        violations += int(np.count_nonzero(sums != table[hierarchy.level_slice(level - 1)]))
    return violations
