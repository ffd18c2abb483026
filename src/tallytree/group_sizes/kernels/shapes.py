"""What fitted curves hand on: the shape that the regions below follow."""

from __future__ import annotations

import numpy as np

from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.kernels.curves import Curves
from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray


@serial
def _smoothed(fall, fall_variance, window, out, out_variance, start, stop):
    n_sizes = fall.shape[1]
    falls, heights, noise = np.empty(n_sizes + 1), np.empty(n_sizes + 1), np.empty(n_sizes + 1)
    falls[0], heights[0], noise[0] = 0.0, 0.0, 0.0
    for row in range(start, stop):
        height = 1.0
        for size in range(n_sizes):
            falls[size + 1] = falls[size] + height * fall[row, size]
            heights[size + 1] = heights[size] + height
            noise[size + 1] = noise[size] + height * height * fall_variance[row, size]
            height *= 1.0 - fall[row, size]
        for size in range(n_sizes):
            low, high = (
                int(np.ceil((size + 1) / window)) - 1,
                min(int((size + 1) * window), n_sizes),
            )
            weight = heights[high] - heights[low]
            if weight > 1e-9:
                out[row, size] = min(max((falls[high] - falls[low]) / weight, 0.0), 1.0)
                out_variance[row, size] = (noise[high] - noise[low]) / (weight * weight)
            else:
                out[row, size], out_variance[row, size] = 1.0, 0.0


def smoothed(prior: Prior, window: float) -> Prior:
    """The prior with each fall replaced by the mean over sizes from i/window to i·window, weighted
    by height.
    """
    if window == 1:
        return prior
    fall, variance = np.empty_like(prior.fall), np.empty_like(prior.fall)
    run_in_chunks(
        lambda start, stop: _smoothed(
            prior.fall, prior.fall_variance, window, fall, variance, start, stop
        ),
        len(prior.fall),
    )
    return prior._replace(fall=fall, fall_variance=variance)


@serial
def _shapes(groups, height, variance, noise, beyond, fall, fall_variance, excess, start, stop):
    n_sizes = height.shape[1]
    for region in range(start, stop):
        before, uncertain = float(groups[region]), 0.0
        for size in range(n_sizes):
            here = min(max(height[region, size], 0.0), before)
            fall[region, size] = (before - here) / before if before > 1e-9 else 1.0
            spread = min(uncertain + variance[region, size], noise[region, size])
            fall_variance[region, size] = (
                min(spread / (before * before), 1.0) if before > 0.5 else 1.0
            )
            excess[region, size] = before  # for the backward pass
            uncertain = variance[region, size]
            before = here
        cells = beyond[region]
        for size in range(n_sizes - 1, -1, -1):
            cells += excess[region, size] * (1.0 - fall[region, size])
            excess[region, size] = cells / max(excess[region, size], 1e-3)


def shapes(
    groups: IntArray, curves: Curves, beyond: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Falls, their variance and the mean excess of fitted curves: what they tell about the regions
    below.

    ``beyond`` holds the cells of each staircase past the last size.

    ``groups`` and ``beyond`` are (n_regions,), the results (n_regions, n_sizes).
    """
    fall, variance, excess = (np.empty_like(curves.height) for _ in range(3))
    run_in_chunks(
        lambda start, stop: _shapes(groups, *curves, beyond, fall, variance, excess, start, stop),
        len(groups),
    )
    return fall, variance, excess
