"""A survey that answers without noise and keeps a list of what it was asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from tallytree.model.box_tree import box_sums, prefix_sums


@dataclass
class PlainSurvey:
    counts: np.ndarray
    epsilon: float = 1.0
    asked: list = field(default_factory=list)

    def count(self, low, high, share, query):
        self.asked.append((query, share, len(low)))
        return box_sums(prefix_sums(self.counts), low, high)

    def sums(self, low, high, cluster, share, query):
        self.asked.append((query, share, len(low)))
        return np.bincount(cluster, box_sums(prefix_sums(self.counts), low, high)).astype(np.int64)

    def cut(self, low, high, axis, share, query):
        self.asked.append((query, share, len(low)))
        return (low[:, axis] + high[:, axis]) // 2

    def parts(self, tree, share, query, price):
        self.asked.append((query, share, tree.n_nodes))
        sums = prefix_sums(self.counts)
        # Quarters of the grid, and cells where all points of a quarter lie in one of its cells.
        chosen = np.zeros(tree.n_nodes, dtype=np.int64)
        for node in range(tree.child_starts[0], tree.child_starts[1]):
            inside = self.counts[
                tuple(slice(a, b) for a, b in zip(tree.low[node], tree.high[node]))
            ]
            chosen[node] = inside.max() < box_sums(sums, tree.low[[node]], tree.high[[node]])[0]
        below = tree.below(chosen == 1)
        chosen[tree.is_leaf & ~below & (chosen == 0)] = 1
        return chosen

    def descend(self, share, query):
        self.asked.append((query, share, 1))
        return self

    def worth(self, low, high):
        return box_sums(prefix_sums(self.counts), low, high) > 20

    def boundaries(self, n_parts, largest, share, query):
        self.asked.append((query, share, n_parts - 1))
        return np.arange(1, n_parts)

    def variance(self, share):
        return 2 / float(share) ** 2


def share_of(survey: PlainSurvey) -> Fraction:
    return sum((share for _, share, _ in survey.asked), Fraction(0))
