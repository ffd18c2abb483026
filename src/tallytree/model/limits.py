"""How large exact numbers may be. Larger ones count as the largest: sums saturate, and nothing fails once it is paid for.

Taking the smaller of a number and a public bound never moves two numbers further apart, so no sensitivity grows.
"""

from __future__ import annotations

import numpy as np

from tallytree.model.arrays import IntArray

LARGEST_NUMBER = 2**53
"""Of a group: the largest size, and the largest number in a column of sizes or quantities. Floats hold all smaller ones."""

MOST_ENTITIES = 2**40
"""Entities that one row of a table may stand for, and that one bin or cell may hold."""

MOST_GROUPS_OF_SIZE = 2**32
"""Groups of one size in one leaf region."""

MOST_GROUPS = 3_037_000_499
"""Groups in all where their number is not public, and what matching takes in one region: the square fits 63 bits."""

_MOST_IN_ALL = 2**52


def saturated(counts: IntArray) -> IntArray:
    """Counts per bin or cell, none so large that all of them together leave the range of exact floating-point numbers.

    The bound depends on the number of cells alone, which is public.

    Examples
    --------
    >>> saturated(np.array([7, 2**62])).tolist() == [7, 2**40]
    True
    """
    most = min(MOST_ENTITIES, _MOST_IN_ALL // max(counts.size, 1))
    return np.minimum(counts, most) if counts.max(initial=0) > most else counts
