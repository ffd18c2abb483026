import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import InputError
from tallytree.model import count_of_counts
from tallytree.model.count_of_counts import (
    CountsBySize,
    counts_from_dense,
    counts_from_runs,
    counts_on_all_levels,
)
from tallytree.model.hierarchy import Hierarchy
from tests.reference.group_sizes import (
    counts_from_lists,
    hierarchies_with_sizes,
    lists_from_counts,
    sizes_by_region,
)


@given(sizes_by_region())
def test_views_agree_with_lists_of_sizes(sizes: list[list[int]]) -> None:
    counts = counts_from_lists(sizes)
    assert lists_from_counts(counts) == [sorted(s) for s in sizes]
    assert counts.n_groups().tolist() == [len(s) for s in sizes]
    assert counts.n_entities().tolist() == [sum(s) for s in sizes]
    assert counts.largest_size().tolist() == [max(s, default=0) for s in sizes]
    assert counts.dense(30).tolist() == [[s.count(i) for i in range(31)] for s in sizes]
    assert counts.cumulative(30).tolist() == [
        [sum(x <= i for x in s) for i in range(31)] for s in sizes
    ]
    assert lists_from_counts(counts_from_dense(counts.dense(30))) == lists_from_counts(counts)
    assert lists_from_counts(counts.clip(7)) == [sorted(min(x, 7) for x in s) for s in sizes]


@given(hierarchies_with_sizes(), st.integers(1, 20))
def test_levels_add_up(case: tuple[Hierarchy, list[list[int]]], runs_at_once: int) -> None:
    """Also where many runs are added up some at a time."""
    tree, sizes = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_of_counts, "RUNS_AT_ONCE", runs_at_once)
        lists = lists_from_counts(counts_on_all_levels(tree, counts_from_lists(sizes)))
    for region in range(tree.n_regions):
        below = sizes[tree.leaf_starts[region] : tree.leaf_ends[region]]
        assert lists[region] == sorted(x for leaf in below for x in leaf)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 3)), max_size=20),
    st.booleans(),
)
def test_runs_of_any_order_become_counts(runs: list[tuple[int, int, int]], in_order: bool) -> None:
    runs = sorted(set(runs)) if in_order else runs
    region, size, count = np.array(runs, dtype=np.int64).reshape(-1, 3).T.copy()
    table = np.zeros((5, 6), dtype=np.int64)
    for place, groups, number in runs:
        table[place, groups] += number
    assert counts_from_runs(region, size, count, 5).dense(5).tolist() == table.tolist()


@pytest.mark.parametrize(
    ("size", "count"), [([2, 1], [1, 1]), ([1, 1], [1, 1]), ([1, 2], [1, 0]), ([-1, 2], [1, 1])]
)
def test_runs_out_of_order_or_empty_are_refused(size: list[int], count: list[int]) -> None:
    with pytest.raises(InputError):
        CountsBySize(np.array([0, 2]), np.array(size), np.array(count))
