"""Quantiles of a histogram, with intervals, by asking of every edge whether it lies below the
quantile.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import BoolArray, FloatArray, IntArray
from tallytree.strategies.estimates import RangeErrors
from tallytree.strategies.hat_estimates import HatErrors
from tallytree.strategies.intervals import check_confidence, half_widths, largest_half_widths

A_FEW = 64  # edges


def check_quantile(q: float) -> float:
    """A share between 0 and 1."""
    if isinstance(q, bool) or not isinstance(q, int | float) or not 0 <= q <= 1:
        raise RequestError(
            f"A quantile is a share between 0 and 1, such as 0.5 for the median; got {q!r}."
        )
    return float(q)


def quantile_position(published: FloatArray | IntArray, q: float) -> float:
    """Where the running sum of published counts reaches the share ``q`` of its end, in bins from
    the first edge.

    Within a bin its entities count as spread evenly. Running sums that fall (negative estimates)
    count as their running maximum.
    """
    sums = np.maximum.accumulate(np.maximum(published.astype(np.float64), 0.0))
    if sums[-1] <= 0:
        raise RequestError("The histogram is empty after noise, so it has no quantiles.")
    wanted = q * sums[-1]
    place = int(np.clip(np.searchsorted(sums, wanted), 1, len(sums) - 1))
    inside = sums[place] - sums[place - 1]
    return place - 1 + (float((wanted - sums[place - 1]) / inside) if inside > 0 else 0.0)


def quantile_interval(
    unbiased: FloatArray, errors: RangeErrors, q: float, confidence: float
) -> tuple[int, int]:
    """First and last edge between which the true quantile lies with probability of at least
    ``confidence``.

    The quantile lies above edge k as long as fewer than the share q of all entities lie below it:
    the prefix minus q times the total is negative. Edges at which that number is surely negative,
    or surely positive, are passed over; the rest is the interval.
    """
    n_bins = len(unbiased) - 1
    edges = np.arange(n_bins + 1)
    surplus = unbiased - q * unbiased[-1]
    # What the widest interval decides needs no exact one; of the rest, only the outermost edges
    # matter.
    half = _at_most(errors, n_bins, q, check_confidence(confidence))
    may_be_reached = np.flatnonzero((surplus + half >= 0) & (edges > 0))
    may_be_missed = np.flatnonzero((surplus - half <= 0) & (edges < n_bins))

    def is_open(edge: IntArray) -> BoolArray:
        return np.abs(surplus[edge]) <= half_widths(
            *errors.moments(np.zeros_like(edge), edge, q), confidence
        )

    first = _first(may_be_reached, lambda edge: (surplus[edge] >= 0) | is_open(edge), n_bins) - 1
    last = _first(may_be_missed[::-1], lambda edge: (surplus[edge] <= 0) | is_open(edge), 0) + 1
    return min(first, last - 1), max(last, first + 1)


def _at_most(errors: RangeErrors, n_bins: int, q: float, confidence: float) -> FloatArray:
    """Half-widths of the intervals of all edges, or what they cannot exceed where that is much
    faster.
    """
    if isinstance(errors, HatErrors):
        return largest_half_widths(
            errors.prefix_variances(q), errors.cumulant / errors.variance**2, confidence
        )
    edges = np.arange(n_bins + 1)
    return half_widths(*errors.moments(np.zeros_like(edges), edges, q), confidence)


def _first(edges: IntArray, test: Callable[[IntArray], BoolArray], otherwise: int) -> int:
    """The first of some edges that passes a test; the test is tried on a few at a time."""
    for start in range(0, len(edges), A_FEW):
        passed = edges[start : start + A_FEW][test(edges[start : start + A_FEW])]
        if len(passed):
            return int(passed[0])
    return otherwise


def normal_width(confidence: float) -> float:
    """Standard deviations on either side of the mean that hold the share ``confidence`` of a normal
    law.
    """
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))
