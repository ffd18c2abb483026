"""AHP (Zhang, Chen, Xu, Meng, Xie 2014): cells of about the same noisy count are put together, wherever they lie, and
counted again.

Clusters are no boxes, so this is no method of maps: it is run here, beside them. Both questions are counts of sets of cells
that do not overlap, asked through the same door with the same exact noise: one entity changes one answer of each by 1.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tallytree.measure.spatial import PrivateSurvey
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.privacy.budget import Budget, split
from tallytree.privacy.randomness import KeyStream

# As in DPBench: the share of the first question, and the threshold below which counts are taken as 0, in units of ln n / ε₁.
FOR_ORDER, THRESHOLD = Fraction(17, 20), 0.35


def ahp_counts(grid: ConfidentialGrid, budget: Budget, streams: tuple[KeyStream, KeyStream]) -> FloatArray:
    """Counts per cell: the first question orders the cells, the second counts clusters of neighbours in that order.

    Each question has a stream of its own, as their noise must not be the same.
    """
    for_order, for_counts = split(budget, [FOR_ORDER, 1 - FOR_ORDER])
    cells = np.arange(grid.counts.size)[:, None]
    noisy = PrivateSurvey(_line(grid, cells[:, 0]), for_order, streams[0]).count(cells, cells + 1, Fraction(1), "cell")
    least = THRESHOLD * math.log(max(2, len(cells))) / float(for_order.total)
    kept = np.where(noisy < least, 0.0, noisy)
    order = np.argsort(-kept, kind="stable")
    edges = cluster_edges(kept[order], 2 / float(for_counts.total) ** 2)
    survey = PrivateSurvey(_line(grid, order), for_counts, streams[1])
    sums = survey.count(edges[:-1, None], edges[1:, None], Fraction(1), "cluster")
    found = np.empty(len(cells))
    found[order] = np.repeat(np.maximum(sums, 0) / np.diff(edges), np.diff(edges))
    return found.reshape(grid.shape)


def cluster_edges(falling: FloatArray, price: float) -> IntArray:
    """Ends of clusters of falling counts: a count joins where that raises squared deviations by less than a price.

    Joining a cluster of c counts with mean m raises their squared deviations by (x − m)² c/(c + 1).
    """
    edges, total, size = [0], 0.0, 0
    for place, value in enumerate(falling.tolist()):
        if size and (value - total / size) ** 2 * size / (size + 1) > price:
            edges.append(place)
            total, size = 0.0, 0
        total += value
        size += 1
    return np.array([*edges, len(falling)])


def _line(grid: ConfidentialGrid, order: IntArray) -> ConfidentialGrid:
    """The cells in an order, as one column."""
    return ConfidentialGrid(grid.counts.ravel()[order], ((0.0, float(len(order))),), ("cell",))
