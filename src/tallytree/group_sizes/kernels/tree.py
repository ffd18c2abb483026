"""Curves of parents and children: share out what is missing, and turn curves into whole numbers
below a whole parent.
"""

from __future__ import annotations

import numpy as np

from tallytree.group_sizes.kernels.curves import fit_falling_by_variance
from tallytree.group_sizes.kernels.quicksort import order_falling
from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray

# Halvings of a bracket of at most 2**63: the water level is then known to far below one group.
_HALVINGS = 80


@serial
def _share_out(parent, height, variance, child_starts, start, stop):
    n_sizes = height.shape[1]
    for region in range(start, stop):
        first, last = child_starts[region], child_starts[region + 1]
        for size in range(n_sizes):
            together, spread = 0.0, 0.0
            for child in range(first, last):
                together += height[child, size]
                spread += variance[child, size]
            missing, spread = parent[region, size] - together, max(spread, 1e-12)
            for child in range(first, last):
                height[child, size] += missing * variance[child, size] / spread


def share_out(
    parent: FloatArray, height: FloatArray, variance: FloatArray, child_starts: IntArray
) -> None:
    """Make children add up to their parent, size by size, each moved in proportion to its variance;
    in place.

    The downward pass of hay2010 §4.1 with unequal variances.

    ``parent`` is (n_parents, n_sizes), ``height`` and ``variance`` are (n_children, n_sizes),
    ``child_starts`` is (n_parents + 1,).
    """
    run_in_chunks(
        lambda start, stop: _share_out(parent, height, variance, child_starts, start, stop),
        len(child_starts) - 1,
    )


@serial
def _make_falling(groups, height, variance, start, stop):
    for region in range(start, stop):
        fit_falling_by_variance(height[region], variance[region], float(groups[region]))


def make_falling(groups: IntArray, height: FloatArray, variance: FloatArray) -> None:
    """Nearest nonincreasing curve between 0 and the number of groups, by inverse variance, for each
    region; in place.

    ``groups`` is (n_regions,), ``height`` and ``variance`` are (n_regions, n_sizes).
    """
    run_in_chunks(
        lambda start, stop: _make_falling(groups, height, variance, start, stop), len(groups)
    )


@serial
def _hand_out(n_units, wish, room, taken, rest, order):
    """Whole numbers 0 ≤ taken ≤ room that add up to ``n_units``, near wish − level with one level
    for all.

    The level is that of water poured over the wishes: Σ min(max(wish − level, 0), room) = n_units.
    """
    n = len(wish)
    low, high, most = wish[0], wish[0], room[0]
    for child in range(1, n):
        low, high, most = min(low, wish[child]), max(high, wish[child]), max(most, room[child])
    low = low - most - 1.0
    for _ in range(_HALVINGS):
        level = 0.5 * (low + high)
        total = 0.0
        for child in range(n):
            total += min(max(wish[child] - level, 0.0), float(room[child]))
        if total > n_units:
            low = level
        else:
            high = level
    left = n_units
    for child in range(n):
        amount = min(max(wish[child] - high, 0.0), float(room[child]))
        taken[child] = int(np.floor(amount + 1e-7))
        left -= taken[child]
        # Who is next: the largest fraction, then whoever came closest to a wish.
        rest[child] = amount - taken[child] if amount > 0.0 else min(0.0, wish[child] - high) - 1e-6
    order_falling(rest, order)
    while left > 0:
        for place in range(n):
            child = order[place]
            if left > 0 and taken[child] < room[child]:
                taken[child] += 1
                left -= 1


@serial
def _allocate(parent, groups, least, height, child_starts, out, start, stop):
    n_sizes = height.shape[1]
    middle = np.empty(n_sizes, dtype=np.int64)
    for region in range(start, stop):
        first, last = child_starts[region], child_starts[region + 1]
        n = last - first
        placed = np.empty(n, dtype=np.int64)
        wish, rest = np.empty(n), np.empty(n)
        room, taken, order = (
            np.empty(n, dtype=np.int64),
            np.empty(n, dtype=np.int64),
            np.empty(n, dtype=np.int64),
        )
        n_groups = 0
        for child in range(n):
            placed[child] = 0
            n_groups += groups[first + child]
        # Until the parent's next group a child's curve stays where it is: the best height is the
        # median over those sizes.
        following = n_sizes
        for size in range(n_sizes - 1, -1, -1):
            middle[size] = (size + following - 1) // 2
            above = parent[region, size - 1] if size > 0 else n_groups
            if above > parent[region, size]:
                following = size
        before = n_groups
        for size in range(n_sizes):
            n_units = before - parent[region, size]
            before = parent[region, size]
            if n_units > 0:
                for child in range(n):
                    wish[child] = (
                        groups[first + child] - height[first + child, middle[size]] - placed[child]
                    )
                    room[child] = groups[first + child] - least[first + child] - placed[child]
                _hand_out(n_units, wish, room, taken, rest, order)
                for child in range(n):
                    placed[child] += taken[child]
            for child in range(n):
                out[first + child, size] = groups[first + child] - placed[child]


def allocate(
    parent: IntArray, groups: IntArray, least: IntArray, height: FloatArray, child_starts: IntArray
) -> IntArray:
    """Whole falling curves of children that add up to the parents', close to the real curves
    ``height``.

    Sizes in rising order: the parent's groups of exactly this size go to the children that are
    furthest behind, counting the groups handed out so far, so that rounding never adds up. Each
    child keeps at least ``least`` groups for sizes past the last; the parents must have room for
    them.

    ``parent`` is (n_parents, n_sizes), ``groups`` and ``least`` are (n_children,), ``height`` and
    the result (n_children, n_sizes), ``child_starts`` is (n_parents + 1,).

    Parameters
    ----------
    parent
        N(i) of the parents, whole and falling, one row each.
    groups
        Number of groups of each child; they add up to the parent's.
    """
    out = np.empty(height.shape, dtype=np.int64)
    run_in_chunks(
        lambda start, stop: _allocate(
            parent, groups, least, height, child_starts, out, start, stop
        ),
        len(child_starts) - 1,
    )
    return out
