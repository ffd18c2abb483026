"""Distances between two tables of counts by size, per region, on runs: linear in the number of
runs.
"""

from __future__ import annotations

import numpy as np

from tallytree.errors import InputError
from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize


def earth_movers_distance(a: CountsBySize, b: CountsBySize) -> IntArray:
    """Least number of entities to add to or remove from groups to turn one table into the other,
    per region.

    kuo2018 Lemma 1: ‖H_c − Ĥ_c‖₁, computed as Σ_s |groups above s in one − in the other|, which is
    the same when both have equally many groups. Where they do not, a missing group counts as an
    empty one.

    Examples
    --------
    >>> one = CountsBySize(np.array([0, 1]), np.array([1]), np.array([100]))
    >>> other = CountsBySize(np.array([0, 1]), np.array([5]), np.array([100]))
    >>> earth_movers_distance(one, other).tolist()
    [400]
    """
    return _distances(a, b)[:, 0]


def l1_distance(a: CountsBySize, b: CountsBySize) -> IntArray:
    """‖H − Ĥ‖₁ per region: groups that are counted at a size in one table only."""
    return _distances(a, b)[:, 1]


def l2_squared(a: CountsBySize, b: CountsBySize) -> IntArray:
    """‖H − Ĥ‖₂² per region."""
    return _distances(a, b)[:, 2]


def distinct_sizes(counts: CountsBySize) -> IntArray:
    """Number of different group sizes per region."""
    return np.diff(counts.offsets)


def _distances(a: CountsBySize, b: CountsBySize) -> IntArray:
    if a.n_regions != b.n_regions:
        raise InputError(
            f"Distances need tables of the same regions, got {a.n_regions} and {b.n_regions}."
        )
    found = np.zeros((a.n_regions, 3), dtype=np.int64)
    one, other = (a.offsets, a.size, a.count), (b.offsets, b.size, b.count)
    run_in_chunks(
        lambda start, stop: _walk(*one, *other, found, start, stop), a.n_regions, smallest=1000
    )
    return found


@serial
def _walk(a_offsets, a_size, a_count, b_offsets, b_size, b_count, found, start, stop):
    # From the largest size down; `above` is the difference in the number of groups of at least
    # `size`.
    for region in range(start, stop):
        i, j = a_offsets[region + 1] - 1, b_offsets[region + 1] - 1
        above = 0
        size = np.int64(0)
        while i >= a_offsets[region] or j >= b_offsets[region]:
            next_a = a_size[i] if i >= a_offsets[region] else np.int64(-1)
            next_b = b_size[j] if j >= b_offsets[region] else np.int64(-1)
            lower = max(next_a, next_b)
            found[region, 0] += abs(above) * (size - lower)
            size = lower
            difference = 0
            if next_a == size:
                difference += a_count[i]
                i -= 1
            if next_b == size:
                difference -= b_count[j]
                j -= 1
            found[region, 1] += abs(difference)
            found[region, 2] += difference * difference
            above += difference
        found[region, 0] += abs(above) * size
