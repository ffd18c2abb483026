"""From noisy blocks and rows to the curve N(i) of every region of a level, with its variance.

The roughness κ of falls and the window over which the prior's shape is smoothed
are chosen once per level, by the marginal likelihood of the noisy answers; everything here is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tallytree.errors import VerificationError
from tallytree.estimate.hybrid import laplace_scale
from tallytree.kernels.isotonic import isotonic_runs
from tallytree.kernels.staircase.blocks import Prior
from tallytree.kernels.staircase.curves import Blocks, Curves, final_fits, first_fits, log_likelihood
from tallytree.kernels.staircase.rows import Rows, finish_with_rows
from tallytree.kernels.staircase.shapes import shapes, smoothed
from tallytree.kernels.staircase.steps import fit_steps, steps_log_likelihood
from tallytree.measure.noisy import NoisyLevel, NoisyQuery
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import sum_runs
from tallytree.planning.group_sizes.first_look import FirstLook
from tallytree.tuning.curves import DROP_CHANCES, LIKELIHOOD_SAMPLE, ROUGHNESSES, WINDOWS
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
        Groups per region that stand clear of all noise of the level, past the last size that curves tell apart.
    reach
        How far noise may move a row of the level, (ln M + 3) scales for M rows.
    in_steps
        Whether the curves were taken as level stretches with drops between them.
    """

    curves: Curves
    blocks: Blocks
    rows: Rows
    clear: IntArray
    reach: float
    in_steps: bool = False

    @property
    def last(self) -> IntArray:
        """Size at which the blocks of each region end."""
        return self.blocks.ends[self.blocks.offsets[1:] - 1]

    @property
    def clear_from(self) -> float:
        """No group below this size stands clear of the level's noise."""
        return max(float(self.last.min()) + self.reach, float(self.curves.height.shape[1]))

    def possible(self, size: float) -> IntArray:
        """Groups per region that may be as large as this, as far as noise goes."""
        return sum_runs(self.rows.offsets, (self.rows.sizes + self.reach >= size).astype(np.int64))


def prior_of_root(look: FirstLook, n_sizes: int) -> Prior:
    """What the first look tells about the root: its falls, and where noise hides them those of geometric sizes."""
    height, fall_variance = look.curve(n_sizes)
    exact = np.array([look.n_groups])
    # The variance of a fall stands for both: a curve without noise of its own whose falls are as unsure as this.
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
    """What the estimated regions of a level tell about regions below them; ``parents`` numbers the level's regions."""
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


def estimate_staircases(
    noisy: NoisyLevel, n_groups: IntArray, prior: Prior, *, is_top: bool, is_leaf: bool
) -> Staircases:
    """Smooth the blocks of every region of a level with the prior, and add the rows.

    ``is_top`` says that no level above was measured.
    """
    measured = noisy["blocks"]
    blocks = _blocks(noisy, len(n_groups), prior.fall.shape[1])
    first = first_fits(n_groups, prior, blocks)
    fitted, kappa, likelihood = _best_prior(n_groups, prior, blocks, first)
    chance, in_steps = _best_steps(n_groups, blocks, first) if is_top else (0.0, -math.inf)
    if in_steps > likelihood:
        curves = fit_steps(n_groups, blocks, first, chance)
    else:
        curves = final_fits(n_groups, fitted, blocks, kappa, first, keep_falls=not is_leaf, empty_tails=is_top)
    scale = laplace_scale(measured.noise.variance)
    last = blocks.ends[blocks.offsets[1:] - 1]
    rows = estimate_rows(noisy["tail"], last)
    finish_with_rows(curves, fitted, blocks, rows, is_top=is_top)
    reach = (math.log(len(rows.sizes) + 1) + CLEAR_SCALES) * scale
    bar = np.repeat(last, np.diff(rows.offsets)) + reach
    clear = sum_runs(rows.offsets, ((rows.sizes > bar) & (rows.sizes >= first.shape[1])).astype(np.int64))
    return Staircases(curves, blocks, rows, clear, reach, in_steps > likelihood)


def _blocks(noisy: NoisyLevel, n_regions: int, n_sizes: int) -> Blocks:
    """The blocks of a level; refuses ends that are none, as a changed table may have: kernels go by them through memory."""
    measured, ends = noisy["blocks"], noisy["block ends"]
    firsts = measured.offsets[:-1]
    fit = len(measured.offsets) == n_regions + 1 == len(noisy["tail"].offsets)
    if fit and np.array_equal(measured.offsets, ends.offsets) and np.all(np.diff(measured.offsets) > 0):
        steps = np.diff(ends.values, prepend=0)
        steps[firsts] = ends.values[firsts]
        if np.all(steps > 0) and np.all(ends.values <= n_sizes):
            return Blocks(measured.offsets, ends.values, measured.values, measured.noise.variance)
    raise VerificationError("The answers do not fit together: blocks of sizes must follow one another in every region.")


def _best_prior(n_groups: IntArray, prior: Prior, blocks: Blocks, first: FloatArray) -> tuple[Prior, float, float]:
    """The window and roughness under which the answers of the level are most likely, and their log-likelihood."""
    sample = _sample(n_groups)
    best: tuple[float, Prior, float] | None = None
    for window in WINDOWS:
        candidate = smoothed(prior, window)
        for kappa in ROUGHNESSES:
            found = log_likelihood(n_groups, candidate, blocks, kappa, first, sample)
            if best is None or found > best[0]:
                best = found, candidate, kappa
    assert best is not None
    return best[1], best[2], best[0]


def _best_steps(n_groups: IntArray, blocks: Blocks, first: FloatArray) -> tuple[float, float]:
    """The chance of a drop under which the answers of the level are most likely, and their log-likelihood."""
    sample = _sample(n_groups)
    found = [steps_log_likelihood(blocks, first, chance, sample) for chance in DROP_CHANCES]
    return DROP_CHANCES[int(np.argmax(found))], max(found)


def _sample(n_groups: IntArray) -> IntArray:
    """Regions that tell what is chosen once for a level."""
    n_regions = len(n_groups)
    return np.unique(np.linspace(0, n_regions - 1, min(LIKELIHOOD_SAMPLE, n_regions)).astype(np.int64))


def estimate_rows(tail: NoisyQuery, last: IntArray) -> Rows:
    """Sizes of the largest groups: sorted (L2), and those within the noise of the last block end set to it.

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
