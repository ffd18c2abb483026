"""Regions that share a parent: how far they differ, and what noisy answers then tell of each.

A region is taken for a sample of its parent: x ~ N(G π + Σ c_k u_k, κ diag π), π the parent's
shares, G the region's unknown number of groups, κ = G + φ G². Each u_k = π P_k moves groups between
sizes, P_k the polynomial of degree k in the rank of the size that is orthonormal under π: P_1 from
small sizes to large ones, P_2 from middle ones to both ends. Where regions differ they do so over
many sizes at once, so sums of counts differ further than single counts would say, and are told by
the noisy answers of all of them. How far siblings differ in number (a coefficient of variation), in
single counts (φ) and along u_k (the variance ψ_k of c_k/G) is estimated per level from how far they
differ beyond their noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tallytree.group_sizes.estimate.bin_blocks import (
    block_sums,
    posterior,
    precision,
    repeated,
    solve,
    solve_diagonal,
)
from tallytree.group_sizes.plan.size_bins import SizeBins
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy

# Rounds of the fixed-point iterations: for variance components, each and together, for G and κ, and
# for counts of at least 0 that add up.
_COMPONENT_ROUNDS, _TOGETHER_ROUNDS, _SIZE_ROUNDS, _SHARE_ROUNDS = 8, 6, 3, 12
_TINY = 1e-12
# Moves between sizes. Three leave a sixth of what states differ by in household sizes (EMD), a
# third in flights per plane; each has a variance of its own, which is near 0 where it is lost in
# the noise.
MOVES = 3
# The variance of c/G where nothing tells of it: a deviation of 1 empties the sizes that are left.
_WIDEST_MOVE = 1.0
# Shares in fewer bins than a polynomial has roots leave nothing of it but rounding errors.
_LEAST_NORM = 1e-6


class Differences(NamedTuple):
    """How far the regions of a level differ from their siblings beyond their noise.

    ``groups`` is the squared coefficient of variation of their numbers of groups, ``shape`` the
    overdispersion φ of their counts, ``moves`` the variances ψ with which groups move between
    sizes.
    """

    groups: float
    shape: float
    moves: tuple[float, ...] = (0.0,) * MOVES

    def to_json(self) -> list[float]:
        """The numbers one after the other."""
        return [self.groups, self.shape, *self.moves]


def differences_from_json(numbers: Sequence[float]) -> Differences:
    """What :meth:`Differences.to_json` wrote."""
    groups, shape, *moves = numbers
    return Differences(groups, shape, tuple(moves))


@dataclass(frozen=True, eq=False)
class Siblings:
    """Regions of a level below finished parents: first child of each parent, parent of each child,
    the parents' counts.
    """

    starts: IntArray
    parent: IntArray
    above: FloatArray

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over siblings."""
        return np.add.reduceat(values, self.starts, axis=0)

    def shape_and_mean(self) -> tuple[FloatArray, FloatArray]:
        """Per region: the shares of its parent's bins, and the mean number of groups of the
        parent's children.
        """
        totals = self.above.sum(axis=1)
        shape = (self.above / np.maximum(totals, _TINY)[:, None])[self.parent]
        number = np.diff(np.append(self.starts, len(self.parent)))[self.parent]
        return shape, np.maximum(totals[self.parent] / number, _TINY)


def siblings_of(hierarchy: Hierarchy, level: int, counts: FloatArray) -> Siblings:
    """The regions of a level, with the counts of the level above."""
    here, above = hierarchy.level_slice(level), hierarchy.level_slice(level - 1)
    starts = hierarchy.child_starts[above] - here.start
    return Siblings(starts, hierarchy.parent[here] - above.start, counts[above])


def moves_of(shape: FloatArray) -> FloatArray:
    """u_1, u_2 … of each row of shares: one table of regions × bins each; 0 where shares lie in too
    few bins.
    """
    rank = np.cumsum(shape, axis=1) - shape / 2
    polynomials = [np.ones_like(shape)]
    for degree in range(1, MOVES + 1):
        power = (2 * rank - 1) ** degree
        for lower in polynomials:
            power = power - (shape * power * lower).sum(axis=1, keepdims=True) * lower
        norm = np.sqrt((shape * power**2).sum(axis=1, keepdims=True))
        polynomials.append(np.where(norm > _LEAST_NORM, power / np.maximum(norm, _LEAST_NORM), 0.0))
    return np.stack([shape * polynomial for polynomial in polynomials[1:]])


