"""A grid of two columns in the order of the Hilbert curve, as a tree of boxes: halves of halves of
the curve.

A stretch of 2^k cells of the curve that begins at a multiple of 2^k is a square, or for odd k two
squares side by side or one above the other, as the curve runs there. So all such stretches are
boxes, and a tree of them is known by the column that each square is cut across first.
"""

from __future__ import annotations

import numpy as np

from tallytree.boxes.draft import Draft
from tallytree.model.arrays import BoolArray, IntArray


def split_along_curve(draft: Draft) -> None:
    """Split the whole grid down to its cells, in halves of halves of the curve.

    A square is run through in four quarters, (0, 0), (0, 1), (1, 1), (1, 0) in its own columns u
    and v: first the two of the lower u, then the two of the upper one. The quarters in the middle,
    of the upper v, are run through in the same way, the first with u and v exchanged, the last with
    both exchanged and turned round. Other sides than powers of two are cut in their middles.
    """
    nodes, exchanged, turned = draft.root, np.zeros(1, dtype=np.bool_), np.zeros(1, dtype=np.bool_)
    while len(nodes):
        nodes, across, which = _halved(draft, nodes, exchanged.astype(np.int64))
        exchanged, turned = exchanged[which], turned[which]
        upper_u = across ^ turned
        nodes, along, which = _halved(draft, nodes, 1 - exchanged.astype(np.int64))
        exchanged, turned, upper_u = exchanged[which], turned[which], upper_u[which]
        ends = ~(along ^ turned)
        exchanged, turned = exchanged ^ ends, turned ^ (ends & upper_u)
        low, high = draft.boxes(nodes)
        wide = (high - low).max(axis=1) > 1
        nodes, exchanged, turned = nodes[wide], exchanged[wide], turned[wide]


def _halved(
    draft: Draft, nodes: IntArray, columns: IntArray
) -> tuple[IntArray, BoolArray, IntArray]:
    """The halves of nodes, each cut across a column of its own, whether they are upper ones, and
    which node they are half of.

    A node that is one cell wide there stays whole, and counts as a lower half.
    """
    low, high = draft.boxes(nodes)
    rows = np.arange(len(nodes))
    first, last = low[rows, columns], high[rows, columns]
    thin = np.flatnonzero(last - first == 1)
    found, upper, which = [nodes[thin]], [np.zeros(len(thin), dtype=np.bool_)], [thin]
    for column in range(2):
        chosen = np.flatnonzero((columns == column) & (last - first > 1))
        if len(chosen):
            found.append(draft.split_at(nodes[chosen], column, (first + last + 1)[chosen] // 2))
            upper.append(np.tile([False, True], len(chosen)))
            which.append(np.repeat(chosen, 2))
    return np.concatenate(found), np.concatenate(upper), np.concatenate(which)
