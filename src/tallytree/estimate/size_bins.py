"""From noisy counts of bins of sizes to the best guess of every region: least squares up the tree, shapes shared down it.

Every level asks the same questions, with noise of its own, so the covariances of all regions' least squares estimates are
multiples of one matrix, and combining levels by generalised least squares needs one number per region. Down the tree a region
is taken for a sample of its parent: x ~ N(G π, κ diag π), π the parent's shares, κ = G + φ G², G the region's unknown number of
groups. How far siblings differ in number (a coefficient of variation) and in shape (φ) is estimated per level from how far they
differ beyond their noise. Where noise is small beside the counts, the measurements stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tallytree.kernels.tables.simplex import project_to_simplex
from tallytree.kernels.trees.projection import variances_after_combining
from tallytree.model.arrays import BoolArray, FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.planning.group_sizes.size_bins import SizeBins, seen_bins

# Rounds of the fixed-point iterations: for variance components, for G and κ together, and for counts of at least 0 that add up.
_COMPONENT_ROUNDS, _SIZE_ROUNDS, _SHARE_ROUNDS = 8, 3, 12
_TINY = 1e-12
# Prior variance, in noise variances, of counts about which nothing is assumed.
_UNKNOWN = 1e9
# The curve beyond the last size seen follows the sizes down to half of it, and falls at least so fast that its tail is finite.
_NEAR_PART, _SLOWEST_FALL = 0.5, -2.0


class Differences(NamedTuple):
    """How far the regions of a level differ from their siblings beyond their noise.

    ``groups`` is the squared coefficient of variation of their numbers of groups, ``shape`` the overdispersion φ of their
    counts.
    """

    groups: float
    shape: float


def fit_size_bins(
    hierarchy: Hierarchy, answers: list[IntArray], variances: list[float], bins: SizeBins
) -> tuple[FloatArray, tuple[Differences, ...]]:
    """Estimated groups per region and bin, at least 0, children adding up to their parent but for rounding errors.

    Parameters
    ----------
    answers
        Of each level: one row per region, as :func:`tallytree.measure.size_bins.answers_of` asks.
    variances
        Of each level: variance of the noise.

    Returns
    -------
    tuple
        The estimates, and of each level below the root how far its regions were found to differ.
    """
    own = np.concatenate([least_squares(level, bins) for level in answers])
    combined, variance = combine_upwards(hierarchy, own, np.asarray(variances))
    fit, found = np.zeros_like(combined), []
    fit[0] = _root(combined[0], float(variance[0]), bins)
    for level in range(1, hierarchy.n_levels):
        here = hierarchy.level_slice(level)
        siblings = _siblings(hierarchy, level, fit)
        differences = _differences(combined[here], variance[here, None], siblings, bins)
        fit[here] = _below(combined[here], variance[here], siblings, differences, bins)
        found.append(differences)
    return fit, tuple(found)


def doubts(
    hierarchy: Hierarchy, counts: IntArray, variances: list[float], differences: Sequence[Differences], bins: SizeBins
) -> FloatArray:
    """How far the truth may be from released counts of bins: its variance per region and bin, given the region above.

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
    doubt = np.empty(counts.shape)
    doubt[0] = variance[0] * _solve_diagonal(bins)
    for level in range(1, hierarchy.n_levels):
        here = hierarchy.level_slice(level)
        prior = _prior(_siblings(hierarchy, level, counts.astype(np.float64)), differences[level - 1])
        belief = _belief(counts[here].sum(axis=1).astype(np.float64), variance[here, None], prior, bins)
        doubt[here] = belief.doubt
    return doubt


def least_squares(answers: IntArray, bins: SizeBins) -> FloatArray:
    """The counts of bins that fit the answers best, region by region; their covariance is Q⁻¹ times the noise's."""
    if not bins.block:
        return answers.astype(np.float64)
    fine, coarse = bins.weights
    given = answers.astype(np.float64)
    return _solve(fine * given[:, : bins.n_bins] + coarse * _repeated(given[:, bins.n_bins :], bins), bins)


