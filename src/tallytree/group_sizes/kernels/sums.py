"""Sums over children without bias: what the noisy answers of a region's children tell about the
region's own curve.

Smoothed curves of children lean on one shared shape, so what is wrong with the shape adds up over
thousands of them. Here each child tells its noisy answers as they are. Where children are as unlike
as their number of groups and a common shape s explain,

    answer y_c = s G_c + deviation of variance τ_c² + noise of variance σ_c²,

the best linear estimate of the sum of s G_c + deviation that is right on average whatever s is
(generalised least squares) is

    Σ b_c y_c + ŝ Σ (1 − b_c) G_c   with b_c = τ_c²/(τ_c² + σ_c²), ŝ = Σ G_c y_c/v_c / Σ G_c²/v_c,
    v_c = τ_c² + σ_c².

With children alike it is the plain sum Σ y_c; a child without groups adds no noise, and many tiny
ones next to a large one hardly any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tallytree.group_sizes.kernels.curves import Blocks, Curves
from tallytree.kernels.jit import run_in_chunks, serial, sums_over_chunks
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.tuning.curves import NEARBY, UNLIKE

# Correlation of β between sizes i and j: (i/j)^2.47, 1/e at a factor of 1.5.
_FADES = 1 / math.log(NEARBY)


class Sums(NamedTuple):
    """N(i) of some regions as noisy answers tell it, without bias, and its variance; infinite where
    no block tells it.

    Errors of different sizes are taken as independent.
    """

    height: FloatArray
    variance: FloatArray


@serial
def _as_answered(offsets, ends, answers, noise_variance, height, out, out_variance, start, stop):
    for region in range(start, stop):
        size = 0
        for block in range(offsets[region], offsets[region + 1]):
            end, fitted = ends[block], 0.0
            for at in range(size, end):
                fitted += height[region, at]
            width = end - size
            apart = (answers[block] - fitted) / width
            for at in range(size, end):
                out[region, at], out_variance[region, at] = (
                    height[region, at] + apart,
                    noise_variance / width,
                )
            size = end
        for at in range(size, height.shape[1]):
            out[region, at], out_variance[region, at] = height[region, at], np.inf


def as_answered(blocks: Blocks, curves: Curves) -> Sums:
    """Fitted curves, moved block by block to the blocks' noisy answers; past the last block nothing
    is known.

    Noise moves the w sizes of a block together, by σ/w each. It is passed on as independent noise
    of variance σ²/w per size, which has the same variance over the whole block.
    """
    found = Sums(np.empty_like(curves.height), np.empty_like(curves.height))
    run_in_chunks(
        lambda start, stop: _as_answered(*blocks, curves.height, *found, start, stop),
        len(curves.height),
    )
    return found


@serial
def _sum_children(groups, height, variance, fitted, child_starts, out, out_variance, start, stop):
    for region in range(start, stop):
        first, last = child_starts[region], child_starts[region + 1]
        n_groups = 0.0
        for child in range(first, last):
            n_groups += groups[child]
        for size in range(height.shape[1]):
            share = 0.0
            for child in range(first, last):
                share += fitted[child, size]
            share = min(max(share / max(n_groups, 1.0), 0.0), 1.0)
            mixed = share * (1.0 - share)
            plain, plain_variance, slope, strength, missing = 0.0, 0.0, 0.0, 0.0, 0.0
            is_known = True
            for child in range(first, last):
                n = float(groups[child])
                unlike = n * mixed + (UNLIKE * n * mixed) ** 2 + 1e-9
                noise = variance[child, size]
                is_known = is_known and (noise < np.inf or groups[child] == 0)
                kept = unlike / (unlike + noise)
                plain += kept * height[child, size]
                slope += n * height[child, size] / (unlike + noise)
                strength += n * n / (unlike + noise)
                missing += (1.0 - kept) * n
            step = missing / strength if strength > 0.0 else 0.0
            for child in range(first, last):
                n = float(groups[child])
                unlike = n * mixed + (UNLIKE * n * mixed) ** 2 + 1e-9
                noise = variance[child, size]
                weight = (unlike + step * n) / (unlike + noise)
                plain_variance += (1.0 - weight) ** 2 * unlike + (
                    weight * weight * noise if weight > 0.0 else 0.0
                )
            out[region, size] = plain + step * slope
            out_variance[region, size] = plain_variance if is_known else np.inf


def sum_children(
    groups: IntArray, children: Sums, fitted: FloatArray, child_starts: IntArray
) -> Sums:
    """What the children of each region tell about it; ``fitted`` holds their smoothed curves, which
    tell roughly what s is.

    ``groups`` is (n_children,), ``fitted`` (n_children, n_sizes), ``child_starts`` (n_parents +
    1,); the result is (n_parents, n_sizes).
    """
    shape = (len(child_starts) - 1, fitted.shape[1])
    found = Sums(np.empty(shape), np.empty(shape))
    run_in_chunks(
        lambda start, stop: _sum_children(
            groups, *children, fitted, child_starts, *found, start, stop
        ),
        shape[0],
    )
    return found


@serial
def _bias_of_region(groups, fitted, seen, unsure, bias_variance, bias, spread, state):
    """Mean and variance of what a fitted curve is off by, given noisy answers; returns their
    log-likelihood.
    """
    n_sizes = len(fitted)
    likelihood = 0.0
    mean, variance = 0.0, bias_variance
    for size in range(n_sizes):
        near = ((size + 1.0) / (size + 2.0)) ** _FADES
        mean, variance = near * mean, near * near * variance + (1.0 - near * near) * bias_variance
        state[size, 0], state[size, 1], state[size, 4] = mean, variance, near
        share = min(max(fitted[size] / max(groups, 1.0), 0.0), 1.0)
        scale = groups * share * (1.0 - share)
        if unsure[size] < np.inf:
            around = scale * scale * variance + unsure[size] + 1e-9
            miss = seen[size] - fitted[size] - scale * mean
            likelihood -= 0.5 * (np.log(around) + miss * miss / around)
            gain = scale * variance / around
            mean += gain * miss
            variance -= gain * scale * variance
        state[size, 2], state[size, 3] = mean, variance
    if len(bias):
        for size in range(n_sizes - 1, -1, -1):
            if size < n_sizes - 1:
                back = state[size, 3] * state[size + 1, 4] / max(state[size + 1, 1], 1e-300)
                mean = state[size, 2] + back * (mean - state[size + 1, 0])
                variance = state[size, 3] + back * back * (variance - state[size + 1, 1])
            share = min(max(fitted[size] / max(groups, 1.0), 0.0), 1.0)
            scale = groups * share * (1.0 - share)
            bias[size], spread[size] = scale * mean, scale * scale * max(variance, 0.0)
    return likelihood


@serial
def _bias(groups, fitted, height, variance, bias_variance, bias, spread, start, stop):
    state = np.empty((fitted.shape[1], 5))
    total, none = 0.0, np.empty(0)
    for region in range(start, stop):
        total += _bias_of_region(
            float(groups[region]),
            fitted[region],
            height[region],
            variance[region],
            bias_variance,
            bias[region] if len(bias) else none,
            spread[region] if len(bias) else none,
            state,
        )
    return total


def bias_log_likelihoods(
    groups: IntArray, fitted: FloatArray, sums: Sums, bias_variances: Sequence[float]
) -> list[float]:
    """Log-likelihood of noisy sums, if fitted curves are off by G s (1 − s) β: for each variance of
    β.

    ``groups`` is (n_regions,), ``fitted`` (n_regions, n_sizes).
    """
    none = np.empty((0, 0))
    return sums_over_chunks(
        lambda start, stop: [
            _bias(groups, fitted, *sums, variance, none, none, start, stop)
            for variance in bias_variances
        ],
        len(groups),
    )


def find_bias(groups: IntArray, fitted: FloatArray, sums: Sums, bias_variance: float) -> Sums:
    """What fitted curves are off by, and its variance: β wanders with sizes, and is forgotten over
    a factor of 1.5.

    ``groups`` is (n_regions,), ``fitted`` and the result (n_regions, n_sizes).
    """
    found = Sums(np.empty_like(fitted), np.empty_like(fitted))
    run_in_chunks(
        lambda start, stop: _bias(groups, fitted, *sums, bias_variance, *found, start, stop),
        len(groups),
    )
    return found
