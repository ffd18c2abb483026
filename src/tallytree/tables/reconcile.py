"""Whole numbers: from the root down, every region's cells are shared out among its children.

A region's children get what is nearest to their estimates, at least 0, with the cells of the region
as their sums; then whole numbers, in cumulative form, so that every sum of neighbouring cells stays
within one of what it was. Cells of the leaves are all that is kept: everything else is a sum of
them.
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.tables.margins import fit_margins
from tallytree.kernels.tables.simplex import project_to_simplex
from tallytree.kernels.trees.rounding_down import round_children_in_place
from tallytree.lattice.nonnegative import nonnegative_children
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.releases.progress import Progress, silent
from tallytree.tables.estimate import Estimates, pieces
from tallytree.tables.plan import TablePlan

# Of known totals beside anything measured, in steps towards nonnegative cells.
MOST_BESIDE = 100.0


def whole_table(
    plan: TablePlan, estimates: Estimates, progress: Progress = silent
) -> tuple[IntArray, IntArray]:
    """Cells of the leaves that have a count, rising, and their counts."""
    tree, axes = plan.facts.hierarchy, plan.axes
    root = nonnegative_children(
        axes,
        estimates.of(0, 0, 1),
        _of_steps(plan, estimates.precision(0, 0, 1)),
        np.array([0, 1]),
        None,
        possible=plan.facts.possible,
    )
    whole = _whole_root(root) if not plan.facts.known else _known_root(plan, root)
    cell, n = _positive(whole, 0)
    for level in range(1, tree.n_levels):
        leaves = level == tree.n_levels - 1
        found, cells, counts = [], [], []
        for first, last in pieces(plan, level - 1):
            below, start = _children(plan, estimates, level, first, last, whole[first:last])
            if leaves:
                at, number = _positive(below, start)
                cells.append(at)
                counts.append(number)
            else:
                found.append(below)
        if leaves:
            cell, n = np.concatenate(cells), np.concatenate(counts)
        else:
            whole = np.concatenate(found)
    return cell, n


def _of_steps(plan: TablePlan, precision: FloatArray) -> FloatArray:
    """Precision for steps towards nonnegative cells, with known totals not too far above the rest:
    they are kept exactly afterwards.
    """
    if not plan.facts.known:
        return precision
    return np.minimum(precision, MOST_BESIDE * float(plan.measured_precision.max()))


def _positive(whole: IntArray, first: int) -> tuple[IntArray, IntArray]:
    """Cells with a count, numbered region by region from ``first`` on."""
    flat = whole.ravel()
    there = np.flatnonzero(flat)
    return there + first * whole.shape[1], flat[there].astype(np.int64)


def _whole_root(cells: FloatArray) -> IntArray:
    """Whole numbers, each sum of neighbouring cells within one of what it was."""
    upto = np.rint(np.cumsum(cells.astype(np.float64), axis=1)).astype(np.int64)
    return np.diff(upto, axis=1, prepend=0)


def _children(
    plan: TablePlan,
    estimates: Estimates,
    level: int,
    first: int,
    last: int,
    parents: IntArray,
) -> tuple[IntArray, int]:
    """Whole cells of the children of regions ``first:last`` of the level above, and the first
    child.
    """
    tree, axes = plan.facts.hierarchy, plan.axes
    above = int(tree.level_starts[level - 1])
    children = tree.child_starts[above + first : above + last + 1] - int(tree.level_starts[level])
    start, stop = int(children[0]), int(children[-1])
    offsets = children - start
    target = estimates.of(level, start, stop).astype(np.float64)
    precision = estimates.precision(level, start, stop)
    # What the parent knows better is shared out by variance.
    variance = 1 / precision
    of_parents = axes.transformed(parents.astype(np.float64))
    lengths = np.diff(offsets)
    rest = of_parents - np.add.reduceat(target, offsets[:-1], axis=0)
    rest /= np.add.reduceat(variance, offsets[:-1], axis=0)
    target += variance * np.repeat(rest, lengths, axis=0)
    steps = _of_steps(plan, precision)
    fit = nonnegative_children(axes, target, steps, offsets, parents.astype(np.float64))
    if level < len(plan.facts.known):
        known = plan.facts.known[level]
        totals = known.counts[start:stop]
        return _known_children(known.rows(plan.facts.values), totals, fit, offsets, parents), start
    return _whole_children(fit, offsets, parents), start


def _known_root(plan: TablePlan, cells: FloatArray) -> IntArray:
    """Whole numbers of the root, those of each class with its known total."""
    known, possible = plan.facts.known[0], plan.facts.possible
    rows, whole = known.rows(plan.facts.values), np.zeros(cells.shape, dtype=np.int64)
    for row, total in enumerate(known.counts[0]):
        here = rows == row if possible is None else (rows == row) & possible
        if not here.any():  # known to be 0
            continue
        ends = np.array([0, np.count_nonzero(here)])
        fit = project_to_simplex(cells[0, here], ends, np.array([total], dtype=np.float64))
        upto = np.minimum(np.rint(np.cumsum(fit)).astype(np.int64), total)
        upto[-1] = total
        whole[0, here] = np.diff(upto, prepend=0)
    return whole


def _known_children(
    rows: IntArray, totals: IntArray, fit: FloatArray, offsets: IntArray, parents: IntArray
) -> IntArray:
    """Whole cells of children whose classes have known totals, which add up to those of their
    parents: class by class a table with given row and column sums.
    """
    whole = np.zeros(fit.shape, dtype=np.int64)
    for row in range(totals.shape[1]):
        here, of_row = rows == row, np.ascontiguousarray(totals[:, row])
        above = np.ascontiguousarray(parents[:, here])
        near = fit_margins(
            np.ascontiguousarray(fit[:, here], dtype=np.float64),
            offsets,
            of_row.astype(np.float64),
            above.astype(np.float64),
        )
        whole[:, here] = _whole_rows(near, offsets, above, of_row)
    return whole


def _whole_children(fit: FloatArray, offsets: IntArray, parents: IntArray) -> IntArray:
    """Whole cells near nonnegative ones that add up to those of whole parents."""
    n_parents, n_children = len(parents), len(fit)
    starts = offsets + n_parents
    # Rows first: whole totals of the children that add up to their parent's.
    totals = np.zeros((n_parents + n_children, 1), dtype=np.int64)
    totals[:n_parents, 0] = parents.sum(axis=1)
    target = np.zeros((n_parents + n_children, 1))
    target[n_parents:, 0] = np.cumsum(fit, axis=1)[:, -1]
    most = np.full(n_parents + n_children, np.iinfo(np.int64).max)
    round_children_in_place(starts, target, most, totals, slice(0, n_parents))
    return _whole_rows(fit, offsets, parents, totals[n_parents:, 0])


def _whole_rows(
    fit: FloatArray, offsets: IntArray, parents: IntArray, totals: IntArray
) -> IntArray:
    """The same, with the whole totals of the children."""
    n_parents, n_children = len(parents), len(fit)
    starts, most = offsets + n_parents, np.concatenate([parents.sum(axis=1), totals])
    table = np.zeros((n_parents + n_children, fit.shape[1]), dtype=np.int64)
    np.cumsum(parents, axis=1, out=table[:n_parents])
    aim = np.zeros(table.shape)
    aim[n_parents:] = np.cumsum(fit, axis=1)
    round_children_in_place(starts, aim, most, table, slice(0, n_parents))
    return np.diff(table[n_parents:], axis=1, prepend=0)
