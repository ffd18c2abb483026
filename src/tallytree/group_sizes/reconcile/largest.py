"""The largest groups of all levels: who has them, how large they are, and how they are dealt to the
regions below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tallytree.group_sizes.estimate.hybrid import laplace_scale
from tallytree.group_sizes.estimate.largest import Largest, Rows
from tallytree.model.arrays import IntArray, offsets_from_lengths


@dataclass(frozen=True, eq=False)
class LargestBelow:
    """What the leaves tell about the largest groups of the regions above them: all that these need
    to know.

    Attributes
    ----------
    rows
        Sizes of the largest groups of each region above, of all its leaves together, as far as they
        stand out.
    clear
        Groups per region above that stand clear of all noise of the leaves.
    n_rows
        Rows of all leaves.
    least_last
        The smallest size at which the blocks of a leaf end.
    reach, noise_variance
        How far noise may move a row of the leaves, and the variance of each.
    """

    rows: Rows
    clear: IntArray
    n_rows: int
    least_last: int
    reach: float
    noise_variance: float

    def clear_from(self, n_sizes: int) -> float:
        """No group below this size stands clear of the noise of the leaves."""
        return max(float(self.least_last) + self.reach, float(n_sizes))


def told_above(own: Largest, starts: IntArray) -> LargestBelow:
    """What leaves tell about the regions above them, whose first leaves ``starts`` holds, the end
    of all included.
    """
    return LargestBelow(
        lifted_rows(own.rows, starts),
        np.add.reduceat(own.clear, starts[:-1]),
        int(own.n_rows.sum()),
        int(own.rows.last.min()),
        own.reach,
        own.noise_variance,
    )


def joined_below(parts: Sequence[LargestBelow]) -> LargestBelow:
    """What the pieces of the leaves tell together, one after the other."""
    lengths = np.concatenate([np.diff(part.rows.offsets) for part in parts])
    sizes, last = (np.concatenate([part.rows[column] for part in parts]) for column in (1, 2))
    return replace(
        parts[0],
        rows=Rows(offsets_from_lengths(lengths), sizes, last),
        clear=np.concatenate([part.clear for part in parts]),
        n_rows=sum(part.n_rows for part in parts),
        least_last=min(part.least_last for part in parts),
    )


def clear_groups(
    told: Sequence[Largest | None],
    starts: Sequence[IntArray],
    n_sizes: int,
    below: LargestBelow | None = None,
) -> list[IntArray]:
    """Large groups that a region must keep room for: those that it or its children show clear of
    noise.

    Of thousands of leaves one shows a ghost now and then, as large as the noise of thousands
    reaches; a measured level above knows better, and its rows that may be as large bound the claim.
    ``starts`` holds the first child of every region, level by level, the end of all included;
    ``below`` what leaves tell that are not among ``told``.
    """
    least: list[IntArray] = []
    claimed = None if below is None else below.clear
    claimed_from = math.inf if below is None else below.clear_from(n_sizes)
    for level in range(len(told) - 1, -1, -1):
        own = told[level]
        if least:
            claimed = np.add.reduceat(least[0], starts[level][:-1])
        if own is None:
            assert claimed is not None, "the leaves are always measured"
            least.insert(0, claimed)
            continue
        here = own.clear
        if claimed is not None:
            here = np.maximum(here, np.minimum(claimed, own.possible(claimed_from)))
        claimed_from = min(claimed_from, own.clear_from(n_sizes))
        least.insert(0, here)
    return least


def affordable(least: IntArray, room: IntArray, starts: IntArray) -> IntArray:
    """The claims of children, cut where together they exceed the large groups of their parent: the
    last children first.
    """
    before = np.cumsum(least) - least
    ahead = before - np.repeat(before[starts[:-1]], np.diff(starts))
    return np.clip(np.repeat(room, np.diff(starts)) - ahead, 0, least)


def large_sizes(
    told: Sequence[Largest | LargestBelow | None], n_large: int, n_sizes: int
) -> IntArray:
    """Sizes of the root's groups past the last size, falling: the k-th largest rows of every level,
    by inverse variance.

    The k-th largest of M values that are all noise stands ln(M/2k) scales too high, give or take
    1/√k. Unless a row stands clear of that by three such deviations it is lowered by as much, and
    its variance grows by the square of it.
    """
    weighted, weights = np.zeros(n_large), np.full(n_large, 1e-300)
    for level in told:
        if level is None:
            continue
        n_rows = int(np.sum(level.n_rows))
        scale = laplace_scale(level.noise_variance)
        standing = np.sort(level.rows.sizes)[::-1][:n_large]
        largest = np.full(
            min(n_large, n_rows), float(n_sizes)
        )  # rows that noise hides are no larger
        largest[: len(standing)] = standing
        k = np.arange(1, len(largest) + 1)
        too_high = np.maximum(np.log((n_rows + 1) / (2 * k)), 0.0) * scale
        lowered = np.where(largest > n_sizes + too_high + 3 * scale / np.sqrt(k), 0.0, too_high)
        largest = np.maximum(largest - lowered, n_sizes)
        weight = 1 / (level.noise_variance + lowered**2)
        weighted[: len(largest)] += weight * largest
        weights[: len(largest)] += weight
    sizes = np.maximum(np.rint(weighted / weights), n_sizes).astype(np.int64)
    return np.sort(sizes)[::-1]


def rows_of_levels(
    told: Sequence[Largest | None], starts: Sequence[IntArray], below: LargestBelow | None = None
) -> list[Rows]:
    """Rows of the regions of every level; those of their children where they have less noise."""
    rows: list[Rows] = []
    lifted = None if below is None else below.rows
    least = math.inf if below is None else below.noise_variance
    for level in range(len(told) - 1, -1, -1):
        own = told[level]
        if own is not None and own.noise_variance <= least:
            least = own.noise_variance
            rows.insert(0, own.rows)
            continue
        if rows:
            lifted = lifted_rows(rows[0], starts[level])
        assert lifted is not None, "the leaves are always measured"
        rows.insert(0, lifted)
    return rows


def lifted_rows(below: Rows, starts: IntArray) -> Rows:
    """The rows of all children of each region together; ``starts`` holds its first child, the end
    of all included.
    """
    offsets = below.offsets[starts]
    region = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    sizes = below.sizes[np.lexsort((-below.sizes, region))]
    return Rows(offsets, sizes, np.maximum.reduceat(below.last, starts[:-1]))


def deal(large: IntArray, n_large: IntArray, rows: Rows, parent: IntArray) -> IntArray:
    """The parents' large sizes, dealt to their children in the order of the children's rows;
    falling within each child.

    ``large`` holds the sizes of the parents one after the other, falling within each; ``n_large``
    how many each child has.
    """
    child = np.repeat(np.arange(len(n_large)), n_large)
    rank = np.arange(len(child)) - np.repeat(np.cumsum(n_large) - n_large, n_large)
    row = rows.last[child].astype(np.float64)
    has_row = rank < np.diff(rows.offsets)[child]
    row[has_row] = rows.sizes[rows.offsets[child[has_row]] + rank[has_row]]
    by_parent = np.lexsort((-row, parent[child]))
    dealt = np.empty(len(child), dtype=np.int64)
    dealt[by_parent] = large
    return dealt[np.lexsort((-dealt, child))]
