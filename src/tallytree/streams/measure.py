"""Counting a stream: how many entities came so far, released after every step.

What is measured and why is said in :mod:`tallytree.streams.plan`. :func:`measure_steps` is the one
door: it takes the exact history, which every row needs, and gives the noisy rows of the steps that
are new; only these are kept. The noise of a row is a function of the key and of the row's place,
and a row is drawn once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.stream_rows import (
    MOST_ARRIVALS,
    Factors,
    HalfArray,
    block_sums,
    halves,
    weighted_rows,
)
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Confidential, Fact
from tallytree.model.confidential_stream import ConfidentialArrivals
from tallytree.privacy.noise import DrawsAhead, Noise, add_noise
from tallytree.privacy.randomness import BitSource
from tallytree.streams.plan import StreamPlan

# Levels of the stream's places: more than any tree has, so that no two epochs share a place.
_PLACES_PER_EPOCH = 64


def measure_arrivals(
    plan: StreamPlan, arrivals: ConfidentialArrivals, stream: BitSource, *, first: int
) -> IntArray:
    """Noisy rows of the steps from ``first`` on, see :func:`measure_steps`."""
    return measure_steps(plan, arrivals.counts, stream, first=first)


def measure_steps(
    plan: StreamPlan, arrivals: IntArray, stream: BitSource, *, first: int
) -> IntArray:
    """Noisy rows of steps ``first`` … ``len(arrivals) - 1``, in order, from the exact arrivals of
    all steps so far.

    The arrivals of earlier steps must be what they were when those steps were measured: an entity
    keeps its step. More than 2**40 arrivals in a step count as that many.
    """
    counts = np.minimum(arrivals.astype(np.int64, casting="safe", copy=False), MOST_ARRIVALS)
    if plan.horizon is not None and len(counts) > plan.horizon:
        raise RequestError(
            f"The stream has reached its horizon of {plan.horizon:,} steps. Start a new counter."
        )
    rows: list[IntArray] = []
    step = first
    while step < len(counts):
        number, place = plan.epoch_of(step)
        start = step - place
        inside = counts[start : start + plan.epoch(number).n_steps]
        rows.append(_measure_epoch(plan, number, inside, place, stream))
        step = start + len(inside)
    return np.concatenate([np.zeros(0, dtype=np.int64), *rows])


def _measure_epoch(
    plan: StreamPlan, number: int, counts: IntArray, first: int, stream: BitSource
) -> IntArray:
    """Noisy rows of the steps from ``first`` on of one epoch, whose arrivals are ``counts``."""
    epoch, place = plan.epoch(number), number * _PLACES_PER_EPOCH
    if (factors := epoch.factors) is not None:
        high, low = halves(counts, factors.columns[: len(counts)])
        exact = weighted_rows(factors.narrow, factors.rows, high, low, first)
        return _with_noise(exact, epoch.noise, stream, _asked(factors), level=place, first=first)
    steps, rows = [], []
    for level in range(epoch.n_levels):
        width = epoch.branching**level
        before = first // width
        exact = block_sums(counts[before * width :], width)
        if len(exact) == 0:
            break  # nor is any wider block complete
        rows.append(
            _with_noise(
                exact, epoch.noise, stream, [f"{width} steps"], level=place + level, first=before
            )
        )
        steps.append((np.arange(before, before + len(exact)) + 1) * width)
    # In the order of steps, then of levels, as if each step had been measured by itself.
    return np.concatenate(rows)[np.argsort(np.concatenate(steps), kind="stable")]


def _asked(factors: Factors) -> Sequence[Fact]:
    return [factors.weights, factors.rows, factors.columns]


@dataclass(eq=False, repr=False)
class StepByStep(Confidential):
    """Measures a stream one step after the other; holds what later rows need of the exact past.

    The rows are those of :func:`measure_steps`. A step costs as many operations as there were steps
    before it in the epoch, some ten nanoseconds for a hundred.
    """

    plan: StreamPlan
    _counts: IntArray = field(default_factory=lambda: np.zeros(64, dtype=np.int64))
    _high: HalfArray = field(default_factory=lambda: np.zeros(64, dtype=np.uint32))
    _low: HalfArray = field(default_factory=lambda: np.zeros(64, dtype=np.uint32))
    _ahead: DrawsAhead = field(default_factory=DrawsAhead)

    def measure(self, step: int, arrivals: int, stream: BitSource) -> IntArray:
        """Noisy rows of a step, the next one; more than 2**40 arrivals count as that many."""
        number, place = self.plan.epoch_of(step)
        epoch = self.plan.epoch(number)
        if place == len(self._counts):
            for name in ("_counts", "_high", "_low"):
                held = getattr(self, name)
                setattr(self, name, np.concatenate([held, np.zeros_like(held)]))
        self._counts[place] = min(arrivals, MOST_ARRIVALS)
        if (factors := epoch.factors) is None:
            return _measure_epoch(self.plan, number, self._counts[: place + 1], place, stream)
        here = slice(place, place + 1)
        self._high[here], self._low[here] = halves(self._counts[here], factors.columns[here])
        past = self._high[: place + 1], self._low[: place + 1]
        exact = weighted_rows(factors.narrow, factors.rows, *past, place)
        return _with_noise(
            exact,
            epoch.noise,
            stream,
            _asked(factors),
            level=number * _PLACES_PER_EPOCH,
            first=place,
            ahead=self._ahead,
        )

    def forget(self) -> None:
        """Forget the past, and the noise of steps to come."""
        self._ahead = DrawsAhead()
        for held in (self._counts, self._high, self._low):
            held[:] = 0

    def _shown(self) -> str:
        return "a stream under way"


def _with_noise(
    exact: IntArray,
    noise: Noise,
    stream: BitSource,
    question: Sequence[Fact],
    *,
    level: int,
    first: int,
    ahead: DrawsAhead | None = None,
) -> IntArray:
    """Each row is a region of its own, so that rows drawn one by one and together get the same
    noise.
    """
    ends = np.arange(len(exact) + 1, dtype=np.int64)
    place: dict[str, Any] = {
        "level": level,
        "query": "stream",
        "offsets": ends,
        "first_region": first,
    }
    return add_noise(exact, noise, stream, **place, question=question, ahead=ahead)
