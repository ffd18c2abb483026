"""The adaptive method: boxes are split where noisy answers show that what lies inside them is worth
the noise of asking.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tallytree.boxes.draft import Draft, combine_measurements
from tallytree.boxes.grids import check_nodes, grid_size, noisy_total
from tallytree.boxes.kernels.divisions import roughness
from tallytree.boxes.shares import geometric_shares
from tallytree.boxes.smoothing import smooth_tree
from tallytree.boxes.trees import LEVEL_RATIO, first_level, geometric_ratio, halvings
from tallytree.model.arrays import BoolArray, FloatArray, IntArray
from tallytree.options.maps import MethodOptions

# What differs between one column and several: a range of a line has two ends, the edge of a box on
# a map runs through many boxes, so that a line cares more for the noise of its large parts. The
# first of each pair is for lines.  The first question is about quarters of a line, or about eighths
# of every column, or about fewer where there are many columns; and no finer than the uniform grid
# that the slides lay over so many points: smaller boxes are noise to begin with.
FIRST_DEPTH = (2, 3)
# Between two questions boxes are cut into up to 2**4 pieces: few levels with much budget each
# (qardaji2013 §5, same reason).
PIECES_LOG2 = 4
# A box is split if its count, times how unevenly counts divide, exceeds this many times 1 / ε of
# what is left of the budget.
WORTH = 1.0
# Counts may divide more unevenly further down than where we have looked; never believed to be
# smoother than this.
LEAST_ROUGHNESS = 0.15
MOST_FOR_FIRST = 0.6
# Questions within reach, per question that evenly spread points would leave: clustered points are
# told apart further down.
DEEPER = (0.75, 1.5)
# Boxes that are not split are asked together if the noise of their own answers has at most so many
# times the variance of what is left. Queries of a line cut what is asked together in two places,
# whatever its size. On a map their edges run along it, and points that lie on lines would be spread
# over the land beside: only where a second answer would tell little more.
UNITED = (math.inf, 1.5)


def adaptive(draft: Draft, options: MethodOptions) -> None:
    """Ask about boxes, learn how counts divide, split those where that is worth it, and ask what is
    left about the others.

    Ours. After each question the counts so far are smoothed (:mod:`tallytree.boxes.smoothing`),
    which tells how unevenly counts divide at the finest boxes. A box of n points is cut as often as
    n times that unevenness stays above the noise that its pieces will have; where even the first
    cut is not worth it, the box is asked once more with all of its budget that is left, by itself
    or as a part of the largest box around it that is not cut either. (How that divides is then
    known as well as it is going to be: a second answer of every part would tell less about that
    than one answer for all tells about their sum, which most queries need.) Pieces that will not be
    cut again are asked with all of it at once. Everything follows from noisy answers and public
    facts, and every point pays the whole budget once, whatever happens around it.
    """
    check_nodes(1.4 * math.prod(draft.shape), "Choose a lower resolution.")
    adapt(draft, *noisy_total(draft, options))


def adapt(draft: Draft, n_points: float, share: Fraction) -> None:
    """Go on from a noisy number of points with what is left of the budget."""
    depths = asked_depths(draft.shape, n_points * draft.survey.epsilon)
    shares = depth_shares(depths, len(draft.shape), n_points * draft.survey.epsilon, share)
    nodes, final = draft.root, np.zeros(1, dtype=np.bool_)
    for _ in range(depths[0]):
        nodes, origin = draft.split_grid(nodes, 2)
        final = final[origin]
    for step, own in enumerate(shares):
        left, query = sum(shares[step + 1 :], Fraction(0)), f"depth {depths[step]}"
        if left and final.any():
            draft.count(nodes[final], own + left, f"{query}, last")
            nodes = nodes[~final]
        if len(nodes) == 0:
            return
        draft.count(nodes, own, query)
        if left == 0:
            return
        after = sum(shares[step + 2 :], Fraction(0))
        together = draft.survey.variance(own) <= UNITED[
            len(draft.shape) > 1
        ] * draft.survey.variance(left)
        nodes, final = _split(
            draft, nodes, depths[step + 1] - depths[step], (left, after), query, together
        )


def asked_depths(shape: tuple[int, ...], points_times_epsilon: float) -> tuple[int, ...]:
    """How often boxes are halved in every dimension before each question: as few questions as
    pieces allow, evenly apart.

    A last question a single halving below the one before would tell little that is new and cost a
    whole share.
    """
    last = halvings(shape)
    even = round(math.log2(grid_size(points_times_epsilon, shape)))
    first = min(
        last, FIRST_DEPTH[len(shape) > 1], first_level(points_times_epsilon, len(shape)), even
    )
    n_more = -(-(last - first) // max(1, PIECES_LOG2 // len(shape)))
    return (
        first,
        *(first + round((last - first) * number / n_more) for number in range(1, n_more + 1)),
    )


def depth_shares(
    depths: tuple[int, ...], dimensions: int, points_times_epsilon: float, total: Fraction
) -> tuple[Fraction, ...]:
    """What each question costs: the first an equal part of those within reach, the others nearly
    alike.

    Evenly spread points can be told apart from noise down to a depth of log₂(N ε) / d. With few
    points hardly any box is split after the first question, so that it should have much of the
    budget. With many it has what the best shares of trees of this depth give it: a question weighs
    as much as the edges of queries cut boxes of its depth (see ``geometric_ratio``).
    """
    if len(depths) == 1:
        return (total,)
    reach = math.log2(max(2.0, points_times_epsilon)) / dimensions - depths[0]
    most = sum(geometric_ratio(dimensions) ** (depth - depths[0]) for depth in depths[1:])
    within = min(most, DEEPER[dimensions > 1] * max(0.0, reach) / max(1, PIECES_LOG2 // dimensions))
    first = total * Fraction(min(MOST_FOR_FIRST, 1 / (1 + within))).limit_denominator(1000)
    return (first, *geometric_shares(len(depths) - 1, LEVEL_RATIO, total - first))


def _split(
    draft: Draft,
    nodes: IntArray,
    most: int,
    left: tuple[Fraction, Fraction],
    query: str,
    together: bool,
) -> tuple[IntArray, BoolArray]:
    """Cut boxes up to ``most`` times where that is worth it; ask the others again. Returns pieces,
    and which are final.
    """
    counts, rough = _seen(draft, nodes)
    epsilon, dimensions = draft.survey.epsilon, len(draft.shape)
    now, after = (float(share) * epsilon for share in left)
    low, high = draft.boxes(nodes)
    cuts = np.zeros(len(nodes), dtype=np.int64)
    for cut in range(most):
        cuts[counts / 2.0 ** (dimensions * cut) * rough * now > WORTH] = cut + 1
    cuts[(high - low).max(axis=1) == 1] = 0
    if np.any(cuts == 0):
        asked = draft.united(nodes[cuts == 0]) if together else nodes[cuts == 0]
        draft.count(asked, left[0], f"{query}, not split")
    pieces, final = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.bool_)]
    for n_cuts in range(1, most + 1):
        chosen = np.flatnonzero(cuts == n_cuts)
        if len(chosen) == 0:
            continue
        found, origin = nodes[chosen], chosen
        for _ in range(n_cuts):
            found, parents = draft.split_grid(found, 2)
            origin = origin[parents]
        # A piece holds its part of the box, or more if counts divide unevenly each time.
        likely = counts[origin] * min(1.0, 2.0 ** (-dimensions * most) + rough**most)
        low, high = draft.boxes(found)
        done = (likely * rough * after <= WORTH) | ((high - low).max(axis=1) == 1)
        pieces.append(found)
        final.append(done | (n_cuts < most))
    return np.concatenate(pieces), np.concatenate(final)


def _seen(draft: Draft, nodes: IntArray) -> tuple[FloatArray, float]:
    """Smoothed counts of the finest boxes so far, and how unevenly counts divide there."""
    tree, measurements, place = draft.so_far()
    smoothed = smooth_tree(tree, *combine_measurements(tree.n_nodes, measurements))
    return smoothed.counts[place[nodes]], max(LEAST_ROUGHNESS, roughness(smoothed.divisions))
