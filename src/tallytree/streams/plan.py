"""What a stream measures, and how far its counts will be off: frozen before the first step, from
public facts alone.

Two strategies, both answered online: the rows of a step depend on nothing after it.

``square-root``, for Gaussian noise. The matrix A that adds up a stream, ones on and below the
diagonal, is the product of two equal lower triangular Toeplitz matrices, whose columns are the
coefficients f_k of (1 - z)**(-1/2) (Fichtenberger, Henzinger and Upadhyay 2023, "Constant Matters:
Fine-grained Error Bound on Differentially Private Continual Observation"; Henzinger, Upadhyay and
Upadhyay 2023, "Almost Tight Error Bounds on Differentially Private Continual Counting"). One row
per step is measured, Σ_j f_j x_{t-j}. Departs from the papers in that weights are whole multiples
of 2**-16, so that rows are whole numbers with exact noise; the other factor is A times the exact
inverse of the rounded one, so estimates are unbiased, and the sensitivity is that of the rounded
weights.

``tree``, for Laplace noise. Blocks of 1, b, b² … steps are counted when they are complete, with
equal shares of the budget, and the count so far is the sum of the fewest complete blocks (Chan, Shi
and Song 2011 for b = 2). Beyond the paper, a block's count is averaged with the sum of its parts by
inverse variance (the upward pass of hay2010 §4.1), and b is the branching with the least mean error
over the horizon: 2.5 to 2.8 times less than with b = 2.

A horizon that is not known, or is longer than 2**20 steps, is cut into epochs, each a stream of its
own. An entity comes in one of them, so epochs compose in parallel and each has the whole budget;
the count so far is the sum of the last counts of past epochs and the count of this one. The k
entities of a unit may come in several epochs, k₁ in one and k₂ in another: these cost no more than
k in one, since an epoch's ε is proportional to its k and its ρ to k², and k₁² + k₂² ≤ (k₁ + k₂)².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, get_args

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.options.choices import StreamStrategy, StreamStrategyName
from tallytree.options.stream import CounterOptions
from tallytree.privacy.accounting import Composition, MechanismRecord, Record
from tallytree.privacy.budget import Budget, noise_for, refuse_more_changes
from tallytree.privacy.noise import Noise
from tallytree.privacy.sensitivity import (
    Sensitivity,
    histogram_sensitivity,
    running_rows_sensitivity,
)
from tallytree.streams.errors import (
    best_stream_branching,
    block_moments,
    block_uses,
    decoding_weights,
    n_levels,
)
from tallytree.streams.kernels import WEIGHT_BITS, square_root_weights

# Weights and their inverse of a million steps take seconds and megabytes; hourly counts last for a
# century.
LONGEST_EPOCH = 2**20
# Without a horizon: first as if it were 1,024 steps, for which the error is the least, then a
# thousand times as many.
EPOCHS = (2**10, LONGEST_EPOCH)
LONGEST_HORIZON = 2**40


@dataclass(frozen=True)
class StreamPlan:
    """A stream before its first step; made by :func:`plan_stream`.

    Attributes
    ----------
    strategy
        ``square-root`` or ``tree``.
    budget
        The loss of the whole stream.
    epochs
        Steps of the first epoch, the second, …; the last one is repeated for ever. So for the next
        three.
    branching
        b of each epoch's tree; 1 where there is none.
    sensitivity
        How much a unit changes the rows of an epoch, or those of one level of its tree.
    noise
        Of every row of an epoch; levels of a tree have equal shares.
    horizon
        Largest number of steps, None where there is none.
    contributions
        How many entities one unit has, in any steps.
    inference
        Whether a block's count is averaged with those of its parts.
    """

    strategy: StreamStrategy
    budget: Budget
    epochs: tuple[int, ...]
    branching: tuple[int, ...]
    sensitivity: tuple[Sensitivity, ...]
    noise: tuple[Noise, ...]
    horizon: int | None = None
    contributions: int = 1
    inference: bool = True

    def epoch_of(self, step: int) -> tuple[int, int]:
        """Number of the epoch of a step, and the step's place in it; both from 0."""
        for number, length in enumerate(self.epochs[:-1]):
            if step < length:
                return number, step
            step -= length
        return len(self.epochs) - 1 + step // self.epochs[-1], step % self.epochs[-1]

    def epoch(self, number: int) -> Epoch:
        """What is measured in an epoch."""
        kind = min(number, len(self.epochs) - 1)
        length, branching = self.epochs[kind], self.branching[kind]
        levels = n_levels(length, branching) if self.strategy == "tree" else 1
        return Epoch(length, branching, levels, self.sensitivity[kind], self.noise[kind])

    @property
    def most_changed(self) -> int:
        """How many rows one unit can change: an entity is in all later rows of its epoch, or in one
        block per level.
        """
        epochs = (self.epoch(number) for number in range(len(self.epochs)))
        tree = self.strategy == "tree"
        return self.contributions * max(
            epoch.n_levels if tree else epoch.n_steps for epoch in epochs
        )

    def rows_of(self, step: int) -> int:
        """How many rows a step completes."""
        if self.strategy == "square-root":
            return 1
        number, place = self.epoch_of(step)
        epoch = self.epoch(number)
        rows, width = 1, epoch.branching
        while rows < epoch.n_levels and (place + 1) % width == 0:
            rows, width = rows + 1, width * epoch.branching
        return rows

    def record(self, unit: str) -> Record:
        """What is measured, for the ledger and the manifest: all that outsiders need to work out
        the loss.
        """
        records = [self._epoch_record(unit, epoch) for epoch in range(len(self.epochs))]
        return records[0] if len(records) == 1 else Composition("parallel", tuple(records))

    def _epoch_record(self, unit: str, number: int) -> Record:
        epoch, tree = self.epoch(number), self.strategy == "tree"
        query = "blocks" if tree else f"rows weighted by multiples of 2^-{WEIGHT_BITS}"
        stated = self.budget.total / epoch.n_levels
        parts = tuple(
            MechanismRecord(
                self.strategy,
                level if tree else None,
                query,
                unit,
                epoch.sensitivity,
                epoch.noise,
                stated,
            )
            for level in range(epoch.n_levels)
        )
        return parts[0] if len(parts) == 1 else Composition("sequential", parts)


