"""Optimal matching between the groups of a parent and those of its children, on runs (kuo2018
Algorithm 2, §5.2, §5.3).

Groups of one region and one size are interchangeable, so a run (size, how many groups, variance of
each size) stands for all of them, and the work grows with runs, never with groups.

Corrected against the printed Algorithm 2: line 5 takes the least of the sizes (H_g, not H_c); line
9 matches only |G_b| members of G_t, and the others stay unmatched until the next round. Shares of
line 14 are rounded by largest remainders (footnote 10), in integers; the first of equal remainders
wins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallytree.errors import InputError
from tallytree.kernels.jit import as_input, collect_in_chunks, serial
from tallytree.kernels.rounding import raise_largest
from tallytree.model.arrays import FloatArray, IntArray, offsets_from_lengths
from tallytree.model.limits import MOST_GROUPS


class Runs(NamedTuple):
    """Groups of several regions: region ``r`` has ``groups[i]`` groups of ``size[i]``, each known
    up to ``variance[i]``, for ``i`` in ``offsets[r]:offsets[r + 1]``. Sizes never fall within a
    region; equal sizes may differ in variance.
    """

    offsets: IntArray
    size: IntArray
    groups: IntArray
    variance: FloatArray


def match_children(
    parents: Runs, children: Runs, child_starts: IntArray, *, weighted: bool
) -> Runs:
    """Match each parent's groups with those of its children at least total difference of sizes, and
    merge each pair.

    Parameters
    ----------
    parents, children
        Runs of two neighbouring levels; a parent has as many groups as its children together.
    child_starts
        Children of parent ``p`` are ``child_starts[p]:child_starts[p + 1]``, counted from 0.
    weighted
        Merge two sizes by inverse variance (eq. 5 and 6), or else by their plain average. Rounded,
        halves up.

    Returns
    -------
    Runs
        The children with their merged sizes, and the variances of these.
    """
    parents, children = _as_inputs(parents), _as_inputs(children)
    n_parents = len(parents.offsets) - 1
    needed = _groups(parents)
    if not np.array_equal(needed, np.diff(offsets_from_lengths(_groups(children))[child_starts])):
        raise InputError(
            "Matching needs as many groups in every region as in its children together."
        )
    if needed.max(initial=0) > MOST_GROUPS:  # shares are products of two numbers of groups
        raise InputError(
            f"Matching takes at most {MOST_GROUPS:,} groups per region, got {needed.max():,}."
        )
    starts = as_input(child_starts, np.int64)
    parts = collect_in_chunks(
        lambda start, stop: _match(parents, children, starts, weighted, start, stop), n_parents
    )
    n_runs, size, count, variance = (np.concatenate(column) for column in zip(*parts))
    return Runs(offsets_from_lengths(n_runs), size, count, variance)


def _as_inputs(runs: Runs) -> Runs:
    offsets, size, groups = (as_input(column, np.int64) for column in runs[:3])
    return Runs(offsets, size, groups, as_input(runs.variance, np.float64))


def _groups(runs: Runs) -> IntArray:
    return np.diff(offsets_from_lengths(runs.groups)[runs.offsets])


@serial
def _match(parents, children, child_starts, weighted, start, stop):
    n_runs = np.zeros(child_starts[stop] - child_starts[start], dtype=np.int64)
    n_pairs = 0
    room = 2 * (children.offsets[child_starts[stop]] - children.offsets[child_starts[start]]) + 16
    size = np.empty(room, dtype=np.int64)
    count = np.empty(room, dtype=np.int64)
    variance = np.empty(room, dtype=np.float64)
    for parent in range(start, stop):
        first_child, last_child = child_starts[parent], child_starts[parent + 1]
        child, top_run, bottom_run, many = _pair_runs(
            parents, children, parent, first_child, last_child
        )
        if n_pairs + len(child) > len(size):
            more = 2 * (n_pairs + len(child))
            size = np.concatenate((size[:n_pairs], np.empty(more - n_pairs, dtype=np.int64)))
            count = np.concatenate((count[:n_pairs], np.empty(more - n_pairs, dtype=np.int64)))
            variance = np.concatenate(
                (variance[:n_pairs], np.empty(more - n_pairs, dtype=np.float64))
            )
        # Pairs of one child after the other, each in the order of the matching.
        ends = np.cumsum(np.bincount(child, minlength=last_child - first_child))
        place = np.empty(len(child), dtype=np.int64)
        filled = np.zeros(last_child - first_child, dtype=np.int64)
        for pair in range(len(child)):
            c = child[pair]
            place[(ends[c - 1] if c > 0 else 0) + filled[c]] = pair
            filled[c] += 1
        for c in range(last_child - first_child):
            pairs = place[ends[c - 1] if c > 0 else 0 : ends[c]]
            merged, spread = _merge_sizes(
                parents, children, top_run[pairs], bottom_run[pairs], weighted
            )
            before = n_pairs
            n_pairs = _write_runs(merged, many[pairs], spread, size, count, variance, n_pairs)
            n_runs[first_child - child_starts[start] + c] = n_pairs - before
    return n_runs, size[:n_pairs].copy(), count[:n_pairs].copy(), variance[:n_pairs].copy()


@serial
def _pair_runs(parents, children, parent, first_child, last_child):
    """Algorithm 2 for one parent: child, run of the parent, run of the child and number of groups
    of each set of pairs.
    """
    base = children.offsets[first_child]
    n_bottom = children.offsets[last_child] - base
    owner = np.empty(n_bottom, dtype=np.int64)
    for c in range(first_child, last_child):
        owner[children.offsets[c] - base : children.offsets[c + 1] - base] = c - first_child
    by_size = np.argsort(children.size[base : base + n_bottom], kind="mergesort")
    left = children.groups[base : base + n_bottom][by_size]
    room = n_bottom + parents.offsets[parent + 1] - parents.offsets[parent]
    child = np.empty(room, dtype=np.int64)
    top_run = np.empty(room, dtype=np.int64)
    bottom_run = np.empty(room, dtype=np.int64)
    many = np.empty(room, dtype=np.int64)
    n_pairs = 0
    top = parents.offsets[parent]
    top_left = parents.groups[top] if n_bottom > 0 else 0
    opens = 0
    while opens < n_bottom:
        # Lines 5 and 7: the smallest unmatched size below, in all children that have it.
        block_size = children.size[base + by_size[opens]]
        closes = opens
        block_left = 0
        while closes < n_bottom and children.size[base + by_size[closes]] == block_size:
            block_left += left[closes]
            closes += 1
        while block_left > 0:
            taken = min(top_left, block_left)
            share = _shares(left[opens:closes], block_left, taken)
            if n_pairs + closes - opens > len(child):
                more = n_pairs + closes - opens + len(child)
                child = np.concatenate((child, np.empty(more, dtype=np.int64)))
                top_run = np.concatenate((top_run, np.empty(more, dtype=np.int64)))
                bottom_run = np.concatenate((bottom_run, np.empty(more, dtype=np.int64)))
                many = np.concatenate((many, np.empty(more, dtype=np.int64)))
            for k in range(closes - opens):
                if share[k] > 0:
                    child[n_pairs] = owner[by_size[opens + k]]
                    top_run[n_pairs] = top
                    bottom_run[n_pairs] = base + by_size[opens + k]
                    many[n_pairs] = share[k]
                    left[opens + k] -= share[k]
                    n_pairs += 1
            block_left -= taken
            top_left -= taken
            if top_left == 0 and top + 1 < parents.offsets[parent + 1]:
                top += 1
                top_left = parents.groups[top]
        opens = closes
    return child[:n_pairs], top_run[:n_pairs], bottom_run[:n_pairs], many[:n_pairs]


@serial
def _shares(left, block_left, taken):
    """Lines 8 to 15: all of a block, or ``taken`` of it split in proportion with largest
    remainders.
    """
    if taken == block_left:
        return left.copy()
    share = np.empty(len(left), dtype=np.int64)
    remainder = np.empty(len(left), dtype=np.int64)
    missing = taken
    for k in range(len(left)):
        share[k] = taken * left[k] // block_left
        remainder[k] = taken * left[k] - share[k] * block_left
        missing -= share[k]
    raise_largest(remainder, missing, share)
    return share


@serial
def _merge_sizes(parents, children, top_run, bottom_run, weighted):
    """One size and variance for each set of pairs (eq. 5 and 6), sizes rounded."""
    merged = np.empty(len(top_run), dtype=np.int64)
    spread = np.empty(len(top_run), dtype=np.float64)
    for pair in range(len(top_run)):
        s_t, s_b = parents.size[top_run[pair]], children.size[bottom_run[pair]]
        v_t, v_b = parents.variance[top_run[pair]], children.variance[bottom_run[pair]]
        # (s_t/v_t + s_b/v_b) / (1/v_t + 1/v_b) = s_b + (s_t − s_b) · v_b / (v_t + v_b), which
        # allows a variance of 0.
        weight = v_b / (v_t + v_b) if weighted and v_t + v_b > 0 else 0.5
        merged[pair] = s_b + np.int64(np.floor((s_t - s_b) * weight + 0.5))
        spread[pair] = v_t * weight if weighted else (v_t + v_b) / 4
    return merged, spread


@serial
def _write_runs(merged, many, spread, size, count, variance, written):
    """Write runs in the order of their sizes, joining neighbours that are alike, in place from
    ``written`` on.
    """
    first = written
    for pair in np.argsort(merged, kind="mergesort"):
        alike = (
            written > first
            and size[written - 1] == merged[pair]
            and variance[written - 1] == spread[pair]
        )
        if alike:
            count[written - 1] += many[pair]
        else:
            size[written] = merged[pair]
            count[written] = many[pair]
            variance[written] = spread[pair]
            written += 1
    return written
