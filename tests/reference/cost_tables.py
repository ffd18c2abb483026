"""Cost tables of fioretto2021 §6, §7 and §9.2, written as the paper states them: dictionaries from
a value to its cost.

Departures: Algorithm 1 prints slopes towards smaller values as τ(v) − τ(v − 1), which steps past
the minimum; here the slope of a step down is τ(v) − τ(v + 1). Example 5 lists (child, value) pairs
where line 1 has (child, slope).
"""

import itertools
from collections.abc import Iterable

import numpy as np

from tallytree.model.hierarchy import Hierarchy

Table = dict[int, int]


def leaf_table(noisy: int, domain: Iterable[int], weight: int = 1) -> Table:
    """Equation (4a) at a leaf."""
    return {v: weight * (v - noisy) ** 2 for v in domain}


def best_split(tables: list[Table], v: int) -> tuple[int, tuple[int, ...]] | None:
    """φ(v) by Equations (4b) to (4d): every combination of child values that adds up to v."""
    best: tuple[int, tuple[int, ...]] | None = None
    for combination in itertools.product(*tables):
        if sum(combination) == v:
            cost = sum(table[x] for table, x in zip(tables, combination))
            if best is None or cost < best[0]:
                best = cost, combination
    return best


def table_merge(children: list[Table], domain: Iterable[int]) -> Table:
    """φ by Algorithm 1: start at the children's minima, then step along the smallest slopes, up and
    down.
    """
    allowed = set(domain)
    merged: Table = {}
    lowest = [min(table, key=lambda v: table[v]) for table in children]
    for step in (1, -1):
        slopes = sorted(
            (table[v] - table[v - step], child)
            for child, table in enumerate(children)
            for v in table
            if (v - lowest[child]) * step > 0
        )
        values = list(lowest)
        if sum(values) in allowed:
            merged[sum(values)] = sum(table[x] for table, x in zip(children, values))
        for _, child in slopes:
            values[child] += step
            if sum(values) in allowed:
                merged[sum(values)] = sum(table[x] for table, x in zip(children, values))
    return merged


def add_own_cost(phi: Table, noisy: int, weight: int = 1) -> Table:
    """Equation (4a): τ = φ plus the region's own deviation."""
    return {v: weight * (v - noisy) ** 2 + cost for v, cost in phi.items()}


def tables_of_size(
    hierarchy: Hierarchy, noisy: list[int], domain: range, weights: list[int]
) -> list[Table]:
    """τ of every region for one size, bottom up."""
    tables: list[Table] = [{} for _ in range(hierarchy.n_regions)]
    for region in range(hierarchy.n_regions - 1, -1, -1):
        level = int(hierarchy.level_of[region])
        if level == hierarchy.n_levels - 1:
            tables[region] = leaf_table(noisy[region], domain, weights[level])
        else:
            children = range(hierarchy.child_starts[region], hierarchy.child_starts[region + 1])
            phi = table_merge([tables[child] for child in children], domain)
            tables[region] = add_own_cost(phi, noisy[region], weights[level])
    return tables


def optimal_cost_of_model_1(
    hierarchy: Hierarchy, noisy: np.ndarray, total: int, weights: list[int] | None = None
) -> int:
    """Smallest objective of Model 1 with the root's total, from full tables over 0 … total."""
    weights = weights or [1] * hierarchy.n_levels
    roots = [
        tables_of_size(hierarchy, [int(v) for v in column], range(total + 1), weights)[0]
        for column in noisy.T
    ]
    return table_merge(roots, [total])[total]


def chain_tables(noisy: list[int], equal_to_next: list[bool], domain: range) -> list[Table]:
    """Recurrence (6a), (6b): entry i is merged with its successor where ``equal_to_next``, else at
    most its successor.
    """
    tables = [leaf_table(noisy[0], domain)]
    for position in range(1, len(noisy)):
        before = tables[-1]
        table: Table = {}
        for v in domain:
            phi = (
                before[v]
                if equal_to_next[position - 1]
                else min(before[x] for x in domain if x <= v)
            )
            table[v] = (v - noisy[position]) ** 2 + phi
        tables.append(table)
    return tables
