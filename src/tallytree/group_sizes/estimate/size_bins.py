"""From noisy counts of bins of sizes to the best guess of every region: least squares up the tree,
shapes shared down it.

Every level asks the same questions, with noise of its own, so the covariances of all regions' least
squares estimates are multiples of one matrix, and combining levels by generalised least squares
needs one number per region. Down the tree regions lean on their parent as far as siblings are
alike: see :mod:`tallytree.group_sizes.estimate.siblings`. Where noise is small beside the counts,
the measurements stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.group_sizes.estimate.bin_blocks import posterior, repeated, solve, solve_diagonal
from tallytree.group_sizes.estimate.siblings import (
    MOVES,
    Differences,
    belief,
    find_differences,
    fit_below,
    prior_of,
    siblings_of,
)
from tallytree.group_sizes.plan.shapes import Doubts
from tallytree.group_sizes.plan.size_bins import SizeBins, seen_bins
from tallytree.kernels.tables.simplex import project_to_simplex
from tallytree.kernels.trees.projection import variances_after_combining
from tallytree.model.arrays import BoolArray, FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy

# Prior variance, in noise variances, of counts about which nothing is assumed.
_UNKNOWN = 1e9
# Bins that are not seen, small sizes before large ones, are doubtful too, but only so much beside
# those that are; θ by bisection.
_LEAST_DOUBT, _BISECTIONS = 1e-9, 200
# The curve beyond the last size seen follows the sizes down to half of it, and falls at least so
# fast that its tail is finite.
_NEAR_PART, _SLOWEST_FALL = 0.5, -2.0


def fit_size_bins(
    hierarchy: Hierarchy,
    answers: list[IntArray],
    variances: list[float],
    bins: SizeBins,
    totals: IntArray | None = None,
) -> tuple[FloatArray, tuple[Differences, ...]]:
    """Estimated groups per region and bin, at least 0, children adding up to their parent but for
    rounding errors.

    Parameters
    ----------
    answers
        Of each level: one row per region, as
        :func:`tallytree.group_sizes.measure.size_bins.answers_of` asks.
    variances
        Of each level: variance of the noise.
    totals
        Groups of every region, where they are public: every region's counts are fitted to them.

    Returns
    -------
    tuple
        The estimates, and of each level below the root how far its regions were found to differ.
    """
    own = np.concatenate([least_squares(level, bins) for level in answers])
    if totals is not None:
        own = with_totals(own, totals, bins)
    combined, variance = combine_upwards(hierarchy, own, np.asarray(variances))
    fit, found = np.zeros_like(combined), []
    fit[0] = _root(combined[0], float(variance[0]), bins, None if totals is None else totals[0])
    for level in range(1, hierarchy.n_levels):
        here = hierarchy.level_slice(level)
        siblings = siblings_of(hierarchy, level, fit)
        differences = find_differences(combined[here], variance[here, None], siblings, bins)
        known = None if totals is None else totals[here]
        fit[here] = fit_below(combined[here], variance[here], siblings, differences, bins, known)
        found.append(differences)
    return fit, tuple(found)


def with_totals(estimates: FloatArray, totals: IntArray, bins: SizeBins) -> FloatArray:
    """Least squares estimates whose sums are known: x + Q⁻¹1 (n − 1ᵀx)/(1ᵀQ⁻¹1), region by region.

    What is then left of the covariance is again the same matrix for all regions, but for a factor.
    """
    along = solve(np.ones((1, bins.n_bins)), bins)
    return estimates + (totals - estimates.sum(axis=1))[:, None] * (along / along.sum())


def doubts(
    hierarchy: Hierarchy,
    counts: IntArray,
    variances: list[float],
    differences: Sequence[Differences],
    bins: SizeBins,
) -> Doubts:
    """How far the truth may be from released counts of bins.

    Parameters
    ----------
    counts
        One row per region, children adding up to their parent.
    variances
        Of each level: variance of the noise.
    differences
        What :func:`fit_size_bins` found, level by level.
    """
    variance, _ = variances_after_combining(hierarchy, 1 / np.asarray(variances))
    n_ways, n_regions = 1 + MOVES, len(counts)
    found = Doubts(
        np.zeros(counts.shape), np.zeros((n_ways, n_regions)), np.zeros((n_ways, *counts.shape))
    )
    found.own[0] = variance[0] * solve_diagonal(bins)
    for level in range(1, hierarchy.n_levels):
        here = hierarchy.level_slice(level)
        prior = prior_of(
            siblings_of(hierarchy, level, counts.astype(np.float64)), differences[level - 1]
        )
        groups = counts[here].sum(axis=1).astype(np.float64)
        believed = belief(groups, variance[here, None], prior, bins)
        found.own[here] = believed.own
        found.shared[:, here] = (
            np.einsum("rkk->kr", believed.uncertainty) / np.maximum(groups, 1.0) ** 2
        )
        there = np.broadcast_to(prior.shape > 0, believed.left.shape)
        np.divide(believed.left, prior.shape, out=found.along[:, here], where=there)
    return found


def least_squares(answers: IntArray, bins: SizeBins) -> FloatArray:
    """The counts of bins that fit the answers best, region by region; their covariance is Q⁻¹ times
    the noise's.
    """
    if not bins.block:
        return answers.astype(np.float64)
    fine, coarse = bins.weights
    given = answers.astype(np.float64)
    return solve(
        fine * given[:, : bins.n_bins] + coarse * repeated(given[:, bins.n_bins :], bins), bins
    )


def combine_upwards(
    hierarchy: Hierarchy, own: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Estimates from all answers at and below each region, and by what Q⁻¹ is to be multiplied for
    their covariance.
    """
    variance, share = variances_after_combining(hierarchy, 1 / variances)
    combined = own.copy()
    for level in range(hierarchy.n_levels - 1, 0, -1):
        here, above = hierarchy.level_slice(level), hierarchy.level_slice(level - 1)
        below = np.add.reduceat(combined[here], hierarchy.child_starts[above] - here.start, axis=0)
        combined[above] = share[above, None] * combined[above] + (1 - share[above, None]) * below
    return combined, variance