def combine_upwards(hierarchy: Hierarchy, own: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Estimates from all answers at and below each region, and by what Q⁻¹ is to be multiplied for their covariance."""
    variance, share = variances_after_combining(hierarchy, 1 / variances)
    combined = own.copy()
    for level in range(hierarchy.n_levels - 1, 0, -1):
        here, above = hierarchy.level_slice(level), hierarchy.level_slice(level - 1)
        below = np.add.reduceat(combined[here], hierarchy.child_starts[above] - here.start, axis=0)
        combined[above] = share[above, None] * combined[above] + (1 - share[above, None]) * below
    return combined, variance


@dataclass(frozen=True, eq=False)
class _Siblings:
    """Regions of a level below finished parents: first child of each parent, parent of each child, the parents' counts."""

    starts: IntArray
    parent: IntArray
    above: FloatArray

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over siblings."""
        return np.add.reduceat(values, self.starts, axis=0)

    def shape_and_mean(self) -> tuple[FloatArray, FloatArray]:
        """Per region: the shares of its parent's bins, and the mean number of groups of the parent's children."""
        totals = self.above.sum(axis=1)
        shape = (self.above / np.maximum(totals, _TINY)[:, None])[self.parent]
        number = np.diff(np.append(self.starts, len(self.parent)))[self.parent]
        return shape, np.maximum(totals[self.parent] / number, _TINY)


def _siblings(hierarchy: Hierarchy, level: int, counts: FloatArray) -> _Siblings:
    here, above = hierarchy.level_slice(level), hierarchy.level_slice(level - 1)
    starts = hierarchy.child_starts[above] - here.start
    return _Siblings(starts, hierarchy.parent[here] - above.start, counts[above])


def _root(estimate: FloatArray, variance: float, bins: SizeBins) -> FloatArray:
    """The root's counts: as measured where groups are seen, near a falling curve elsewhere; at least 0, the total kept."""
    noise = np.array([[variance]])
    std = float(np.sqrt(variance * _solve_diagonal(bins)[0]))
    seen = seen_bins(estimate, std, bins.edges)
    curve = np.where(seen, 0.0, _falling_on(estimate, seen, bins))
    # The curve's height, 1 give or take 1 before the counts beyond are asked: sizes may end where they were last seen.
    height = (float((curve * estimate).sum()) + std**2) / (float((curve**2).sum()) + std**2)
    expected = np.where(seen, estimate, np.clip(height, 0.0, 1.0) * curve)
    # A count that is not seen is as large as the curve says, give or take as much again.
    room = np.where(seen, _UNKNOWN * variance, expected + expected**2)[None]
    free = room * noise / (noise + bins.weights[0] ** 2 * room)
    pull = bins.weights[1] ** 2 / noise
    guess = expected + _posterior((estimate - expected)[None], free, pull, noise, bins)[0]
    return project_to_simplex(guess, np.array([0, len(guess)]), [max(float(guess.sum()), 0.0)])


def _falling_on(estimate: FloatArray, seen: BoolArray, bins: SizeBins) -> FloatArray:
    """Groups expected in bins beyond those that are seen: the line of log density over log size, carried on."""
    last = int(np.argmin(seen)) if not seen.all() else len(seen)
    widths = np.diff(bins.edges)
    middle = np.log(np.maximum((bins.edges[:-1] + bins.edges[1:] - 1) / 2, 0.5))
    near = (np.arange(len(seen)) < last) & (bins.edges[1:] > _NEAR_PART * bins.edges[last]) & (estimate > 0)
    if near.sum() < 2:
        return np.zeros_like(estimate)
    line = np.polyfit(middle[near], np.log(estimate[near] / widths[near]), 1, w=np.sqrt(estimate[near]))
    falling = np.minimum(line[0], _SLOWEST_FALL)
    centre = np.average(middle[near], weights=estimate[near])
    level = np.polyval(line, centre)
    beyond = np.arange(len(seen)) >= last
    return np.where(beyond, widths * np.exp(np.minimum(level + falling * (middle - centre), 40.0)), 0.0)


@dataclass(frozen=True, eq=False)
class _Prior:
    """What is expected of regions before they are asked: the parent's ``shape``, a ``mean`` number of groups with its
    ``variance``, and how far shapes differ (φ).
    """

    shape: FloatArray
    mean: FloatArray
    variance: FloatArray
    overdispersion: float


def _prior(siblings: _Siblings, differences: Differences) -> _Prior:
    shape, mean = siblings.shape_and_mean()
    return _Prior(shape, mean, np.maximum(differences.groups * mean**2, _TINY), differences.shape)


@dataclass(frozen=True, eq=False)
class _Belief:
    """What answers with noise tell of regions: K and Q/noise combined, for numbers of groups taken as known.

    ``told`` weighs the answers for the number of groups G by maximum likelihood: the estimate has mean G π and covariance
    K + noise Q⁻¹. ``uncertainty`` is what is left of G's variance, ``doubt`` of that of every count.
    """

    free: FloatArray
    pull: FloatArray
    told: FloatArray
    uncertainty: FloatArray
    doubt: FloatArray


def _belief(groups: FloatArray, noise: FloatArray, prior: _Prior, bins: SizeBins) -> _Belief:
    fine, coarse = bins.weights
    kappa = np.maximum(groups, 1.0) + prior.overdispersion * np.maximum(groups, 1.0) ** 2
    room = kappa[:, None] * prior.shape
    free = room * noise / (noise + fine**2 * room)
    pull = coarse**2 / noise
    left = prior.shape - _posterior(prior.shape, free, pull, noise, bins)
    told = _precision(left, bins) / noise
    uncertainty = 1 / ((prior.shape * told).sum(axis=1) + 1 / prior.variance)
    doubt = free - free**2 * pull * _repeated(1 / (1 + pull * _block_sums(free, bins)), bins)
    doubt += uncertainty[:, None] * left**2
    return _Belief(free, pull, told, uncertainty, np.maximum(doubt, 0.0))


def _below(
    estimate: FloatArray, variance: FloatArray, siblings: _Siblings, differences: Differences, bins: SizeBins
) -> FloatArray:
    """Best guesses for the children of finished parents."""
    noise, prior = variance[:, None], _prior(siblings, differences)
    groups = _first_guess(estimate, noise, prior, bins)
    for _ in range(_SIZE_ROUNDS):
        belief = _belief(groups, noise, prior, bins)
        groups = belief.uncertainty * ((estimate * belief.told).sum(axis=1) + prior.mean / prior.variance)
    expected = groups[:, None] * prior.shape
    guess = expected + _posterior(estimate - expected, belief.free, belief.pull, noise, bins)
    return _shared_out(guess, belief.doubt, siblings)


def _posterior(
    deviation: FloatArray, free: FloatArray, pull: FloatArray, noise: FloatArray, bins: SizeBins
) -> FloatArray:
    """(K⁻¹ + Q/noise)⁻¹ (Q/noise) deviation: what is believed of a deviation. Within a block, a rank-one update."""
    told = free * (_precision(deviation, bins) / noise)
    return told - free * pull * _repeated(_block_sums(told, bins) / (1 + pull * _block_sums(free, bins)), bins)


def _first_guess(estimate: FloatArray, noise: FloatArray, prior: _Prior, bins: SizeBins) -> FloatArray:
    there = (prior.shape > 0).astype(np.float64)
    total = (estimate * there).sum(axis=1)
    own = noise[:, 0] * (there * _solve(there, bins)).sum(axis=1)
    return prior.mean + prior.variance / (prior.variance + own) * (total - prior.mean)


def _differences(estimate: FloatArray, noise: FloatArray, siblings: _Siblings, bins: SizeBins) -> Differences:
    """How far siblings differ: squared coefficient of variation of their numbers of groups, and φ of their shapes."""
    shape, mean = siblings.shape_and_mean()
    there = (shape > 0).astype(np.float64)
    total = (estimate * there).sum(axis=1)
    inverse = _solve(there, bins)
    of_total = (there * inverse).sum(axis=1)
    own = noise[:, 0] * of_total
    spread = _component((total - mean) ** 2, own, mean**2)
    prior = spread * mean**2
    groups = np.maximum(mean + prior / (prior + own + _TINY) * (total - mean), 1.0)[:, None]
    deviation = there * (estimate - total[:, None] * shape)
    sampling = shape * (1 - shape)
    diagonal = _solve_diagonal(bins)
    from_noise = noise * there * (diagonal - 2 * shape * inverse + shape**2 * of_total[:, None])
    overdispersion = _component(deviation**2, from_noise + groups * sampling, groups**2 * sampling)
    return Differences(spread, overdispersion)


def _component(squares: FloatArray, known: FloatArray, unit: FloatArray) -> float:
    """The f of E[squares] = known + f·unit by weighted moments, and one standard error on top: rather too little pooling."""
    f = 0.0
    unit = unit + _TINY
    for _ in range(_COMPONENT_ROUNDS):
        weight = unit / (known + f * unit + _TINY) ** 2
        f = max(0.0, float((weight * (squares - known)).sum() / (weight * unit).sum()))
    return f + float(np.sqrt(2 / ((unit / (known + f * unit + _TINY)) ** 2).sum()))


def _shared_out(guess: FloatArray, doubt: FloatArray, siblings: _Siblings) -> FloatArray:
    """Counts of at least 0 that add up to the parents': what is missing goes where doubt is largest."""
    fit = guess
    where = doubt + _TINY * (siblings.above > 0)[siblings.parent]
    for _ in range(_SHARE_ROUNDS):
        missing = siblings.above - siblings.sums(fit)
        part = where / np.maximum(siblings.sums(where), _TINY**2)[siblings.parent]
        fit = np.maximum(fit + part * missing[siblings.parent], 0.0)
        where = np.where((fit > 0) | (missing > 0)[siblings.parent], where, 0.0)
    return np.where((siblings.above > 0)[siblings.parent], fit, 0.0)


def _block_sums(values: FloatArray, bins: SizeBins) -> FloatArray:
    return np.add.reduceat(values, bins.block_starts, axis=1)


def _repeated(of_blocks: FloatArray, bins: SizeBins) -> FloatArray:
    return np.repeat(of_blocks, bins.block_sizes, axis=1)


def _precision(values: FloatArray, bins: SizeBins) -> FloatArray:
    """Q = a² I + b² BᵀB times each row; a and b weigh bins and blocks, B adds up the bins of a block."""
    fine, coarse = bins.weights
    return fine**2 * values + coarse**2 * _repeated(_block_sums(values, bins), bins)


def _solve(values: FloatArray, bins: SizeBins) -> FloatArray:
    """Q⁻¹ times each row, block by block: (I − b²/(a² + g b²) 11ᵀ)/a²."""
    fine, coarse = bins.weights
    part = coarse**2 / (fine**2 + coarse**2 * bins.block_sizes)
    return (values - _repeated(part * _block_sums(values, bins), bins)) / fine**2


def _solve_diagonal(bins: SizeBins) -> FloatArray:
    fine, coarse = bins.weights
    part = coarse**2 / (fine**2 + coarse**2 * bins.block_sizes)
    diagonal: FloatArray = (1 - np.repeat(part, bins.block_sizes)) / fine**2
    return diagonal
