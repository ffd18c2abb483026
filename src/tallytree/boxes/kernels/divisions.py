"""How a count divides between two sides: a mixture that noisy counts choose themselves, and what
each side then holds.

Ours; empirical Bayes. A total T divides into the first side, with share p of the area, and the
rest. The first side holds about p T, with the spread of chance alone, √(T p (1 − p)), or with one
of several wider ones, τ T; or any amount between 0 and T; or nothing; or everything. How often each
happens is the mixture of greatest likelihood given the noisy sides of many such divisions; the
estimate of one is its expected first side given the noisy one. Evenly spread points are then drawn
to even shares, points in few places are drawn to one side, and points with a pattern of their own
are left as they are.
"""

from __future__ import annotations

import math

import numpy as np

from tallytree.kernels.jit import as_input, serial
from tallytree.model.arrays import FloatArray

# Spreads τ around an even division, besides that of chance: a few percent (smooth) to a third
# (rough).
SPREADS = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.3])
N_KINDS = len(SPREADS) + 3
ANY, NOTHING, EVERYTHING = N_KINDS - 3, N_KINDS - 2, N_KINDS - 1
# Divisions that a mixture is fitted to, evenly spaced; steps of expectation and maximisation;
# made-up divisions of the prior.
MOST_FITTED = 16384
STEPS = 40
PRIOR_DIVISIONS = 3.0
LEAST = 1e-300


@serial
def _normal(distance, variance):
    return math.exp(-0.5 * distance * distance / variance) / math.sqrt(2 * math.pi * variance)


@serial
def _below(z):
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@serial
def _between(noisy, variance, total):
    """Chance that a normal amount lies in 0 … total, and its mean if it does."""
    scale = math.sqrt(variance)
    a, b = -noisy / scale, (total - noisy) / scale
    inside = max(_below(b) - _below(a), LEAST)
    shift = (math.exp(-0.5 * a * a) - math.exp(-0.5 * b * b)) / math.sqrt(2 * math.pi)
    return inside, min(max(noisy + scale * shift / inside, 0.0), total)


@serial
def _likelihoods(noisy, variance, total, share, spreads, row):
    """Likelihood of a noisy first side under every kind of division, into ``row``."""
    centre, chance = share * total, total * share * (1 - share)
    for k in range(len(spreads)):
        spread = spreads[k] * total
        row[k] = max(_normal(noisy - centre, variance + chance + spread * spread), LEAST)
    k = len(spreads)
    row[k] = max(_between(noisy, variance, total)[0] / total, LEAST)
    row[k + 1] = max(_normal(noisy, variance), LEAST)
    row[k + 2] = max(_normal(noisy - total, variance), LEAST)


@serial
def _fit(noisy, variance, total, share, spreads, prior, weights):
    """Expectation and maximisation over evenly spaced divisions; the mixture is written to
    ``weights``.
    """
    step = 1 + len(noisy) // MOST_FITTED
    n_fitted = (len(noisy) + step - 1) // step
    kinds = len(prior)
    rows = np.empty((n_fitted, kinds))
    for i in range(n_fitted):
        j = i * step
        _likelihoods(noisy[j], variance[j], total[j], share[j], spreads, rows[i])
    weights[:] = prior
    for _ in range(STEPS):
        found = PRIOR_DIVISIONS * prior
        for i in range(n_fitted):
            whole = 0.0
            for k in range(kinds):
                whole += rows[i, k] * weights[k]
            for k in range(kinds):
                found[k] += rows[i, k] * weights[k] / whole
        weights[:] = found / found.sum()


@serial
def _divide(noisy, variance, total, share, spreads, weights, agreeing, result):
    row = np.empty(len(weights))
    for i in range(len(noisy)):
        _likelihoods(noisy[i], variance[i], total[i], share[i], spreads, row)
        centre, chance = share[i] * total[i], total[i] * share[i] * (1 - share[i])
        whole, sum_of_means = 0.0, 0.0
        for k in range(len(weights)):
            if k < len(spreads):
                spread = chance + (spreads[k] * total[i]) ** 2
                noise = variance[i] if k == 0 else variance[i] / agreeing
                mean = min(
                    max(centre + (noisy[i] - centre) * spread / (spread + noise), 0.0), total[i]
                )
            elif k == len(spreads):
                mean = _between(noisy[i], variance[i], total[i])[1]
            else:
                mean = 0.0 if k == len(spreads) + 1 else total[i]
            whole += row[k] * weights[k]
            sum_of_means += row[k] * weights[k] * mean
        result[i] = sum_of_means / whole


def even_prior() -> FloatArray:
    """All kinds of division alike: where nothing has been seen yet."""
    return np.full(N_KINDS, 1.0 / N_KINDS)


def fit_divisions(
    noisy: FloatArray, variance: FloatArray, total: FloatArray, share: FloatArray, prior: FloatArray
) -> FloatArray:
    """How often each kind of division happens.

    The first four are (n_divisions,), ``prior`` and the result (N_KINDS,).

    Parameters
    ----------
    noisy, variance
        Unbiased noisy first sides, and the variances of their noise, above 0.
    total
        What was divided, above 0.
    share
        Share of the area that the first side has, between 0 and 1.
    prior
        The mixture that a few made-up divisions follow; it settles what is left open by few noisy
        ones.
    """
    weights = np.empty(N_KINDS)
    _fit(
        as_input(noisy, np.float64),
        as_input(variance, np.float64),
        as_input(total, np.float64),
        as_input(share, np.float64),
        SPREADS,
        as_input(prior, np.float64),
        weights,
    )
    return weights


def divide(
    noisy: FloatArray,
    variance: FloatArray,
    total: FloatArray,
    share: FloatArray,
    weights: FloatArray,
    agreeing: float = 1.0,
) -> FloatArray:
    """What the first sides hold, between 0 and their totals: their expected counts given noisy ones
    and a mixture.

    Where ``agreeing`` such sides are added up, what draws uneven ones to even shares may err with
    the same sign in all of them: the bias of a sum of k grows with k, its noise with √k. So they
    are drawn as if their noise had 1/k of its variance.
    """
    result = np.empty(len(noisy))
    given = (noisy, variance, total, share)
    _divide(
        *(as_input(one, np.float64) for one in given),
        SPREADS,
        as_input(weights, np.float64),
        agreeing,
        result,
    )
    return result


def roughness(weights: FloatArray) -> float:
    """Root mean square of a side's share minus its share of the area, for halves, chance apart.

    ``weights`` is (N_KINDS,).
    """
    return math.sqrt(
        float(weights[: len(SPREADS)] @ SPREADS**2)
        + weights[ANY] / 12
        + (weights[NOTHING] + weights[EVERYTHING]) / 4
    )
