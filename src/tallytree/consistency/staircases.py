"""From estimated staircases per level to leaves that add up.

Curves N(i) are additive, so a parent's curve and the sum of its children's are two estimates of the same thing. Going up, noisy
answers are summed as they are, since whatever bends each of them a little bends the sum of thousands by much. Going down,
curves are smoothed with the shape above, cut off at 0, and what is missing is shared out. Then the root is rounded, and
children take the sizes of their parent as they are, so no level spoils the one above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tallytree.estimate.hybrid import laplace_scale
from tallytree.estimate.staircases import Staircases
from tallytree.kernels.staircase.curves import Curves
from tallytree.kernels.staircase.sums import Sums, as_answered, bias_log_likelihood, find_bias, sum_children
from tallytree.kernels.staircase.tree import allocate, make_falling, share_out
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.hierarchy import Hierarchy
from tallytree.tuning.curves import BIASES, NEARBY

_NO_BOUND = np.iinfo(np.int64).max


def consistent_leaves(
    hierarchy: Hierarchy,
    n_groups: IntArray,
    levels: Sequence[Staircases | None],
    look: Curves,
    max_size: int | None = None,
    shift: FloatArray | None = None,
) -> CountsBySize:
    """Counts by size of the leaves from the staircases of all levels; None for levels that were not measured.

    ``look`` is the root's curve as the first look alone shows it; no group is larger than a public ``max_size``. ``shift`` is
    what other tables add to the number of entities of each leaf.
    """
    groups = [n_groups[hierarchy.level_slice(level)] for level in range(hierarchy.n_levels)]
    combined = _combine(hierarchy, groups, levels, look)
    if shift is not None:
        for level, curves in enumerate(combined):
            starts = hierarchy.leaf_starts[hierarchy.level_slice(level)]
            combined[level] = shifted(curves, np.add.reduceat(shift, starts))
    return whole_leaves(hierarchy, groups, combined, levels, max_size)


def shifted(curves: Curves, shift: FloatArray) -> Curves:
    """Curves whose sums over sizes have moved by so much, each size in proportion to its variance."""
    weight = np.maximum(curves.variance, 1e-12)
    moved = curves.height + shift[:, None] * weight / weight.sum(axis=1, keepdims=True)
    return curves._replace(height=moved)


def whole_leaves(
    hierarchy: Hierarchy,
    groups: Sequence[IntArray],
    combined: Sequence[Curves],
    levels: Sequence[Staircases | None],
    max_size: int | None,
) -> CountsBySize:
    """Whole counts by size of the leaves from curves of all levels that add up but are real, and what the levels tell about
    their largest groups. Curves are made falling in place.
    """
    n_sizes = combined[0].height.shape[1]
    least = _clear_groups(hierarchy, levels)
    for level, curves in enumerate(combined):
        make_falling(groups[level], curves.height, curves.variance)
    whole = np.maximum(np.rint(combined[0].height).astype(np.int64), least[0][:, None])
    whole = np.minimum(whole, groups[0][:, None])
    large = np.minimum(_large_sizes(levels, int(whole[0, -1]), n_sizes), max_size or _NO_BOUND)
    rows = _rows(hierarchy, levels)
    for level in range(1, hierarchy.n_levels):
        starts = _child_starts(hierarchy, level)
        kept = _affordable(least[level], whole[:, -1], starts)
        whole = allocate(whole, groups[level], kept, combined[level].height, starts)
        large = _deal(large, whole[:, -1], rows[level], hierarchy.parent[hierarchy.level_slice(level)])
    return _counts(groups[-1], whole, large)


def _child_starts(hierarchy: Hierarchy, level: int) -> IntArray:
    """Children of the regions of the level above, counted within the level."""
    above = hierarchy.level_slice(level - 1)
    return hierarchy.child_starts[above.start : above.stop + 1] - hierarchy.level_starts[level]


def _combine(
    hierarchy: Hierarchy, groups: Sequence[IntArray], levels: Sequence[Staircases | None], look: Curves
) -> list[Curves]:
    """Curves of all levels that add up."""
    leaves = levels[-1]
    assert leaves is not None, "the leaves are always measured"
    found = [leaves.curves]
    answered = as_answered(leaves.blocks, leaves.curves)
    for level in range(hierarchy.n_levels - 2, -1, -1):
        starts = _child_starts(hierarchy, level + 1)
        fitted = found[0]
        answered = sum_children(groups[level + 1], answered, fitted.height, starts)
        height, variance = (np.add.reduceat(values, starts[:-1], axis=0) for values in fitted[:2])
        summed = Curves(height, variance, fitted.fall_variance)
        summed = _without_bias(groups[level], summed, answered)
        own = levels[level]
        if own is not None:
            summed = _together(own.curves, summed)
            answered = _both(as_answered(own.blocks, own.curves), answered)
        elif level == 0:
            summed = _together(look, summed)
        found.insert(0, summed)
    for level in range(1, hierarchy.n_levels):
        below = found[level]
        share_out(found[level - 1].height, below.height, below.variance, _child_starts(hierarchy, level))
    return found


def _without_bias(n_groups: IntArray, summed: Curves, answered: Sums) -> Curves:
    """Sums of smoothed curves, corrected by what the sums of the noisy answers say they are off by.

    How far sums may be off at all is chosen once per level, by the likelihood of the answers.
    """
    likely = [bias_log_likelihood(n_groups, summed.height, answered, spread**2) for spread in BIASES]
    bias = find_bias(n_groups, summed.height, answered, BIASES[int(np.argmax(likely))] ** 2)
    return Curves(summed.height + bias.height, summed.variance + bias.variance, summed.fall_variance)


def _both(own: Sums, answered: Sums) -> Sums:
    """Two independent answers about the same curves, by inverse variance."""
    of_own, of_children = (1 / (known.variance + 1e-12) for known in (own, answered))
    variance = 1 / np.maximum(of_own + of_children, 1e-300)
    height = (of_own * own.height + of_children * answered.height) * variance
    return Sums(height, np.where(of_own + of_children > 0, variance, np.inf))


def _together(own: Curves, summed: Curves) -> Curves:
    """A parent's own curve and the sum of its children's, by inverse variance.

    Children share a prior and are cut off at 0, so their errors do not quite cancel, which their variances do not show. Where
    the two disagree by more than both variances explain, the sum's variance is raised by as much.
    """
    height, variance = own.height, own.variance
    apart = summed.height - height
    doubt = np.maximum(1.0, _window_means(apart**2) / (variance + summed.variance + 1e-12))
    spread = summed.variance * doubt
    weight = variance / (variance + spread + 1e-12)
    return Curves(height + weight * apart, variance * (1 - weight), own.fall_variance)


def _window_means(values: FloatArray) -> FloatArray:
    """Mean over sizes i/1.5 … 1.5 i of each row."""
    n_sizes = values.shape[1]
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    size = np.arange(1, n_sizes + 1)
    low = np.ceil(size / NEARBY).astype(np.int64) - 1
    high = np.minimum((size * NEARBY).astype(np.int64), n_sizes)
    means: FloatArray = (sums[:, high] - sums[:, low]) / (high - low)
    return means


def _clear_groups(hierarchy: Hierarchy, levels: Sequence[Staircases | None]) -> list[IntArray]:
    """Large groups that a region must keep room for: those that it or its children show clear of noise.

    Of thousands of leaves one shows a ghost now and then, as large as the noise of thousands reaches; a measured level above
    knows better, and its rows that may be as large bound the claim.
    """
    least: list[IntArray] = []
    claimed_from = math.inf
    for level in range(hierarchy.n_levels - 1, -1, -1):
        own = levels[level]
        here = np.zeros(hierarchy.level_size(level), dtype=np.int64) if own is None else own.clear
        if least:
            claimed = np.add.reduceat(least[0], _child_starts(hierarchy, level + 1)[:-1])
            here = np.maximum(here, claimed if own is None else np.minimum(claimed, own.possible(claimed_from)))
        if own is not None:
            claimed_from = min(claimed_from, own.clear_from)
        least.insert(0, here)
    return least


def _affordable(least: IntArray, room: IntArray, starts: IntArray) -> IntArray:
    """The claims of children, cut where together they exceed the large groups of their parent: the last children first."""
    before = np.cumsum(least) - least
    ahead = before - np.repeat(before[starts[:-1]], np.diff(starts))
    return np.clip(np.repeat(room, np.diff(starts)) - ahead, 0, least)


def _large_sizes(levels: Sequence[Staircases | None], n_large: int, n_sizes: int) -> IntArray:
    """Sizes of the root's groups past the last size, falling: the k-th largest rows of every level, by inverse variance.

    The k-th largest of M values that are all noise stands ln(M/2k) scales too high, give or take 1/√k. Unless a row stands
    clear of that by three such deviations it is lowered by as much, and its variance grows by the square of it.
    """
    weighted, weights = np.zeros(n_large), np.full(n_large, 1e-300)
    for level in levels:
        if level is None:
            continue
        noise_variance = level.rows.noise_variance
        scale = laplace_scale(noise_variance)
        largest = np.sort(level.rows.sizes)[::-1][:n_large]
        k = np.arange(1, len(largest) + 1)
        too_high = np.maximum(np.log((len(level.rows.sizes) + 1) / (2 * k)), 0.0) * scale
        lowered = np.where(largest > n_sizes + too_high + 3 * scale / np.sqrt(k), 0.0, too_high)
        largest = np.maximum(largest - lowered, n_sizes)
        weight = 1 / (noise_variance + lowered**2)
        weighted[: len(largest)] += weight * largest
        weights[: len(largest)] += weight
    sizes = np.maximum(np.rint(weighted / weights), n_sizes).astype(np.int64)
    return np.sort(sizes)[::-1]


def _rows(hierarchy: Hierarchy, levels: Sequence[Staircases | None]) -> list[tuple[IntArray, FloatArray]]:
    """Sizes of the largest groups per level, as offsets and falling sizes; those of the children where they have less noise."""
    rows: list[tuple[IntArray, FloatArray]] = []
    least = np.inf
    for level in range(hierarchy.n_levels - 1, -1, -1):
        own = levels[level]
        if own is not None and own.rows.noise_variance <= least:
            least = own.rows.noise_variance
            rows.insert(0, (own.rows.offsets, own.rows.sizes))
            continue
        below, sizes = rows[0]
        offsets = below[_child_starts(hierarchy, level + 1)]
        region = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        rows.insert(0, (offsets, sizes[np.lexsort((-sizes, region))]))
    return rows


def _deal(large: IntArray, n_large: IntArray, rows: tuple[IntArray, FloatArray], parent: IntArray) -> IntArray:
    """The parents' large sizes, dealt to their children in the order of the children's rows; falling within each child.

    ``large`` holds the sizes of the parents one after the other, falling within each; ``n_large`` how many each child has.
    """
    child = np.repeat(np.arange(len(n_large)), n_large)
    rank = np.arange(len(child)) - np.repeat(np.cumsum(n_large) - n_large, n_large)
    row = np.zeros(len(child))
    offsets, sizes = rows
    has_row = rank < np.diff(offsets)[child]
    row[has_row] = sizes[offsets[child[has_row]] + rank[has_row]]
    by_parent = np.lexsort((-row, parent[child]))
    dealt = np.empty(len(child), dtype=np.int64)
    dealt[by_parent] = large
    return dealt[np.lexsort((-dealt, child))]


def _counts(n_groups: IntArray, whole: IntArray, large: IntArray) -> CountsBySize:
    """Counts by size from whole curves and the sizes of the groups past them."""
    exactly = -np.diff(whole, axis=1, prepend=n_groups[:, None])
    region, size = np.nonzero(exactly)
    far = np.repeat(np.arange(len(n_groups)), whole[:, -1])
    return counts_from_runs(
        np.concatenate([region, far]),
        np.concatenate([size, large]).astype(np.int64),
        np.concatenate([exactly[region, size], np.ones_like(far)]),
        len(n_groups),
    )
