"""What fitted curves hand on: the shape that the regions below follow, and the part of a curve that rows fill in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.kernels.staircase import Prior
from tallytree.kernels.staircase_curves import Blocks, Curves
from tallytree.model.arrays import FloatArray, IntArray

# Entities of hidden groups count where their sum stands this far above its noise.
HIDDEN_DEVIATIONS = 2.5


class Rows(NamedTuple):
    """Estimated sizes of the largest groups of some regions.

    Attributes
    ----------
    offsets, sizes
        Region ``r`` owns ``sizes`` from ``offsets[r]`` on, in falling order; what noise hides is set to the last block end.
    n_hidden, hidden
        Rows per region that noise hides, and their noisy number of entities past the last block end.
    noise_variance
        Of each row.
    """

    offsets: IntArray
    sizes: FloatArray
    n_hidden: FloatArray
    hidden: FloatArray
    noise_variance: float


@serial
def _smoothed(fall, fall_variance, window, out, out_variance, start, stop):  # type: ignore[no-untyped-def]
    n_sizes = fall.shape[1]
    falls, heights, noise = np.zeros(n_sizes + 1), np.zeros(n_sizes + 1), np.zeros(n_sizes + 1)
    for row in range(start, stop):
        height = 1.0
        for size in range(n_sizes):
            falls[size + 1] = falls[size] + height * fall[row, size]
            heights[size + 1] = heights[size] + height
            noise[size + 1] = noise[size] + height * height * fall_variance[row, size]
            height *= 1.0 - fall[row, size]
        for size in range(n_sizes):
            low, high = int(np.ceil((size + 1) / window)) - 1, min(int((size + 1) * window), n_sizes)
            weight = heights[high] - heights[low]
            if weight > 1e-9:
                out[row, size] = min(max((falls[high] - falls[low]) / weight, 0.0), 1.0)
                out_variance[row, size] = (noise[high] - noise[low]) / (weight * weight)
            else:
                out[row, size], out_variance[row, size] = 1.0, 0.0


def smoothed(prior: Prior, window: float) -> Prior:
    """The prior with each fall replaced by the mean over sizes from i/window to i·window, weighted by height."""
    if window == 1:
        return prior
    fall, variance = np.empty_like(prior.fall), np.empty_like(prior.fall)
    run_in_chunks(
        lambda start, stop: _smoothed(prior.fall, prior.fall_variance, window, fall, variance, start, stop),
        len(prior.fall),
    )
    return prior._replace(fall=fall, fall_variance=variance)


@serial
def _shapes(groups, height, variance, noise, beyond, fall, fall_variance, excess, start, stop):  # type: ignore[no-untyped-def]
    n_sizes = height.shape[1]
    for region in range(start, stop):
        before, uncertain = float(groups[region]), 0.0
        for size in range(n_sizes):
            here = min(max(height[region, size], 0.0), before)
            fall[region, size] = (before - here) / before if before > 1e-9 else 1.0
            spread = min(uncertain + variance[region, size], noise[region, size])
            fall_variance[region, size] = min(spread / (before * before), 1.0) if before > 0.5 else 1.0
            excess[region, size] = before  # for the backward pass
            uncertain = variance[region, size]
            before = here
        cells = beyond[region]
        for size in range(n_sizes - 1, -1, -1):
            cells += excess[region, size] * (1.0 - fall[region, size])
            excess[region, size] = cells / max(excess[region, size], 1e-3)


def shapes(groups: IntArray, curves: Curves, beyond: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Falls, their variance and the mean excess of fitted curves: what they tell about the regions below.

    ``beyond`` holds the cells of each staircase past the last size.
    """
    fall, variance, excess = (np.empty_like(curves.height) for _ in range(3))
    run_in_chunks(
        lambda start, stop: _shapes(groups, *curves, beyond, fall, variance, excess, start, stop), len(groups)
    )
    return fall, variance, excess


@serial
def _add_clear_rows(first, last, sizes, expected, scale, height, variance):  # type: ignore[no-untyped-def]
    """Add rows past ``first``, each a step that is smeared by the noise: N(i) gains P(size > i). Returns how many there were.

    Rows count until they are as many as expected, and beyond that where they stand clear of noise, (ln M + 3) scales.
    """
    clear = first + (np.log(len(sizes) + 1.0) + 3.0) * scale
    counted = 0.0
    for size in sizes:
        weight = 1.0 if size > clear else min(expected - counted, 1.0)
        if size <= first or weight <= 0.0:
            break
        counted += weight
        whole = 1.0 - 0.5 * np.exp(-(size - first + 1.0) / scale)
        for i in range(first, last):
            distance = (i + 0.5 - size) / scale
            if distance > 12.0:
                break
            share = 0.5 * np.exp(-distance) if distance > 0 else 1.0 - 0.5 * np.exp(distance)
            share = weight * min(share / whole, 1.0)
            height[i] += share
            variance[i] += share * (1.0 - share)
    return counted


@serial
def _add_unclear_rows(first, last, n_groups, uncertain, excess, height, variance):  # type: ignore[no-untyped-def]
    """Add groups whose sizes the noise hides, with this mean excess: N falls by the same share at every size."""
    kept = excess / (1.0 + excess)
    share = 1.0
    for i in range(first, last):
        share *= kept
        if share < 1e-6:
            break
        height[i] += n_groups * share
        variance[i] += n_groups * share * (1.0 - share) + share * share * uncertain


@serial
def _finish_with_rows(ends, offsets, rows, is_top, height, variance, start, stop):  # type: ignore[no-untyped-def]
    n_sizes = height.shape[1]
    scale = np.sqrt(rows.noise_variance / 2)
    for region in range(start, stop):
        first = ends[offsets[region + 1] - 1]
        if first == n_sizes:
            continue
        for i in range(first, n_sizes):
            height[region, i], variance[region, i] = 0.0, 1e-6
        sizes = rows.sizes[rows.offsets[region] : rows.offsets[region + 1]]
        left = max(height[region, first - 1], 0.0)
        left -= _add_clear_rows(first, n_sizes, sizes, left, scale, height[region], variance[region])
        if left > 0.0:
            excess = scale
            if is_top:
                noise = np.sqrt(rows.n_hidden[region] * rows.noise_variance)
                excess = rows.hidden[region] / left if rows.hidden[region] > HIDDEN_DEVIATIONS * noise else 0.0
            uncertain = variance[region, first - 1]
            _add_unclear_rows(first, n_sizes, left, uncertain, excess, height[region], variance[region])


def finish_with_rows(curves: Curves, blocks: Blocks, rows: Rows, *, is_top: bool) -> None:
    """Fill each curve past its last block from the sizes of the largest groups, in place.

    Rows that stand out count as they are. Whatever more groups the curve says are left are hidden by noise, so they exceed the
    block by about its scale. At the topmost measured level nothing above tells whether there are such groups at all: there they
    share the entities that the other rows hold, and none where noise explains those.
    """
    run_in_chunks(
        lambda start, stop: _finish_with_rows(
            blocks.ends, blocks.offsets, rows, is_top, curves.height, curves.variance, start, stop
        ),
        len(curves.height),
    )
