"""Exact answers of the group-size queries from runs, region by region: what noise is added to
afterwards.
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize


@serial
def _count_more_than(offsets, size, count, out_offsets, out, start, stop):
    for region in range(start, stop):
        first, last = out_offsets[region], out_offsets[region + 1]
        # Walk the runs from the largest size down; `larger` groups have more than `bound` entities.
        run = offsets[region + 1] - 1
        larger = 0
        for bound in range(last - first - 1, -1, -1):
            while run >= offsets[region] and size[run] > bound:
                larger += count[run]
                run -= 1
            out[first + bound] = larger


def count_more_than(counts: CountsBySize, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Number of groups with more than ``i`` entities, for ``i`` below ``lengths[r]`` in region
    ``r``.

    This is G − H_c[i]. It is measured instead of H_c because a group without entities does not
    touch it, so that its sensitivity is the same whether or not the number of groups is public.

    Returns
    -------
    values, offsets
        ``values[offsets[r]:offsets[r + 1]]`` belongs to region ``r``. Linear in runs plus output.
    """
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    values = np.empty(offsets[-1], dtype=np.int64)
    run_in_chunks(
        lambda start, stop: _count_more_than(
            counts.offsets, counts.size, counts.count, offsets, values, start, stop
        ),
        counts.n_regions,
    )
    return values, offsets


@serial
def _largest_sizes(offsets, size, count, floor, out_offsets, out, start, stop):
    for region in range(start, stop):
        place = out_offsets[region + 1] - 1
        run = offsets[region + 1] - 1
        while place >= out_offsets[region] and run >= offsets[region] and size[run] > floor[region]:
            for _ in range(min(count[run], place - out_offsets[region] + 1)):
                out[place] = size[run]
                place -= 1
            run -= 1
        while place >= out_offsets[region]:
            out[place] = floor[region]
            place -= 1


def largest_sizes(
    counts: CountsBySize, lengths: IntArray, floor: IntArray
) -> tuple[IntArray, IntArray]:
    """The ``lengths[r]`` largest values of max(size, ``floor[r]``) of region ``r``, in rising
    order.

    Regions with fewer groups are filled up with the floor, as if by groups no larger than it; that
    keeps the sensitivity when a group exists only through its entities. With the number of groups
    as length and a floor of 0 this is H_g.
    """
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    values = np.empty(offsets[-1], dtype=np.int64)
    floor = np.ascontiguousarray(floor, dtype=np.int64)
    run_in_chunks(
        lambda start, stop: _largest_sizes(
            counts.offsets, counts.size, counts.count, floor, offsets, values, start, stop
        ),
        counts.n_regions,
    )
    return values, offsets
