"""Round nondecreasing real rows to whole ones that add up to a whole parent, cell by cell.

For one parent and its children, column after column: the children's whole values are the nearest to
their targets that add up to the parent's, are no smaller than in the column before and no larger
than their bounds. Each column is a separable convex program with one sum, solved exactly. Since the
parent's row rises, a solution always exists, so the repair never fails.
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.kernels.rounding import raise_largest
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy

# Far below every fraction: cells that may not move.
BARRED = -1e300


@serial
def _nearest_with_sum(target, lower, upper, total, out, key):
    """Whole ``out`` nearest to ``target`` with ``lower ≤ out ≤ upper`` and the given sum."""
    n = len(target)
    shift = 0.0
    while True:
        # out = clip(round(target + shift)) is optimal for its own sum; move the shift until the sum
        # is close.
        missing = total
        n_up = 0
        n_down = 0
        for i in range(n):
            whole = np.int64(np.rint(target[i] + shift))
            out[i] = min(max(whole, lower[i]), upper[i])
            missing -= out[i]
            n_up += out[i] < upper[i] and whole >= lower[i]
            n_down += out[i] > lower[i] and whole <= upper[i]
        if 0 <= missing <= n_up or 0 <= -missing <= n_down:
            break
        if missing > 0:
            shift += max(0.5, missing / n)
        else:
            shift += min(-0.5, missing / n)
    if missing > 0:
        for i in range(n):
            near = out[i] < upper[i] and np.int64(np.rint(target[i] + shift)) >= lower[i]
            key[i] = target[i] - out[i] if near else BARRED
        raise_largest(key, missing, out)
    elif missing < 0:
        for i in range(n):
            near = out[i] > lower[i] and np.int64(np.rint(target[i] + shift)) <= upper[i]
            key[i] = out[i] - target[i] if near else BARRED
            out[i] = -out[i]
        raise_largest(key, -missing, out)
        for i in range(n):
            out[i] = -out[i]


@serial
def _round_children(child_starts, target, bound, table, start, stop):
    n_columns = table.shape[1]
    for region in range(start, stop):
        first, last = child_starts[region], child_starts[region + 1]
        n = last - first
        goal = np.empty(n)
        key = np.empty(n)
        before = np.zeros(n, dtype=np.int64)
        now = np.empty(n, dtype=np.int64)
        upper = bound[first:last]
        for column in range(n_columns):
            if column > 0 and table[region, column] == table[region, column - 1]:
                # The children rise in no column in which their parent does not.
                for i in range(n):
                    table[first + i, column] = before[i]
                continue
            for i in range(n):
                goal[i] = target[first + i, column]
            _nearest_with_sum(goal, before, upper, table[region, column], now, key)
            for i in range(n):
                table[first + i, column] = now[i]
                before[i] = now[i]


def round_level_in_place(
    hierarchy: Hierarchy, level: int, target: FloatArray, bound: IntArray, table: IntArray
) -> None:
    """Fill the rows of ``level`` in a whole table whose level above is finished; arguments as in
    :func:`round_down_tree`.
    """
    above = hierarchy.level_slice(level - 1)
    round_children_in_place(hierarchy.child_starts, target, bound, table, above)


def round_children_in_place(
    child_starts: IntArray, target: FloatArray, bound: IntArray, table: IntArray, parents: slice
) -> None:
    """The same for the children ``child_starts[p]:child_starts[p + 1]`` of some parents p, all of
    them rows of one table.
    """

    def work(start: int, stop: int) -> None:
        _round_children(
            child_starts, target, bound, table, parents.start + start, parents.start + stop
        )

    run_in_chunks(work, parents.stop - parents.start)


def round_down_tree(
    hierarchy: Hierarchy, target: FloatArray, root: IntArray, bound: IntArray
) -> IntArray:
    """Whole, nondecreasing rows that add up over the tree, level by level from a whole root.

    Parameters
    ----------
    target
        Real rows per region, each level with its own best values.
    root
        The root's whole row, nondecreasing, at most ``bound[0]``.
    bound
        Largest value per region; bounds of children add up to at least their parent's.
    """
    table = np.empty(target.shape, dtype=np.int64)
    table[0] = root
    for level in range(1, hierarchy.n_levels):
        round_level_in_place(hierarchy, level, target, bound, table)
    return table
