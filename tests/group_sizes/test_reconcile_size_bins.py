"""Whole counts from bins: they add up, nothing is negative, and bins of several sizes are filled
evenly.
"""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.group_sizes.plan.size_bins import SizeBins
from tallytree.group_sizes.reconcile.size_bins import fill_bins, whole_totals
from tallytree.lattice.whole import whole_columns
from tallytree.model.count_of_counts import counts_on_all_levels
from tests.group_sizes.test_estimate_size_bins import table_of, tree


@given(st.integers(0, 10_000))
def test_whole_counts_add_up_near_the_estimates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hierarchy = tree(*rng.integers(1, 5, 2).tolist())
    leaves = rng.gamma(0.3, 5, (hierarchy.n_leaves, 6))
    estimates = np.stack(
        [
            np.concatenate(
                [hierarchy_sums(hierarchy, level, column) for level in range(hierarchy.n_levels)]
            )
            for column in leaves.T
        ],
        axis=1,
    )
    totals = whole_totals(hierarchy, estimates)
    whole = whole_columns(hierarchy, estimates, totals)
    assert whole.min() >= 0
    assert np.array_equal(whole.sum(axis=1), totals)
    here = hierarchy.level_slice(hierarchy.n_levels - 1)
    assert np.array_equal(table_of(hierarchy, whole[here]), whole)
    assert np.abs(np.cumsum(whole[0]) - np.cumsum(estimates[0])).max() <= 1


def hierarchy_sums(hierarchy, level, leaves):  # type: ignore[no-untyped-def]
    here = hierarchy.level_slice(level)
    return np.array(
        [leaves[a:b].sum() for a, b in zip(hierarchy.leaf_starts[here], hierarchy.leaf_ends[here])]
    )


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


@pytest.mark.parametrize(
    "above",
    [lambda size: 4e4 * (size / 8.0) ** -1.5, lambda size: 4e4 * 0.93 ** (size - 8.0)],
    ids=["power law", "geometric"],
)
def test_wide_bins_are_filled_as_tails_fall_in_every_region(
    above: Callable[[np.ndarray], np.ndarray],
) -> None:
    truth = -np.diff(np.rint(above(np.arange(8, 4097))), append=0)
    hierarchy, bins = tree(2, 2), SizeBins(np.array([8, 12, 18, 27, 40, 60, 90, 128, 512, 4097]))
    binned = np.add.reduceat(truth, bins.edges[:-1] - 8).astype(np.int64)
    filled = fill_bins(hierarchy, table_of(hierarchy, np.tile(binned, (4, 1))), bins)
    found = np.zeros((4, len(truth)))
    np.add.at(found, (filled.region_of_run(), filled.size - 8), filled.count)
    # What no bin tells is guessed: groups of each size to 10 % in all, those above a size to 1 % in
    # every region.
    np.testing.assert_allclose(found.mean(axis=0)[:60], truth[:60], rtol=0.1)
    assert (np.abs(np.cumsum(found - truth, axis=1)) <= 0.01 * truth.sum()).all()


def test_nothing_at_all() -> None:
    hierarchy = tree(2)
    bins = SizeBins(np.array([0, 1, 2, 9]))
    empty = np.zeros((3, 3), dtype=np.int64)
    whole = whole_columns(
        hierarchy, empty.astype(float), whole_totals(hierarchy, empty.astype(float))
    )
    assert not whole.any()
    assert fill_bins(hierarchy, whole, bins).n_groups().tolist() == [0, 0]
