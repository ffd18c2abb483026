"""Sizes that no group of a combination of values has: couples live in households of two at least.

Such zeros belong to what an attribute means, so they hold in every region, and one noisy table of
the whole shows them: N(i) stays at the number of groups. A smoother that knows only that falls are
at least 0 takes half of the noise for small groups. Here a *head*, the sizes before the first fall,
is taken to be empty where that is likelier than falls like those of the prior; the regions below
then have no such groups either. Everything here is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tallytree.group_sizes.estimate.staircases import MeasuredLevel
from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.tuning.blocks import ROUGHNESS
from tallytree.tuning.curves import EMPTY_HEAD, HOPELESS_HEAD


def with_empty_heads(level: MeasuredLevel) -> MeasuredLevel:
    """The same, with a prior of its own for every row that has no falls where its head is empty.

    The first block is judged for all rows together too: where no group is empty, small rows alone
    could not tell.
    """
    prior = level.prior
    fall, variance = prior.fall[prior.row], prior.fall_variance[prior.row]
    has_groups = np.flatnonzero(level.n_groups > 0)
    gains = {int(row): _gains(level, int(row), fall[row], variance[row]) for row in has_groups}
    ends = np.zeros(len(level.n_groups), dtype=np.int64)
    if sum(gain[0] for _, gain in gains.values()) > EMPTY_HEAD:
        ends[has_groups] = min((int(until[0]) for until, _ in gains.values()), default=0)
    for row, (until, gain) in gains.items():
        best = int(np.argmax(gain))
        if gain[best] > EMPTY_HEAD:
            ends[row] = max(ends[row], until[best])
    empty = np.arange(fall.shape[1]) < ends[:, None]
    own = Prior(
        np.where(empty, 0.0, fall),
        np.where(empty, 0.0, variance),
        prior.excess[prior.row],
        np.arange(len(fall)),
    )
    return replace(level, prior=own)


def _gains(
    level: MeasuredLevel, row: int, fall: FloatArray, fall_variance: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Ends of the first blocks of a row, and the logarithm of how much likelier its answers are if
    no group is that small.

    The answer of a block is compared with the number of groups at each of its sizes, and with falls
    like the prior's. It ends where what was answered has become so unlikely that no later block
    makes up for it.
    """
    offsets, block_ends, answers, noise = level.blocks
    groups = float(level.n_groups[row])
    until: list[int] = []
    gains: list[float] = []
    size, gain = 0, 0.0
    for block in range(offsets[row], offsets[row + 1]):
        end = int(block_ends[block])
        width = end - size
        height, height_variance, cells, cross, cells_variance = groups, 0.0, 0.0, 0.0, 0.0
        for at in range(size, end):
            kept, falling = 1 - fall[at], height * fall[at]
            height_variance *= kept**2
            height_variance += falling + (ROUGHNESS * falling) ** 2 + height**2 * fall_variance[at]
            cells_variance += 2 * kept * cross + height_variance
            cross = kept * cross + height_variance
            height *= kept
            cells += height
        spread, least = cells_variance + noise, max(noise, 1e-9)
        gain += 0.5 * (
            math.log(max(spread, least) / least)
            + (answers[block] - cells) ** 2 / max(spread, least)
        )
        gain -= 0.5 * (answers[block] - groups * width) ** 2 / least
        until.append(end)
        gains.append(gain)
        size = end
        if gain < HOPELESS_HEAD:
            break
    return np.array(until, dtype=np.int64), np.array(gains)