@dataclass(frozen=True, eq=False)
class Prior:
    """What is expected of regions before they are asked: a ``mean`` number of groups with its
    ``variance``, how far single counts differ (φ), and in which ``directions`` (π, u_1, u_2 …) and
    how far (ψ) all of them.
    """

    mean: FloatArray
    variance: FloatArray
    overdispersion: float
    directions: FloatArray
    moves: FloatArray

    @property
    def shape(self) -> FloatArray:
        """The parent's shares."""
        return np.asarray(self.directions[0])


def prior_of(siblings: Siblings, differences: Differences) -> Prior:
    """From the parents and how far siblings were found to differ."""
    shape, mean = siblings.shape_and_mean()
    variance = np.maximum(differences.groups * mean**2, _TINY)
    directions = np.concatenate([shape[None], moves_of(shape)])
    return Prior(
        mean, variance, differences.shape, directions, np.maximum(differences.moves, _TINY)
    )


@dataclass(frozen=True, eq=False)
class Belief:
    """What answers with noise tell of regions: K = κ diag π and Q/noise combined, for numbers of
    groups taken as known.

    The estimate has mean G π + Σ c_k u_k and covariance K + noise Q⁻¹.

    Attributes
    ----------
    free, pull
        K and the blocks' part of Q/noise, as
        :func:`~tallytree.group_sizes.estimate.bin_blocks.posterior` takes them.
    told
        Weights of the answers for G and each c by maximum likelihood, one table each.
    left
        By how much a count moves with G and with each c, beyond what its own answers tell.
    uncertainty
        What is left of the covariance of G and all c, per region.
    own
        What is left of the variance of every count for known G and c.
    """

    free: FloatArray
    pull: FloatArray
    told: FloatArray
    left: FloatArray
    uncertainty: FloatArray
    own: FloatArray

    def doubt(self) -> FloatArray:
        """What is left of the variance of every count."""
        shared = np.einsum("rjk,jrb,krb->rb", self.uncertainty, self.left, self.left, optimize=True)
        return np.maximum(self.own + shared, 0.0)


def belief(groups: FloatArray, noise: FloatArray, prior: Prior, bins: SizeBins) -> Belief:
    """Combine what is expected of regions with so many groups and answers with this variance of the
    noise.
    """
    fine, coarse = bins.weights
    groups = np.maximum(groups, 1.0)
    kappa = groups + prior.overdispersion * groups**2
    room = kappa[:, None] * prior.shape
    free = room * noise / (noise + fine**2 * room)
    pull = coarse**2 / noise
    own = free - free**2 * pull * repeated(1 / (1 + pull * block_sums(free, bins)), bins)
    # (K⁻¹ + Q/noise)⁻¹ K⁻¹ of each direction, by the same rank-one update as the posterior; as a
    # difference from it nothing but rounding errors would be left of it where noise is small.
    untold = prior.directions * (noise / (noise + fine**2 * room))
    left = np.stack(
        [
            way
            - free
            * pull
            * repeated(block_sums(way, bins) / (1 + pull * block_sums(free, bins)), bins)
            for way in untold
        ]
    )
    told = np.stack([precision(way, bins) / noise for way in left])
    known = np.einsum("jrb,krb->rjk", prior.directions, told, optimize=True)
    before = np.concatenate(
        [1 / prior.variance[:, None], 1 / (prior.moves * groups[:, None] ** 2)], axis=1
    )
    uncertainty = np.linalg.inv(known + before[:, :, None] * np.eye(len(left)))
    return Belief(free, pull, told, left, uncertainty, own)


def fit_below(
    estimate: FloatArray,
    variance: FloatArray,
    siblings: Siblings,
    differences: Differences,
    bins: SizeBins,
    totals: IntArray | None = None,
) -> FloatArray:
    """Best guesses for the children of finished parents; of public numbers of groups (``totals``)
    nothing is doubtful.
    """
    noise, prior = variance[:, None], prior_of(siblings, differences)
    if totals is not None:
        prior = replace(
            prior,
            mean=np.maximum(totals.astype(np.float64), _TINY),
            variance=np.full(len(totals), _TINY),
        )
    groups = _first_guess(estimate, noise, prior, bins)
    for _ in range(_SIZE_ROUNDS):
        believed = belief(groups, noise, prior, bins)
        heard = np.einsum("rb,krb->rk", estimate, believed.told, optimize=True)
        heard[:, 0] += prior.mean / prior.variance
        amounts = np.einsum("rjk,rk->rj", believed.uncertainty, heard)
        groups = amounts[:, 0]
    expected = np.einsum("rk,krb->rb", amounts, prior.directions, optimize=True)
    guess = expected + posterior(estimate - expected, believed.free, believed.pull, noise, bins)
    doubt = believed.doubt()
    if totals is not None:
        part = doubt / np.maximum(doubt.sum(axis=1, keepdims=True), _TINY)
        guess = guess + part * (totals - guess.sum(axis=1))[:, None]
    return _shared_out(guess, doubt, siblings)


