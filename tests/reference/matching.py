"""kuo2018 Algorithm 2 group by group, as corrected, and the cost of the best assignment."""

import math
from fractions import Fraction

import numpy as np
from scipy.optimize import linear_sum_assignment

Group = tuple[int, float]
"""Size and variance."""


def least_cost(top: list[int], bottom: list[int]) -> int:
    """Cost of the best one-to-one assignment, by the Hungarian method."""
    cost = np.abs(
        np.subtract.outer(np.array(top, dtype=np.int64), np.array(bottom, dtype=np.int64))
    )
    return int(cost[linear_sum_assignment(cost)].sum())


def largest_remainders(total: int, weights: list[int]) -> list[int]:
    """Whole shares of ``total`` in proportion to the weights; the first of equal remainders is
    rounded up.
    """
    exact = [Fraction(total * weight, sum(weights)) for weight in weights]
    shares = [math.floor(share) for share in exact]
    by_remainder = sorted(range(len(weights)), key=lambda k: (shares[k] - exact[k], k))
    for k in by_remainder[: total - sum(shares)]:
        shares[k] += 1
    return shares


def match_groups(top: list[Group], children: list[list[Group]]) -> list[tuple[Group, int, Group]]:
    """Pairs (group of the parent, child, group of the child). Groups of equal size leave in the
    order they are given.
    """
    waiting = list(top)
    unmatched = [list(groups) for groups in children]
    pairs = []
    while waiting:
        smallest = min(groups[0][0] for groups in unmatched if groups)
        block = [[g for g in groups if g[0] == smallest] for groups in unmatched]
        # Members of G_t that are alike also in variance; the others come in a later round.
        alike = [g for g in waiting if g == waiting[0]]
        if len(alike) >= sum(map(len, block)):
            shares = [len(groups) for groups in block]
        else:
            shares = largest_remainders(len(alike), [len(groups) for groups in block])
        for child, share in enumerate(shares):
            for _ in range(share):
                pairs.append((waiting.pop(0), child, unmatched[child].pop(0)))
    return pairs


def merge(top: Group, bottom: Group, weighted: bool) -> Group:
    """Eq. 5 and 6, or the plain average; sizes rounded, halves up."""
    if not weighted:
        return math.floor((top[0] + bottom[0]) / 2 + 0.5), (top[1] + bottom[1]) / 4
    precision = 1 / top[1] + 1 / bottom[1]
    return math.floor((top[0] / top[1] + bottom[0] / bottom[1]) / precision + 0.5), 1 / precision
