"""The staircase of a region, measured tile by tile: exact sums, and where the next tiles begin and
end.

N(i) is the number of groups with more than i entities. Written as columns of height N(0), N(1), …
the groups form a staircase with one cell per entity, and an entity that comes or goes changes one
cell. A *block* is a stretch of columns; its answer is the number of cells in it, the sum of N over
its sizes.

Beside the answers, regions keep a running prediction of N with its variance, from answers already
given. Blocks follow from the prediction alone, so they are as public as the answers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray, offsets_from_lengths
from tallytree.model.count_of_counts import CountsBySize
from tallytree.tuning.blocks import BLUR, FIRST_SIZES, ROUGHNESS, SPACING


class Prior(NamedTuple):
    """What is known about the staircases of some regions before they are measured, one row per
    shape.

    Attributes
    ----------
    fall
        Share of the groups with at least i entities that have exactly i, per size i.
    fall_variance
        Variance of that share, from the noise of what it was estimated from.
    excess
        Mean number of entities beyond i of the groups that have at least i.
    row
        Shape that each region follows.
    """

    fall: FloatArray
    fall_variance: FloatArray
    excess: FloatArray
    row: IntArray

    def at(self, regions: IntArray) -> Prior:
        """What is known about some regions, in this order, and no other shapes; shapes in the order
        in which they appear.
        """
        shapes, first, row = np.unique(self.row[regions], return_index=True, return_inverse=True)
        order = np.argsort(first)
        shapes, row = shapes[order], np.argsort(order)[row]
        return Prior(self.fall[shapes], self.fall_variance[shapes], self.excess[shapes], row)

    def piece(self, regions: slice) -> Prior:
        """What is known about consecutive regions, whose shapes are consecutive too."""
        row = self.row[regions]
        shapes = slice(int(row[0]), int(row[-1]) + 1) if len(row) else slice(0, 0)
        return Prior(
            self.fall[shapes], self.fall_variance[shapes], self.excess[shapes], row - shapes.start
        )


class Predictions(NamedTuple):
    """Running prediction of N per region, its variance, and the size at which blocks end (-1 while
    they go on).
    """

    height: FloatArray
    variance: FloatArray
    stop: IntArray


@serial
def _cells_between(offsets, size, count, block_offsets, first, ends, out, start, stop):
    for region in range(start, stop):
        run = offsets[region + 1] - 1
        larger = 0
        for block in range(block_offsets[region + 1] - 1, block_offsets[region] - 1, -1):
            begin = first[region] if block == block_offsets[region] else ends[block - 1]
            end = ends[block]
            missing = 0  # cells of columns below `end` that groups of sizes between do not reach
            while run >= offsets[region] and size[run] > begin:
                missing += count[run] * max(end - size[run], 0)
                larger += count[run]
                run -= 1
            out[block] = larger * (end - begin) - missing


def cells_between(
    counts: CountsBySize, first: IntArray, block_offsets: IntArray, ends: IntArray
) -> IntArray:
    """Cells of each region's staircase in consecutive blocks: the first from size ``first[r]``,
    each up to its end.

    Linear in runs and blocks. Sums fit 64 bits while groups times the largest end do.
    """
    out = np.empty(len(ends), dtype=np.int64)
    run_in_chunks(
        lambda start, stop: _cells_between(
            counts.offsets, counts.size, counts.count, block_offsets, first, ends, out, start, stop
        ),
        counts.n_regions,
    )
    return out


@serial
def _next_blocks(prior, height, ended, noise_variance, bounds, ends, places, start, stop):
    """With ``ends`` empty, count blocks into ``places`` and note where regions stop; otherwise
    write them.
    """
    low, high = bounds
    fall, fall_variance, excess = prior.fall, prior.fall_variance, prior.excess
    counting = len(ends) == 0
    spacing = SPACING * np.sqrt(noise_variance)
    for region in range(start, stop):
        n_blocks = 0
        if ended[region] < 0:
            shape = prior.row[region]
            predicted = height[region]
            size = low
            while size < high:
                if size >= FIRST_SIZES and excess[shape, size] > spacing * max(predicted, 1e-9):
                    break
                widest = min(max(1, size), high - size)
                width, spread = 0, 0.0
                while width < widest:
                    falling = predicted * fall[shape, size + width]
                    variance = (
                        falling
                        + (ROUGHNESS * falling) ** 2
                        + predicted**2 * fall_variance[shape, size + width]
                    )
                    # w²·Σv = w³·(mean v)
                    if width > 0 and (width + 1) ** 2 * (spread + variance) > BLUR * noise_variance:
                        break
                    spread += variance
                    predicted -= falling
                    width += 1
                size += width
                if not counting:
                    ends[places[region] + n_blocks] = size
                n_blocks += 1
            if counting and (size < high or high == fall.shape[1]):
                ended[region] = size
        if counting:
            places[region] = n_blocks


def next_blocks(
    prior: Prior, predictions: Predictions, noise_variance: float, low: int, high: int
) -> tuple[IntArray, IntArray, Predictions]:
    """Blocks of each region from size ``low`` to ``high``, as offsets and ends; regions whose
    blocks end are marked.

    Regions that have ended before get none. A block is as wide as the predicted falls allow
    (``BLUR``), at most as wide as the size it begins at.
    """
    n_regions = len(prior.row)
    ended = predictions.stop.copy()
    lengths = np.zeros(n_regions, dtype=np.int64)
    bounds = np.array([low, high])
    none = np.empty(0, dtype=np.int64)

    def run(ended: IntArray, ends: IntArray, places: IntArray) -> None:
        run_in_chunks(
            lambda start, stop: _next_blocks(
                prior, predictions.height, ended, noise_variance, bounds, ends, places, start, stop
            ),
            n_regions,
        )

    run(ended, none, lengths)
    offsets = offsets_from_lengths(lengths)
    ends = np.empty(offsets[-1], dtype=np.int64)
    if len(ends):
        run(predictions.stop, ends, offsets[:-1].copy())
    return offsets, ends, predictions._replace(stop=ended)


@serial
def _advance(prior, height, variance, noise_variance, low, offsets, ends, answers, start, stop):
    for region in range(start, stop):
        shape = prior.row[region]
        size = low
        predicted, uncertain = height[region], variance[region]
        for block in range(offsets[region], offsets[region + 1]):
            before = predicted
            # Sum of the block so far: its prediction, covariance with N, variance.
            cells, cross, within = 0.0, 0.0, 0.0
            while size < ends[block]:
                kept = 1.0 - prior.fall[shape, size]
                falling = predicted * prior.fall[shape, size]
                more = (
                    falling
                    + (ROUGHNESS * falling) ** 2
                    + predicted**2 * prior.fall_variance[shape, size]
                )
                uncertain = kept * kept * uncertain + more
                within += 2 * kept * cross + uncertain
                cross = kept * cross + uncertain
                predicted *= kept
                cells += predicted
                size += 1
            gain = cross / (within + noise_variance)
            predicted = min(max(predicted + gain * (answers[block] - cells), 0.0), before)
            uncertain -= gain * cross
        height[region], variance[region] = predicted, uncertain


def advance(
    prior: Prior,
    predictions: Predictions,
    noise_variance: float,
    low: int,
    blocks: tuple[IntArray, IntArray],
    answers: IntArray,
) -> Predictions:
    """The prediction after the noisy answers to blocks from size ``low`` on: a Kalman filter along
    sizes.

    ``blocks`` are offsets (n_regions + 1,) and ends (n_blocks,); ``answers`` is (n_blocks,).
    """
    height, variance = predictions.height.copy(), predictions.variance.copy()
    offsets, ends = blocks
    run_in_chunks(
        lambda start, stop: _advance(
            prior, height, variance, noise_variance, low, offsets, ends, answers, start, stop
        ),
        len(prior.row),
    )
    return Predictions(height, variance, predictions.stop)