def _first_guess(
    estimate: FloatArray, noise: FloatArray, prior: Prior, bins: SizeBins
) -> FloatArray:
    there = (prior.shape > 0).astype(np.float64)
    total = (estimate * there).sum(axis=1)
    own = noise[:, 0] * (there * solve(there, bins)).sum(axis=1)
    return prior.mean + prior.variance / (prior.variance + own) * (total - prior.mean)


def find_differences(
    estimate: FloatArray, noise: FloatArray, siblings: Siblings, bins: SizeBins
) -> Differences:
    """How far siblings differ, from squares of how far their estimates do; one standard error on
    top: rather too little pooling.
    """
    shape, mean = siblings.shape_and_mean()
    there = (shape > 0).astype(np.float64)
    total = (estimate * there).sum(axis=1)
    inverse = solve(there, bins)
    of_total = (there * inverse).sum(axis=1)
    own = noise[:, 0] * of_total
    in_number = _component((total - mean) ** 2, own, mean**2)
    prior = (in_number.value + in_number.error) * mean**2
    groups = np.maximum(mean + prior / (prior + own + _TINY) * (total - mean), 1.0)
    # Single counts: away from what the total says.
    squares = (there * (estimate - total[:, None] * shape)) ** 2
    sampling = shape * (1 - shape)
    from_noise = (
        noise * there * (solve_diagonal(bins) - 2 * shape * inverse + shape**2 * of_total[:, None])
    )
    # Along each move, as far as that does not change with G.
    moves = moves_of(shape)
    length = np.maximum((shape**2).sum(axis=1), _TINY)
    along = moves - shape * ((moves * shape).sum(axis=2) / length)[:, :, None]
    moved = (along * estimate).sum(axis=2) ** 2
    noise_along = np.stack([noise[:, 0] * (way * solve(way, bins)).sum(axis=1) for way in along])
    sampling_along = (along**2 * shape).sum(axis=2)
    # How much of move j is seen along k, in units of G².
    signal = np.einsum("krb,jrb->kjr", along, moves, optimize=True) ** 2
    in_moves = [_Component(0.0, 0.0)] * MOVES
    for _ in range(_TOGETHER_ROUNDS):
        of_moves = sum(found.value * move**2 for found, move in zip(in_moves, moves))
        known = from_noise + groups[:, None] * sampling + groups[:, None] ** 2 * of_moves
        in_shape = _component(squares, known, groups[:, None] ** 2 * sampling)
        kappa = groups + in_shape.value * groups**2
        for k in range(MOVES):
            others = sum(in_moves[j].value * signal[k, j] for j in range(MOVES) if j != k)
            known_along = noise_along[k] + kappa * sampling_along[k] + groups**2 * others
            in_moves[k] = _component(moved[k], known_along, groups**2 * signal[k, k])
    variances = tuple(min(found.value + found.error, _WIDEST_MOVE) for found in in_moves)
    return Differences(
        in_number.value + in_number.error, in_shape.value + in_shape.error, variances
    )


class _Component(NamedTuple):
    """An estimated variance, and its standard error."""

    value: float
    error: float


def _component(squares: FloatArray, known: FloatArray, unit: FloatArray) -> _Component:
    """The f of E[squares] = known + f·unit by weighted moments."""
    f = 0.0
    unit = unit + _TINY
    for _ in range(_COMPONENT_ROUNDS):
        weight = unit / (known + f * unit + _TINY) ** 2
        f = max(0.0, float((weight * (squares - known)).sum() / (weight * unit).sum()))
    return _Component(f, float(np.sqrt(2 / ((unit / (known + f * unit + _TINY)) ** 2).sum())))


def _shared_out(guess: FloatArray, doubt: FloatArray, siblings: Siblings) -> FloatArray:
    """Counts of at least 0 that add up to the parents': what is missing goes where doubt is
    largest.
    """
    fit = guess
    where = doubt + _TINY * (siblings.above > 0)[siblings.parent]
    for _ in range(_SHARE_ROUNDS):
        missing = siblings.above - siblings.sums(fit)
        part = where / np.maximum(siblings.sums(where), _TINY**2)[siblings.parent]
        fit = np.maximum(fit + part * missing[siblings.parent], 0.0)
        where = np.where((fit > 0) | (missing > 0)[siblings.parent], where, 0.0)
    return np.where((siblings.above > 0)[siblings.parent], fit, 0.0)
