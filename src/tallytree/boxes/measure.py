"""Measuring maps: the one door from :class:`ConfidentialGrid` to noisy counts and private medians.

Methods ask about boxes that they choose from earlier noisy answers. Every entity lies in one cell
of the fine grid, and a question about boxes that do not overlap is answered from the entities of
one box each, so it costs an entity its share if the entity's cell lies in one of the boxes, and
nothing otherwise. The shares that each cell has been asked for are added up exactly, and a question
that would ask any cell for more than the whole budget is refused. For neighbours that differ in one
entity, the ratio of the probabilities of any transcript is a product over the questions of which
only those about its cell count, so their losses add up to at most the budget, however the questions
were chosen. A unit of k entities is covered by the sensitivities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from tallytree.boxes.adaptive import adapt
from tallytree.boxes.draft import Draft, Measurement
from tallytree.boxes.grids import noisy_total
from tallytree.boxes.kernels.squared_parts import SquaredParts
from tallytree.boxes.methods import grow, is_dense
from tallytree.errors import RequestError
from tallytree.kernels.partitions import box_deviations, cut_deviations
from tallytree.model.arrays import BoolArray, FloatArray, IntArray
from tallytree.model.box_tree import BoxTree, box_sums, paint
from tallytree.model.confidential import Confidential, Fact
from tallytree.model.confidential_grid import LARGEST_SUM, ConfidentialGrid
from tallytree.options.choices import MapMethod
from tallytree.options.maps import MethodOptions
from tallytree.privacy.budget import Budget, noise_for, pure_loss
from tallytree.privacy.comparisons import cheapest_parts, exceed_zero
from tallytree.privacy.exponential import choose_candidates, exponential_rate
from tallytree.privacy.noise import DiscreteLaplace, Noise, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import (
    descent_sensitivity,
    deviation_score_sensitivity,
    histogram_sensitivity,
    median_score_sensitivity,
    squares_score_sensitivity,
    tiling_sensitivity,
)

# All cells of every level of a tree are sorted at once: some gigabytes.
MOST_TILED = 1 << 22
LARGEST_DENOMINATOR = 1 << 50


@dataclass(frozen=True)
class Step:
    """One question, as the manifest tells it: what it was, what it cost, and what made it private.

    ``largest`` is what counts are cut off at before they are scored, where the sensitivity depends
    on that.
    """

    query: str
    share: Fraction
    boxes: int
    noise: Noise | None
    rate: Fraction | None
    largest: int | None = None
    compared: DiscreteLaplace | None = None


@dataclass(frozen=True, eq=False)
class NoisyMap:
    """A grown tree with its noisy counts, and every question that was paid for."""

    tree: BoxTree
    measurements: tuple[Measurement, ...]
    steps: tuple[Step, ...]
    method: MapMethod
    budget: Budget
    leaves: BoolArray


@dataclass(eq=False)
class CellCharges:
    """The share of the budget that each cell of the grid has been asked for, in whole units of
    1/denominator.
    """

    shape: tuple[int, ...]
    denominator: int = 1
    spent: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.spent = np.zeros(self.shape, dtype=np.int64)

    def charge(self, low: IntArray, high: IntArray, share: Fraction) -> None:
        """Add a share to the cells of boxes that do not overlap; refuse what would exceed the whole
        budget.
        """
        if not 0 < share <= 1:
            raise RequestError(
                f"A question costs a share between 0 and 1 of the budget, not {share}."
            )
        denominator = math.lcm(self.denominator, share.denominator)
        if denominator > LARGEST_DENOMINATOR:
            raise RequestError(
                "The shares of a budget need a common denominator of at most 2**50; round them."
            )
        covered = paint(self.shape, low, high, np.ones(len(low), dtype=np.int64))
        if covered.max(initial=0) > 1:
            raise RequestError("The boxes of one question must not overlap.")
        spent = self.spent * (denominator // self.denominator) + covered * int(share * denominator)
        if spent.max(initial=0) > denominator:
            raise RequestError("A question would ask some cells for more than the whole budget.")
        self.spent, self.denominator = spent, denominator

    def most(self) -> Fraction:
        """The largest share that any cell was asked for."""
        return Fraction(int(self.spent.max(initial=0)), self.denominator)


@dataclass(eq=False, repr=False)
class PrivateSurvey(Confidential):
    """Answers the questions of methods with exact noise; see the module's docstring for what they
    cost.
    """

    grid: ConfidentialGrid
    budget: Budget
    stream: KeyStream
    charges: CellCharges = field(init=False)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.charges = CellCharges(self.grid.public.shape)

    @property
    def epsilon(self) -> float:
        """ε of a Laplace law with the variance of the noise that all of the budget pays for."""
        return math.sqrt(2 / self.variance(Fraction(1)))

    def noise(self, share: Fraction) -> Noise:
        """The noise of a count that costs ``share``."""
        part = Budget(self.budget.definition, self.budget.total * share)
        return noise_for(
            part, histogram_sensitivity(contributions=self.grid.public.unit.contributions)
        )

    def variance(self, share: Fraction) -> float:
        """Variance of a noisy count that costs ``share``."""
        return self.noise(share).variance

    def count(self, low: IntArray, high: IntArray, share: Fraction, query: str) -> IntArray:
        """Noisy number of points in each box."""
        self.charges.charge(low, high, share)
        noise = self.noise(share)
        self.steps.append(Step(query, share, len(low), noise, None))
        exact = box_sums(self.grid.sums, low, high)
        return add_noise(
            exact,
            noise,
            self.stream,
            level=len(self.steps) - 1,
            query="count",
            question=[low, high],
        )

    def sums(
        self, low: IntArray, high: IntArray, cluster: IntArray, share: Fraction, query: str
    ) -> IntArray:
        """Noisy number of points in each cluster of boxes: as these do not overlap, an entity is in
        one cluster at most.
        """
        self.charges.charge(low, high, share)
        noise, exact = self.noise(share), np.zeros(int(cluster.max()) + 1, dtype=np.int64)
        np.add.at(exact, cluster, box_sums(self.grid.sums, low, high))
        self.steps.append(Step(query, share, len(low), noise, None))
        asked = [low, high, cluster]
        return add_noise(
            exact, noise, self.stream, level=len(self.steps) - 1, query="sum", question=asked
        )

    def cut(
        self, low: IntArray, high: IntArray, axis: int, share: Fraction, query: str
    ) -> IntArray:
        """A private median of each box: cut p is chosen with probability ∝ exp(−rate · |points
        below p − points above|).
        """
        if np.any(high[:, axis] - low[:, axis] < 2):
            raise RequestError("A box of one cell cannot be cut.")
        self.charges.charge(low, high, share)
        part = Budget(self.budget.definition, self.budget.total * share)
        rate = exponential_rate(
            part, median_score_sensitivity(contributions=self.grid.public.unit.contributions).l1
        )
        self.steps.append(Step(query, share, len(low), None, rate))
        scores, offsets = median_scores(self.grid.sums, low, high, axis)
        asked: list[Fact] = [repr(axis), low, high]
        level = len(self.steps) - 1
        chosen = choose_candidates(
            scores, offsets, rate, self.stream, level=level, query="cut", question=asked
        )
        return low[:, axis] + 1 + chosen

    def part(
        self,
        low: IntArray,
        high: IntArray,
        share: Fraction,
        query: str,
        prior: Sequence[FloatArray],
    ) -> IntArray:
        """A private boundary inside each stretch of bins: where to cut it in two parts of nearly
        equal counts each.

        Cut q is chosen with probability ∝ exp(prior − rate · sum of absolute deviations from the
        medians of the two parts). (Xu et al. 2012 take squared deviations from means, whose
        sensitivity grows with the counts.) The prior comes from answers already given, so it is the
        same for neighbours and costs nothing.
        """
        if np.any(high - low < 2):
            raise RequestError("A stretch of one bin cannot be cut.")
        self.charges.charge(low, high, share)
        part = Budget(self.budget.definition, self.budget.total * share)
        rate = exponential_rate(
            part, deviation_score_sensitivity(contributions=self.grid.public.unit.contributions).l1
        )
        self.steps.append(Step(query, share, len(low), None, rate))
        counts = np.minimum(self.grid.counts, LARGEST_SUM // self.grid.counts.size)
        weights = [np.rint(weight / float(rate)).astype(np.int64) for weight in prior]
        scores = [
            weight - cut_deviations(counts[a:b])
            for a, b, weight in zip(low[:, 0].tolist(), high[:, 0].tolist(), weights)
        ]
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in scores])])
        level = len(self.steps) - 1
        asked, joined = [low, high, *weights], np.concatenate(scores)
        chosen = choose_candidates(
            joined, offsets, rate, self.stream, level=level, query="part", question=asked
        )
        return low[:, 0] + 1 + chosen

    def boundaries(self, n_parts: int, largest: int, share: Fraction, query: str) -> IntArray:
        """The private boundaries between ``n_parts`` parts of a line, from the last to the first,
        in rising order.

        Boundary j is chosen among all that leave room for j parts before it and one part up to
        boundary j + 1, with probability ∝ exp(−rate · squared deviations of the best j parts before
        it and of that part): StructureFirst of Xu et al. 2012. Each choice costs the same part of
        the share.
        """
        n_bins = self.grid.public.shape[0]
        self.charges.charge(np.zeros((1, 1), dtype=np.int64), np.array([[n_bins]]), share)
        one = Budget(self.budget.definition, self.budget.total * share / (n_parts - 1))
        bound = squares_score_sensitivity(
            largest, contributions=self.grid.public.unit.contributions
        )
        rate = exponential_rate(one, bound.l1)
        self.steps.append(Step(query, share, n_parts - 1, None, rate, largest))
        best = SquaredParts.of(np.minimum(self.grid.counts, largest), n_parts - 1)
        level, edges = len(self.steps) - 1, [n_bins]
        for before in range(n_parts - 1, 0, -1):
            scores = -best.last_cuts(before, edges[-1])
            ends = np.array([0, len(scores)])
            name, asked = f"boundary {before}", [repr((largest, edges[-1]))]
            chosen = choose_candidates(
                scores, ends, rate, self.stream, level=level, query=name, question=asked
            )
            edges.append(before + int(chosen[0]))
        return np.array(edges[:0:-1])

    def parts(self, tree: BoxTree, share: Fraction, query: str, price: float) -> IntArray:
        """A private tiling by nodes of a tree, of least cost: absolute deviations inside nodes plus
        a price for each.

        Costs have noise of :func:`parts_noise`, which never leaves the comparison. The cheapest of
        very many tilings is one whose noise happened to be low, all the more the more parts it has;
        so its scale is added to the price of a part.
        """
        if (
            not tree.tiles()
            or tree.shape != self.grid.public.shape
            or math.prod(tree.shape) > MOST_TILED
        ):
            raise RequestError(
                f"Parts are chosen from a tree that tiles the grid, of at most {MOST_TILED:,} "
                "cells."
            )
        self.charges.charge(tree.low[:1], tree.high[:1], share)
        part = Budget(self.budget.definition, self.budget.total * share)
        noise = parts_noise(part, self.grid.public.unit.contributions)
        self.steps.append(Step(query, share, tree.n_nodes, None, None, compared=noise))
        costs, whole_price = (
            tree_deviations(self.grid, tree),
            max(1, round(price + float(noise.scale))),
        )
        return cheapest_parts(
            costs,
            whole_price,
            tree.child_starts,
            noise,
            self.stream,
            level=len(self.steps) - 1,
            query="parts",
            question=[tree.low, tree.high],
        )

    def descend(self, share: Fraction, query: str) -> PrivateDescent:
        """Decisions of a PrivTree, all of them together for one share."""
        whole = (
            np.zeros((1, len(self.grid.public.shape)), dtype=np.int64),
            np.array([self.grid.public.shape]),
        )
        self.charges.charge(*whole, share)
        part = Budget(self.budget.definition, self.budget.total * share)
        noise = splits_noise(part, len(self.grid.public.shape), self.grid.public.unit.contributions)
        self.steps.append(Step(query, share, 0, None, None, compared=noise))
        return PrivateDescent(self, len(self.steps) - 1, noise, *whole)


@dataclass(eq=False, repr=False)
class PrivateDescent(Confidential):
    """Decisions on the way down; see :func:`tallytree.privacy.sensitivity.descent_sensitivity` for
    what they cost together.

    Attributes
    ----------
    low, high
        The boxes that may be split further: every box of the next question lies inside one of them.
    """

    survey: PrivateSurvey
    level: int
    noise: DiscreteLaplace
    low: IntArray
    high: IntArray
    depth: int = 0

    def worth(self, low: IntArray, high: IntArray) -> BoolArray:
        """Which boxes are split: those whose count less ``depth`` δ, at least −δ, plus noise is
        above 0.
        """
        shape = self.survey.grid.public.shape
        if paint(shape, low, high, np.ones(len(low), dtype=np.int64)).max(initial=0) > 1:
            raise RequestError("The boxes of one question must not overlap.")
        around = (
            paint(shape, self.low, self.high, np.arange(1, len(self.low) + 1))[tuple(low.T)] - 1
        )
        if np.any(around < 0) or np.any(low < self.low[around]) or np.any(high > self.high[around]):
            raise RequestError(
                "A box of a descent lies inside one that the question before told to split."
            )
        delta = level_bias(self.noise, len(shape))
        biased = np.maximum(box_sums(self.survey.grid.sums, low, high) - self.depth * delta, -delta)
        name, asked = f"split {self.depth}", [low, high, np.array([delta])]
        found = (
            exceed_zero(
                biased, self.noise, self.survey.stream, level=self.level, query=name, question=asked
            )
            == 1
        )
        self.low, self.high, self.depth = low[found], high[found], self.depth + 1
        step = self.survey.steps[self.level]
        self.survey.steps[self.level] = replace(step, boxes=step.boxes + len(low))
        return found

    def _shown(self) -> str:
        return f"depth {self.depth}"


def parts_noise(part: Budget, contributions: int) -> DiscreteLaplace:
    """The noise of the costs of all boxes that makes the choice of a tiling cost this part of the
    budget.
    """
    return DiscreteLaplace(tiling_sensitivity(contributions=contributions).l1 / pure_loss(part))


def splits_noise(part: Budget, dimensions: int, contributions: int) -> DiscreteLaplace:
    """The noise that makes all decisions of a descent cost this part of the budget."""
    return DiscreteLaplace(
        descent_sensitivity(1 << dimensions, contributions=contributions) / pure_loss(part)
    )


def level_bias(noise: DiscreteLaplace, dimensions: int) -> int:
    """δ = λ ln β of PrivTree, rounded up, so that exp(−δ/λ) ≤ 1/β."""
    return math.floor(float(noise.scale) * math.log(1 << dimensions) * (1 + 1e-9)) + 1


def tree_deviations(grid: ConfidentialGrid, tree: BoxTree) -> IntArray:
    """Σ |count − median| over the cells of every node of a tree. Confidential."""
    counts = np.minimum(grid.counts, LARGEST_SUM // grid.counts.size).ravel()
    costs = np.empty(tree.n_nodes, dtype=np.int64)
    for layer in tree.layers:
        n_boxes = layer.stop - layer.start
        box = paint(
            tree.shape, tree.low[layer], tree.high[layer], np.arange(1, n_boxes + 1)
        ).ravel()
        order = np.argsort(box, kind="stable")
        starts = np.searchsorted(box[order], np.arange(1, n_boxes + 2))
        costs[layer] = box_deviations(counts[order], starts)
    return costs


def median_scores(
    sums: IntArray, low: IntArray, high: IntArray, axis: int
) -> tuple[IntArray, IntArray]:
    """−|points below − points above| for every cut inside each box along an axis, boxes one after
    the other.
    """
    lengths = high[:, axis] - low[:, axis] - 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    box = np.repeat(np.arange(len(low)), lengths)
    cut = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths) + 1 + low[box, axis]
    upper = high[box]
    upper[:, axis] = cut
    below = box_sums(sums, low[box], upper)
    return -np.abs(2 * below - box_sums(sums, low, high)[box]), offsets


def measure_map(
    grid: ConfidentialGrid, budget: Budget, options: MethodOptions, stream: KeyStream
) -> NoisyMap:
    """Grow a tree over the grid by a method, from noisy answers alone."""
    survey = PrivateSurvey(grid, budget, stream)
    draft = Draft(grid.public.shape, survey)
    method = grow(draft, options)
    return _finished(survey, draft, method)


def measure_unless_dense(
    grid: ConfidentialGrid, budget: Budget, stream: KeyStream
) -> NoisyMap | int:
    """Ask for the number of points; go on adaptively, or return the noisy number where points are
    many for the cells.
    """
    survey = PrivateSurvey(grid, budget, stream)
    draft = Draft(grid.public.shape, survey)
    n_points, left = noisy_total(draft, MethodOptions(mechanism="adaptive"))
    if is_dense(n_points * survey.epsilon, grid.public.shape):
        return int(draft.measurements[0].values[0])
    adapt(draft, n_points, left)
    return _finished(survey, draft, "adaptive")


def _finished(survey: PrivateSurvey, draft: Draft, method: MapMethod) -> NoisyMap:
    tree, measurements = draft.finish()
    return NoisyMap(
        tree, tuple(measurements), tuple(survey.steps), method, survey.budget, draft.leaves(tree)
    )
