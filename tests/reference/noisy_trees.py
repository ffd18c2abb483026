"""Small random instances of the programs of fioretto2021: uneven trees, one-child chains, ties,
negative counts, G = 0.
"""

from typing import NamedTuple

import numpy as np

from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves


class Instance(NamedTuple):
    hierarchy: Hierarchy
    counts: np.ndarray
    noisy: np.ndarray
    """Noisy counts, one row per region."""

    @property
    def total(self) -> int:
        return int(self.counts[0].sum())

    @property
    def totals(self) -> np.ndarray:
        return self.counts.sum(axis=1)


def random_hierarchy(
    rng: np.random.Generator, max_levels: int = 4, max_children: int = 3
) -> Hierarchy:
    n_levels = int(rng.integers(1, max_levels + 1))
    leaves: list[tuple[str, ...]] = [()]
    for _ in range(n_levels - 1):
        leaves = [
            (*leaf, f"r{child}")
            for leaf in leaves
            for child in range(int(rng.integers(1, max_children + 1)))
        ]
    return hierarchy_from_leaves(
        [f"level{level}" for level in range(1, n_levels)], leaves, root="top"
    )


def sum_up(hierarchy: Hierarchy, leaf_table: np.ndarray) -> np.ndarray:
    levels = [leaf_table]
    for level in range(hierarchy.n_levels - 1, 0, -1):
        levels.append(hierarchy.sum_to_parents(level, levels[-1]))
    return np.concatenate(levels[::-1])


def random_instance(
    rng: np.random.Generator,
    *,
    max_levels: int = 4,
    max_children: int = 3,
    max_sizes: int = 4,
    max_total: int = 9,
) -> Instance:
    hierarchy = random_hierarchy(rng, max_levels, max_children)
    n_sizes = int(rng.integers(1, max_sizes + 1))
    leaf_table = np.zeros((hierarchy.n_leaves, n_sizes), dtype=np.int64)
    for _ in range(int(rng.integers(0, max_total + 1))):
        leaf_table[rng.integers(hierarchy.n_leaves), rng.integers(n_sizes)] += 1
    counts = sum_up(hierarchy, leaf_table)
    # A narrow spread makes ties, a wide one makes many negative counts.
    spread = int(rng.choice([0, 1, 3, 12]))
    return Instance(hierarchy, counts, counts + rng.integers(-spread, spread + 1, counts.shape))


def breaks_of_tree(hierarchy: Hierarchy, table: np.ndarray) -> int:
    """Cells where a region differs from the sum of its children."""
    return sum(
        int(
            (
                hierarchy.sum_to_parents(level, table[hierarchy.level_slice(level)])
                != table[hierarchy.level_slice(level - 1)]
            ).sum()
        )
        for level in range(1, hierarchy.n_levels)
    )


def squared_distance(table: np.ndarray, noisy: np.ndarray) -> int:
    return int(((table - noisy) ** 2).sum())
