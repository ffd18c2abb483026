"""Group sizes as plain lists: one entry per group, nothing clever."""

import numpy as np
from hypothesis import strategies as st

from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves


def counts_from_lists(sizes_by_region: list[list[int]]) -> CountsBySize:
    region = np.array([r for r, sizes in enumerate(sizes_by_region) for _ in sizes], dtype=np.int64)
    size = np.array([s for sizes in sizes_by_region for s in sizes], dtype=np.int64)
    return counts_from_runs(region, size, np.ones(len(size), dtype=np.int64), len(sizes_by_region))


def lists_from_counts(counts: CountsBySize) -> list[list[int]]:
    lists: list[list[int]] = []
    for region in range(counts.n_regions):
        runs = range(counts.offsets[region], counts.offsets[region + 1])
        lists.append([int(counts.size[run]) for run in runs for _ in range(counts.count[run])])
    return lists


def sizes_by_region(
    max_regions: int = 6, max_groups: int = 12, max_size: int = 30
) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(
        st.lists(st.integers(0, max_size), max_size=max_groups),
        min_size=1,
        max_size=max_regions,
    )


@st.composite
def hierarchies(draw: st.DrawFn, max_levels: int = 4, max_children: int = 3) -> Hierarchy:
    """Random trees whose leaves all lie on the last level; levels with one child and one-leaf trees
    included.
    """
    n_levels = draw(st.integers(1, max_levels))
    leaves: list[tuple[str, ...]] = [()]
    for _ in range(n_levels - 1):
        leaves = [
            (*leaf, f"r{child}")
            for leaf in leaves
            for child in range(draw(st.integers(1, max_children)))
        ]
    return hierarchy_from_leaves(
        [f"level{level}" for level in range(1, n_levels)], leaves, root="top"
    )


@st.composite
def hierarchies_with_sizes(
    draw: st.DrawFn, max_groups: int = 8, max_size: int = 20
) -> tuple[Hierarchy, list[list[int]]]:
    hierarchy = draw(hierarchies())
    sizes = [
        draw(st.lists(st.integers(0, max_size), max_size=max_groups))
        for _ in range(hierarchy.n_leaves)
    ]
    return hierarchy, sizes
