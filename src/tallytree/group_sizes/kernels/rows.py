"""The part of a curve past its last block, filled in from the noisy sizes of the largest groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.kernels.curves import Blocks, Curves
from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray, runs_at
from tallytree.tuning.curves import NEARBY
from tallytree.tuning.rows import CLEAR_SCALES, HIDDEN_DEVIATIONS, REACH, UNEXPECTED


class Rows(NamedTuple):
    """Estimated sizes of the largest groups of some regions.

    Attributes
    ----------
    offsets, sizes
        Region ``r`` owns ``sizes`` from ``offsets[r]`` on, in falling order; what noise hides is
        set to the last block end.
    n_hidden, hidden
        Rows per region that noise hides, and their noisy number of entities past the last block
        end.
    noise_variance
        Of each row.
    """

    offsets: IntArray
    sizes: FloatArray
    n_hidden: FloatArray
    hidden: FloatArray
    noise_variance: float

    def at(self, regions: IntArray) -> Rows:
        """The rows of some regions, in this order."""
        offsets, places = runs_at(self.offsets, regions)
        return Rows(
            offsets,
            self.sizes[places],
            self.n_hidden[regions],
            self.hidden[regions],
            self.noise_variance,
        )


@serial
def _expected_masses(fall, masses):
    """Share of groups of each size in a shape, raised by a little of the mean nearby: no size is
    impossible.
    """
    n_sizes = len(fall)
    height = 1.0
    before = np.empty(n_sizes + 1)
    before[0] = 0.0
    for size in range(n_sizes):
        masses[size] = height * fall[size]
        before[size + 1] = before[size] + masses[size]
        height -= masses[size]
    for size in range(n_sizes):
        low, high = int(size / NEARBY), min(int(size * NEARBY) + 1, n_sizes)
        masses[size] += UNEXPECTED * (before[high] - before[low]) / (high - low) + 1e-12


@serial
def _beyond(row, first, scale):
    """Σ exp(−|j − row| / scale) over all j from ``first`` on."""
    ratio = 1.0 - np.exp(-1.0 / scale)
    if row <= first:
        return np.exp(-(first - row) / scale) / ratio
    below = np.floor(row)
    up_to = np.exp(-(row - below) / scale) * (1.0 - np.exp(-(below - first + 1.0) / scale)) / ratio
    return up_to + np.exp(-(below + 1.0 - row) / scale) / ratio


@serial
def _add_row(row, first, masses, scale, weight, unsure, exactly, variance):
    """Add a group whose size was measured with noise of this scale: ``exactly[j]`` gains the
    probability of size j.

    Sizes are as likely as the shape has them; past the last size, ``exactly[-1]``, as likely as
    there. ``weight`` counts the group, or several at once, and ``unsure`` is its variance.
    """
    n_sizes = len(masses)
    low = max(first, int(row - REACH * scale))
    if low >= n_sizes:
        exactly[n_sizes] += weight
        return
    high = min(n_sizes, int(row + REACH * scale) + 1)
    beyond = masses[n_sizes - 1] * _beyond(row, n_sizes, scale) if high == n_sizes else 0.0
    total = beyond
    for size in range(low, high):
        total += masses[size] * np.exp(-abs(size - row) / scale)
    larger = 1.0
    for size in range(low, high):
        share = masses[size] * np.exp(-abs(size - row) / scale) / total
        exactly[size] += weight * share
        larger = max(larger - share, 0.0)
        variance[size] += weight * larger * (1.0 - larger) + unsure * larger * larger
    exactly[n_sizes] += weight * beyond / total


@serial
def _add_clear_rows(first, sizes, expected, masses, scale, exactly, variance):
    """Add rows past ``first``; returns how many there were.

    Rows count until they are as many as expected, and beyond that where they stand clear of noise,
    (ln M + 3) scales.
    """
    clear = first + (np.log(len(sizes) + 1.0) + CLEAR_SCALES) * scale
    counted = 0.0
    for i in range(len(sizes)):
        size = sizes[i]
        weight = 1.0 if size > clear else min(expected - counted, 1.0)
        if size <= first or weight <= 0.0:
            break
        counted += weight
        _add_row(size, first, masses, scale, weight, 0.0, exactly, variance)
    return counted


@serial
def _add_hidden_groups(first, n_groups, unsure, excess, exactly, variance):
    """Add groups of which only the mean excess over ``first`` is known: N falls by the same share
    at every size.
    """
    kept = excess / (1.0 + excess)
    share = 1.0
    for size in range(first, len(variance)):
        exactly[size] += n_groups * share * (1.0 - kept)
        share *= kept
        variance[size] += n_groups * share * (1.0 - share) + unsure * share * share
    exactly[len(variance)] += n_groups * share


@serial
def _finish_with_rows(prior, ends, offsets, rows, excess, height, variance, start, stop):
    n_sizes = height.shape[1]
    scale = np.sqrt(rows.noise_variance / 2)
    masses, exactly = np.empty(n_sizes), np.empty(n_sizes + 1)
    known = -1
    for region in range(start, stop):
        first = ends[offsets[region + 1] - 1]
        if first == n_sizes:
            continue
        if prior.row[region] != known:
            known = prior.row[region]
            _expected_masses(prior.fall[known], masses)
        for size in range(first, n_sizes):
            variance[region, size], exactly[size] = 1e-6, 0.0
        exactly[n_sizes] = 0.0
        sizes = rows.sizes[rows.offsets[region] : rows.offsets[region + 1]]
        groups, unsure = max(height[region, first - 1], 0.0), variance[region, first - 1]
        hidden = groups - _add_clear_rows(
            first, sizes, groups, masses, scale, exactly, variance[region]
        )
        if hidden > 0.0 and excess >= 0.0:
            _add_hidden_groups(first, hidden, unsure, excess, exactly, variance[region])
        elif hidden > 0.0:
            _add_row(float(first), first, masses, scale, hidden, unsure, exactly, variance[region])
        larger = exactly[n_sizes]
        for size in range(n_sizes - 1, first - 1, -1):
            height[region, size] = larger
            larger += exactly[size]


def finish_with_rows(
    curves: Curves, prior: Prior, blocks: Blocks, rows: Rows, excess: float = -1.0
) -> None:
    """Fill each curve past its last block from the sizes of the largest groups, in place.

    Rows that stand out count, and of the sizes they may have those that the prior expects are
    likelier. Whatever more groups the curve says are left are hidden by noise: they are as rows at
    the end of the block. At the topmost measured level nothing above tells whether there are such
    groups at all: there they have the mean ``excess`` that rows show over all regions
    (:func:`hidden_excess`).
    """
    run_in_chunks(
        lambda start, stop: _finish_with_rows(
            prior,
            blocks.ends,
            blocks.offsets,
            rows,
            excess,
            curves.height,
            curves.variance,
            start,
            stop,
        ),
        len(curves.height),
    )


def hidden_excess(curves: Curves, blocks: Blocks, rows: Rows) -> float:
    """Mean number of entities past the last block end of the groups that noise hides: they share
    the entities that the other rows hold, over all regions, and have none where noise explains
    those.
    """
    last = blocks.ends[blocks.offsets[1:] - 1]
    groups = curves.height[np.arange(len(last)), last - 1]
    n_seen = np.diff(rows.offsets) - rows.n_hidden
    n_hidden = np.maximum(groups - n_seen, 0.0)[last < curves.height.shape[1]].sum()
    is_noise = rows.hidden.sum() <= HIDDEN_DEVIATIONS * np.sqrt(
        rows.n_hidden.sum() * rows.noise_variance
    )
    return 0.0 if is_noise else float(rows.hidden.sum() / max(n_hidden, 1.0))