class Epoch(NamedTuple):
    """One epoch of a stream: its steps, the b and the levels of its tree, and what a row's noise
    hides.
    """

    n_steps: int
    branching: int
    n_levels: int
    sensitivity: Sensitivity
    noise: Noise


def plan_stream(
    budget: Budget,
    horizon: int | None,
    *,
    strategy: StreamStrategyName = "auto",
    contributions: int = 1,
    branching: int | Sequence[int] | None = None,
    inference: bool = True,
    epochs: tuple[int, ...] | None = None,
) -> StreamPlan:
    """The plan of a stream: ``auto`` takes the square root under zCDP and the best tree under pure
    differential privacy.

    ``epochs`` are lengths of epochs other than the usual ones: the whole horizon, or 2**10 steps
    and then 2**20 again and again. ``branching`` is one for all of them, or one for each.

    Examples
    --------
    >>> from fractions import Fraction
    >>> plan_stream(Budget("pure", Fraction(1)), 365).branching
    (20,)
    """
    _check_horizon(horizon)
    if strategy == "auto":
        strategy = "tree" if budget.definition == "pure" else "square-root"
    if strategy not in get_args(StreamStrategy):
        raise RequestError(
            f"A stream's strategy is one of auto, {', '.join(get_args(StreamStrategy))}; got "
            f"{strategy!r}."
        )
    if strategy == "square-root" and (isinstance(branching, int) or not inference):
        raise RequestError(
            "branching and inference are of trees; strategy 'square-root' has neither."
        )
    if epochs is None:
        epochs = usual_epochs(horizon)
    if not epochs or not 1 <= min(epochs) <= max(epochs) <= LONGEST_EPOCH:
        raise RequestError(f"Epochs of a stream have 1 to {LONGEST_EPOCH:,} steps, got {epochs}.")
    wanted = (
        [branching] * len(epochs)
        if branching is None or isinstance(branching, int)
        else list(branching)
    )
    trees = [
        _branching(length, of_epoch, budget) if strategy == "tree" else 1
        for length, of_epoch in zip(epochs, wanted, strict=True)
    ]
    sensitivities, noises = [], []
    for length, branches in zip(epochs, trees):
        if strategy == "tree":
            levels, sensitivity = (
                n_levels(length, branches),
                histogram_sensitivity(contributions=contributions),
            )
        else:
            weights = square_root_weights(length)
            levels, sensitivity = 1, running_rows_sensitivity(weights, contributions=contributions)
        sensitivities.append(sensitivity)
        noises.append(noise_for(Budget(budget.definition, budget.total / levels), sensitivity))
    return StreamPlan(
        strategy,
        budget,
        epochs,
        tuple(trees),
        tuple(sensitivities),
        tuple(noises),
        horizon,
        contributions,
        inference,
    )


