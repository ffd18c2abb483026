"""What a stream measures, and how far its counts will be off: frozen before the first step, from
public facts alone.

Three strategies, all answered online: the rows of a step depend on nothing after it.

``scaled-root``, for Gaussian noise: the square root that follows, with an exponent near ½ and with
rows and columns scaled (:mod:`tallytree.streams.factors`): an error within 2 % of the least
possible.

``square-root``, the same without scales. The matrix A that adds up a stream, ones on and below the
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

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, get_args

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.stream_rows import Factors
from tallytree.model.arrays import IntArray
from tallytree.options.choices import StreamObjective, StreamStrategy, StreamStrategyName
from tallytree.options.stream import CounterOptions
from tallytree.privacy.accounting import Composition, MechanismRecord, Record
from tallytree.privacy.budget import Budget, noise_fits, noise_for, refuse_more_changes
from tallytree.privacy.noise import Noise
from tallytree.privacy.sensitivity import (
    Sensitivity,
    histogram_sensitivity,
    returning_rows_sensitivity,
    running_rows_sensitivity,
)
from tallytree.streams.errors import (
    best_stream_branching,
    block_moments,
    largest_variance,
    n_levels,
    root_moments,
    summed_variance,
)
from tallytree.streams.factors import BITS, Aim, scaled_root_factors, square_root_factors

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
        ``scaled-root``, ``square-root`` or ``tree``.
    budget
        The loss of the whole stream.
    epochs
        Steps of the first epoch, the second, …; the last one is repeated for ever. So for the next
        four.
    branching
        b of each epoch's tree; 1 where there is none.
    factors
        What the rows of each epoch weigh; None for trees.
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
    objective
        Which error is small: the mean over all steps, or that of the worst step.
    min_gap
        At least so many steps lie between two entities of one unit.
    """

    strategy: StreamStrategy
    budget: Budget
    epochs: tuple[int, ...]
    branching: tuple[int, ...]
    factors: tuple[Factors | None, ...] = field(compare=False, repr=False)
    sensitivity: tuple[Sensitivity, ...]
    noise: tuple[Noise, ...]
    horizon: int | None = None
    contributions: int = 1
    inference: bool = True
    objective: StreamObjective = "mean"
    min_gap: int = 0

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
        return Epoch(
            length,
            branching,
            levels,
            self.factors[kind],
            self.sensitivity[kind],
            self.noise[kind],
        )

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
        if self.strategy != "tree":
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
        query = "blocks" if tree else "rows of whole weights"
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
    """One epoch of a stream: its steps, the b and the levels of its tree or the factors of its
    root, and what a row's noise hides.
    """

    n_steps: int
    branching: int
    n_levels: int
    factors: Factors | None
    sensitivity: Sensitivity
    noise: Noise


class Asked(NamedTuple):
    """What a plan is asked for, but for its budget and its steps."""

    strategy: StreamStrategy
    objective: StreamObjective
    contributions: int
    min_gap: int


