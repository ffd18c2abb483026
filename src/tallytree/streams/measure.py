"""Counting a stream: how many entities came so far, released after every step.

What is measured and why is said in :mod:`tallytree.streams.plan`. :func:`measure_steps` is the one
door: it takes the exact history, which every row needs, and gives the noisy rows of the steps that
are new; only these are kept. The noise of a row is a function of the key and of the row's place,
and a row is drawn once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Fact
from tallytree.model.confidential_stream import ConfidentialArrivals
from tallytree.privacy.noise import Noise, add_noise
from tallytree.privacy.randomness import BitSource
from tallytree.streams.kernels import (
    MOST_ARRIVALS,
    block_sums,
    square_root_weights,
    weighted_rows,
)
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
    if plan.strategy == "square-root":
        weights = square_root_weights(len(counts))
        exact = weighted_rows(weights, counts, first)
        return _with_noise(exact, epoch.noise, stream, [weights], level=place, first=first)
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


def _with_noise(
    exact: IntArray,
    noise: Noise,
    stream: BitSource,
    question: Sequence[Fact],
    *,
    level: int,
    first: int,
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
    return add_noise(exact, noise, stream, **place, question=question)
