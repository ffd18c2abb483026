"""Merged bins in one dimension (slides, "Bottom-up Grouping"): noisy counts first, or the structure
first.

``noisy_first`` and ``structure_first`` are the slides' methods, which are those of Xu et al. 2012;
``noisy_merge`` and ``structure_merge`` are ours after them, with the reasons in their docstrings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tallytree.boxes.draft import FOR_PARTS, Draft
from tallytree.boxes.kernels import squared_parts
from tallytree.errors import RequestError
from tallytree.kernels.partitions import MOST_BINS, cut_deviations, merge_by_squares
from tallytree.model.arrays import IntArray
from tallytree.options.maps import MethodOptions

ALL = Fraction(1)
# Half of the budget for the structure and half for the counts (slides). Ours spends most of the
# first half on where boundaries roughly are; as the slides have it, the number of parts and the
# boundaries get a quarter of the budget each.
FOR_ROUGH, FOR_MOVES = Fraction(3, 8), Fraction(1, 8)
FOR_NUMBER, FOR_BOUNDARIES = Fraction(1, 4), Fraction(1, 4)
FOR_COUNTS = Fraction(1, 2)


def price_of_part(variance: float, n_bins: int) -> float:
    """What one more part must save in squared error of noisy bins: σ² (3 + ln N)² / 4.

    Xu et al. estimate the error of a partition of noisy bins as its squared deviations plus 2 σ²
    per part, up to a constant. That is unbiased for one partition, but the best of many partitions
    fits the noise: single bins with large noise become parts of their own and keep all of it. To
    set a bin off takes two more parts and saves the square of its noise. Laplace noise exceeds σ (3
    + ln N) / √2 in one of N bins with probability e⁻³, so at this price that seldom happens.
    """
    return max(2.0, (3 + math.log(n_bins)) ** 2 / 4) * variance


def merge_noisy_bins(noisy: IntArray, variance: float) -> IntArray:
    """Edges of the parts that noisy bins are merged into; every bin a part of its own where merging
    does not pay.

    Merging pays where the unbiased estimate of its squared error, Σ (noisy − mean)² − N σ² + 2 σ² k
    for k parts, is below N σ², that of the noisy bins themselves.
    """
    values, n_bins = noisy.astype(np.float64), len(noisy)
    edges = merge_by_squares(values, price_of_part(variance, n_bins))
    lengths = np.diff(edges)
    means = np.add.reduceat(values, edges[:-1]) / lengths
    error = (
        ((values - np.repeat(means, lengths)) ** 2).sum()
        + 2 * variance * len(lengths)
        - n_bins * variance
    )
    return edges if error < n_bins * variance else np.arange(n_bins + 1)


def best_number_of_parts(noisy: IntArray, variance: float) -> IntArray:
    """Edges of the partition of noisy bins with the least estimated error, whatever its number of
    parts (Xu et al. 2012).

    Σ (noisy − mean)² + 2 σ² k − N σ² estimates the squared error of k parts without bias. The
    papers find the best partition for every k and then take the best k; the best under a price of 2
    σ² per part is the same one, at once.
    """
    return merge_by_squares(noisy.astype(np.float64), 2 * variance)


def noisy_first(draft: Draft, options: MethodOptions) -> None:
    """NoisyFirst of the slides: measure every bin with all of the budget, merge noisy bins by the
    best number of parts.
    """
    _merge_bins(draft, best_number_of_parts)


def noisy_merge(draft: Draft, options: MethodOptions) -> None:
    """NoisyFirst at a higher price per part: neighbours are merged unless their noisy counts differ
    enough.
    """
    _merge_bins(draft, merge_noisy_bins)


def structure_first(draft: Draft, options: MethodOptions) -> None:
    """StructureFirst of the slides: choose right boundaries by the exponential mechanism, then
    measure the parts.

    NoisyFirst with a quarter of the budget gives the number of parts k, and nothing else: its noisy
    bins are kept, as all that is paid for, and not used for the counts. The boundaries get a
    quarter, divided by k − 1, the counts of parts a half. Scores are squared deviations, whose
    sensitivity grows with the largest count F; Xu et al. take F as known. Here it is the largest of
    the noisy bins, which is paid for, and counts are cut off at it for the scores.
    """
    _check_line(draft, squared_parts.MOST_BINS)
    bins = np.arange(draft.shape[0])[:, None]
    noisy = draft.survey.count(bins, bins + 1, FOR_NUMBER, FOR_PARTS)
    draft.record(bins[:, 0], noisy, FOR_NUMBER, FOR_PARTS)
    edges = best_number_of_parts(noisy, draft.survey.variance(FOR_NUMBER))
    if len(edges) > 2:
        largest = int(np.clip(noisy.max(), 1, squared_parts.LARGEST_COUNT))
        edges[1:-1] = draft.survey.boundaries(
            len(edges) - 1, largest, FOR_BOUNDARIES, "right boundaries"
        )
    parts = draft.split_line(edges)
    draft.count(parts, FOR_COUNTS, "part")
    draft.close(parts)


def structure_merge(draft: Draft, options: MethodOptions) -> None:
    """StructureFirst with rough boundaries from noisy bins: choose anew where parts meet, then
    measure the parts.

    :func:`noisy_merge` with three eighths of the budget gives the number of parts and where roughly
    they meet. Each boundary is then chosen anew between the middles of the two parts that it
    separates. These stretches do not overlap, so each choice has the whole eighth meant for
    boundaries; Xu et al. choose from the last boundary to the first among all bins, and must divide
    that budget by the number of parts. What the noisy bins say about the place of a boundary, the
    log likelihood of their Laplace noise, is added to the score; and they sharpen the counts of the
    parts.
    """
    _check_line(draft)
    bins = np.arange(draft.shape[0])[:, None]
    noisy = draft.survey.count(bins, bins + 1, FOR_ROUGH, "bin")
    edges = merge_noisy_bins(noisy, draft.survey.variance(FOR_ROUGH))
    middles = (edges[:-1] + edges[1:]) // 2
    # The outermost stretches reach to the ends of the line.
    first, last = np.where(np.arange(len(edges) - 2) == 0, 0, middles[:-1]), middles[1:].copy()
    if len(edges) > 2:
        last[-1] = draft.shape[0]
        # A boundary next to a part of one bin may have no room to move.
        free = (first < edges[1:-1]) & (edges[1:-1] < last)
        if free.any():
            scale = math.sqrt(draft.survey.variance(FOR_ROUGH) / 2)
            prior = [
                -cut_deviations(noisy[a:b]) / scale
                for a, b in zip(first[free].tolist(), last[free].tolist())
            ]
            cuts = draft.survey.part(
                first[free, None], last[free, None], FOR_MOVES, "boundary", prior
            )
            edges[1:-1][free] = cuts
    parts = draft.split_line(np.unique(edges))
    draft.record(_bins_below(draft, parts), noisy, FOR_ROUGH, "bin")
    draft.count(parts, FOR_COUNTS, "part")
    draft.close(parts)


def _merge_bins(draft: Draft, merge: Callable[[IntArray, float], IntArray]) -> None:
    """Measure every bin with all of the budget; parts are what ``merge`` makes of noisy bins and
    their variance.
    """
    _check_line(draft)
    bins = np.arange(draft.shape[0])[:, None]
    noisy = draft.survey.count(bins, bins + 1, ALL, "bin")
    parts = draft.split_line(merge(noisy, draft.survey.variance(ALL)))
    draft.record(_bins_below(draft, parts), noisy, ALL, "bin")
    draft.close(parts)


def _check_line(draft: Draft, most: int = MOST_BINS) -> None:
    if len(draft.shape) != 1 or draft.shape[0] > most:
        raise RequestError(
            f"Bins are merged in one dimension and up to {most:,} of them; got {draft.shape}."
        )


def _bins_below(draft: Draft, parts: IntArray) -> IntArray:
    """Every bin as a node below its part; a part of one bin is that bin."""
    low, high = draft.boxes(parts)
    lengths = (high - low)[:, 0]
    nodes, _ = draft.split_bins(parts[lengths > 1])
    found = np.empty(draft.shape[0], dtype=np.int64)
    found[low[lengths == 1, 0]] = parts[lengths == 1]
    found[draft.boxes(nodes)[0][:, 0]] = nodes
    return found