def _root(
    estimate: FloatArray, variance: float, bins: SizeBins, total: int | None = None
) -> FloatArray:
    """The root's counts: as measured where groups are seen, near a falling curve elsewhere; at
    least 0, the total kept: that of the estimates, or the public one.
    """
    noise = np.array([[variance]])
    std = float(np.sqrt(variance * solve_diagonal(bins)[0]))
    seen = seen_bins(estimate, std, bins.edges, total)
    curve = np.where(seen, 0.0, _falling_on(estimate, seen, bins))
    # The curve's height, 1 give or take 1 before the counts beyond are asked: sizes may end where
    # they were last seen.
    height = (float((curve * estimate).sum()) + std**2) / (float((curve**2).sum()) + std**2)
    expected = np.where(seen, estimate, np.clip(height, 0.0, 1.0) * curve)
    # A count that is not seen is as large as the curve says, give or take as much again.
    room = np.where(seen, _UNKNOWN * variance, expected + expected**2)[None]
    free = room * noise / (noise + bins.weights[0] ** 2 * room)
    pull = bins.weights[1] ** 2 / noise
    guess = expected + posterior((estimate - expected)[None], free, pull, noise, bins)[0]
    if total is not None:
        small_sizes = 1 / (1.0 + bins.edges[:-1]) ** 2
        doubt = free[0] + _LEAST_DOUBT * max(float(free.max()), 1.0) * small_sizes
        return _with_sum(guess, doubt, float(total))
    return project_to_simplex(guess, np.array([0, len(guess)]), [max(float(guess.sum()), 0.0)])


def _with_sum(guess: FloatArray, doubt: FloatArray, total: float) -> FloatArray:
    """The nearest counts of at least 0 with this sum, squares divided by doubt: max(guess + θ
    doubt, 0), θ by bisection. What is missing goes where doubt is, not into bins that are empty.
    """
    low = -float((np.maximum(guess, 0.0) / doubt).max())
    high = float((total + np.maximum(-guess, 0.0)).max() / doubt.min())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        enough = float(np.maximum(guess + middle * doubt, 0.0).sum()) >= total
        low, high = (low, middle) if enough else (middle, high)
    fit = np.maximum(guess + high * doubt, 0.0)
    return fit * (total / max(float(fit.sum()), 1e-300))


def _falling_on(estimate: FloatArray, seen: BoolArray, bins: SizeBins) -> FloatArray:
    """Groups expected in bins beyond those that are seen: the line of log density over log size,
    carried on.
    """
    last = int(np.argmin(seen)) if not seen.all() else len(seen)
    widths = np.diff(bins.edges)
    middle = np.log(np.maximum((bins.edges[:-1] + bins.edges[1:] - 1) / 2, 0.5))
    near = (
        (np.arange(len(seen)) < last)
        & (bins.edges[1:] > _NEAR_PART * bins.edges[last])
        & (estimate > 0)
    )
    if near.sum() < 2:
        return np.zeros_like(estimate)
    line = np.polyfit(
        middle[near], np.log(estimate[near] / widths[near]), 1, w=np.sqrt(estimate[near])
    )
    falling = np.minimum(line[0], _SLOWEST_FALL)
    centre = np.average(middle[near], weights=estimate[near])
    level = np.polyval(line, centre)
    beyond = np.arange(len(seen)) >= last
    return np.where(
        beyond, widths * np.exp(np.minimum(level + falling * (middle - centre), 40.0)), 0.0
    )
