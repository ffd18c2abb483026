"""The TopDown baseline (fioretto2021 §10, §11): one level after another, each fitted under the
finished one above.

Per parent: nonnegative least squares of the children with the parent's counts as sums, then
controlled rounding. With the root's total alone each size is a projection on a simplex, solved in
whole numbers directly. With every region's total the children form a table with given row and
column sums: fitted in real numbers, then rounded in cumulative form, which keeps both.
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.tables.margins import fit_margins
from tallytree.kernels.tables.simplex import project_to_whole_simplex
from tallytree.kernels.trees.rounding_down import round_level_in_place
from tallytree.model.arrays import IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.joint_fit import bounds_of, check_table


def fit_top_down(hierarchy: Hierarchy, noisy: IntArray, totals: IntArray | int) -> IntArray:
    """Whole nonnegative counts that add up over the tree and to the public totals.

    Parameters
    ----------
    noisy
        Noisy counts by size, ``(n_regions, n_sizes)``.
    totals
        Public groups per region, or at the root alone (a single number).
    """
    check_table(hierarchy, noisy)
    bound = bounds_of(hierarchy, totals)
    root = project_to_whole_simplex(noisy[0], np.array([0, noisy.shape[1]]), bound[:1])
    if np.ndim(totals) == 0:
        return _with_parents_only(hierarchy, noisy, root)
    return _with_totals(hierarchy, noisy, root, bound)


def _with_parents_only(hierarchy: Hierarchy, noisy: IntArray, root: IntArray) -> IntArray:
    table = np.empty(noisy.shape, dtype=np.int64)
    table[0] = root
    for level in range(1, hierarchy.n_levels):
        here, above = hierarchy.level_slice(level), hierarchy.level_slice(level - 1)
        n_here, n_sizes = hierarchy.level_size(level), noisy.shape[1]
        # Sizes outside, so that siblings of one size are neighbours.
        starts = hierarchy.child_starts[above] - here.start
        offsets = (np.arange(n_sizes)[:, None] * n_here + starts).ravel()
        offsets = np.append(offsets, n_sizes * n_here)
        fit = project_to_whole_simplex(noisy[here].T.ravel(), offsets, table[above].T.ravel())
        table[here] = fit.reshape(n_sizes, n_here).T
    return table


def _with_totals(
    hierarchy: Hierarchy, noisy: IntArray, root: IntArray, bound: IntArray
) -> IntArray:
    cumulative = np.empty(noisy.shape, dtype=np.int64)
    cumulative[0] = np.cumsum(root)
    target = np.empty(noisy.shape)
    for level in range(1, hierarchy.n_levels):
        here, above = hierarchy.level_slice(level), hierarchy.level_slice(level - 1)
        offsets = np.append(hierarchy.child_starts[above], here.stop) - here.start
        parents = np.diff(cumulative[above], axis=1, prepend=0).astype(np.float64)
        fit = fit_margins(
            noisy[here].astype(np.float64), offsets, bound[here].astype(np.float64), parents
        )
        np.cumsum(fit, axis=1, out=target[here])
        round_level_in_place(hierarchy, level, target[:, :-1], bound, cumulative[:, :-1])
        cumulative[here, -1] = bound[here]
    return np.diff(cumulative, axis=1, prepend=0)
