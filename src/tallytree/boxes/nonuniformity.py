"""What is not known inside a box: how unevenly its points are spread (slides, "Sources of Error":
non-uniformity error).

A query that takes the part w of a box's area is answered with the part w of its count n. Were the
points spread independently, the count inside would have the variance n w(1 − w); were they all in
one unknown place, n² w(1 − w). In between it is w(1 − w)·(n + ρ n²), where ρ, between 0 and 1, says
how clustered points are. These errors are independent from box to box.

Density that rises or falls across a border adds an error that all boxes along it share. The slides
state it for a query of the part r of an m x m grid: √r N/(c₀ m), which is n/(4 c₀) for each of the
4 √r m boxes that the border cuts, added up; here that is shaped by w, √(w(1 − w))·n·2/(π c₀), which
has the same mean over w. Where points lie on lines, as rounded values do, boxes share far more than
that: then the part that they share is read off the map too.

ρ is read off the map itself, from noisy counts alone: how unevenly the boxes above those that tile
the map divide into them, less what noise explains. Boxes that were not split any further look more
even than that, so ρ is on the safe side for methods that split where points cluster.
"""

from __future__ import annotations

import math

import numpy as np

from tallytree.boxes.estimates import MapEstimates
from tallytree.model.arrays import FloatArray, IntArray

C0 = 10 / math.sqrt(
    2
)  # of the slides: their m = √(Nε/c), c ≈ 10, is where both errors together are least for c = √2 c₀
ALONG_BORDER = 2 / (math.pi * C0)


def _finest_divisions(estimates: MapEstimates) -> tuple[IntArray, IntArray]:
    """The boxes that tile the map and are parts of boxes whose parts all do, and those boxes, one
    for each part.
    """
    tree = estimates.tree
    kept = ~tree.below(estimates.leaves)
    kept[0] = False
    parts = np.flatnonzero(kept)
    divided = np.zeros(tree.n_nodes, dtype=bool)
    np.logical_or.at(divided, tree.parent[parts], ~estimates.leaves[parts])
    parts = parts[~divided[tree.parent[parts]]]
    return parts, tree.parent[parts]


def clustering(estimates: MapEstimates, from_below: FloatArray) -> float:
    """ρ of a map: 1 where all points of a box lie in one of its parts, 0 where the parts hold what
    their areas say.

    With parts i of area w_i in boxes of n points, Σ((n_i − w_i n)² − noise) over Σ w_i(1 − w_i)·(n²
    − noise): the sums weigh boxes by the squares of their counts, as their errors do. A map of one
    box says nothing, and 1 is assumed.

    Parameters
    ----------
    from_below
        Variance of the noise of every box's estimate.
    """
    tree, (parts, above) = estimates.tree, _finest_divisions(estimates)
    if not len(parts):
        return 1.0
    share = tree.volume[parts] / tree.volume[above]
    whole, part = estimates.unbiased[above], estimates.unbiased[parts]
    with np.errstate(over="ignore", invalid="ignore"):  # a damaged folder may hold any number
        uneven = np.sum((part - share * whole) ** 2 - from_below[parts] * (1 - share) ** 2)
        most = np.sum(share * (1 - share) * (whole**2 - from_below[above]))
    return float(np.clip(uneven / most, 0.0, 1.0)) if 0 < most < np.inf else 1.0


def shared_along_borders(estimates: MapEstimates) -> float:
    """What times √(w(1 − w)) n is the error that boxes along a border share: at least the slides'
    2/(π c₀).

    Boxes that span the same stretch of a column are cut in the same places of it. Take a strip of
    the part w of that stretch: with e = (count inside) − w n of each box, products e e' of two
    boxes are free of noise on average, and their mean over w(1 − w) n n' is β², 1 where all points
    lie on one line across the boxes and 0 where boxes err independently. A query has two sides per
    column, which err independently but are added up as one border of 2d sides: so β² is divided by
    2d.

    That is read where boxes divide into those that tile the map, but needed one step further down.
    If it grows from step to step it will go on to: where points lie on lines in random places, a
    box half as wide has half as many of them and twice the β². So it is multiplied by its growth
    over the step before, between 1 and 2.
    """
    tree, (parts, above) = estimates.tree, _finest_divisions(estimates)
    n_columns = tree.low.shape[1]
    shared, before = 0.0, 0.0
    if len(parts):
        shared = float(
            np.mean([_shared_along(estimates, parts, above, column) for column in range(n_columns)])
        )
    if shared > 0:
        whole = np.unique(tree.parent[np.unique(above)])
        step = np.flatnonzero(np.isin(tree.parent, whole[whole >= 0]))
        before = float(
            np.mean(
                [
                    _shared_along(estimates, step, tree.parent[step], column)
                    for column in range(n_columns)
                ]
            )
        )
    growth = min(2.0, max(1.0, shared / before)) if before > 0 else 1.0
    return max(ALONG_BORDER, math.sqrt(min(1.0, shared * growth) / (2 * n_columns)))


def _shared_along(estimates: MapEstimates, parts: IntArray, above: IntArray, column: int) -> float:
    """β² of one column, between 0 and 1."""
    tree, counts = estimates.tree, estimates.unbiased
    low, high = tree.low[:, column], tree.high[:, column]
    strips, place = np.unique(
        np.stack([above, low[parts], high[parts]], axis=1), axis=0, return_inverse=True
    )
    inside = np.bincount(place.ravel(), counts[parts], len(strips))
    box, first, last = strips.T
    width, whole = (last - first) / (high[box] - low[box]), counts[box]
    error = inside - width * whole
    same, group = np.unique(
        np.stack([low[box], high[box], first, last], axis=1), axis=0, return_inverse=True
    )
    n_groups = len(same)

    def pairs(values: FloatArray) -> FloatArray:
        """Sums of the products of two different boxes, group by group."""
        sums, squares = (np.bincount(group.ravel(), one, n_groups) for one in (values, values**2))
        return np.asarray(sums**2 - squares, dtype=np.float64)

    # Groups have one width each, so that its root may weigh every box of them.
    most = float(pairs(np.sqrt(width * (1 - width)) * whole).sum())
    return float(np.clip(pairs(error).sum() / most, 0.0, 1.0)) if most > 0 else 0.0


def unknown_inside(
    estimates: MapEstimates, rho: float, shared: float
) -> tuple[FloatArray, FloatArray]:
    """n + ρ n² of every box, which times w(1 − w) is the variance of the count in a part w of it,
    and the shared part times n, which times √(w(1 − w)) is what it adds to the error that the boxes
    along a border share.
    """
    counts = np.maximum(estimates.published.astype(np.float64), 0.0)
    return counts + rho * counts**2, shared * counts
