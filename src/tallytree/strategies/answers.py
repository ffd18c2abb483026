"""Answers with their uncertainty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.notebook import html_table
from tallytree.privacy.noise import Noise
from tallytree.strategies.estimates import RangeErrors
from tallytree.strategies.intervals import SMALL_ERRORS, half_widths, whole_half_widths

ROUNDING = 1e-9  # estimates are this close to what they would be without floating point


@dataclass(frozen=True)
class Answer:
    """One published number and how far the truth may be from it.

    Attributes
    ----------
    estimate
        What is published.
    std_error
        Of the unbiased estimate behind it. Nonnegativity usually brings the published number closer
        to the truth than that.
    low, high
        An interval that holds the true count with probability ``confidence``. True counts are whole
        and not negative, and so are its ends.
    confidence
        Of the interval.
    """

    estimate: float
    std_error: float
    low: float
    high: float
    confidence: float = 0.95


@dataclass(frozen=True, eq=False)
class Answers:
    """Many answers as arrays, with the fields of :class:`Answer`."""

    estimate: FloatArray | IntArray
    std_error: FloatArray
    low: IntArray
    high: IntArray
    confidence: float = 0.95

    def __len__(self) -> int:
        return len(self.estimate)

    def __getitem__(self, index: int) -> Answer:
        low, high = int(self.low[index]), int(self.high[index])
        return Answer(
            self.estimate[index].item(), float(self.std_error[index]), low, high, self.confidence
        )

    def __iter__(self) -> Iterator[Answer]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"Answers({len(self):,}, confidence {self.confidence:g})"

    def _repr_html_(self) -> str:
        rows = ([a.estimate, a.std_error, a.low, a.high] for a in self)
        columns = ["estimate", "std error", "low", "high"]
        return html_table(
            f"Answers with intervals at {self.confidence:g}", columns, rows, n_rows=len(self)
        )

    def table(self) -> pa.Table:
        """The answers as an Arrow table: estimate, std_error, low, high."""
        return pa.table(
            {name: getattr(self, name) for name in ("estimate", "std_error", "low", "high")}
        )


def answer_ranges(
    published: FloatArray | IntArray,
    unbiased: FloatArray,
    errors: RangeErrors,
    spans: tuple[IntArray, IntArray],
    *,
    confidence: float,
    bin_noise: Noise | None,
) -> Answers:
    """Answer ranges from running sums of published counts and of unbiased estimates.

    The interval is laid around the unbiased estimate, whose error is known, then cut off at 0 and
    widened, if need be, to hold the published number. Neither step can lose the truth.

    Parameters
    ----------
    published, unbiased
        Sums of the first 0, 1, 2 … bins.
    spans
        First and one past last bin of each range.
    bin_noise
        The noise of each bin, where estimates are the noisy bins themselves (strategy ``flat``).
    """
    first, last = spans
    variance, cumulant = errors.moments(first, last)
    if bin_noise is not None and np.sqrt(variance.max(initial=0)) <= SMALL_ERRORS:
        half = whole_half_widths(bin_noise, last - first, confidence)
    else:
        half = half_widths(variance, cumulant, confidence)
    centre, estimate = unbiased[last] - unbiased[first], published[last] - published[first]
    return Answers(
        estimate, np.sqrt(variance), *whole_interval(centre, half, estimate), confidence=confidence
    )


def whole_interval(
    centre: FloatArray, half: FloatArray, estimate: FloatArray | IntArray
) -> tuple[IntArray, IntArray]:
    """Whole-number ends of intervals for counts: no lower than 0, and around the published
    estimates.
    """
    low, high = np.ceil(centre - half - ROUNDING), np.floor(centre + half + ROUNDING)
    nearest = np.rint(centre)
    low, high = np.where(low > high, nearest, low), np.where(low > high, nearest, high)
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    low, high = (
        np.minimum(low, np.maximum(np.floor(estimate), 0.0)),
        np.maximum(high, np.ceil(estimate)),
    )
    return low.astype(np.int64), high.astype(np.int64)
