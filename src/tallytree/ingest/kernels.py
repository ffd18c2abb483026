"""Which steps of a unit count where it comes again and again."""

from __future__ import annotations

import numpy as np

from tallytree.kernels.jit import as_input, serial
from tallytree.model.arrays import BoolArray, IntArray


def spaced(units: IntArray, steps: IntArray, most: int, gap: int) -> BoolArray:
    """Of each unit's steps, in order, the first and those at least ``gap`` after the last that
    counts, ``most`` of them.

    Units come one after the other, each with its steps in rising order. What counts of a unit
    follows from its earlier steps. Arrays have one entry per step of a unit; cost: linear.

    Examples
    --------
    >>> spaced(np.array([0, 0, 0, 1]), np.array([2, 3, 5, 4]), 2, 3).tolist()
    [True, False, True, True]
    """
    chosen = np.zeros(len(units), dtype=np.bool_)
    _choose(as_input(units, np.int64), as_input(steps, np.int64), most, gap, chosen)
    return chosen


@serial
def _choose(units, steps, most, gap, chosen):
    count, last = 0, np.int64(0)
    for row in range(len(units)):
        if row == 0 or units[row] != units[row - 1]:
            count = 0
        if count == 0 or (count < most and steps[row] - last >= gap):
            chosen[row] = True
            count, last = count + 1, steps[row]
