"""Model 3 by one isotonic pass: against the paper's recurrence with full cost tables, on the
unmerged chain.
"""

import numpy as np
import pytest

from tallytree.errors import InputError
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tallytree.papers.fioretto2021.chain import chain_of_level, fit_chains
from tests.reference.cost_tables import chain_tables
from tests.reference.noisy_trees import breaks_of_tree, random_instance


def post_order(hierarchy: Hierarchy, region: int = 0) -> list[int]:
    below = range(hierarchy.child_starts[region], hierarchy.child_starts[region + 1])
    return [node for child in below for node in post_order(hierarchy, child)] + [region]


def unmerged_chain(hierarchy: Hierarchy, chains: list[np.ndarray]) -> tuple[list[int], list[bool]]:
    """Entries in post-order of T^dp, sizes outside, and whether each equals its successor (C9)."""
    order = post_order(hierarchy)
    n_sizes = len(chains[0])
    values, levels = [], []
    for size in range(n_sizes):
        for region in order:
            level = int(hierarchy.level_of[region])
            place = region - int(hierarchy.level_starts[level])
            values.append(int(chains[level][size * hierarchy.level_size(level) + place]))
            levels.append(level)
    equal = [levels[i] > levels[i + 1] for i in range(len(levels) - 1)]
    return values, equal


def noisy_chains(
    rng: np.random.Generator, hierarchy: Hierarchy, counts: np.ndarray
) -> list[np.ndarray]:
    spread = int(rng.choice([0, 1, 4]))
    chains = [
        chain_of_level(counts[hierarchy.level_slice(level)]) for level in range(hierarchy.n_levels)
    ]
    return [chain + rng.integers(-spread, spread + 1, len(chain)) for chain in chains]


def test_exact_optimum_on_2000_random_instances() -> None:
    rng = np.random.default_rng(51)
    for _ in range(2000):
        instance = random_instance(rng, max_levels=3, max_sizes=3, max_total=6)
        hierarchy, total = instance.hierarchy, instance.total
        chains = noisy_chains(rng, hierarchy, instance.counts)
        table = fit_chains(hierarchy, chains, total)
        assert table.min() >= 0
        assert table[0].sum() == total
        assert breaks_of_tree(hierarchy, table) == 0
        fitted = [
            chain_of_level(table[hierarchy.level_slice(level)])
            for level in range(hierarchy.n_levels)
        ]
        cost = sum(int(((fit - noisy) ** 2).sum()) for fit, noisy in zip(fitted, chains))
        assert cost == chain_tables(*unmerged_chain(hierarchy, chains), range(total + 1))[-1][total]


def test_figure_6_order_of_the_running_example() -> None:
    # Sizes outside, regions inside: GA and NY of size 1, then of size 2, …
    states = np.array([[2, 0, 1, 0, 0], [1, 1, 1, 0, 0]])
    assert chain_of_level(states).tolist() == [2, 3, 3, 4, 5, 6, 6, 6, 6, 6]


def test_chains_of_the_wrong_length_are_refused() -> None:
    hierarchy = hierarchy_from_leaves(["leaf"], [("a",), ("b",)])
    with pytest.raises(InputError, match="one noisy chain per level"):
        fit_chains(hierarchy, [np.zeros(3, dtype=np.int64), np.zeros(4, dtype=np.int64)], 1)
