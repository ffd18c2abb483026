"""How well two plain choices would do, rehearsed on made-up data: the yardstick for a split over levels.

The two are those of kuo2018: cumulative counts fitted by isotonic regression, with the same budget on every level, and with
all of it on the leaves. What they cost depends on noise and shape in ways that no short formula tells, so a sample of regions
is made up from the first look and public numbers of groups, and the real fit is run on them. Nothing confidential is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tallytree.kernels.isotonic import isotonic_l1
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.tuning.split import EMPTY_SIZES, REHEARSED_CELLS, REHEARSED_REGIONS


def plain_errors(above: FloatArray, level_groups: Sequence[IntArray], scale: float) -> FloatArray:
    """Mean earth mover's distance per level of the better of the two choices.

    Parameters
    ----------
    above
        Share of groups with more than i entities, per size i, falling.
    level_groups
        Number of groups of every region, per level.
    scale
        Noise scale that the whole budget buys on one level.
    """
    n_levels = len(level_groups)
    # A public bound on sizes leaves some of them empty. Noise makes up groups there; matching takes them away below the root,
    # where each region still pays for a part of the root's.
    bounded = np.concatenate([above, np.zeros(max(len(above), EMPTY_SIZES))])
    everywhere = np.array([_mean_error(above, groups, n_levels * scale) for groups in level_groups])
    made_up = _mean_error(bounded, level_groups[0], n_levels * scale) - everywhere[0]
    everywhere += made_up / [len(groups) for groups in level_groups]
    leaves = _signed_errors(bounded, level_groups[-1], scale)
    below = [_error_of_sums(leaves, len(level_groups[-1]) / len(groups)) for groups in level_groups[:-1]]
    below.append(float(np.abs(leaves).sum(axis=1).mean()))
    return np.maximum(np.minimum(everywhere, below), 1e-9)


def _mean_error(above: FloatArray, groups: IntArray, scale: float) -> float:
    return float(np.abs(_signed_errors(above, groups, scale)).sum(axis=1).mean())


def _signed_errors(above: FloatArray, groups: IntArray, scale: float) -> FloatArray:
    """Errors of fitted cumulative counts of made-up regions, one row each."""
    n_sizes = len(above)
    n_regions = max(1, min(REHEARSED_REGIONS, REHEARSED_CELLS // n_sizes))
    sample = np.sort(groups)[np.linspace(0, len(groups) - 1, n_regions).round().astype(np.int64)]
    truth = sample[:, None] - np.rint(sample[:, None] * above).astype(np.int64)
    # An ordinary generator: the data are made up, and the same look must always give the same split.
    rng = np.random.default_rng(0)
    stop = -math.expm1(-1 / scale)
    noise = rng.geometric(stop, truth.shape) - rng.geometric(stop, truth.shape)
    offsets = np.arange(n_regions + 1) * n_sizes
    fit = isotonic_l1((truth + noise).ravel(), offsets, lower=0, upper=sample)
    return (fit.reshape(truth.shape) - truth).astype(np.float64)


def _error_of_sums(errors: FloatArray, n: float) -> float:
    """Mean error of sums of n regions: what their errors share adds up, the rest partly cancels."""
    variance = errors.var(axis=0)
    shared = np.maximum(errors.mean(axis=0) ** 2 - variance / len(errors), 0.0)
    # Mean absolute deviation of a normal distribution: √(2/π) standard deviations.
    return float(np.sqrt(n * n * shared + (2 / math.pi) * n * variance).sum())
