"""Whole counts from bins: they add up, nothing is negative, and bins of several sizes are filled evenly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tallytree.consistency.size_bins import fill_bins, whole_bins, whole_totals
from tallytree.model.count_of_counts import counts_on_all_levels
from tallytree.planning.group_sizes.size_bins import SizeBins
from tests.estimate.test_size_bins import table_of, tree


@given(st.integers(0, 10_000))
def test_whole_counts_add_up_near_the_estimates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hierarchy = tree(*rng.integers(1, 5, 2).tolist())
    leaves = rng.gamma(0.3, 5, (hierarchy.n_leaves, 6))
    estimates = np.stack(
        [
            np.concatenate([hierarchy_sums(hierarchy, level, column) for level in range(hierarchy.n_levels)])
            for column in leaves.T
        ],
        axis=1,
    )
    totals = whole_totals(hierarchy, estimates)
    whole = whole_bins(hierarchy, estimates, totals)
    assert whole.min() >= 0
    assert np.array_equal(whole.sum(axis=1), totals)
    here = hierarchy.level_slice(hierarchy.n_levels - 1)
    assert np.array_equal(table_of(hierarchy, whole[here]), whole)
    assert np.abs(np.cumsum(whole[0]) - np.cumsum(estimates[0])).max() <= 1


def hierarchy_sums(hierarchy, level, leaves):  # type: ignore[no-untyped-def]
    here = hierarchy.level_slice(level)
    return np.array([leaves[a:b].sum() for a, b in zip(hierarchy.leaf_starts[here], hierarchy.leaf_ends[here])])


@given(st.integers(0, 10_000))
def test_filled_bins_have_the_counts_they_were_given(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hierarchy = tree(2, 3)
    bins = SizeBins(np.array([0, 1, 2, 5, 40, 100]))
    table = table_of(hierarchy, rng.integers(0, 6, (6, 5)))
    filled = counts_on_all_levels(hierarchy, fill_bins(hierarchy, table, bins))
    found = np.zeros_like(table)
    np.add.at(found, (filled.region_of_run(), bins.bin_of(filled.size)), filled.count)
    assert np.array_equal(found, table)


def test_a_wide_bin_is_filled_along_the_roots_curve_in_every_region() -> None:
    hierarchy = tree(2, 2)
    bins = SizeBins(np.array([0, 10, 20, 40]))
    leaves = np.array([[400, 200, 100]] * 4)
    filled = fill_bins(hierarchy, table_of(hierarchy, leaves), bins)
    for leaf in range(4):
        one = filled.region(leaf)
        mean = (one.size * one.count).sum() / one.count.sum()
        assert 9.5 < mean < 10.5
        assert len(one.size) > 30


def test_nothing_at_all() -> None:
    hierarchy = tree(2)
    bins = SizeBins(np.array([0, 1, 2, 9]))
    empty = np.zeros((3, 3), dtype=np.int64)
    whole = whole_bins(hierarchy, empty.astype(float), whole_totals(hierarchy, empty.astype(float)))
    assert not whole.any()
    assert fill_bins(hierarchy, whole, bins).n_groups().tolist() == [0, 0]