def _check_horizon(horizon: int | None) -> None:
    """A horizon is a public number of steps, or left out."""
    whole = isinstance(horizon, int) and not isinstance(horizon, bool)
    if horizon is not None and not (whole and 1 <= horizon < LONGEST_HORIZON):
        raise RequestError(
            f"The horizon of a stream is a whole number of at least 1, or None; got {horizon!r}."
        )


def _branching(length: int, wanted: int | None, budget: Budget) -> int:
    """The branching of an epoch's tree: the wanted one, or the best."""
    if wanted is None:
        return best_stream_branching(length, budget.definition == "pure")
    if wanted < 2:
        raise RequestError(f"The branching of a tree is at least 2, got {wanted}.")
    return wanted


def usual_epochs(horizon: int | None) -> tuple[int, ...]:
    """Lengths of the epochs of a stream: its whole horizon, or some that come again and again."""
    return EPOCHS if horizon is None or horizon > LONGEST_EPOCH else (horizon,)


def planned_stream(loss: Budget, options: CounterOptions, *, contributions: int) -> StreamPlan:
    """The plan of a stream by its options; refused where (ε, δ) is stated and one unit may change
    too many rows.
    """
    plan = plan_stream(
        loss,
        options.horizon,
        strategy=options.mechanism,
        contributions=contributions,
        branching=options.branching,
        inference=options.inference,
    )
    refuse_more_changes(loss, plan.most_changed)
    return plan


@lru_cache(maxsize=4)
def rows_table(plan: StreamPlan, n_steps: int) -> tuple[IntArray, IntArray]:
    """Step and level of every row of the first steps, in the order in which they are measured."""
    per_step = np.array([plan.rows_of(step) for step in range(n_steps)], dtype=np.int64)
    steps = np.repeat(np.arange(n_steps, dtype=np.int64), per_step)
    levels = np.arange(len(steps), dtype=np.int64) - np.repeat(
        np.cumsum(per_step) - per_step, per_step
    )
    steps.setflags(write=False)
    levels.setflags(write=False)
    return steps, levels


def mean_squared_error(plan: StreamPlan) -> float:
    """Expected squared error of the counts so far, mean over all steps of the first epoch."""
    epoch = plan.epoch(0)
    own = epoch.noise.variance
    if plan.strategy == "square-root":
        return own * float(np.cumsum(decoding_weights(epoch.n_steps) ** 2).mean())
    variances = block_moments(
        own, 0.0, epoch.n_levels, epoch.branching, inference=plan.inference
    ).variance
    uses = block_uses(epoch.n_steps, epoch.branching)
    return (
        math.fsum(use * variance for use, variance in zip(uses, variances.tolist())) / epoch.n_steps
    )
