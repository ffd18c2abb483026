"""How large exact numbers may be, so that nothing overflows or runs out of memory once it is paid
for.

Taking the smaller of a number and a public bound never moves two numbers further apart. That is
enough where each number is measured by itself or one unit changes one of the numbers that are
summed: a size, or the entities of one bin. It is not for numbers of groups by size: one entity
takes a group from one of them and adds it to the next, their sum stays, and so do all cumulative
counts but one; were only one of the two cut off, all cumulative counts would change. Numbers of
groups are therefore never cut off: a table with too many groups is refused when it is read.
"""

from __future__ import annotations

import numpy as np

from tallytree.errors import InputError
from tallytree.model.arrays import IntArray

LARGEST_NUMBER = 2**53
"""Of a group: the largest size, and the largest number in a column of sizes or quantities. Floats hold all smaller ones."""

MOST_ENTITIES = 2**40
"""Entities that one row of a table may stand for, and that one bin or cell may hold."""

MOST_GROUPS = 3_037_000_499
"""Groups in all: the square fits 63 bits. More are refused when they are read."""

MOST_LISTED = 2**26
"""Largest groups of one level whose sizes are listed one by one: half a GiB."""

MOST_IN_ALL = 2**52
"""Entities of all cells together, where each is bounded by the same number."""


def saturated(counts: IntArray) -> IntArray:
    """Counts per bin or cell, none so large that all of them together leave the range of exact
    floating-point numbers.

    The bound depends on the number of cells alone, which is public.

    Examples
    --------
    >>> saturated(np.array([7, 2**62])).tolist() == [7, 2**40]
    True
    """
    most = min(MOST_ENTITIES, MOST_IN_ALL // max(counts.size, 1))
    return np.minimum(counts, most) if counts.max(initial=0) > most else counts


def refuse_many_groups(n_groups: int) -> None:
    """Refuse, before anything is paid for, a table with more groups in all than are counted.

    That there are so many is then visible to the owner of the data alone, as with malformed rows.
    """
    if n_groups > MOST_GROUPS:
        raise InputError(
            f"There are more than {MOST_GROUPS:,} groups in all, and no more are counted. Release "
            "the "
            "parts of the table one by one (where=COLUMN=VALUE, --where), or count larger groups."
        )
