"""Measuring group sizes: the one door from :class:`ConfidentialCounts` to noisy integers.

Each function answers a query exactly, in integers, adds exact integer noise, and returns nothing else. Regions of one level
hold different entities, so a level costs its budget once (parallel composition); levels add up (kuo2018, Theorem 1).
"""

from __future__ import annotations

import math

import numpy as np

from tallytree.kernels.queries import count_more_than, largest_sizes
from tallytree.measure.noisy import NoisyLevel, NoisyQuery
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize
from tallytree.planning.mechanisms import Totals
from tallytree.planning.plan import LevelPlan, QueryPlan
from tallytree.planning.thresholds import hybrid_thresholds, tail_lengths
from tallytree.privacy.noise import add_noise
from tallytree.privacy.randomness import KeyStream


def measure_group_totals(counts: ConfidentialCounts, queries: tuple[QueryPlan, ...], stream: KeyStream) -> IntArray:
    """Noisy number of groups of every region, where it is not public (kuo2018, footnote 5)."""
    hierarchy = counts.hierarchy
    totals = hierarchy.sum_from_leaves(counts.n_groups)
    noisy = np.empty_like(totals)
    for level, query in enumerate(queries):
        here = hierarchy.level_slice(level)
        offsets = np.arange(hierarchy.level_size(level) + 1)
        noisy[here] = add_noise(totals[here], query.noise, stream, level=level, query="groups", offsets=offsets)
    return noisy


def measure_largest_size(counts: ConfidentialCounts, query: QueryPlan, stream: KeyStream) -> int:
    """A noisy upper bound on the largest group: five standard deviations above it (kuo2018, footnote 6)."""
    largest = counts.leaf_counts.largest_size().max(initial=0)
    noisy = add_noise(np.array([largest]), query.noise, stream, level=0, query="largest")
    return max(1, int(noisy[0]) + math.ceil(5 * query.noise.std))


def measure_level(
    counts: ConfidentialCounts,
    plan: LevelPlan,
    n_groups: IntArray,
    max_size: int | None,
    stream: KeyStream,
    *,
    totals: Totals = "regions",
) -> NoisyLevel:
    """Measure one level in the view that the plan names.

    Parameters
    ----------
    n_groups
        Number of groups of each region of the level that later steps keep to; public or already paid for.
    max_size
        Public bound K on sizes for the views that need one; larger groups count as K.
    totals
        Whether later steps know the totals of all regions or the root's alone. In the second case public totals are
        measured too, as the last cumulative count H_c[K].
    """
    if plan.query is None:
        return NoisyLevel(plan.level, ())
    truth = counts.counts_on_levels.regions(counts.hierarchy.level_slice(plan.level))
    queries: tuple[NoisyQuery, ...]
    match plan.view:
        case "naive":
            queries = (_measure_counts(truth, plan, _known(max_size), stream),)
        case "sizes":
            queries = (_measure_sizes(truth, plan, n_groups, stream),)
        case "cumulative":
            lengths = np.full(truth.n_regions, _known(max_size))
            queries = (_measure_cumulative(truth, plan, n_groups, lengths, stream),)
            if totals == "root" and counts.groups_public:
                queries += (_measure_last(n_groups, plan, stream),)
        case "hybrid":
            queries = _measure_hybrid(truth, plan, n_groups, stream)
        case "chain":
            queries = (_measure_chain(truth, plan, _known(max_size), stream),)
    return NoisyLevel(plan.level, queries)


def _known(max_size: int | None) -> int:
    if max_size is None:
        raise ValueError("this view needs a maximum size; measure the largest size first")
    return max_size


def _noisy(name: str, values: IntArray, offsets: IntArray, plan: LevelPlan, stream: KeyStream) -> NoisyQuery:
    assert plan.query is not None  # levels without a budget return before they get here
    noise = plan.query.noise
    return NoisyQuery(
        name, noise, offsets, add_noise(values, noise, stream, level=plan.level, query=name, offsets=offsets)
    )


def _measure_counts(truth: CountsBySize, plan: LevelPlan, max_size: int, stream: KeyStream) -> NoisyQuery:
    """H for sizes 0 … K (kuo2018 §4.1)."""
    offsets = np.arange(truth.n_regions + 1) * (max_size + 1)
    return _noisy("counts", truth.dense(max_size).ravel(), offsets, plan, stream)


def _measure_sizes(truth: CountsBySize, plan: LevelPlan, n_groups: IntArray, stream: KeyStream) -> NoisyQuery:
    """H_g, the sorted sizes, one per group (kuo2018 §4.2)."""
    values, offsets = largest_sizes(truth, n_groups, np.zeros_like(n_groups))
    return _noisy("sizes", values, offsets, plan, stream)


def _measure_cumulative(
    truth: CountsBySize, plan: LevelPlan, n_groups: IntArray, lengths: IntArray, stream: KeyStream
) -> NoisyQuery:
    """H_c below the given lengths (kuo2018 §4.3), as G minus the noisy number of larger groups."""
    values, offsets = count_more_than(truth, lengths)
    larger = _noisy("cumulative", values, offsets, plan, stream)
    return NoisyQuery(larger.name, larger.noise, offsets, np.repeat(n_groups, lengths) - larger.values)


def _measure_last(n_groups: IntArray, plan: LevelPlan, stream: KeyStream) -> NoisyQuery:
    """H_c[K], the number of groups, as fioretto2021 §9 measures it with the other cumulative counts.

    Costs nothing beyond them: where groups are public no entity changes it.
    """
    return _noisy("last", n_groups, np.arange(len(n_groups) + 1), plan, stream)


def _measure_chain(truth: CountsBySize, plan: LevelPlan, max_size: int, stream: KeyStream) -> NoisyQuery:
    """Counts added up over all sizes, and within a size over the regions of the level (fioretto2021 §9.2.1).

    Entry (size, region) is kept with its region. One entity changes an entry of *every* region of the level, so the regions
    do not compose in parallel; see ``chain_sensitivity``.
    """
    table = truth.dense(max_size)
    chain = np.cumsum(table.T.ravel()).reshape(table.T.shape)
    offsets = np.arange(truth.n_regions + 1) * (max_size + 1)
    return _noisy("chain", chain.T.ravel(), offsets, plan, stream)


def _measure_hybrid(
    truth: CountsBySize, plan: LevelPlan, n_groups: IntArray, stream: KeyStream
) -> tuple[NoisyQuery, NoisyQuery]:
    """H_c below a threshold T, and the largest groups' sizes, raised to T, as a sorted list.

    Both parts get the whole budget of the level: an entity that joins a group of size s changes only H_c[s] when s < T, and
    only one entry of the list otherwise. The length of the list may follow from the noisy first part, since for each of
    its outcomes at most one of the two likelihood ratios differs from 1; see ``hybrid_sensitivity``.
    """
    assert plan.query is not None
    thresholds = hybrid_thresholds(n_groups, plan.query.noise.std)
    below = _measure_cumulative(truth, plan, n_groups, thresholds, stream)
    last_below = below.values[below.offsets[1:] - 1]
    lengths = tail_lengths(n_groups, last_below, plan.query.noise.std)
    values, offsets = largest_sizes(truth, lengths, thresholds)
    return below, _noisy("tail", values, offsets, plan, stream)
