"""Average variance of trees and wavelets over any workload of ranges, in linear time.

The same least-squares recursion as :mod:`tallytree.strategies.errors`, but for ranges that are
listed. All ranges go through the closed forms there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.range_tree import RangeTree
from tallytree.strategies.errors import counted_levels, tree_range_error, wavelet_range_error
from tallytree.strategies.workloads import AllRanges, GivenRanges, Workload


def tree_error(
    tree: RangeTree, variances: Sequence[float], workload: Workload, *, consistent: bool = True
) -> float:
    """Average variance of a workload of ranges when blocks are counted with noise of
    ``variances[level]``.

    See :func:`tallytree.strategies.errors.tree_range_error`. Takes O((bins + ranges)·levels) for
    listed ranges.
    """
    check_ordered(workload, tree.n_bins)
    if isinstance(workload, AllRanges):
        return tree_range_error(tree, variances, consistent=consistent)
    assert isinstance(workload, GivenRanges)
    tree, variances = counted_levels(tree, variances)
    if consistent:
        return least_squares_sum(tree, variances, workload) / workload.n_queries
    uses = (blocks_used(tree, level, workload) for level in range(tree.n_levels))
    return (
        sum(float(used.sum()) * variance for used, variance in zip(uses, variances))
        / workload.n_queries
    )


def wavelet_error(workload: Workload, variance: float | None = None) -> float:
    """Average variance of a workload of ranges under the Haar wavelet, see
    ``range_errors.wavelet_range_error``.
    """
    check_ordered(workload, workload.n_bins)
    if isinstance(workload, AllRanges):
        return wavelet_range_error(workload.n_bins, variance)
    assert isinstance(workload, GivenRanges)
    padded = 1 << (workload.n_bins - 1).bit_length()
    if variance is None:
        variance = 2.0 * padded.bit_length() ** 2
    total = float(np.sum(((workload.stops - workload.starts) / padded) ** 2))
    width = padded
    while width > 1:
        # A block's coefficient counts bins left minus right of its middle: for the bins below an
        # end, a tent around the middle.
        total += float(np.sum(block_form(tent(width), width, workload)))
        width //= 2
    return total * variance / workload.n_queries


def check_ordered(workload: Workload, n_bins: int) -> None:
    """Refuse workloads that trees and wavelets have no order for, or that are over other bins."""
    if not isinstance(workload, AllRanges | GivenRanges):
        raise RequestError(
            "Trees and wavelets answer ranges of ordered bins; the workload is one of "
            f"{workload.name}."
        )
    if workload.n_bins != n_bins:
        raise RequestError(
            f"The workload is over {workload.n_bins} bins, the strategy over {n_bins}."
        )


def tent(width: int) -> FloatArray:
    """Prefix sums of ±1/width over a block, left half up and right half down, from 0 to 0."""
    place = np.arange(width + 1)
    return np.minimum(place, width - place) / width


def block_form(prefix: FloatArray, width: int, workload: GivenRanges) -> FloatArray:
    """Squared sums over each range of a pattern that repeats in every block and sums to 0 over a
    block.
    """
    at_start, at_stop = prefix[workload.starts % width], prefix[workload.stops % width]
    same = workload.starts // width == workload.stops // width
    return np.where(same, (at_stop - at_start) ** 2, at_start**2 + at_stop**2)


def least_squares_sum(tree: RangeTree, variances: Sequence[float], workload: GivenRanges) -> float:
    """trace(CWᵀW): each level adds its counts by the rule of Sherman and Morrison, see
    ``range_errors.least_squares_sum``.
    """
    n = tree.n_bins
    with_total = np.full(n, variances[-1])
    total = variances[-1] * float(np.sum(workload.stops - workload.starts))
    for level in reversed(range(tree.n_levels - 1)):
        width = tree.widths[level]
        edges = np.minimum(np.arange(tree.n_blocks(level) + 1) * width, n)
        running = np.concatenate([[0.0], np.cumsum(with_total)])
        sums = np.diff(running[edges])
        own_total = variances[level] + sums
        total -= float(
            np.sum(reductions(running, edges, sums**2 / own_total, own_total, width, workload))
        )
        with_total = with_total * np.repeat(variances[level] / own_total, np.diff(edges))
    return total


def reductions(
    running: FloatArray,
    edges: IntArray,
    whole: FloatArray,
    own_total: FloatArray,
    width: int,
    workload: GivenRanges,
) -> FloatArray:
    """For each range, Σ over blocks of (sum of D1 over the part of the block in the range)² / (V +
    1ᵀD1).
    """
    first, last = workload.starts // width, (workload.stops - 1) // width
    same = first == last
    inside = (running[workload.stops] - running[workload.starts]) ** 2 / own_total[first]
    left = (running[edges[first + 1]] - running[workload.starts]) ** 2 / own_total[first]
    right = (running[workload.stops] - running[edges[last]]) ** 2 / own_total[last]
    whole_before = np.concatenate([[0.0], np.cumsum(whole)])
    between = whole_before[last] - whole_before[np.minimum(first + 1, last)]
    return np.where(same, inside, left + right + between)


def blocks_used(tree: RangeTree, level: int, workload: GivenRanges) -> IntArray:
    """Blocks of a level in the fewest that cover each range: those held by it, less those in a held
    parent.
    """
    start, stop = held_blocks(tree, level, workload)
    used = np.maximum(stop - start, 0)
    if level == 0:
        return used
    ratio = tree.widths[level - 1] // tree.widths[level]
    start, stop = held_blocks(tree, level - 1, workload)
    in_parents = np.minimum(stop * ratio, tree.n_blocks(level)) - start * ratio
    return used - np.where(stop > start, in_parents, 0)


def held_blocks(tree: RangeTree, level: int, workload: GivenRanges) -> tuple[IntArray, IntArray]:
    """First and end of the blocks of a level that lie inside each range."""
    width = tree.widths[level]
    stop = np.where(workload.stops == tree.n_bins, tree.n_blocks(level), workload.stops // width)
    return -(-workload.starts // width), stop
