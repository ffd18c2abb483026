"""Counts so far from the noisy rows of a stream: post-processing, step by step or all at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tallytree.errors import InputError
from tallytree.kernels.stream_rows import Factors
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.strategies.answers import Answers, whole_interval
from tallytree.strategies.intervals import half_widths
from tallytree.strategies.noise_moments import fourth_cumulant
from tallytree.streams.errors import (
    BlockMoments,
    block_moments,
    inverse_weights,
    known_steps,
    root_moments,
)
from tallytree.streams.plan import Epoch, StreamPlan, rows_table

# Estimates made step by step and all at once differ by the rounding of floating point, relative to
# the count.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RunningCounts:
    """Estimates of the counts after steps 1, 2, …, and the variance and fourth cumulant of their
    errors.
    """

    estimate: FloatArray
    variance: FloatArray
    cumulant: FloatArray

    def answers(self, *, confidence: float = 0.95) -> Answers:
        """The counts with standard errors and intervals at a confidence."""
        low, high = whole_interval(
            self.estimate, half_widths(self.variance, self.cumulant, confidence), self.estimate
        )
        return Answers(self.estimate, np.sqrt(self.variance), low, high, confidence=confidence)


def estimate_stream(plan: StreamPlan, rows: IntArray, n_steps: int) -> RunningCounts:
    """The counts so far after each of the first ``n_steps`` steps, from all their rows in the order
    of measurement.

    Cost: n log n. Nothing but the plan and the rows is used, so anybody can repeat it.
    """
    steps, levels = rows_table(plan, n_steps)
    if rows.shape != steps.shape:
        raise InputError(
            f"A stream of {n_steps:,} steps has {len(steps):,} rows, not {len(rows):,}."
        )
    parts: list[RunningCounts] = []
    start, carried = 0, np.zeros(3)
    for epoch in range(plan.epoch_of(n_steps - 1)[0] + 1 if n_steps else 0):
        stop = min(start + plan.epoch(epoch).n_steps, n_steps)
        inside = (steps >= start) & (steps < stop)
        part = _estimate_epoch(plan, plan.epoch(epoch), rows[inside], levels[inside], stop - start)
        parts.append(
            RunningCounts(part[0] + carried[0], part[1] + carried[1], part[2] + carried[2])
        )
        start, carried = stop, carried + part[:, -1]
    if not parts:
        return RunningCounts(np.zeros(0), np.zeros(0), np.zeros(0))
    return RunningCounts(
        np.concatenate([part.estimate for part in parts]),
        np.concatenate([part.variance for part in parts]),
        np.concatenate([part.cumulant for part in parts]),
    )


def follows(plan: StreamPlan, rows: IntArray, estimates: FloatArray) -> bool:
    """Whether published counts are those that follow from the rows, up to floating point."""
    found = estimate_stream(plan, rows, len(estimates)).estimate
    return bool(
        np.all(
            np.abs(found - estimates)
            <= _ROUNDING * np.maximum.accumulate(np.maximum(np.abs(found), 1.0))
        )
    )


def span_moments(plan: StreamPlan, first: int, last: int) -> tuple[float, float]:
    """Variance and fourth cumulant of the error of how many came in steps ``first`` … ``last - 1``.

    That is a difference of two counts so far, which share rows: what each of them takes of every
    row is subtracted first. Cost: linear in the steps of the epochs that are met.
    """
    if first >= last:
        return 0.0, 0.0
    (opening, before), (closing, place) = plan.epoch_of(first), plan.epoch_of(last - 1)
    variance = cumulant = 0.0
    for number in range(opening, closing + 1):
        epoch = plan.epoch(number)
        late = _taken(plan, epoch, place + 1 if number == closing else epoch.n_steps)
        for level, early in enumerate(_taken(plan, epoch, before if number == opening else 0)):
            late[level][: len(early)] -= early
        variance += epoch.noise.variance * sum(float(np.sum(weights**2)) for weights in late)
        cumulant += fourth_cumulant(epoch.noise) * sum(
            float(np.sum(weights**4)) for weights in late
        )
    return variance, cumulant


def _taken(plan: StreamPlan, epoch: Epoch, n_steps: int) -> list[FloatArray]:
    """How much of each row the count after ``n_steps`` steps of an epoch takes: one array per
    level.
    """
    if epoch.factors is not None:
        return [_taken_of_root(epoch.factors, n_steps)]
    trust = block_moments(1.0, 0.0, epoch.n_levels, epoch.branching, inference=plan.inference).trust
    found, passed_down = [], np.zeros(0)
    for level in reversed(range(epoch.n_levels)):
        # Complete blocks of this level: parts of coarser ones take what these leave them, the
        # others are counted whole.
        weights = np.ones(n_steps // epoch.branching**level)
        parts = np.repeat(passed_down, epoch.branching)
        weights[: len(parts)] = parts
        found.append(trust[level] * weights)
        passed_down = (1 - trust[level]) * weights
    return found[::-1]


def _taken_of_root(factors: Factors, n_steps: int) -> FloatArray:
    """How much of each row the count after ``n_steps`` steps takes: r_j^-1 Σ_{s>=j} d_s^-1 h_{s-j}."""
    from scipy.signal import oaconvolve  # a second and more, which no other kind should wait for

    if n_steps == 0:
        return np.zeros(0)
    arrivals, rows = factors.scales
    inverse = inverse_weights(factors, known_steps(n_steps, len(factors.weights))).forwards
    taken: FloatArray = oaconvolve(arrivals[:n_steps][::-1], inverse[:n_steps])[:n_steps][::-1]
    return taken * rows[:n_steps]


def _estimate_epoch(
    plan: StreamPlan, epoch: Epoch, rows: IntArray, levels: IntArray, n_steps: int
) -> FloatArray:
    """Estimate, variance and cumulant after each step of one epoch, counted from its start: three
    rows of a matrix.
    """
    own, kurtic = epoch.noise.variance, fourth_cumulant(epoch.noise)
    if epoch.factors is not None:
        from scipy.signal import oaconvolve  # as above

        factors = epoch.factors
        known = known_steps(n_steps, epoch.n_steps)
        arrived, scales = factors.scales
        inverse = inverse_weights(factors, known).forwards[:n_steps]
        found = oaconvolve(rows * scales[:n_steps], inverse)[:n_steps] * arrived[:n_steps]
        squares, fourths = (moment[:n_steps] for moment in root_moments(factors, known))
        return np.stack([np.cumsum(found), own * squares, kurtic * fourths])
    branching, n_levels = epoch.branching, epoch.n_levels
    moments = block_moments(own, kurtic, n_levels, branching, inference=plan.inference)
    after, total = np.arange(1, n_steps + 1), np.zeros((3, n_steps))
    blocks = np.zeros(0)
    for level in range(n_levels):
        noisy = rows[levels == level].astype(np.float64)
        parts = (
            blocks[: len(noisy) * branching].reshape(len(noisy), branching).sum(axis=1)
            if level
            else noisy
        )
        blocks = parts + moments.trust[level] * (noisy - parts)
        # Complete blocks of this level after the last complete one of the next coarser level.
        last = after // branching**level
        first = (
            np.zeros_like(last)
            if level == n_levels - 1
            else after // branching ** (level + 1) * branching
        )
        sums = np.concatenate([[0.0], np.cumsum(blocks)])
        total[0] += sums[last] - sums[first]
        total[1] += (last - first) * moments.variance[level]
        total[2] += (last - first) * moments.cumulant[level]
    return total


@dataclass
class StreamEstimator:
    """Counts so far, step by step, from noisy rows: holds nothing confidential.

    A step costs as many operations as there were steps before it in the epoch, or as a tree has
    blocks in sight.
    """

    plan: StreamPlan
    steps: int = 0
    _carried: FloatArray = field(default_factory=lambda: np.zeros(3))
    _now: FloatArray = field(default_factory=lambda: np.zeros(3))
    _rows: FloatArray = field(default_factory=lambda: np.zeros(0))
    _arrived: float = 0.0
    _blocks: list[list[float]] = field(default_factory=list)
    _moments: BlockMoments = field(
        default_factory=lambda: block_moments(0.0, 0.0, 1, 1, inference=False)
    )

    def push(self, rows: IntArray) -> None:
        """Take the rows of the next step."""
        number, place = self.plan.epoch_of(self.steps)
        epoch = self.plan.epoch(number)
        if place == 0:
            self._carried, self._rows, self._arrived = self._now, np.zeros(0), 0.0
            self._blocks = [[] for _ in range(epoch.n_levels)]
            self._moments = block_moments(
                epoch.noise.variance,
                fourth_cumulant(epoch.noise),
                epoch.n_levels,
                epoch.branching,
                inference=self.plan.inference,
            )
        self.steps += 1
        self._now = self._carried + (
            self._push_blocks(rows)
            if epoch.factors is None
            else self._push_root(epoch.factors, place, rows)
        )

    def counts(self) -> RunningCounts:
        """The count after the last step, as arrays of one entry."""
        return RunningCounts(*(value[None] for value in self._now))

    def _push_root(self, factors: Factors, place: int, rows: IntArray) -> FloatArray:
        if place >= len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros(max(64, len(self._rows)))])
        known = known_steps(place + 1, len(factors.weights))
        inverse = inverse_weights(factors, known).backwards
        squares, fourths = root_moments(factors, known)
        arrivals, scales = factors.scales
        self._rows[place] = rows[0] * scales[place]
        # Not by BLAS, which would wake all cores for so little.
        past, taken = self._rows[: place + 1], inverse[known - place - 1 :]
        self._arrived += arrivals[place] * float(np.einsum("i,i->", past, taken))
        moments = self._moments
        return np.array(
            [
                self._arrived,
                moments.variance[0] * squares[place],
                moments.cumulant[0] * fourths[place],
            ]
        )

    def _push_blocks(self, rows: IntArray) -> FloatArray:
        moments = self._moments
        for level, noisy in enumerate(rows.tolist()):
            parts = float(noisy)
            if level > 0:  # a complete block takes the place of its parts
                parts = sum(self._blocks[level - 1])
                self._blocks[level - 1] = []
            self._blocks[level].append(parts + float(moments.trust[level]) * (noisy - parts))
        used = np.array([len(blocks) for blocks in self._blocks], dtype=np.float64)
        estimate = sum(value for blocks in self._blocks for value in blocks)
        return np.array([estimate, used @ moments.variance, used @ moments.cumulant])
