"""Measuring group sizes: the one door from :class:`ConfidentialCounts` to noisy integers.

Each function answers a query exactly, in integers, adds exact integer noise, and returns nothing
else. Regions of one level hold different entities, so a level costs its budget once (parallel
composition); levels add up (kuo2018, Theorem 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tallytree.group_sizes.noisy import NoisyLevel, NoisyQuery
from tallytree.group_sizes.plan.plan import LevelPlan, QueryPlan
from tallytree.group_sizes.plan.thresholds import hybrid_thresholds, most_listed, tail_lengths
from tallytree.kernels.queries import count_more_than, largest_sizes
from tallytree.model.arrays import IntArray, offsets_from_lengths
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.lattice import Family
from tallytree.options.choices import Totals
from tallytree.privacy.noise import add_noise
from tallytree.privacy.randomness import KeyStream

# Answers that exist without their noise at one time: enough to keep all cores busy, too few to
# matter for memory.
CELLS_PER_BLOCK = 1 << 22


def measure_group_totals(
    counts: ConfidentialCounts, queries: tuple[QueryPlan, ...], stream: KeyStream
) -> IntArray:
    """Noisy number of groups of every region, where it is not public (kuo2018, footnote 5)."""
    hierarchy = counts.hierarchy
    totals = hierarchy.sum_from_leaves(counts.n_groups)
    noisy = np.empty_like(totals)
    for level, query in enumerate(queries):
        here = hierarchy.level_slice(level)
        place = Place(stream, 0, hierarchy.level_size(level))
        noisy[here] = noisy_totals(totals[here], query, level, place)
    return noisy


def noisy_totals(totals: IntArray, query: QueryPlan, level: int, place: Place) -> IntArray:
    """The same for consecutive regions of a level, from their exact numbers of groups."""
    offsets = np.arange(len(totals) + 1)
    return add_noise(
        totals,
        query.noise,
        place.stream,
        level=level,
        query="groups",
        offsets=offsets,
        first_region=place.first_region,
    )


def measure_largest_size(counts: ConfidentialCounts, query: QueryPlan, stream: KeyStream) -> int:
    """A noisy upper bound on the largest group: five standard deviations above it (kuo2018,
    footnote 6).
    """
    return noisy_largest_size(int(counts.leaf_counts.largest_size().max(initial=0)), query, stream)


def noisy_largest_size(largest: int, query: QueryPlan, stream: KeyStream) -> int:
    """The same from the exact largest size, which only a caller on the confidential side has."""
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
        Number of groups of each region of the level that later steps keep to; public or already
        paid for.
    max_size
        Public bound K on sizes for the views that need one; larger groups count as K.
    totals
        Whether later steps know the totals of all regions or the root's alone. In the second case
        public totals are measured too, as the last cumulative count H_c[K].
    """
    truth = counts.counts_of(Family(plan.level, ()))
    last = totals == "root" and counts.public.groups_public
    place = Place(stream, 0, truth.n_regions, int(n_groups.sum()))
    return measure_regions(truth, plan, n_groups, max_size, place, last=last)


@dataclass(frozen=True)
class Place:
    """Where the noise of some consecutive regions comes from.

    Attributes
    ----------
    stream
        The stream of the release.
    first_region
        Number of the first of the regions within its level; the draws of a region depend on its
        number alone.
    n_level_regions
        Number of regions of the whole level.
    n_level_groups
        Number of groups of the whole level that later steps keep to; used where they are listed.
    """

    stream: KeyStream
    first_region: int
    n_level_regions: int
    n_level_groups: int = 0


def measure_regions(
    truth: CountsBySize,
    plan: LevelPlan,
    n_groups: IntArray,
    max_size: int | None,
    place: Place,
    *,
    last: bool = False,
) -> NoisyLevel:
    """Measure consecutive regions of a level, all of them or some: the answers of a region are the
    same either way.

    The view ``chain`` alone runs through all regions of a level. ``last`` adds the last cumulative
    count.
    """
    if plan.query is None:
        return NoisyLevel(plan.level, ())
    queries: tuple[NoisyQuery, ...]
    match plan.view:
        case "naive":
            queries = (_measure_counts(truth, plan, _known(max_size), place),)
        case "sizes":
            queries = (_measure_sizes(truth, plan, n_groups, place),)
        case "cumulative":
            lengths = np.full(truth.n_regions, _known(max_size))
            queries = (_measure_cumulative(truth, plan, n_groups, lengths, place),)
            if last:
                queries += (_measure_last(n_groups, plan, place),)
        case "hybrid":
            queries = _measure_hybrid(truth, plan, n_groups, place)
        case "chain":
            queries = (_measure_chain(truth, plan, _known(max_size), place),)
        case "staircase":
            raise ValueError(
                "a staircase is measured with what the levels above told, by its own function"
            )
    return NoisyLevel(plan.level, queries)


def _known(max_size: int | None) -> int:
    if max_size is None:
        raise ValueError("this view needs a maximum size; measure the largest size first")
    return max_size


