"""Counting a stream: how many entities came so far, released after every step (Chan, Shi and Song 2011).

The binary mechanism. Steps are the leaves of a binary tree; the count of each block of 1, 2, 4 … steps is measured
once, when the block is complete, and the count so far is the sum of the fewest complete blocks: one per binary digit of
the number of steps. A step lies in one block per level, so each level gets an equal share of the budget, and errors
grow with the logarithm of the horizon.

Beyond the paper: a block's noisy count is averaged with the sum of its two halves by inverse variance, the upward pass
of hay2010 §4.1, which needs nothing but what was released already and nearly halves the variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.kernels.tree_least_squares import variances_from_below
from tallytree.model.arrays import FloatArray
from tallytree.model.range_tree import RangeTree
from tallytree.planning.level_budgets import equal_shares
from tallytree.privacy.budget import Definition
from tallytree.privacy.noise import Noise, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.stated_budget import stated_budget
from tallytree.ranges.answers import Answer, whole_interval
from tallytree.ranges.intervals import check_level, half_widths
from tallytree.ranges.noise_moments import fourth_cumulant
from tallytree.ranges.plan import plan_histogram
from tallytree.ranges.strategies import TreeStrategy

MOST_ARRIVALS = 2**40  # more in one step count as this many, so that sums never overflow


@dataclass
class _Block:
    """The latest complete block of one level that is part of the count so far."""

    exact: int
    """Confidential."""
    estimate: float


class StreamCounter:
    """A count that is released after every step, over at most ``horizon`` steps, for one budget in all.

    Parameters
    ----------
    horizon
        Largest number of steps, public. The error grows with its logarithm only, so be generous.
    epsilon, rho, definition
        The privacy loss of the whole stream. One entity, which arrives in one step, is protected.
    inference
        False for the mechanism of the paper, without averaging.
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
        horizon: int,
        *,
        epsilon: object = None,
        rho: object = None,
        definition: Definition = "pure",
        inference: bool = True,
        insecure_seed: int | None = None,
    ) -> None:
        if isinstance(horizon, bool) or not isinstance(horizon, int) or not 1 <= horizon < 2**40:
            raise RequestError(f"The horizon of a stream is a whole number of at least 1, got {horizon!r}.")
        budget = stated_budget(epsilon, rho, definition)
        n_levels = horizon.bit_length()
        tree = RangeTree(2 ** (n_levels - 1), tuple(2**level for level in reversed(range(n_levels))))
        noise = plan_histogram(TreeStrategy("hierarchical", tree, equal_shares(n_levels)), budget).noise[0]
        assert noise is not None  # equal shares leave no level out
        self.horizon, self.budget, self.noise = horizon, budget, noise
        self.steps = 0
        self._stream = KeyStream.from_system() if insecure_seed is None else KeyStream.from_insecure_seed(insecure_seed)
        self._blocks: list[_Block | None] = [None] * n_levels
        self._variance, self._cumulant, self._trust = _block_moments(noise, n_levels, inference=inference)

    @property
    def private(self) -> bool:
        """Whether the noise came from secure randomness."""
        return self._stream.secure

    def add(self, arrivals: int) -> Answer:
        """Take one step in which ``arrivals`` entities came, and release the count so far."""
        if isinstance(arrivals, bool) or not isinstance(arrivals, int | np.integer) or arrivals < 0:
            raise InputError("Arrivals are a whole number of at least 0.")
        if self.steps >= self.horizon:
            raise RequestError(f"The stream has reached its horizon of {self.horizon:,} steps. Start a new counter.")
        self.steps += 1
        exact = min(int(arrivals), MOST_ARRIVALS)
        block = _Block(exact, self._measure(0, exact))
        # Like adding 1 to a binary number: a complete block meets its left half and both become a block of twice the size.
        level = 0
        while (left := self._blocks[level]) is not None:
            self._blocks[level] = None
            halves, exact = left.estimate + block.estimate, left.exact + block.exact
            level += 1
            block = _Block(exact, halves + self._trust[level] * (self._measure(level, exact) - halves))
        self._blocks[level] = block
        return self.count()

    def _measure(self, level: int, exact: int) -> int:
        """Noisy count of the block of a level that ends now; each block is measured once, at its own place in the
        stream."""
        number = (self.steps >> level) - 1
        noisy = add_noise(np.array([exact]), self.noise, self._stream, level=level, query="stream", first_region=number)
        return int(noisy[0])

    def count(self, *, level: float = 0.95) -> Answer:
        """How many entities came so far, from what was released already: asking again costs nothing."""
        check_level(level)
        used = [place for place, block in enumerate(self._blocks) if block is not None]
        estimate = np.array([sum(block.estimate for block in self._blocks if block is not None)], dtype=np.float64)
        variance, cumulant = self._variance[used].sum(keepdims=True), self._cumulant[used].sum(keepdims=True)
        low, high = whole_interval(estimate, half_widths(variance, cumulant, level), estimate)
        return Answer(float(estimate[0]), float(np.sqrt(variance[0])), int(low[0]), int(high[0]), level)

    def __repr__(self) -> str:
        mark = "" if self.private else ", NOT PRIVATE: made with an insecure seed"
        return f"StreamCounter({self.steps:,} of {self.horizon:,} steps, {self.budget}, counts hidden{mark})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A stream counter holds confidential counts and cannot be pickled.")


def _block_moments(noise: Noise, n_levels: int, *, inference: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Variance and fourth cumulant of a block's estimate on each level, and the weight of its own noisy count."""
    own, kurtic = noise.variance, fourth_cumulant(noise)
    variance, cumulant, trust = np.full(n_levels, own), np.full(n_levels, kurtic), np.ones(n_levels)
    if inference:
        for level in range(1, n_levels):
            pair = np.array([own, variance[level - 1], variance[level - 1]])
            variance[level] = variances_from_below(pair, np.array([1, 3, 3, 3]))[0]
            trust[level] = variance[level] / own if own > 0 else 1.0
            cumulant[level] = trust[level] ** 4 * kurtic + (1 - trust[level]) ** 4 * 2 * cumulant[level - 1]
    return variance, cumulant, trust
