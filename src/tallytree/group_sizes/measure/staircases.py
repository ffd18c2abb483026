"""Measuring staircases: blocks of sizes whose bounds follow from answers already given, then the
largest groups one by one.

Every function answers exactly, in integers, and adds exact integer noise; what to ask next is
decided from noisy answers and public facts alone.

Why a level costs its budget once, although questions adapt. The groups of a region, sorted, form a
staircase with one cell per entity: column i is N(i), the groups with more than i entities; row r is
the size of the r-th largest group. Blocks of columns below T and single rows beyond T are tiles
that do not overlap. An entity that joins a group fills one cell, so it changes the answer of one
tile, by one. Given the same noisy answers so far, neighbours are asked about the same tiles; hence
the probability ratio of a whole transcript is a product with one factor that differs from 1, at
most e^ε (``hybrid_sensitivity``, which also covers quantities and units of several entities).
Regions of a level hold different entities; levels, and the first look at the root, add up.

Rows of a table by attributes of groups are regions like any other here: a group, and so an entity,
lies in one of them. Each level by each subset of attributes that is measured costs its share once,
and shares add up over them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tallytree.group_sizes.kernels.blocks import (
    Predictions,
    Prior,
    advance,
    cells_between,
    next_blocks,
)
from tallytree.group_sizes.measure.levels import Place
from tallytree.group_sizes.noisy import NoisyLevel, NoisyQuery, joined_queries
from tallytree.group_sizes.plan.first_look import look_ends
from tallytree.group_sizes.plan.plan import LevelPlan, QueryPlan
from tallytree.kernels.queries import largest_sizes
from tallytree.model.arrays import IntArray, offsets_from_lengths
from tallytree.model.count_of_counts import CountsBySize
from tallytree.privacy.noise import Noise, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.tuning.blocks import FIRST_ROUND, ROW_MARGIN

# Regions whose questions are asked together. Each question of theirs is one entry of the journal,
# and a run that goes on after another one has died asks the same questions, so it must not change
# between the two.
REGIONS_AT_ONCE = 1 << 18


def measure_first_look(root: CountsBySize, query: QueryPlan, stream: KeyStream) -> IntArray:
    """Noisy sums of N over the fixed blocks of the first look at the root, whose exact counts are
    given.
    """
    ends = look_ends()
    exact = cells_between(root, np.zeros(1, dtype=np.int64), np.array([0, len(ends)]), ends)
    return add_noise(exact, query.noise, stream, level=0, query="first look", question=[ends])


def measure_staircases(
    truth: CountsBySize, plan: LevelPlan, n_groups: IntArray, prior: Prior, place: Place
) -> NoisyLevel:
    """Measure the staircases of consecutive regions of a level.

    Parameters
    ----------
    truth
        Confidential: counts by size of the regions.
    n_groups
        Number of groups of each region that later steps keep to.
    prior
        What the levels above tell about these regions; public.

    Returns
    -------
    NoisyLevel
        ``blocks``: noisy sums of N; ``block ends``: exact, they follow from the noisy sums;
        ``tail``: the largest sizes in rising order, raised to the last block end.
    """
    pieces = []
    for start in range(0, truth.n_regions, REGIONS_AT_ONCE):
        here = slice(start, min(start + REGIONS_AT_ONCE, truth.n_regions))
        first = replace(place, first_region=place.first_region + start)
        of_piece = prior._replace(row=prior.row[here])
        pieces.append(_measure_piece(truth.regions(here), plan, n_groups[here], of_piece, first))
    return NoisyLevel(plan.level, tuple(map(joined_queries, zip(*pieces))), plan.by)


def _measure_piece(
    truth: CountsBySize, plan: LevelPlan, n_groups: IntArray, prior: Prior, place: Place
) -> tuple[NoisyQuery, NoisyQuery, NoisyQuery]:
    """Blocks, their ends and rows of some consecutive regions, which do not depend on the others."""
    assert plan.query is not None
    noise = plan.query.noise
    n_regions, n_sizes = truth.n_regions, prior.fall.shape[1]
    predictions = Predictions(
        n_groups.astype(np.float64), np.zeros(n_regions), np.full(n_regions, -1, dtype=np.int64)
    )
    rounds = []
    low = 0
    while low < n_sizes:
        high = min(FIRST_ROUND if low == 0 else 2 * low, n_sizes)
        offsets, ends, predictions = next_blocks(prior, predictions, noise.variance, low, high)
        if len(ends):
            first = np.full(n_regions, low, dtype=np.int64)
            exact = cells_between(truth, first, offsets, ends)
            answers = _noisy(exact, noise, plan, f"blocks from {low}", offsets, place, ends)
            predictions = advance(prior, predictions, noise.variance, low, (offsets, ends), answers)
            rounds.append((offsets, ends, answers))
        low = high
    offsets, ends, answers = _joined(rounds, n_regions)
    return (
        NoisyQuery("blocks", noise, offsets, answers),
        NoisyQuery("block ends", noise, offsets, ends),
        _measure_rows(truth, plan, n_groups, predictions, place),
    )


def _noisy(
    exact: IntArray,
    noise: Noise,
    plan: LevelPlan,
    name: str,
    offsets: IntArray,
    place: Place,
    ends: IntArray,
) -> IntArray:
    return add_noise(
        exact,
        noise,
        place.stream,
        level=plan.level,
        query=plan.question(name),
        offsets=offsets,
        first_region=place.first_region,
        question=[ends],
    )


def _measure_rows(
    truth: CountsBySize, plan: LevelPlan, n_groups: IntArray, predictions: Predictions, place: Place
) -> NoisyQuery:
    """Sizes of the largest groups, raised to where the blocks of their region end."""
    assert plan.query is not None
    spread = np.sqrt(np.maximum(predictions.variance, 0.0) + predictions.height + 1)
    margin = ROW_MARGIN * (spread + 1)
    lengths = np.minimum(np.ceil(predictions.height + margin).astype(np.int64), n_groups)
    exact, offsets = largest_sizes(truth, lengths, predictions.stop)
    noise = plan.query.noise
    return NoisyQuery(
        "tail", noise, offsets, _noisy(exact, noise, plan, "tail", offsets, place, predictions.stop)
    )


def _joined(
    rounds: list[tuple[IntArray, IntArray, IntArray]], n_regions: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Blocks of all rounds, region by region."""
    region = np.concatenate(
        [np.repeat(np.arange(n_regions), np.diff(offsets)) for offsets, _, _ in rounds]
    )
    order = np.argsort(region, kind="stable")
    ends, answers = (np.concatenate([part[column] for part in rounds])[order] for column in (1, 2))
    return offsets_from_lengths(np.bincount(region, minlength=n_regions)), ends, answers