def _noisy(
    name: str,
    answer: Callable[[slice], IntArray],
    lengths: IntArray,
    plan: LevelPlan,
    place: Place,
    *,
    minuend: IntArray | None = None,
    raised_to: IntArray | None = None,
) -> NoisyQuery:
    """The answers for each region plus noise, in blocks of regions, so that only the result needs
    memory.

    With a ``minuend`` per region, they are taken from it afterwards. ``raised_to`` are the sizes
    per region that answers were raised to.
    """
    assert plan.query is not None  # levels without a budget return before they get here
    noise = plan.query.noise
    offsets = offsets_from_lengths(lengths)
    values = np.empty(offsets[-1], dtype=np.int64)
    for block in _blocks(offsets):
        here = offsets[block.start : block.stop + 1]
        values[here[0] : here[-1]] = add_noise(
            answer(block),
            noise,
            place.stream,
            level=plan.level,
            query=name,
            offsets=here - here[0],
            first_region=place.first_region + block.start,
            question=[] if raised_to is None else [raised_to[block]],
        )
        if minuend is not None:
            here_values = values[here[0] : here[-1]]
            np.subtract(np.repeat(minuend[block], lengths[block]), here_values, out=here_values)
    return NoisyQuery(name, noise, offsets, values)


def _blocks(offsets: IntArray) -> Iterator[slice]:
    """Consecutive regions with about ``CELLS_PER_BLOCK`` answers together, at least one region
    each.
    """
    start, n_regions = 0, len(offsets) - 1
    while start < n_regions:
        stop = int(np.searchsorted(offsets, offsets[start] + CELLS_PER_BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), n_regions)
        yield slice(start, stop)
        start = stop


def _measure_counts(
    truth: CountsBySize, plan: LevelPlan, max_size: int, place: Place
) -> NoisyQuery:
    """H for sizes 0 … K (kuo2018 §4.1)."""
    lengths = np.full(truth.n_regions, max_size + 1)
    return _noisy(
        "counts", lambda block: truth.regions(block).dense(max_size).ravel(), lengths, plan, place
    )


def _measure_sizes(
    truth: CountsBySize, plan: LevelPlan, n_groups: IntArray, place: Place
) -> NoisyQuery:
    """H_g, the sorted sizes, one per group (kuo2018 §4.2)."""

    def answer(block: slice) -> IntArray:
        here = n_groups[block]
        return largest_sizes(truth.regions(block), here, np.zeros_like(here))[0]

    return _noisy("sizes", answer, n_groups, plan, place)


def _measure_cumulative(
    truth: CountsBySize, plan: LevelPlan, n_groups: IntArray, lengths: IntArray, place: Place
) -> NoisyQuery:
    """H_c below the given lengths (kuo2018 §4.3), as G minus the noisy number of larger groups."""

    def answer(block: slice) -> IntArray:
        return count_more_than(truth.regions(block), lengths[block])[0]

    return _noisy("cumulative", answer, lengths, plan, place, minuend=n_groups)


def _measure_last(n_groups: IntArray, plan: LevelPlan, place: Place) -> NoisyQuery:
    """H_c[K], the number of groups, as fioretto2021 §9 measures it with the other cumulative
    counts.

    Costs nothing beyond them: where groups are public no entity changes it.
    """
    return _noisy("last", lambda block: n_groups[block], np.ones_like(n_groups), plan, place)


def _measure_chain(truth: CountsBySize, plan: LevelPlan, max_size: int, place: Place) -> NoisyQuery:
    """Counts added up over all sizes, and within a size over the regions of the level (fioretto2021
    §9.2.1).

    Entry (size, region) is kept with its region. One entity changes an entry of *every* region of
    the level, so the regions do not compose in parallel; see ``chain_sensitivity``.
    """
    if truth.n_regions != place.n_level_regions:
        raise ValueError("a chain runs through all regions of a level")
    table = truth.dense(max_size)
    chain = np.cumsum(table.T.ravel()).reshape(table.T.shape).T
    lengths = np.full(truth.n_regions, max_size + 1)
    return _noisy("chain", lambda block: chain[block].ravel(), lengths, plan, place)


def _measure_hybrid(
    truth: CountsBySize, plan: LevelPlan, n_groups: IntArray, place: Place
) -> tuple[NoisyQuery, NoisyQuery]:
    """H_c below a threshold T, and the largest groups' sizes, raised to T, as a sorted list.

    Both parts get the whole budget of the level: an entity that joins a group of size s changes
    only H_c[s] when s < T, and only one entry of the list otherwise. The length of the list may
    follow from the noisy first part, since for each of its outcomes at most one of the two
    likelihood ratios differs from 1; see ``hybrid_sensitivity``.
    """
    assert plan.query is not None
    thresholds = hybrid_thresholds(n_groups, plan.query.noise.std)
    below = _measure_cumulative(truth, plan, n_groups, thresholds, place)
    last_below = below.values[below.offsets[1:] - 1]
    lengths = tail_lengths(
        n_groups, last_below, plan.query.noise.std, n_regions=place.n_level_regions
    )
    lengths = np.minimum(lengths, most_listed(n_groups, place.n_level_groups))

    def answer(block: slice) -> IntArray:
        return largest_sizes(truth.regions(block), lengths[block], thresholds[block])[0]

    return below, _noisy("tail", answer, lengths, plan, place, raised_to=thresholds)
