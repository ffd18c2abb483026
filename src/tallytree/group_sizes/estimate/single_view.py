"""Estimates from one noisy view: ``naive``, ``sizes`` and ``cumulative`` (kuo2018 §4), with
variances (§5.1).

In: the noisy whole numbers of one level, region ``r`` owning ``values[offsets[r]:offsets[r + 1]]``,
and the groups per region. Out: an :class:`Estimate` whose counts add up to the groups of each
region.

Departure from §5.1: the paper takes the variance of one noisy cell as 2/ε²; here ``noise_variance``
is the variance of the noise that was really added (2p/(1−p)² with p = e^{−ε} for double-geometric
noise of scale 1/ε).
"""

from __future__ import annotations

import numpy as np

from tallytree.errors import InputError
from tallytree.group_sizes.estimate.runs import Estimate, check_noisy
from tallytree.kernels.isotonic import cumulative_runs, isotonic_runs
from tallytree.kernels.tables.simplex import project_to_whole_simplex
from tallytree.model.arrays import IntArray, offsets_from_lengths
from tallytree.options.choices import Norm


def estimate_naive(
    values: IntArray, offsets: IntArray, n_groups: IntArray, noise_variance: float
) -> Estimate:
    """From noisy counts by size H[0 … K_r]: nearest counts ≥ 0 with the right total, rounded
    (kuo2018 §4.1).

    A count with variance V makes the size of each of its groups uncertain by V / count, as in
    §5.1.2.
    """
    check_noisy(offsets, len(values), n_groups, noise_variance)
    table = project_to_whole_simplex(values, offsets, n_groups)
    cell = np.flatnonzero(table)
    region = np.searchsorted(offsets, cell, side="right") - 1
    run_offsets = offsets_from_lengths(np.bincount(region, minlength=len(n_groups)))
    count = table[cell]
    return Estimate(run_offsets, cell - offsets[region], count, noise_variance / count)


def estimate_sizes(
    values: IntArray,
    offsets: IntArray,
    n_groups: IntArray,
    noise_variance: float,
    *,
    norm: Norm = 2,
) -> Estimate:
    """From the noisy sorted sizes, smallest first, one per group: isotonic fit ≥ 0, rounded
    (kuo2018 §4.2).

    Variance: V[i] = noise variance / groups of the same fitted size (§5.1.1).
    """
    check_noisy(offsets, len(values), n_groups, noise_variance)
    if not np.array_equal(np.diff(offsets), n_groups):
        raise InputError("The sizes view has one noisy value per group.")
    run_offsets, size, count = isotonic_runs(values, offsets, norm=norm, lower=0)
    return Estimate(run_offsets, size, count, noise_variance / count)


def estimate_cumulative(
    values: IntArray,
    offsets: IntArray,
    n_groups: IntArray,
    noise_variance: float,
    *,
    norm: Norm = 1,
) -> Estimate:
    """From the noisy cumulative counts H_c[0 … K_r − 1]: isotonic fit between 0 and the groups
    (kuo2018 §4.3).

    H_c[K_r] is the number of groups and needs no measurement: groups that the fit leaves over have
    size K_r. Variance: V[i] = 2 · noise variance / groups of the same estimated size (§5.1.2).
    """
    check_noisy(offsets, len(values), n_groups, noise_variance)
    run_offsets, size, count = cumulative_runs(values, offsets, n_groups, norm=norm)
    return Estimate(run_offsets, size, count, 2.0 * noise_variance / count)
