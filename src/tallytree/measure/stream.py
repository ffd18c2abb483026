"""Counting a stream: how many entities came so far, released after every step.

What is measured and why is said in :mod:`tallytree.planning.streams`. :func:`measure_steps` is the one door: it takes
the exact history, which every row needs, and gives the noisy rows of the steps that are new; only these are kept. The
noise of a row is a function of the key and of the row's place, and a row is drawn once.
"""

from __future__ import annotations

from typing import Literal, NoReturn

import numpy as np
import numpy.typing as npt

from tallytree.errors import InputError, RequestError
from tallytree.kernels.stream_rows import MOST_ARRIVALS, block_sums, square_root_weights, weighted_rows
from tallytree.model.arrays import IntArray
from tallytree.model.renamed import keyword_renamed
from tallytree.planning.streams import StreamPlan, StreamStrategy, plan_stream
from tallytree.privacy.budget import Definition
from tallytree.privacy.noise import Noise, add_noise
from tallytree.privacy.randomness import BitSource, KeyStream
from tallytree.privacy.stated_budget import stated_budget
from tallytree.ranges.answers import Answer
from tallytree.ranges.intervals import check_confidence
from tallytree.ranges.streams import StreamEstimator

# Levels of the stream's places: more than any tree has, so that no two epochs share a place.
_PLACES_PER_EPOCH = 64


def measure_steps(plan: StreamPlan, arrivals: IntArray, stream: BitSource, *, first: int) -> IntArray:
    """Noisy rows of steps ``first`` … ``len(arrivals) - 1``, in order, from the exact arrivals of all steps so far.

    The arrivals of earlier steps must be what they were when those steps were measured: an entity keeps its step. More
    than 2**40 arrivals in a step count as that many.
    """
    counts = np.minimum(arrivals.astype(np.int64, casting="safe", copy=False), MOST_ARRIVALS)
    if plan.horizon is not None and len(counts) > plan.horizon:
        raise RequestError(f"The stream has reached its horizon of {plan.horizon:,} steps. Start a new counter.")
    rows: list[IntArray] = []
    step = first
    while step < len(counts):
        number, place = plan.epoch_of(step)
        start = step - place
        inside = counts[start : start + plan.epoch(number).n_steps]
        rows.append(_measure_epoch(plan, number, inside, place, stream))
        step = start + len(inside)
    return np.concatenate([np.zeros(0, dtype=np.int64), *rows])


def _measure_epoch(plan: StreamPlan, number: int, counts: IntArray, first: int, stream: BitSource) -> IntArray:
    """Noisy rows of the steps from ``first`` on of one epoch, whose arrivals are ``counts``."""
    epoch, place = plan.epoch(number), number * _PLACES_PER_EPOCH
    if plan.strategy == "square-root":
        exact = weighted_rows(square_root_weights(len(counts)), counts, first)
        return _with_noise(exact, epoch.noise, stream, level=place, first=first)
    steps, rows = [], []
    for level in range(epoch.n_levels):
        width = epoch.branching**level
        before = first // width
        exact = block_sums(counts[before * width :], width)
        if len(exact) == 0:
            break  # nor is any wider block complete
        rows.append(_with_noise(exact, epoch.noise, stream, level=place + level, first=before))
        steps.append((np.arange(before, before + len(exact)) + 1) * width)
    # In the order of steps, then of levels, as if each step had been measured by itself.
    return np.concatenate(rows)[np.argsort(np.concatenate(steps), kind="stable")]


def _with_noise(exact: IntArray, noise: Noise, stream: BitSource, *, level: int, first: int) -> IntArray:
    """Each row is a region of its own, so that rows drawn one by one and together get the same noise."""
    ends = np.arange(len(exact) + 1, dtype=np.int64)
    return add_noise(exact, noise, stream, level=level, query="stream", offsets=ends, first_region=first)


class StreamCounter:
    """A count that is released after every step, for one budget in all.

    Parameters
    ----------
    horizon
        Largest number of steps, public; None where it is not known. The error grows with its logarithm only, so be
        generous.
    epsilon, rho, definition
        The privacy loss of the whole stream.
    contributions
        How many entities of one unit may come, in any steps; the unit is protected.
    strategy
        ``square-root``, ``tree``, or ``auto``: the first under zCDP, the second under pure differential privacy.
    branching, inference
        Of a tree: steps per block of the second level, the best by default; False for counts of blocks as they are. With 2
        and False a tree is the mechanism of Chan, Shi and Song 2011.
    insecure_seed
        For tests and experiments only: repeatable noise.

    Examples
    --------
    >>> counter = StreamCounter(1000, epsilon=1, insecure_seed=1)
    >>> answers = [counter.add(arrivals) for arrivals in [3, 0, 5]]
    >>> answers[-1] == counter.count()
    True
    """

    def __init__(
        self,
        horizon: int | None,
        *,
        epsilon: object = None,
        rho: object = None,
        definition: Definition = "pure",
        contributions: int = 1,
        strategy: StreamStrategy | Literal["auto"] = "auto",
        branching: int | None = None,
        inference: bool = True,
        insecure_seed: int | None = None,
    ) -> None:
        self.budget = stated_budget(epsilon, rho, definition)
        self.plan = plan_stream(
            self.budget,
            horizon,
            strategy=strategy,
            contributions=contributions,
            branching=branching,
            inference=inference,
        )
        self.horizon, self.noise = horizon, self.plan.epoch(0).noise
        self._stream = KeyStream.from_system() if insecure_seed is None else KeyStream.from_insecure_seed(insecure_seed)
        self._arrivals = np.zeros(64, dtype=np.int64)
        self._estimator = StreamEstimator(self.plan)

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return self._estimator.steps

    @property
    def private(self) -> bool:
        """Whether the noise came from secure randomness."""
        return self._stream.secure

    def add(self, arrivals: int | np.integer[npt.NBitBase]) -> Answer:
        """Take one step in which ``arrivals`` entities came, and release the count so far."""
        if isinstance(arrivals, bool) or not isinstance(arrivals, int | np.integer) or arrivals < 0:
            raise InputError("Arrivals are a whole number of at least 0.")
        step = self.steps
        if self.horizon is not None and step >= self.horizon:
            raise RequestError(f"The stream has reached its horizon of {self.horizon:,} steps. Start a new counter.")
        if step == len(self._arrivals):
            self._arrivals = np.concatenate([self._arrivals, np.zeros_like(self._arrivals)])
        self._arrivals[step] = min(int(arrivals), MOST_ARRIVALS)
        self._estimator.push(measure_steps(self.plan, self._arrivals[: step + 1], self._stream, first=step))
        return self.count()

    @keyword_renamed("level", "confidence")
    def count(self, *, confidence: float = 0.95) -> Answer:
        """How many entities came so far, from what was released already: asking again costs nothing."""
        return self._estimator.counts().answers(confidence=check_confidence(confidence))[0]

    def __repr__(self) -> str:
        mark = "" if self.private else ", NOT PRIVATE: made with an insecure seed"
        most = "any number of" if self.horizon is None else f"{self.horizon:,}"
        return f"StreamCounter({self.steps:,} of {most} steps, {self.budget}, counts hidden{mark})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A stream counter holds confidential counts and cannot be pickled.")
