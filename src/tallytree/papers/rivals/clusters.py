"""AHP (Zhang, Chen, Xu, Meng, Xie 2014): cells of about the same noisy count are put together,
wherever they lie, and counted again.

Clusters are no boxes. They follow from the noisy counts of the cells, so that nothing but their
noisy sums is kept: every cell holds that of its cluster, and whoever has the noisy cells finds the
clusters again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tallytree.boxes.draft import CLUSTER, Draft, Measurement
from tallytree.boxes.grids import check_nodes
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.box_tree import BoxTree
from tallytree.options.maps import MethodOptions

# As in DPBench: the share of the first question, and the threshold below which counts are taken as
# 0, in units of ln n / ε₁.
FOR_ORDER, THRESHOLD = Fraction(17, 20), 0.35


def ahp(draft: Draft, options: MethodOptions) -> None:
    """The first question orders the cells by their noisy counts, the second counts clusters of
    neighbours in that order.

    One entity lies in one cell and in one cluster, so each question is a histogram. Departures: the
    least cost of a count that begins a cluster is looked for among sizes 1, 2, 4, 8 …; ties keep
    the order in which cells were asked.
    """
    check_nodes(math.prod(draft.shape) * 1.4, "Choose a lower resolution.")
    cells, _ = draft.split_grid(draft.root, max(draft.shape))
    noisy, for_counts = draft.count(cells, FOR_ORDER, "cell"), 1 - FOR_ORDER
    cluster = clusters_of(
        noisy, draft.survey.variance(FOR_ORDER), draft.survey.variance(for_counts)
    )
    sums = draft.survey.sums(*draft.boxes(cells), cluster, for_counts, CLUSTER)
    draft.record(cells, sums[cluster], for_counts, CLUSTER)


def clusters_of(noisy: IntArray, variance: float, later: float) -> IntArray:
    """The cluster of every cell, numbered from the fullest, by noisy counts and the variances of
    both questions.
    """
    least = THRESHOLD * math.log(max(2, len(noisy))) * math.sqrt(variance / 2)
    kept = np.where(noisy < least, 0.0, noisy)
    order = np.argsort(-kept, kind="stable")
    edges = cluster_edges(kept[order], later)
    found = np.empty(len(noisy), dtype=np.int64)
    found[order] = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    return found


def clustered_cells(
    tree: BoxTree, measurements: Sequence[Measurement], *, nonnegative: bool
) -> FloatArray:
    """Every cell with the mean of its cluster, the other nodes with 0; clusters are found again
    from the noisy cells.
    """
    clusters, cluster = _found_again(measurements)
    sums = np.maximum(clusters.values, 0) if nonnegative else clusters.values
    found = np.zeros(tree.n_nodes)
    found[clusters.nodes] = sums / np.bincount(cluster)[cluster]
    return found


def sums_agree(measurements: Sequence[Measurement]) -> bool:
    """Whether all cells of a cluster hold the same sum."""
    clusters, cluster = _found_again(measurements)
    if len(clusters.values) != len(cluster):
        return False
    sums = np.empty(int(cluster.max()) + 1, dtype=np.int64)
    sums[cluster] = clusters.values
    return bool(np.all(sums[cluster] == clusters.values))


def _found_again(measurements: Sequence[Measurement]) -> tuple[Measurement, IntArray]:
    """The answers about clusters, and the cluster of every cell."""
    cells = next(one for one in measurements if one.query != CLUSTER)
    clusters = next(one for one in measurements if one.query == CLUSTER)
    return clusters, clusters_of(cells.values, cells.variance, clusters.variance)


def cluster_edges(falling: FloatArray, variance: float) -> IntArray:
    """Ends of clusters of falling counts, greedily (Algorithm 2): a count joins where that costs
    less than to begin a cluster.

    A cluster of c counts costs their squared deviations and variance / c, its noise in all. To join
    one with mean m adds (x − m)² c/(c + 1) to the first and takes variance/(c(c + 1)) off the
    second.
    """
    begins = costs_of_beginning(falling, variance)
    edges, total, size = [0], 0.0, 0
    for place, value in enumerate(falling.tolist()):
        if size:
            joins = (value - total / size) ** 2 * size / (size + 1) - variance / (size * (size + 1))
            if joins >= begins[place]:
                edges.append(place)
                total, size = 0.0, 0
        total += value
        size += 1
    return np.array([*edges, len(falling)])


def costs_of_beginning(falling: FloatArray, variance: float) -> FloatArray:
    """The least that each count can cost in a cluster that it begins: (x − mean)² + variance/c²
    over c = 1, 2, 4, 8 … counts.

    The paper tries every c until it no longer pays.
    """
    least = np.full(len(falling), variance)
    sums = np.concatenate([[0.0], np.cumsum(falling)])
    size = 2
    while size <= len(falling):
        means = (sums[size:] - sums[:-size]) / size
        cost = (falling[: len(means)] - means) ** 2 + variance / size**2
        least[: len(means)] = np.minimum(least[: len(means)], cost)
        size *= 2
    return least
