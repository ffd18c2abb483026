"""Curves that stay level for long and then drop: sizes that only occur at a few round numbers.

A smooth curve blurs every drop there. Here N is level between drops; a drop comes with the same
chance before every block, and nothing is known of the height after it but its order of magnitude.
The sum over all ways to place drops is a recursion over where the last one was (Fearnhead, Exact
and efficient Bayesian inference for multiple changepoint problems, 2006). It also gives the
likelihood of the answers, to be compared with that of a smooth curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tallytree.group_sizes.kernels.curves import Blocks, Curves, fit_falling_by_variance
from tallytree.kernels.jit import run_in_chunks, serial, sums_over_chunks
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.tuning.curves import DROP_PLACES, NEGLIGIBLE


@serial
def _forward(level, weight, guess, chance, first, score, mean, variance):
    """Fills, for each block t and each place followed up, where the last drop was, the
    log-probability of that given the answers up to t, and the mean and variance of the height
    since. Returns the log-likelihood of all answers.
    """
    log_drop, log_stay = np.log(chance), np.log(1.0 - chance)
    sums = np.empty(
        (DROP_PLACES + 1, 4)
    )  # per place: weights, mean, squares around the mean, logs of weights
    starts, reached = np.empty(DROP_PLACES + 1, dtype=np.int64), np.empty(DROP_PLACES + 1)
    alive, total = 0, 0.0
    for t in range(len(level)):
        starts[alive], reached[alive] = t, total + (log_drop if t else 0.0)
        for column in range(4):
            sums[alive, column] = 0.0
        alive += 1
        best, worst = 0, 0
        for k in range(alive):
            before = sums[k, 0]
            sums[k, 0] += weight[t]
            apart = level[t] - sums[k, 1]
            sums[k, 1] += apart * weight[t] / sums[k, 0]
            sums[k, 2] += apart * apart * weight[t] * before / sums[k, 0]
            sums[k, 3] += np.log(weight[t])
            spread = guess[starts[k]] ** 2
            around = spread + 1.0 / sums[k, 0]
            miss = sums[k, 1] - guess[starts[k]]
            unlikely = sums[k, 2] - sums[k, 3] + np.log(sums[k, 0] * around) + miss * miss / around
            first[t, k] = starts[k]
            score[t, k] = reached[k] - 0.5 * unlikely + (t - starts[k]) * log_stay
            variance[t, k] = spread / (around * sums[k, 0])
            mean[t, k] = sums[k, 1] - miss / (around * sums[k, 0])
            best = k if score[t, k] > score[t, best] else best
            worst = k if score[t, k] < score[t, worst] else worst
        total = 0.0
        for k in range(alive):
            total += np.exp(score[t, k] - score[t, best])
        total = score[t, best] + np.log(total)
        for k in range(alive):
            score[t, k] -= total
        for k in range(alive, DROP_PLACES + 1):
            first[t, k], score[t, k] = 0, -np.inf
        if alive > DROP_PLACES:
            alive -= 1
            starts[worst], reached[worst] = starts[alive], reached[alive]
            for column in range(4):
                sums[worst, column] = sums[alive, column]
    return total


@serial
def _backward(first, score, mean, variance, height, spread, dropping):
    """Mean and variance of the height of every block over all places of drops, and the chance of a
    drop before it.

    Turns ``score`` into the probability of each level stretch.
    """
    n = len(height)
    for t in range(n):
        dropping[t], height[t], spread[t] = 0.0, 0.0, 0.0
    dropping[n] = 1.0
    for t in range(n - 1, -1, -1):
        for k in range(first.shape[1]):
            score[t, k] = dropping[t + 1] * np.exp(score[t, k])
            if score[t, k] > NEGLIGIBLE:
                dropping[first[t, k]] += score[t, k]
                for block in range(first[t, k], t + 1):
                    height[block] += score[t, k] * mean[t, k]
    for t in range(n):
        for k in range(first.shape[1]):
            if score[t, k] > NEGLIGIBLE:
                for block in range(first[t, k], t + 1):
                    spread[block] += score[t, k] * (
                        variance[t, k] + (mean[t, k] - height[block]) ** 2
                    )


@serial
def _place_cliff(above, here, below, std, out, out_variance):
    """N within a block of known mean that falls once, from ``above`` to ``below``: the mean tells
    where, up to noise.
    """
    width = len(out)
    step = max(above - below, 1e-9)
    place = (here - below) * width / step
    blur = max(std * width / step, 1e-3)
    for i in range(width):
        share = 0.5 * (1.0 + math.erf((place - i - 0.5) / (blur * math.sqrt(2.0))))
        out[i] = below + step * share
        out_variance[i] = std * std + step * step * share * (1.0 - share)


@serial
def _fill(groups, ends, height, spread, dropping, out, out_variance):
    """N(i) from the heights of blocks."""
    n = len(height)
    fit_falling_by_variance(height, spread, float(groups))
    for t in range(n):
        begin = ends[t - 1] if t else 0
        std = np.sqrt(spread[t])
        if ends[t] - begin == 1:
            out[begin], out_variance[begin] = height[t], spread[t]
            continue
        above = height[t - 1] if t else float(groups)
        below = height[t + 1] if t + 1 < n else height[t]
        # One cliff, where both neighbours are likely to continue their own neighbours.
        is_cliff = (t <= 1 or dropping[t - 1] < 0.5) and (t + 2 >= n or dropping[t + 2] < 0.5)
        if is_cliff:
            _place_cliff(
                above, height[t], below, std, out[begin : ends[t]], out_variance[begin : ends[t]]
            )
        else:  # somewhere between its neighbours; level is the best guess
            for i in range(begin, ends[t]):
                out[i], out_variance[i] = (
                    height[t],
                    spread[t] + (above - height[t]) * (height[t] - below) / 3,
                )


@serial
def _last_drops(blocks, first, chance, region):
    """Log-likelihood of a region's answers, and what :func:`_forward` fills in for it."""
    here = slice(blocks.offsets[region], blocks.offsets[region + 1])
    ends, answers = blocks.ends[here], blocks.answers[here]
    n = len(ends)
    level, weight, guess = np.empty(n), np.empty(n), np.empty(n)
    likelihood = 0.0
    for t in range(n):
        begin = ends[t - 1] if t else 0
        width = ends[t] - begin
        level[t], weight[t] = answers[t] / width, width * width / blocks.noise_variance
        nearby = 0.0
        for i in range(begin, ends[t]):
            nearby += first[region, i]
        guess[t] = max(nearby / width, np.sqrt(blocks.noise_variance))
        likelihood -= np.log(width)  # of the sum, not of the mean
    start = np.empty((n, DROP_PLACES + 1), dtype=np.int64)
    score, mean, within = (
        np.empty((n, DROP_PLACES + 1)),
        np.empty((n, DROP_PLACES + 1)),
        np.empty((n, DROP_PLACES + 1)),
    )
    likelihood += _forward(level, weight, guess, chance, start, score, mean, within)
    return likelihood, start, score, mean, within


