"""The curve N(i) behind noisy block sums: a smoother, linear in sizes, and the shape that a fitted
curve hands down.

N falls by a share of its height at every size: N(i) = (1 − f_i) N(i−1) + noise of variance v_i,
from N(−1) = G, the number of groups. A block's answer is the sum of N over its sizes plus noise of
variance σ². Both are linear and Gaussian in (N, sum so far), so a Kalman filter and the backward
pass of Rauch, Tung and Striebel give the mean and variance of every N(i).

The share f_i is the prior's, locally stretched: f_i' = 1 − (1 − f_i)^ρ_i, where ρ_i compares the
falls of a first fit with the prior's over sizes i/1.5 … 1.5 i. The variance is that of a Poisson
count, plus (κ times the fall)², plus what noise has left in the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.kernels.jit import run_in_chunks, serial, sums_over_chunks
from tallytree.model.arrays import FloatArray, IntArray, read_only, runs_at
from tallytree.tuning.blocks import ROUGHNESS
from tallytree.tuning.curves import EMPTY_TAIL, EMPTY_VARIANCE, LEAST_VARIANCE, NEARBY


class Blocks(NamedTuple):
    """Noisy block sums of the regions of a level: region ``r`` owns ``ends`` and ``answers`` from
    ``offsets[r]`` on.
    """

    offsets: IntArray
    ends: IntArray
    answers: IntArray
    noise_variance: float

    def at(self, regions: IntArray) -> Blocks:
        """The blocks of some regions, in this order."""
        offsets, places = runs_at(self.offsets, regions)
        return Blocks(offsets, self.ends[places], self.answers[places], self.noise_variance)

    def piece(self, regions: slice) -> Blocks:
        """The blocks of consecutive regions."""
        offsets = self.offsets[regions.start : regions.stop + 1]
        here = slice(int(offsets[0]), int(offsets[-1]))
        return Blocks(
            read_only(offsets - offsets[0]),
            self.ends[here],
            self.answers[here],
            self.noise_variance,
        )


class Curves(NamedTuple):
    """Estimated N(i) of some regions, its variance, and the variance of each fall given the prior;
    one row per region.
    """

    height: FloatArray
    variance: FloatArray
    fall_variance: FloatArray


@serial
def _filter(
    groups, fall, fall_variance, stretch, kappa, ends, answers, noise_variance, state, kept, noise
):
    """Forward pass; fills ``state[i]`` = predicted (N, sum, 3 covariances) and filtered ones,
    returns the log-likelihood.
    """
    height, total = float(groups), 0.0
    p_nn, p_ns, p_ss = 0.0, 0.0, 0.0
    likelihood = 0.0
    size = 0
    for block in range(len(ends)):
        total, p_ns, p_ss = 0.0, 0.0, 0.0
        while size < ends[block]:
            share = (1.0 - fall[size]) ** stretch[size]
            reference = max(height, 0.0)
            falling = reference * (1.0 - share)
            more = (
                falling
                + (kappa * falling) ** 2
                + reference**2 * fall_variance[size]
                + LEAST_VARIANCE
            )
            q_nn = share * share * p_nn + more
            q_ns = share * p_ns + q_nn
            q_ss = p_ss + 2 * share * p_ns + q_nn
            height *= share
            total += height
            kept[size], noise[size] = share, more
            state[size, 0], state[size, 1] = height, total
            state[size, 2], state[size, 3], state[size, 4] = q_nn, q_ns, q_ss
            p_nn, p_ns, p_ss = q_nn, q_ns, q_ss
            if size == ends[block] - 1:
                spread = q_ss + noise_variance
                miss = answers[block] - total
                likelihood -= 0.5 * (np.log(spread) + miss * miss / spread)
                height += q_ns / spread * miss
                total += q_ss / spread * miss
                p_nn -= q_ns / spread * q_ns
                p_ns -= q_ns / spread * q_ss
                p_ss -= q_ss / spread * q_ss
            state[size, 5], state[size, 6] = height, total
            state[size, 7], state[size, 8], state[size, 9] = p_nn, p_ns, p_ss
            size += 1
    return likelihood


@serial
def _smooth(ends, state, kept, height, variance):
    """Backward pass: mean and variance of N given all answers."""
    last = ends[-1] - 1
    mean_n, mean_s = state[last, 5], state[last, 6]
    s_nn, s_ns, s_ss = state[last, 7], state[last, 8], state[last, 9]
    height[last], variance[last] = mean_n, s_nn
    block = len(ends) - 1
    for size in range(last - 1, -1, -1):
        opens = block > 0 and size + 1 == ends[block - 1]
        if opens:
            block -= 1
        share = kept[size + 1]
        p_nn, p_ns, p_ss = state[size, 7], state[size, 8], state[size, 9]
        q_nn, q_ns, q_ss = state[size + 1, 2], state[size + 1, 3], state[size + 1, 4]
        # Covariance of (N, sum) here with (N, sum) at the next size; a new block starts its sum at
        # 0.
        c_nn, c_ns = p_nn * share, p_nn * share + (0.0 if opens else p_ns)
        c_sn, c_ss = p_ns * share, p_ns * share + (0.0 if opens else p_ss)
        determinant = q_nn * q_ss - q_ns * q_ns
        if determinant > 1e-9 * q_nn * q_ss:
            i_nn, i_ns, i_ss = q_ss / determinant, -q_ns / determinant, q_nn / determinant
        else:  # the first size of a block: N and the sum are the same
            i_nn, i_ns, i_ss = 1.0 / q_nn, 0.0, 0.0
        g_nn, g_ns = c_nn * i_nn + c_ns * i_ns, c_nn * i_ns + c_ns * i_ss
        g_sn, g_ss = c_sn * i_nn + c_ss * i_ns, c_sn * i_ns + c_ss * i_ss
        d_n, d_s = mean_n - state[size + 1, 0], mean_s - state[size + 1, 1]
        e_nn, e_ns, e_ss = s_nn - q_nn, s_ns - q_ns, s_ss - q_ss
        mean_n = state[size, 5] + g_nn * d_n + g_ns * d_s
        mean_s = state[size, 6] + g_sn * d_n + g_ss * d_s
        a_n, a_s = g_nn * e_nn + g_ns * e_ns, g_nn * e_ns + g_ns * e_ss
        b_n, b_s = g_sn * e_nn + g_ss * e_ns, g_sn * e_ns + g_ss * e_ss
        s_nn = p_nn + a_n * g_nn + a_s * g_ns
        s_ns = p_ns + b_n * g_nn + b_s * g_ns
        s_ss = p_ss + b_n * g_sn + b_s * g_ss
        height[size], variance[size] = mean_n, max(s_nn, 0.0)


@serial
def fit_falling(values, weights, low, high):
    """Nearest nonincreasing curve in weighted squares, within bounds, in place (pool adjacent
    violators).
    """
    n = len(values)
    mean, weight, length = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    top = 0
    for i in range(n):
        mean[top], weight[top], length[top] = values[i], weights[i], 1
        top += 1
        while top > 1 and mean[top - 2] < mean[top - 1]:
            both = weight[top - 2] + weight[top - 1]
            mean[top - 2] = (
                mean[top - 2] * weight[top - 2] + mean[top - 1] * weight[top - 1]
            ) / both
            weight[top - 2] = both
            length[top - 2] += length[top - 1]
            top -= 1
    i = 0
    for pool in range(top):
        for _ in range(length[pool]):
            values[i] = min(max(mean[pool], low), high)
            i += 1


@serial
def fit_falling_by_variance(values, variance, high):
    """Nearest curve that falls from at most ``high`` to at least 0, by inverse variance, in place."""
    weights = np.empty(len(values))
    for i in range(len(values)):
        weights[i] = 1.0 / (variance[i] + 1e-6)
    fit_falling(values, weights, 0.0, high)


@serial
def _stretches(groups, height, fall, strength, stretch, own, expected):
    """ρ per size: falls of a first fit over those of the prior nearby, both raised by ``strength``
    groups.
    """
    n = len(height)
    before = float(groups)
    own[0], expected[0] = 0.0, 0.0
    for size in range(n):
        here = min(max(height[size], 0.0), before)
        own[size + 1] = own[size] + before - here
        expected[size + 1] = expected[size] + before * fall[size]
        before = here
    for size in range(n):
        low, high = int(size / NEARBY), min(int(size * NEARBY) + 1, n)
        stretch[size] = (own[high] - own[low] + strength) / (
            expected[high] - expected[low] + strength
        )


@serial
def _filter_region(groups, prior, stretch, kappa, blocks, region, state, kept, noise):
    here = slice(blocks.offsets[region], blocks.offsets[region + 1])
    shape = prior.row[region]
    return _filter(
        groups[region],
        prior.fall[shape],
        prior.fall_variance[shape],
        stretch,
        kappa,
        blocks.ends[here],
        blocks.answers[here],
        blocks.noise_variance,
        state,
        kept,
        noise,
    )


@serial
def _first_fits(groups, prior, blocks, height, variance, start, stop):
    n_sizes = prior.fall.shape[1]
    state, kept, noise, ones = (
        np.empty((n_sizes, 10)),
        np.empty(n_sizes),
        np.empty(n_sizes),
        np.empty(n_sizes),
    )
    for size in range(n_sizes):
        ones[size] = 1.0
    for region in range(start, stop):
        ends = blocks.ends[blocks.offsets[region] : blocks.offsets[region + 1]]
        _filter_region(groups, prior, ones, ROUGHNESS, blocks, region, state, kept, noise)
        _smooth(ends, state, kept, height[region], variance[region])
        last = ends[-1]
        fit_falling_by_variance(
            height[region, :last], variance[region, :last], float(groups[region])
        )


@serial
def _stretched_filter(groups, prior, kappa, blocks, first, region, state, kept, noise, scratch):
    last = blocks.ends[blocks.offsets[region + 1] - 1]
    strength = np.sqrt(blocks.noise_variance)
    stretch = scratch[2]
    _stretches(
        groups[region],
        first[region, :last],
        prior.fall[prior.row[region]],
        strength,
        stretch,
        scratch[0],
        scratch[1],
    )
    return _filter_region(groups, prior, stretch, kappa, blocks, region, state, kept, noise)


@serial
def _likelihood(groups, prior, kappa, blocks, first, sample, start, stop):
    n_sizes = prior.fall.shape[1]
    state, kept, noise = np.empty((n_sizes, 10)), np.empty(n_sizes), np.empty(n_sizes)
    scratch = np.empty((3, n_sizes + 1))
    total = 0.0
    for i in range(start, stop):
        total += _stretched_filter(
            groups, prior, kappa, blocks, first, sample[i], state, kept, noise, scratch
        )
    return total


@serial
def _blocks_with_groups(ends, answers, state, noise_variance):
    """Number of blocks before a tail that is likelier to be empty than to follow the curve that the
    filter predicts.
    """
    gain, best, n_blocks = 0.0, EMPTY_TAIL, len(ends)
    for block in range(len(ends) - 1, -1, -1):
        total, spread = state[ends[block] - 1, 1], state[ends[block] - 1, 4] + noise_variance
        gain += 0.5 * (np.log(spread / noise_variance) + (answers[block] - total) ** 2 / spread)
        gain -= 0.5 * answers[block] ** 2 / noise_variance
        if gain > best:
            best, n_blocks = gain, block
    return n_blocks


@serial
def _final_fits(groups, prior, kappa, blocks, empty_tails, height, variance, falls, start, stop):
    n_sizes = prior.fall.shape[1]
    state, kept, noise = np.empty((n_sizes, 10)), np.empty(n_sizes), np.empty(n_sizes)
    scratch = np.empty((3, n_sizes + 1))
    for region in range(start, stop):
        here = slice(blocks.offsets[region], blocks.offsets[region + 1])
        ends, answers = blocks.ends[here], blocks.answers[here]
        _stretched_filter(groups, prior, kappa, blocks, height, region, state, kept, noise, scratch)
        n_blocks = len(ends)
        if empty_tails and blocks.noise_variance > 0.0:
            n_blocks = _blocks_with_groups(ends, answers, state, blocks.noise_variance)
        if n_blocks > 0:
            _smooth(ends[:n_blocks], state, kept, height[region], variance[region])
        for size in range(ends[n_blocks - 1] if n_blocks > 0 else 0, ends[-1]):
            height[region, size], variance[region, size] = 0.0, EMPTY_VARIANCE
        if len(falls):
            for size in range(n_sizes):
                falls[region, size] = noise[size] if size < ends[-1] else np.inf


def first_fits(groups: IntArray, prior: Prior, blocks: Blocks) -> FloatArray:
    """A first estimate of every N(i) below the last block end of its region, with the prior as it
    is; falling.

    ``groups`` is (n_regions,), the result (n_regions, n_sizes).
    """
    height = np.zeros((len(groups), prior.fall.shape[1]))
    variance = np.zeros_like(height)
    run_in_chunks(
        lambda start, stop: _first_fits(groups, prior, blocks, height, variance, start, stop),
        len(groups),
    )
    return height


def log_likelihoods(
    groups: IntArray,
    prior: Prior,
    blocks: Blocks,
    kappas: Sequence[float],
    first: FloatArray,
    sample: IntArray,
) -> list[float]:
    """Marginal log-likelihood of the answers of the sampled regions, under the prior stretched by
    their first fits: for each roughness of falls.

    ``groups`` is (n_regions,), ``first`` (n_regions, n_sizes), ``sample`` (n_sampled,).
    """
    return sums_over_chunks(
        lambda start, stop: [
            _likelihood(groups, prior, kappa, blocks, first, sample, start, stop)
            for kappa in kappas
        ],
        len(sample),
    )


def final_fits(
    groups: IntArray,
    prior: Prior,
    blocks: Blocks,
    kappa: float,
    first: FloatArray,
    *,
    keep_falls: bool,
    empty_tails: bool = False,
) -> Curves:
    """Mean and variance of every N(i) below the last block end of its region, in the place of the
    first fit.

    With ``empty_tails`` a curve ends where it is likelier that no group is larger than that the
    curve goes on.

    ``groups`` is (n_regions,), ``first`` (n_regions, n_sizes), as all curves of the result; falls
    that are not kept are (0, 0).
    """
    variance = np.zeros_like(first)
    falls = np.empty_like(first) if keep_falls else np.empty((0, 0))
    run_in_chunks(
        lambda start, stop: _final_fits(
            groups, prior, kappa, blocks, empty_tails, first, variance, falls, start, stop
        ),
        len(groups),
    )
    return Curves(first, variance, falls)
