"""Estimates from the hybrid view: cumulative counts below a threshold, the largest sizes above it.

For a public threshold T_r per region the view holds

- ``cumulative``: noisy H_c[0 … T_r − 1], groups of at most each size below T_r;
- ``tail``: the M_r largest values of max(size, T_r), noisy, in rising order like the ``sizes``
  view.

Both are measured with the same noise. A group whose size is below T_r moves only the first when an
entity joins it, any other group only the second, so each part is as accurate as if it had been
measured alone.
"""

from __future__ import annotations

import math

import numpy as np

from tallytree.errors import InputError
from tallytree.group_sizes.estimate.runs import Estimate, check_noisy
from tallytree.kernels.isotonic import groups_of_cumulative, isotonic_runs
from tallytree.model.arrays import IntArray, offsets_from_lengths
from tallytree.model.count_of_counts import sum_runs

Runs = tuple[IntArray, IntArray, IntArray]


def estimate_hybrid(
    cumulative: IntArray,
    cumulative_offsets: IntArray,
    tail: IntArray,
    tail_offsets: IntArray,
    n_groups: IntArray,
    noise_variance: float,
) -> Estimate:
    """Join the fit of the cumulative part (L1) and of the tail (L2, at least T_r) into one
    estimate.

    T_r is the number of cumulative cells of region ``r``, M_r the number of its tail values, at
    most its groups. The number of groups in the tail is the larger of ``n_groups − fitted H_c[T_r −
    1]`` and of the tail values that stand clearly above T_r: an outlier that noise in H_c would
    drop costs its whole size. Groups of the tail beyond M_r get size T_r. The variance of a size is
    2 · noise variance / groups of that size, in the tail too: levels change over at different T_r,
    and one formula for both parts gave smaller errors after merging than kuo2018 §5.1.1's half of
    it in the tail.
    """
    check_noisy(cumulative_offsets, len(cumulative), n_groups, noise_variance)
    check_noisy(tail_offsets, len(tail), n_groups, noise_variance)
    threshold, n_tail_values = np.diff(cumulative_offsets), np.diff(tail_offsets)
    if (n_tail_values > n_groups).any():
        raise InputError("A region cannot have more tail values than groups.")
    fit_offsets, level, length = isotonic_runs(
        cumulative, cumulative_offsets, norm=1, lower=0, upper=n_groups
    )
    below = np.zeros(len(n_groups), dtype=np.int64)
    fitted = np.diff(fit_offsets) > 0
    below[fitted] = level[fit_offsets[1:][fitted] - 1]
    clear = _clearly_above(tail, tail_offsets, threshold, noise_variance)
    n_below = np.minimum(below, n_groups - clear)
    lowered = np.minimum(level, np.repeat(n_below, np.diff(fit_offsets)))
    small = groups_of_cumulative(fit_offsets, lowered, length, n_below)
    tail_runs = isotonic_runs(tail, tail_offsets, norm=2, lower=threshold)
    large = _largest(tail_runs, n_tail_values, n_groups - n_below, threshold)
    offsets, size, count = _join(small, large)
    return Estimate(offsets, size, count, 2.0 * noise_variance / count)


def laplace_scale(variance: float) -> float:
    """Scale b of double-geometric noise with this variance: 2p/(1−p)² for p = e^{−1/b}, solved for
    b; 0 for variance 0.
    """
    if variance == 0:
        return 0.0
    p = variance / (1.0 + variance + math.sqrt(1.0 + 2.0 * variance))
    return -1.0 / math.log(p)


def _clearly_above(
    tail: IntArray, offsets: IntArray, threshold: IntArray, noise_variance: float
) -> IntArray:
    """Tail values per region above T + b · (ln M + 3): noise alone lifts one of M that far in 1 of
    40 regions.
    """
    n_values = np.diff(offsets)
    bar = threshold + laplace_scale(noise_variance) * (np.log(np.maximum(n_values, 1)) + 3.0)
    return sum_runs(offsets, (tail > np.repeat(bar, n_values)).astype(np.int64))


def _largest(runs: Runs, n_values: IntArray, n_wanted: IntArray, threshold: IntArray) -> Runs:
    """The ``n_wanted`` largest of each region's runs, which hold ``n_values``; those missing get
    the threshold as size.
    """
    offsets, size, count = runs
    end = np.cumsum(count) - np.repeat(offsets_from_lengths(n_values)[:-1], np.diff(offsets))
    skipped = np.repeat(np.maximum(n_values - n_wanted, 0), np.diff(offsets))
    kept = np.clip(end - skipped, 0, count)
    missing = np.maximum(n_wanted - n_values, 0)
    return _join((np.arange(len(n_values) + 1), threshold, missing), (offsets, size, kept))


def _join(first: Runs, second: Runs) -> Runs:
    """Per region the runs of the first, then those of the second; equal neighbours added, empty
    runs dropped.
    """
    n_regions = len(first[0]) - 1
    n_first, n_second = np.diff(first[0]), np.diff(second[0])
    comes_first = np.repeat(
        np.tile([True, False], n_regions), np.stack([n_first, n_second], axis=1).ravel()
    )
    size = np.empty(len(comes_first), dtype=np.int64)
    count = np.empty(len(comes_first), dtype=np.int64)
    size[comes_first], size[~comes_first] = first[1], second[1]
    count[comes_first], count[~comes_first] = first[2], second[2]
    region = np.repeat(np.arange(n_regions), n_first + n_second)
    kept = count > 0
    region, size, count = region[kept], size[kept], count[kept]
    opens = np.ones(len(size), dtype=bool)
    opens[1:] = (region[1:] != region[:-1]) | (size[1:] != size[:-1])
    start = np.flatnonzero(opens)
    count = np.add.reduceat(count, start) if len(start) else count
    return offsets_from_lengths(np.bincount(region[start], minlength=n_regions)), size[start], count
