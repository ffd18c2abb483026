"""Possible truths whose values lie in heaps, as people round what they are asked.

Bins of several sizes do not tell where in them the groups lie; a release spreads them along a
smooth curve. Values of real data lie at round numbers often, so that a median or a quantile of the
truth may be anywhere in its bin, however little noise there is. Truths drawn from a smooth curve
would never show that. So in each bin, alike in all regions, part of the groups are put to a few
sizes at random.
"""

from __future__ import annotations

import numpy as np

from tallytree.group_sizes.plan.shapes import redrawn
from tallytree.group_sizes.plan.size_bins import SizeBins
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs

# One heap for so many sizes of a bin; of each bin some heaps, but not too many to draw from. Half of
# the values of a survey may lie at every hundredth step, and the rest at all of them: this is as
# uneven.
_SIZES_PER_HEAP, _FEWEST, _MOST = 4, 2, 1024
_WEIGHT = 1000


def heaped(counts: CountsBySize, root: CountsBySize, bins: SizeBins, *, seed: int) -> CountsBySize:
    """As many groups in each bin of every region, those of a bin of several sizes at a few of the
    sizes that the ``root`` has there.
    """
    # An ordinary generator: what is drawn is public and hides nothing.
    rng = np.random.default_rng([seed, 4])
    wide = np.flatnonzero(np.diff(bins.edges) > 1)
    bin_of = bins.bin_of(counts.size)
    moved = np.isin(bin_of, wide)
    cells, cell = np.unique(
        counts.region_of_run()[moved] * bins.n_bins + bin_of[moved], return_inverse=True
    )
    n_groups = np.bincount(cell, counts.count[moved], len(cells)).astype(np.int64)
    heaps = {int(place): _heaps_of(rng, root, bins, int(place)) for place in wide}
    own = [heaps[place] for place in (cells % bins.n_bins).tolist()]
    lengths = np.array([len(sizes) for sizes, _ in own], dtype=np.int64)
    shares = counts_from_runs(
        np.repeat(np.arange(len(cells)), lengths),
        np.concatenate([np.zeros(0, np.int64), *(sizes for sizes, _ in own)]),
        np.concatenate([np.zeros(0, np.int64), *(weights for _, weights in own)]),
        len(cells),
    )
    drawn = redrawn(shares, n_groups, seed=seed)
    return counts_from_runs(
        np.concatenate(
            [counts.region_of_run()[~moved], cells[drawn.region_of_run()] // bins.n_bins]
        ),
        np.concatenate([counts.size[~moved], drawn.size]),
        np.concatenate([counts.count[~moved], drawn.count]),
        counts.n_regions,
    )


def _heaps_of(
    rng: np.random.Generator, root: CountsBySize, bins: SizeBins, place: int
) -> tuple[IntArray, IntArray]:
    """Sizes of the heaps of a bin, where the root has groups, and their weights."""
    here = np.flatnonzero((root.size >= bins.edges[place]) & (root.size < bins.edges[place + 1]))
    if not len(here):
        return bins.edges[place : place + 1], np.array([1])
    n_heaps = int(np.clip(len(here) // _SIZES_PER_HEAP, _FEWEST, _MOST))
    sizes = rng.choice(root.size[here], n_heaps, p=root.count[here] / root.count[here].sum())
    weights = 1 + (_WEIGHT * rng.exponential(size=n_heaps)).astype(np.int64)
    return sizes, weights
