"""Sensitivity of the chain by brute force: every database of a few groups, every neighbour (the
table of the docs page).
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tallytree.papers.fioretto2021.chain import chain_of_level
from tallytree.privacy.sensitivity import (
    chain_sensitivity,
    counts_sensitivity,
    cumulative_sensitivity,
)

N_SIZES = 4
PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "chain-privacy-error.md"


def databases(n_regions: int, n_groups: int) -> Iterator[list[tuple[int, int]]]:
    """All multisets of groups, each with its region and its size."""
    cells = list(itertools.product(range(n_regions), range(N_SIZES)))
    for n in range(1, n_groups + 1):
        yield from (list(groups) for groups in itertools.combinations_with_replacement(cells, n))


def table(groups: list[tuple[int, int]], n_regions: int) -> np.ndarray:
    counts = np.zeros((n_regions, N_SIZES), dtype=np.int64)
    for region, size in groups:
        counts[region, size] += 1
    return counts


def largest_change(query: Callable[[np.ndarray], np.ndarray], n_regions: int) -> int:
    """Largest L1 distance between the answers of a database and those with one entity more in one
    of its groups.
    """
    worst = 0
    for groups in databases(n_regions, n_groups=2):
        before = query(table(groups, n_regions))
        for grown, (region, size) in enumerate(groups):
            if size + 1 < N_SIZES:
                after = [*groups[:grown], (region, size + 1), *groups[grown + 1 :]]
                worst = max(worst, int(np.abs(query(table(after, n_regions)) - before).sum()))
    return worst


@pytest.mark.parametrize("n_regions", [1, 2, 3, 4, 5])
def test_one_entity_moves_as_many_chain_entries_as_the_level_has_regions(n_regions: int) -> None:
    chain = largest_change(chain_of_level, n_regions)
    cumulative = largest_change(lambda counts: np.cumsum(counts, axis=1), n_regions)
    counts = largest_change(lambda counts: counts, n_regions)
    assert chain == n_regions == chain_sensitivity(n_regions).l1
    assert cumulative == 1 == cumulative_sensitivity().l1
    assert counts == 2 == counts_sensitivity().l1
    assert f"| {n_regions} | {counts} | {cumulative} | {chain} |" in PAGE.read_text(
        encoding="utf-8"
    )
