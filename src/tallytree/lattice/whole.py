"""Whole numbers in the tables of a lattice: at least 0, and what is added up agrees.

They are handed down one path of families from the root to the finest, as down a tree: a parent's
children form a table with the parent's columns as column sums and their own whole totals as row
sums, rounded in cumulative form, which keeps both.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tallytree.kernels.tables.margins import fit_margins
from tallytree.kernels.tables.simplex import project_to_simplex
from tallytree.kernels.trees.rounding_down import round_level_in_place
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Family, Lattice


def whole_path(lattice: Lattice, noise_variance: Mapping[Family, float]) -> tuple[Family, ...]:
    """The families that whole numbers are handed down, from the root to the finest.

    What is cut off at 0 on the way never harms the families above. So the path leads over the cells
    of the root and of every level, unless the leaves without attributes were measured with less
    noise than their cells: then over regions first.
    """
    levels, cells = range(lattice.hierarchy.n_levels), lattice.finest.margin
    if (
        noise_variance.get(Family(lattice.finest.level, ()), np.inf)
        < noise_variance[lattice.finest]
    ):
        return (*(Family(level, ()) for level in levels), lattice.finest)
    return (Family(0, ()), *(Family(level, cells) for level in levels))


def whole_columns(hierarchy: Hierarchy, estimates: FloatArray, whole: IntArray) -> IntArray:
    """Whole counts near estimates, ``(n_regions, n_columns)``, that add up over the tree.

    They are at least 0, and those of a region add up to its whole total. The root's estimates are
    at least 0 and add up to its total but for rounding; others may be anything.
    """
    cumulative = np.empty(estimates.shape, dtype=np.int64)
    cumulative[0] = np.minimum(np.rint(np.cumsum(estimates[0])).astype(np.int64), whole[0])
    cumulative[0, -1] = whole[0]
    target = np.empty(estimates.shape)
    for level in range(1, hierarchy.n_levels):
        here, above = hierarchy.level_slice(level), hierarchy.level_slice(level - 1)
        offsets = np.append(hierarchy.child_starts[above], here.stop) - here.start
        parents = np.diff(cumulative[above], axis=1, prepend=0).astype(np.float64)
        fit = fit_margins(
            np.ascontiguousarray(estimates[here]), offsets, whole[here].astype(np.float64), parents
        )
        np.cumsum(fit, axis=1, out=target[here])
        round_level_in_place(hierarchy, level, target[:, :-1], whole, cumulative[:, :-1])
        cumulative[here, -1] = whole[here]
    return np.diff(cumulative, axis=1, prepend=0)


def whole_cells(lattice: Lattice, estimate: FloatArray, totals: IntArray) -> IntArray:
    """Whole numbers of the finest cells, ``(n_cells, n_columns)``, each cell with its whole total.

    ``estimate`` has one row per finest cell and may be anything, ``totals`` one number of at least
    0.
    """
    levels = range(lattice.hierarchy.n_levels)
    path = (Family(0, ()), *(Family(level, lattice.finest.margin) for level in levels))
    path = path if lattice.attributes else lattice.families
    tree, orders = lattice.nested(path)
    whole = np.concatenate(
        [lattice.sums(family, totals)[order] for family, order in zip(path, orders)]
    )
    real = np.concatenate(
        [lattice.sums(family, estimate)[order] for family, order in zip(path, orders)]
    )
    # Given the total of a row, columns that were measured alike move alike.
    real += ((whole - real.sum(axis=1)) / real.shape[1])[:, None]
    real[0] = project_to_simplex(
        real[0], np.array([0, real.shape[1]]), whole[:1].astype(np.float64)
    )
    table = whole_columns(tree, real, whole)[tree.level_slice(tree.n_levels - 1)]
    found = np.empty_like(table)
    found[orders[-1]] = table
    return found
