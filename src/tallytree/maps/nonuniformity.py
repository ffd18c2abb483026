"""What is not known inside a box: how unevenly its points are spread (slides, "Sources of Error": non-uniformity error).

A query that takes the part w of a box's area is answered with the part w of its count n. Were the points spread
independently, the count inside would have the variance n w(1 − w); were they all in one unknown place, n² w(1 − w). In
between it is w(1 − w)·(n + ρ n²), where ρ, between 0 and 1, says how clustered points are. These errors are independent from
box to box.

Density that rises or falls across a border adds an error that all boxes along it share. The slides state it for a query of the
part r of an m x m grid: √r N/(c₀ m), which is n/(4 c₀) for each of the 4 √r m boxes that the border cuts, added up; here
that is shaped by w, √(w(1 − w))·n·2/(π c₀), which has the same mean over w.

ρ is read off the map itself, from noisy counts alone: how unevenly the boxes above those that tile the map divide into
them, less what noise explains. Boxes that were not split any further look more even than that, so ρ is on the safe side for
methods that split where points cluster.
"""

from __future__ import annotations

import math

import numpy as np

from tallytree.maps.estimates import MapEstimates
from tallytree.model.arrays import FloatArray

C0 = 10 / math.sqrt(
    2
)  # of the slides: their m = √(Nε/c), c ≈ 10, is where both errors together are least for c = √2 c₀
ALONG_BORDER = 2 / (math.pi * C0)


def clustering(estimates: MapEstimates, from_below: FloatArray) -> float:
    """ρ of a map: 1 where all points of a box lie in one of its parts, 0 where the parts hold what their areas say.

    With parts i of area w_i in boxes of n points, Σ((n_i − w_i n)² − noise) over Σ w_i(1 − w_i)·(n² − noise): the sums weigh
    boxes by the squares of their counts, as their errors do. A map of one box says nothing, and 1 is assumed.

    Parameters
    ----------
    from_below
        Variance of the noise of every box's estimate.
    """
    tree = estimates.tree
    kept = ~tree.below(estimates.leaves)
    kept[0] = False
    parts = np.flatnonzero(kept)
    divided = np.zeros(tree.n_nodes, dtype=bool)
    np.logical_or.at(divided, tree.parent[parts], ~estimates.leaves[parts])
    parts = parts[~divided[tree.parent[parts]]]
    if not len(parts):
        return 1.0
    above = tree.parent[parts]
    share = tree.volume[parts] / tree.volume[above]
    whole, part = estimates.unbiased[above], estimates.unbiased[parts]
    uneven = np.sum((part - share * whole) ** 2 - from_below[parts] * (1 - share) ** 2)
    most = np.sum(share * (1 - share) * (whole**2 - from_below[above]))
    return float(np.clip(uneven / most, 0.0, 1.0)) if most > 0 else 1.0


def unknown_inside(estimates: MapEstimates, rho: float) -> tuple[FloatArray, FloatArray]:
    """n + ρ n² of every box, which times w(1 − w) is the variance of the count in a part w of it, and 2n/(π c₀), which times
    √(w(1 − w)) is what it adds to the error that the boxes along a border share."""
    counts = np.maximum(estimates.published.astype(np.float64), 0.0)
    return counts + rho * counts**2, ALONG_BORDER * counts
