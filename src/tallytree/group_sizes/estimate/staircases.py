"""From noisy blocks and rows to the curve N(i) of every region of a level, with its variance.

The roughness κ of falls and the window over which the prior's shape is smoothed are chosen once per
level, by the marginal likelihood of the noisy answers of a fixed sample of its regions; everything
else concerns one region. So the regions of a level may be estimated in any pieces, at any time, and
always have the same curves. Everything here is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tallytree.errors import VerificationError
from tallytree.group_sizes.estimate import largest
from tallytree.group_sizes.estimate.hybrid import laplace_scale
from tallytree.group_sizes.estimate.largest import Largest
from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.kernels.curves import (
    Blocks,
    Curves,
    final_fits,
    first_fits,
    log_likelihoods,
)
from tallytree.group_sizes.kernels.rows import Rows, finish_with_rows, hidden_excess
from tallytree.group_sizes.kernels.shapes import shapes, smoothed
from tallytree.group_sizes.kernels.steps import fit_steps, steps_log_likelihoods
from tallytree.group_sizes.noisy import NoisyLevel, NoisyQuery
from tallytree.group_sizes.plan.first_look import FirstLook
from tallytree.kernels.isotonic import isotonic_runs
from tallytree.model.arrays import FloatArray, IntArray, offsets_from_lengths
from tallytree.model.count_of_counts import sum_runs
from tallytree.tuning.curves import (
    DROP_CHANCES,
    HEAPED,
    HIDDEN_SAMPLE,
    LIKELIHOOD_SAMPLE,
    ROUGHNESSES,
    WINDOWS,
)
from tallytree.tuning.rows import CLEAR_SCALES, ROW_DEVIATIONS


@dataclass(frozen=True, eq=False)
class Staircases:
    """Estimated staircases of the regions of one level.

    Attributes
    ----------
    curves
        N(i) and its variance per region; sizes past a region's last block come from its rows.
    blocks
        What was measured below the rows.
    rows
        Estimated sizes of the largest groups of each region.
    clear
        Groups per region that stand clear of all noise of the level, past the last size that curves
        tell apart.
    reach
        How far noise may move a row of the level, (ln M + 3) scales for M rows.
    """

    curves: Curves
    blocks: Blocks
    rows: Rows
    clear: IntArray
    reach: float

    def at(self, regions: IntArray) -> Staircases:
        """Those of some regions, in this order."""
        height, variance, falls = self.curves
        curves = Curves(height[regions], variance[regions], falls[regions] if len(falls) else falls)
        return Staircases(
            curves, self.blocks.at(regions), self.rows.at(regions), self.clear[regions], self.reach
        )

    @property
    def last(self) -> IntArray:
        """Size at which the blocks of each region end."""
        return _last_ends(self.blocks)

    @property
    def largest(self) -> Largest:
        """What the level tells about its largest groups."""
        offsets, sizes, *_, noise_variance = self.rows
        lengths, last = np.diff(offsets), self.last
        standing = sizes > np.repeat(last, lengths)
        kept = offsets_from_lengths(sum_runs(offsets, standing.astype(np.int64)))
        return Largest(
            largest.Rows(kept, sizes[standing], last),
            lengths,
            self.clear,
            self.reach,
            noise_variance,
        )


@dataclass(frozen=True)
class Choices:
    """What a level chooses once.

    Attributes
    ----------
    window, kappa
        Over how many sizes the prior's shape is smoothed, and how rough falls are.
    drop_chance
        Chance of a drop before any one block, where curves are taken as level stretches; 0 where
        they are smooth.
    excess
        At the topmost measured level, the mean excess of groups that noise hides; -1 below it.
    reach
        How far noise may move a row of the level.
    """

    window: float
    kappa: float
    drop_chance: float
    excess: float
    reach: float

    @property
    def is_top(self) -> bool:
        """Whether no level above was measured."""
        return self.excess >= 0

    @property
    def is_heaped(self) -> bool:
        """Whether curves are smooth although the answers are likelier with heaps. Level stretches
        know of theirs.
        """
        return not self.drop_chance and self.kappa >= HEAPED


@dataclass(frozen=True, eq=False)
class MeasuredLevel:
    """The noisy answers of the regions of a level, and all that is needed to estimate any of them.

    Attributes
    ----------
    n_groups
        Number of groups of each region.
    prior
        What the levels above tell about them.
    """

    noisy: NoisyLevel
    n_groups: IntArray
    prior: Prior

    def at(self, regions: IntArray) -> MeasuredLevel:
        """Some of the regions, with no more of the prior than concerns them."""
        return MeasuredLevel(self.noisy.at(regions), self.n_groups[regions], self.prior.at(regions))

    def piece(self, regions: slice) -> MeasuredLevel:
        """Consecutive regions, whose shapes are consecutive too."""
        return MeasuredLevel(
            self.noisy.piece(regions), self.n_groups[regions], self.prior.piece(regions)
        )

    @cached_property
    def blocks(self) -> Blocks:
        """What was measured below the rows."""
        sums, ends = self.noisy["blocks"], self.noisy["block ends"]
        return Blocks(sums.offsets, ends.values, sums.values, sums.noise.variance)


def prior_of_root(look: FirstLook, n_sizes: int) -> Prior:
    """What the first look tells about the root: its falls, and where noise hides them those of
    geometric sizes.
    """
    height, fall_variance = look.curve(n_sizes)
    exact = np.array([look.n_groups])
    # The variance of a fall stands for both: a curve without noise of its own whose falls are as
    # unsure as this.
    curves = Curves(height[None], np.full((1, n_sizes), np.inf), fall_variance[None])
    seen, seen_variance, seen_excess = shapes(exact, curves, np.array([look.cells_beyond(n_sizes)]))
    usual, usual_variance = look.usual_falls(n_sizes)
    weight = usual_variance / (usual_variance + seen_variance + 1e-300)
    fall = usual + weight * (seen - usual)
    excess = np.empty_like(fall)
    beyond = seen_excess[0, -1]
    for size in range(n_sizes - 1, -1, -1):
        beyond = (1 - fall[0, size]) * (1 + beyond)
        excess[0, size] = beyond
    return Prior(fall, weight * seen_variance, excess, np.zeros(1, dtype=np.int64))


def estimate_of_look(look: FirstLook, n_sizes: int) -> Curves:
    """The root as the first look alone shows it, for splits that measure nothing more there."""
    height, variance = look.curve_variance(n_sizes)
    return Curves(height[None], variance[None], np.empty((0, 0)))


def prior_below(level: Staircases, n_groups: IntArray, parents: IntArray) -> Prior:
    """What the estimated regions of a level tell about regions below them; ``parents`` numbers the
    level's regions.
    """
    n_sizes = level.curves.height.shape[1]
    offsets, sizes = level.rows.offsets, level.rows.sizes
    rank = np.arange(len(sizes)) - np.repeat(offsets[:-1], np.diff(offsets))
    left = np.ceil(np.maximum(level.curves.height[:, -1], 0.0))
    counted = rank < np.repeat(left, np.diff(offsets))
    beyond = np.where(counted, np.maximum(sizes - n_sizes, 0.0), 0.0)
    fall, variance, excess = shapes(n_groups, level.curves, _sums(offsets, beyond))
    return Prior(fall, variance, excess, parents)


def _sums(offsets: IntArray, values: FloatArray) -> FloatArray:
    """Sum of consecutive runs of values, 0 for empty runs."""
    partial = np.concatenate(([0.0], np.cumsum(values)))
    return partial[offsets[1:]] - partial[offsets[:-1]]


def choose_once(level: MeasuredLevel, *, is_top: bool) -> Choices:
    """What is chosen once for a level, from a fixed sample of its regions; ``is_top`` says that no
    level above was measured.
    """
    refuse_wrong_blocks(level)
    n_regions = len(level.n_groups)
    sample = level.at(sampled_regions(n_regions, is_top=is_top))
    return choose_from_sample(sample, n_regions, len(level.noisy["tail"].values), is_top=is_top)


def sampled_regions(n_regions: int, *, is_top: bool) -> IntArray:
    """Regions that tell what is chosen once for a level of so many, in rising order."""
    sizes = (LIKELIHOOD_SAMPLE, HIDDEN_SAMPLE) if is_top else (LIKELIHOOD_SAMPLE,)
    return np.unique(np.concatenate([_sample(n_regions, size) for size in sizes]))


def choose_from_sample(
    sampled: MeasuredLevel, n_regions: int, n_rows: int, *, is_top: bool
) -> Choices:
    """What is chosen once for a level of so many regions and noisy rows, of which
    ``sampled_regions`` are given.
    """
    regions = sampled_regions(n_regions, is_top=is_top)
    reach = (math.log(n_rows + 1) + CLEAR_SCALES) * laplace_scale(
        sampled.noisy["tail"].noise.variance
    )
    sample = sampled.at(np.searchsorted(regions, _sample(n_regions, LIKELIHOOD_SAMPLE)))
    first = first_fits(sample.n_groups, sample.prior, sample.blocks)
    window, kappa, likelihood = _best_prior(sample, first)
    if not is_top:
        return Choices(window, kappa, 0.0, -1.0, reach)
    chance, in_steps = _best_steps(sample, first)
    choices = Choices(window, kappa, chance if in_steps > likelihood else 0.0, 0.0, reach)
    sample = sampled.at(np.searchsorted(regions, _sample(n_regions, HIDDEN_SAMPLE)))
    curves, _ = _fitted_curves(sample, choices, keep_falls=False)
    rows = estimate_rows(sample.noisy["tail"], _last_ends(sample.blocks))
    return replace(choices, excess=hidden_excess(curves, sample.blocks, rows))


def refuse_wrong_blocks(level: MeasuredLevel) -> None:
    """Refuse ends of blocks that are none, as a changed table may have: kernels go by them through
    memory.
    """
    sums, ends, tail = (level.noisy[name] for name in ("blocks", "block ends", "tail"))
    firsts = sums.offsets[:-1]
    if len(sums.offsets) == len(level.n_groups) + 1 == len(tail.offsets) and np.array_equal(
        sums.offsets, ends.offsets
    ):
        steps = np.diff(ends.values, prepend=0)
        steps[firsts[firsts < len(steps)]] = ends.values[firsts[firsts < len(steps)]]
        if (
            np.all(np.diff(sums.offsets) > 0)
            and np.all(steps > 0)
            and np.all(ends.values <= level.prior.fall.shape[1])
        ):
            return
    raise VerificationError(
        "The answers do not fit together: blocks of sizes must follow one another in every region."
    )


def estimate_staircases(level: MeasuredLevel, choices: Choices, *, is_leaf: bool) -> Staircases:
    """Smooth the blocks of every region of a level with the prior, and add the rows."""
    blocks = level.blocks
    curves, fitted = _fitted_curves(level, choices, keep_falls=not is_leaf)
    last = _last_ends(blocks)
    rows = estimate_rows(level.noisy["tail"], last)
    finish_with_rows(curves, fitted, blocks, rows, choices.excess)
    bar = np.repeat(last, np.diff(rows.offsets)) + choices.reach
    is_clear = (rows.sizes > bar) & (rows.sizes >= curves.height.shape[1])
    return Staircases(
        curves, blocks, rows, sum_runs(rows.offsets, is_clear.astype(np.int64)), choices.reach
    )


def _last_ends(blocks: Blocks) -> IntArray:
    return blocks.ends[blocks.offsets[1:] - 1]


def _fitted_curves(
    level: MeasuredLevel, choices: Choices, *, keep_falls: bool
) -> tuple[Curves, Prior]:
    """Curves below the last block of each region, and the prior that they follow."""
    blocks, groups = level.blocks, level.n_groups
    first = first_fits(groups, level.prior, blocks)
    fitted = smoothed(level.prior, choices.window)
    if choices.drop_chance:
        return fit_steps(groups, blocks, first, choices.drop_chance), fitted
    kappa, is_top = choices.kappa, choices.is_top
    return final_fits(
        groups, fitted, blocks, kappa, first, keep_falls=keep_falls, empty_tails=is_top
    ), fitted


def _best_prior(sample: MeasuredLevel, first: FloatArray) -> tuple[float, float, float]:
    """The window and roughness under which the answers of the level are most likely, and their
    log-likelihood.
    """
    every = np.arange(len(sample.n_groups))
    best: tuple[float, float, float] | None = None
    for window in WINDOWS:
        candidate = smoothed(sample.prior, window)
        likelihoods = log_likelihoods(
            sample.n_groups, candidate, sample.blocks, ROUGHNESSES, first, every
        )
        for kappa, likelihood in zip(ROUGHNESSES, likelihoods):
            if best is None or likelihood > best[2]:
                best = window, kappa, likelihood
    assert best is not None
    return best


def _best_steps(sample: MeasuredLevel, first: FloatArray) -> tuple[float, float]:
    """The chance of a drop under which the answers of the level are most likely, and their
    log-likelihood.
    """
    every = np.arange(len(sample.n_groups))
    likelihoods = steps_log_likelihoods(sample.blocks, first, DROP_CHANCES, every)
    return DROP_CHANCES[int(np.argmax(likelihoods))], max(likelihoods)


def _sample(n_regions: int, most: int) -> IntArray:
    """Regions that tell what is chosen once for a level."""
    return np.unique(np.linspace(0, n_regions - 1, min(most, n_regions)).astype(np.int64))


def estimate_rows(tail: NoisyQuery, last: IntArray) -> Rows:
    """Sizes of the largest groups: sorted (L2), and those within the noise of the last block end
    set to it.

    Of the rows that are set to it, the sum still tells how many entities they hold.
    """
    offsets, value, length = isotonic_runs(tail.values, tail.offsets, norm=2, lower=last)
    pools = np.diff(offsets)
    floor = np.repeat(last, pools)
    std = math.sqrt(tail.noise.variance)
    stands_out = value - floor > ROW_DEVIATIONS * std / np.sqrt(length)
    # Whatever is larger than a pool that stands out is no smaller group.
    so_far = np.cumsum(stands_out)
    before = np.append(0, so_far)[offsets[:-1]]
    believed = so_far > np.repeat(before, pools)
    rising = np.repeat(np.where(believed, value, floor), length).astype(np.float64)
    is_hidden = np.repeat(~believed, length)
    above = np.where(is_hidden, tail.values - np.repeat(floor, length), 0).astype(np.float64)
    hidden, n_hidden = _sums(tail.offsets, above), _sums(tail.offsets, is_hidden.astype(np.float64))
    starts, stops = tail.offsets[:-1], tail.offsets[1:]
    place = np.arange(len(rising))
    mirrored: IntArray = np.repeat(starts + stops - 1, np.diff(tail.offsets)) - place
    return Rows(tail.offsets, rising[mirrored], n_hidden, hidden, tail.noise.variance)
