"""From noisy counts of bins of sizes to the best guess of every region: least squares up the tree, shapes shared down it.

Every level asks the same questions, with noise of its own, so the covariances of all regions' least squares estimates are
multiples of one matrix, and combining levels by generalised least squares needs one number per region. Down the tree a region
is taken for a sample of its parent: x ~ N(G π, κ diag π), π the parent's shares, κ = G + φ G², G the region's unknown number of
groups. How far siblings differ in number (a coefficient of variation) and in shape (φ) is estimated per level from how far they
differ beyond their noise. Where noise is small beside the counts, the measurements stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

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


def fit_size_bins(hierarchy: Hierarchy, answers: list[IntArray], variances: list[float], bins: SizeBins) -> FloatArray:
    """Estimated groups per region and bin, at least 0, children adding up to their parent but for rounding errors.

    Parameters
    ----------
    answers
        Of each level: one row per region, as :func:`tallytree.measure.size_bins.answers_of` asks.
    variances
        Of each level: variance of the noise.
    """
    own = np.concatenate([least_squares(level, bins) for level in answers])
    combined, variance = combine_upwards(hierarchy, own, np.asarray(variances))
    fit = np.zeros_like(combined)
    fit[0] = _root(combined[0], float(variance[0]), bins)
    for level in range(1, hierarchy.n_levels):
        here, above = hierarchy.level_slice(level), hierarchy.level_slice(level - 1)
        siblings = _Siblings(
            hierarchy.child_starts[above] - here.start, hierarchy.parent[here] - above.start, fit[above]
        )
        fit[here] = _below(combined[here], variance[here], siblings, bins)
    return fit


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


def _below(estimate: FloatArray, variance: FloatArray, siblings: _Siblings, bins: SizeBins) -> FloatArray:
    """Best guesses for the children of finished parents."""
    noise = variance[:, None]
    totals = siblings.above.sum(axis=1)
    shape = (siblings.above / np.maximum(totals, _TINY)[:, None])[siblings.parent]
    number = np.diff(np.append(siblings.starts, len(estimate)))[siblings.parent]
    mean = np.maximum(totals[siblings.parent] / number, _TINY)
    spread, overdispersion = _differences(estimate, noise, shape, mean, bins)
    prior = np.maximum(spread * mean**2, _TINY)
    groups = _first_guess(estimate, noise, shape, mean, prior, bins)
    fine, coarse = bins.weights
    for _ in range(_SIZE_ROUNDS):
        kappa = np.maximum(groups, 1.0) + overdispersion * np.maximum(groups, 1.0) ** 2
        room = kappa[:, None] * shape
        free = room * noise / (noise + fine**2 * room)
        pull = coarse**2 / noise
        # Groups by maximum likelihood: the estimate has mean G π and covariance K + noise Q⁻¹.
        told = _precision(shape - _posterior(shape, free, pull, noise, bins), bins) / noise
        certainty = (shape * told).sum(axis=1)
        uncertainty = 1 / (certainty + 1 / prior)
        groups = uncertainty * ((estimate * told).sum(axis=1) + mean / prior)
    expected = groups[:, None] * shape
    guess = expected + _posterior(estimate - expected, free, pull, noise, bins)
    doubt = free - free**2 * pull * _repeated(1 / (1 + pull * _block_sums(free, bins)), bins)
    doubt += uncertainty[:, None] * (shape - _posterior(shape, free, pull, noise, bins)) ** 2
    return _shared_out(guess, np.maximum(doubt, 0.0), siblings)


def _posterior(
    deviation: FloatArray, free: FloatArray, pull: FloatArray, noise: FloatArray, bins: SizeBins
) -> FloatArray:
    """(K⁻¹ + Q/noise)⁻¹ (Q/noise) deviation: what is believed of a deviation. Within a block, a rank-one update."""
    told = free * (_precision(deviation, bins) / noise)
    return told - free * pull * _repeated(_block_sums(told, bins) / (1 + pull * _block_sums(free, bins)), bins)


def _first_guess(
    estimate: FloatArray, noise: FloatArray, shape: FloatArray, mean: FloatArray, prior: FloatArray, bins: SizeBins
) -> FloatArray:
    there = (shape > 0).astype(np.float64)
    total = (estimate * there).sum(axis=1)
    own = noise[:, 0] * (there * _solve(there, bins)).sum(axis=1)
    return mean + prior / (prior + own) * (total - mean)


def _differences(
    estimate: FloatArray, noise: FloatArray, shape: FloatArray, mean: FloatArray, bins: SizeBins
) -> tuple[float, float]:
    """How far siblings differ: squared coefficient of variation of their numbers of groups, and φ of their shapes."""
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
    return spread, overdispersion


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
