"""What noise and smoothing may have hidden of a truth, drawn at random from a release.

Curves lean on the levels above and on neighbouring sizes, so a release is smoother, and its regions
are more alike, than the truth may be. A possible truth gets back what the answers do not rule out:
regions unlike each other, heaps within the blocks that were measured, and entities of the largest
groups that only the sum of their noisy rows shows. Where the noise is small, a copy measures all
this and its error stays small; where it is large, the error is what is not known.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.hierarchy import Hierarchy
from tallytree.tuning.blocks import BLUR, ROUGHNESS
from tallytree.tuning.truths import HEAPS, NEAR, TAIL_OF_HIDDEN, TIMES, UNLIKE_REGIONS


def unlike_regions(counts: CountsBySize, tree: Hierarchy, *, seed: int) -> CountsBySize:
    """The shares of sizes in every leaf, as counts, with larger groups likelier in some regions and
    smaller ones in others: by a random factor for each region below the root.

    ``counts`` has as many rows per leaf as groups have combinations of values.
    """
    rng = np.random.default_rng([seed, 4])
    leaves = np.arange(tree.n_regions)[tree.level_slice(tree.n_levels - 1)]
    drawn = rng.standard_normal(tree.n_regions)
    drawn[0] = 0.0
    moved, region = np.zeros(tree.n_leaves), leaves
    for _ in range(tree.n_levels - 1):
        moved += drawn[region]
        region = tree.parent[region]
    row = counts.region_of_run()
    leaf = row // max(counts.n_regions // tree.n_leaves, 1)
    factor = np.exp(UNLIKE_REGIONS * moved[leaf] * _normal_scores(counts))
    weight = np.rint(np.clip(TIMES * factor, 1.0, TIMES**2)).astype(np.int64)
    return CountsBySize(counts.offsets, counts.size, counts.count * weight)


def _normal_scores(counts: CountsBySize) -> FloatArray:
    """Where the size of each run stands among all groups, as a deviate of a normal law."""
    sizes, of_run = np.unique(counts.size, return_inverse=True)
    groups = np.bincount(of_run, counts.count, len(sizes))
    middle = (np.cumsum(groups) - groups / 2) / max(groups.sum(), 1)
    scores: FloatArray = ndtri(np.clip(middle, 1e-3, 1 - 1e-3))[of_run]
    return scores


def with_hidden_entities(
    counts: CountsBySize, told_apart: int, hidden: tuple[int, int], *, seed: int
) -> CountsBySize:
    """The same, with the entities that noisy rows show beyond those released, give or take their
    standard deviation, dealt at random to the groups that are taken to be as large as the last size
    told apart.
    """
    rng = np.random.default_rng([seed, 5])
    at = np.flatnonzero(counts.size == told_apart)
    n_groups = int(counts.count[at].sum())
    entities = rng.normal(*hidden)
    if not n_groups or entities <= 0:
        return counts
    region = np.repeat(counts.region_of_run()[at], counts.count[at])
    excess = entities / n_groups * rng.pareto(TAIL_OF_HIDDEN, n_groups) * (TAIL_OF_HIDDEN - 1)
    size = told_apart + excess.astype(np.int64)
    kept = np.ones(len(counts.size), dtype=bool)
    kept[at] = False
    return counts_from_runs(
        np.concatenate([counts.region_of_run()[kept], region]),
        np.concatenate([counts.size[kept], size]),
        np.concatenate([counts.count[kept], np.ones(n_groups, dtype=np.int64)]),
        counts.n_regions,
    )


def with_heaps(
    counts: CountsBySize, told_apart: int, noise_std: float, *, seed: int
) -> CountsBySize:
    """The same, with a part of the groups of each block of sizes moved to one size of it.

    Blocks are as wide as noise makes them at the root, from the falls of its curve, and end with
    the sizes told apart.
    """
    rng = np.random.default_rng([seed, 6])
    told_apart = min(told_apart, int(counts.size.max(initial=0)) + 1)
    near = counts.size < told_apart
    root = np.bincount(counts.size[near], counts.count[near], told_apart).astype(np.float64)
    heap = _heaps(root, noise_std, rng)
    moved = np.where(near, rng.binomial(counts.count, HEAPS), 0)
    region = counts.region_of_run()
    return counts_from_runs(
        np.concatenate([region, region]),
        np.concatenate([counts.size, heap[np.minimum(counts.size, told_apart - 1)]]),
        np.concatenate([counts.count - moved, moved]),
        counts.n_regions,
    )


def _heaps(root: FloatArray, noise_std: float, rng: np.random.Generator) -> IntArray:
    """For each size the size of its block where the heap is."""
    falls = np.convolve(root, np.full(2 * NEAR + 1, 1 / (2 * NEAR + 1)), "same")[: len(root)]
    rough = falls + (ROUGHNESS * falls) ** 2 + 1e-9
    width = np.minimum(np.cbrt(BLUR * noise_std**2 / rough), np.maximum(np.arange(len(root)), 1))
    heap = np.arange(len(root))
    start = 0
    while start < len(root):
        stop = min(start + max(math.floor(width[start]), 1), len(root))
        heap[start:stop] = rng.integers(start, stop)
        start = stop
    return heap