def plan_stream(
    budget: Budget,
    horizon: int | None,
    *,
    strategy: StreamStrategyName = "auto",
    contributions: int = 1,
    branching: int | Sequence[int] | None = None,
    inference: bool = True,
    objective: StreamObjective = "mean",
    min_gap: int = 0,
    epochs: tuple[int, ...] | None = None,
) -> StreamPlan:
    """The plan of a stream: ``auto`` takes the best tree under pure differential privacy; under
    zCDP the scaled root, or the square root where a unit comes back after a gap.

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
        root: StreamStrategy = "square-root" if min_gap else "scaled-root"
        strategy = "tree" if budget.definition == "pure" else root
    _check_strategy(strategy, objective, branching=branching, inference=inference)
    if epochs is None:
        epochs = usual_epochs(horizon)
    if not epochs or not 1 <= min(epochs) <= max(epochs) <= LONGEST_EPOCH:
        raise RequestError(f"Epochs of a stream have 1 to {LONGEST_EPOCH:,} steps, got {epochs}.")
    if min_gap and contributions == 1:
        raise RequestError("min_gap= is of units with contributions= of at least 2.")
    if min_gap and (strategy != "square-root" or len(epochs) > 1):
        raise RequestError(
            "min_gap= goes with zCDP, the strategy 'square-root' and a horizon of at most "
            f"{LONGEST_EPOCH:,} steps: under pure differential privacy a gap saves nothing."
        )
    given = (
        [branching] * len(epochs)
        if branching is None or isinstance(branching, int)
        else list(branching)
    )
    asked = Asked(strategy, objective, contributions, min_gap)
    # Nobody knows how far into the first epoch a stream without a horizon will come.
    anywhere: Aim = "every" if objective == "mean" and horizon is None else objective
    measured = [
        _measured(budget, length, wanted, asked, anywhere if number == 0 else objective)
        for number, (length, wanted) in enumerate(zip(epochs, given, strict=True))
    ]
    trees, factors, sensitivities, noises = zip(*measured, strict=True)
    return StreamPlan(
        strategy,
        budget,
        epochs,
        trees,
        factors,
        sensitivities,
        noises,
        horizon,
        contributions,
        inference,
        objective,
        min_gap,
    )


def _check_horizon(horizon: int | None) -> None:
    """A horizon is a public number of steps, or left out."""
    whole = isinstance(horizon, int) and not isinstance(horizon, bool)
    if horizon is not None and not (whole and 1 <= horizon < LONGEST_HORIZON):
        raise RequestError(
            f"The horizon of a stream is a whole number of at least 1, or None; got {horizon!r}."
        )


def _check_strategy(
    strategy: StreamStrategy,
    objective: StreamObjective,
    *,
    branching: int | Sequence[int] | None,
    inference: bool,
) -> None:
    if strategy not in get_args(StreamStrategy):
        raise RequestError(
            f"A stream's strategy is one of auto, {', '.join(get_args(StreamStrategy))}; got "
            f"{strategy!r}."
        )
    if objective not in get_args(StreamObjective):
        raise RequestError(
            f"A stream's objective is one of {', '.join(get_args(StreamObjective))}; got "
            f"{objective!r}."
        )
    if strategy != "tree" and (isinstance(branching, int) or not inference):
        raise RequestError(f"branching and inference are of trees; {strategy!r} has neither.")


class Measured(NamedTuple):
    """What is measured of an epoch: the b of its tree, or the factors of its root."""

    branching: int
    factors: Factors | None
    sensitivity: Sensitivity
    noise: Noise


def _measured(budget: Budget, length: int, wanted: int | None, asked: Asked, aim: Aim) -> Measured:
    """What is measured of an epoch of so many steps."""
    contributions = asked.contributions
    if asked.strategy == "tree":
        if wanted is not None and wanted < 2:
            raise RequestError(f"The branching of a tree is at least 2, got {wanted}.")
        laplace = budget.definition == "pure"
        b = wanted or best_stream_branching(length, laplace, asked.objective)
        sensitivity = histogram_sensitivity(contributions=contributions)
        share = Budget(budget.definition, budget.total / n_levels(length, b))
        return Measured(b, None, sensitivity, noise_for(share, sensitivity))
    if asked.strategy == "square-root":
        root = square_root_factors(length)
        sensitivity = (
            returning_rows_sensitivity(
                root.weights, contributions=contributions, min_gap=asked.min_gap
            )
            if asked.min_gap
            else running_rows_sensitivity(root, contributions=contributions)
        )
        return Measured(1, root, sensitivity, noise_for(budget, sensitivity))
    for bits in BITS[aim]:  # the finest that leaves room for long sums and for the noise
        root = scaled_root_factors(length, aim, bits)
        if not root.fit:
            continue
        sensitivity = running_rows_sensitivity(root, contributions=contributions)
        if noise_fits(budget, sensitivity):
            break
    return Measured(1, root, sensitivity, noise_for(budget, sensitivity))


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
        objective=options.objective,
        min_gap=options.min_gap or 0,
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


def squared_error(plan: StreamPlan, objective: StreamObjective) -> float:
    """Expected squared error of the counts so far in the first epoch: mean over all steps, or that
    of the worst step.
    """
    epoch = plan.epoch(0)
    own, mean = epoch.noise.variance, objective == "mean"
    if epoch.factors is not None:
        squares = root_moments(epoch.factors, epoch.n_steps)[0]
        return own * float(squares.mean() if mean else squares.max())
    variances = block_moments(
        own, 0.0, epoch.n_levels, epoch.branching, inference=plan.inference
    ).variance.tolist()
    if mean:
        return summed_variance(epoch.n_steps, epoch.branching, variances) / epoch.n_steps
    return largest_variance(epoch.n_steps, epoch.branching, variances)
