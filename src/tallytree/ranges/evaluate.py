"""Errors of histograms against exact counts: for the owner of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.range_moments import running_sum
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.ranges.release import RangeHistogram
from tallytree.releases.query_evaluation import QueryEvaluation, evaluate_boxes


def evaluate_histogram(
    release: RangeHistogram,
    truth: IntArray,
    *,
    ranges: Sequence[tuple[object, object]] | None = None,
    threshold: float | None = None,
) -> QueryEvaluation:
    """Compare ranges with exact counts per bin: by length, all of them where there are few bins, or
    given ones. NOT private.
    """

    def answer(low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        first, last = low[:, 0], high[:, 0]
        return sums[last] - sums[first], np.sqrt(release.errors.moments(first, last)[0])

    _check_shape(truth, release.counts.shape)
    sums = running_sum(np.asarray(release.counts, dtype=np.float64))
    asked = None
    if ranges:
        first, last = release.bins.spans(ranges)
        asked = first[:, None], last[:, None]
    return evaluate_boxes(truth, answer, noun="ranges", asked=asked, threshold=threshold)


def _check_shape(truth: IntArray, shape: tuple[int, ...]) -> None:
    if truth.shape != shape:
        raise RequestError(
            f"The release has {shape} cells, the data {truth.shape}; they must be equal."
        )
