"""Merged bins in one dimension (slides, "Bottom-up Grouping"): noisy counts first, or the structure first."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.boxes.partitions import MOST_BINS, cut_deviations, merge_by_squares
from tallytree.maps.draft import Draft
from tallytree.model.arrays import IntArray
from tallytree.options.maps import MethodOptions

ALL = Fraction(1)
# Structure first: half of the budget for the structure, most of that for where boundaries roughly are; half for the counts.
FOR_NUMBER, FOR_BOUNDARIES, FOR_COUNTS = Fraction(3, 8), Fraction(1, 8), Fraction(1, 2)


def price_of_part(variance: float, n_bins: int) -> float:
    """What one more part must save in squared error of noisy bins: σ² (3 + ln N)² / 4.

    Xu et al. estimate the error of a partition of noisy bins as its squared deviations plus 2 σ² per part, up to a
    constant. That is unbiased for one partition, but the best of many partitions fits the noise: single bins with
    large noise become parts of their own and keep all of it. To set a bin off takes two more parts and saves the square of
    its noise. Laplace noise exceeds σ (3 + ln N) / √2 in one of N bins with probability e⁻³, so at this price that
    seldom happens.
    """
    return max(2.0, (3 + math.log(n_bins)) ** 2 / 4) * variance


def merge_noisy_bins(noisy: IntArray, variance: float) -> IntArray:
    """Edges of the parts that noisy bins are merged into; every bin a part of its own where merging does not pay.

    Merging pays where the unbiased estimate of its squared error, Σ (noisy − mean)² − N σ² + 2 σ² k for k parts, is
    below N σ², that of the noisy bins themselves.
    """
    values, n_bins = noisy.astype(np.float64), len(noisy)
    edges = merge_by_squares(values, price_of_part(variance, n_bins))
    lengths = np.diff(edges)
    means = np.add.reduceat(values, edges[:-1]) / lengths
    error = ((values - np.repeat(means, lengths)) ** 2).sum() + 2 * variance * len(lengths) - n_bins * variance
    return edges if error < n_bins * variance else np.arange(n_bins + 1)


def noisy_first(draft: Draft, options: MethodOptions) -> None:
    """Measure every bin with all of the budget, then merge neighbours whose noisy counts do not differ enough."""
    _check_line(draft)
    bins = np.arange(draft.shape[0])[:, None]
    noisy = draft.survey.count(bins, bins + 1, ALL, "bin")
    parts = draft.split_line(merge_noisy_bins(noisy, draft.survey.variance(ALL)))
    draft.record(_bins_below(draft, parts), noisy, ALL, "bin")
    draft.close(parts)


def structure_first(draft: Draft, options: MethodOptions) -> None:
    """Choose boundaries by the exponential mechanism, then measure the parts.

    Noisy-first with three eighths of the budget gives the number of parts and where roughly they meet. Each boundary is then
    chosen anew between the middles of the two parts that it separates. These stretches do not overlap, so each choice has
    the whole eighth meant for boundaries; Xu et al. choose from the last boundary to the first among all bins, and must
    divide that budget by the number of parts. What the noisy bins say about the place of a boundary, the log likelihood
    of their Laplace noise, is added to the score; and they sharpen the counts of the parts.
    """
    _check_line(draft)
    bins = np.arange(draft.shape[0])[:, None]
    noisy = draft.survey.count(bins, bins + 1, FOR_NUMBER, "bin")
    edges = merge_noisy_bins(noisy, draft.survey.variance(FOR_NUMBER))
    middles = (edges[:-1] + edges[1:]) // 2
    # The outermost stretches reach to the ends of the line.
    first, last = np.where(np.arange(len(edges) - 2) == 0, 0, middles[:-1]), middles[1:].copy()
    if len(edges) > 2:
        last[-1] = draft.shape[0]
        # A boundary next to a part of one bin may have no room to move.
        free = (first < edges[1:-1]) & (edges[1:-1] < last)
        if free.any():
            scale = math.sqrt(draft.survey.variance(FOR_NUMBER) / 2)
            prior = [-cut_deviations(noisy[a:b]) / scale for a, b in zip(first[free].tolist(), last[free].tolist())]
            cuts = draft.survey.part(first[free, None], last[free, None], FOR_BOUNDARIES, "boundary", prior)
            edges[1:-1][free] = cuts
    parts = draft.split_line(np.unique(edges))
    draft.record(_bins_below(draft, parts), noisy, FOR_NUMBER, "bin")
    draft.count(parts, FOR_COUNTS, "part")
    draft.close(parts)


def _check_line(draft: Draft) -> None:
    if len(draft.shape) != 1 or draft.shape[0] > MOST_BINS:
        raise RequestError(f"Bins are merged in one dimension and up to {MOST_BINS:,} of them; got {draft.shape}.")


def _bins_below(draft: Draft, parts: IntArray) -> IntArray:
    """Every bin as a node below its part; a part of one bin is that bin."""
    low, high = draft.boxes(parts)
    lengths = (high - low)[:, 0]
    nodes, _ = draft.split_bins(parts[lengths > 1])
    found = np.empty(draft.shape[0], dtype=np.int64)
    found[low[lengths == 1, 0]] = parts[lengths == 1]
    found[draft.boxes(nodes)[0][:, 0]] = nodes
    return found