@serial
def _likelihood(blocks, first, chance, sample, start, stop):
    total = 0.0
    for i in range(start, stop):
        total += _last_drops(blocks, first, chance, sample[i])[0]
    return total


@serial
def _fit(groups, blocks, first, chance, height, variance, start, stop):
    for region in range(start, stop):
        _, begins, score, mean, within = _last_drops(blocks, first, chance, region)
        ends = blocks.ends[blocks.offsets[region] : blocks.offsets[region + 1]]
        n = len(ends)
        level, spread, dropping = np.empty(n), np.empty(n), np.empty(n + 1)
        _backward(begins, score, mean, within, level, spread, dropping)
        _fill(groups[region], ends, level, spread, dropping, height[region], variance[region])


def steps_log_likelihoods(
    blocks: Blocks, first: FloatArray, chances: Sequence[float], sample: IntArray
) -> list[float]:
    """Log-likelihood of the answers of the sampled regions under curves of level stretches: for
    each chance of a drop before any one block.

    ``first`` holds first estimates of N(i), of which only the order of magnitude is used.

    ``first`` is (n_regions, n_sizes), ``sample`` (n_sampled,).
    """
    return sums_over_chunks(
        lambda start, stop: [
            _likelihood(blocks, first, chance, sample, start, stop) for chance in chances
        ],
        len(sample),
    )


def fit_steps(groups: IntArray, blocks: Blocks, first: FloatArray, chance: float) -> Curves:
    """Mean and variance of every N(i) below the last block end of its region, as curves of level
    stretches.

    ``groups`` is (n_regions,), ``first`` (n_regions, n_sizes), as all curves of the result.
    """
    height, variance = np.zeros_like(first), np.zeros_like(first)
    run_in_chunks(
        lambda start, stop: _fit(groups, blocks, first, chance, height, variance, start, stop),
        len(groups),
    )
    return Curves(height, variance, np.full_like(first, np.inf))
