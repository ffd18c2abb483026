import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.model.range_tree import RangeTree
from tallytree.strategies.tree import TreeErrors, fewest_blocks
from tallytree.strategies.tree_layout import TreeLayout
from tests.reference import ranges as slow


@given(st.integers(1, 40), st.integers(2, 5), st.booleans(), st.integers(0, 2**32))
def test_fewest_blocks_are_the_fewest(n_bins, branching, count_total, seed):
    layout = TreeLayout(RangeTree.regular(n_bins, branching, count_total=count_total))
    widths = layout.tree.widths
    rng = np.random.default_rng(seed)
    noisy = [rng.integers(-50, 50, layout.tree.n_blocks(level)) for level in range(len(widths))]
    errors = TreeErrors(
        layout, np.ones(len(widths)), np.ones(len(widths))
    )  # so that variances count blocks
    first, last = slow.all_ranges(n_bins)
    estimates, variances, _ = fewest_blocks(errors, noisy, first, last)
    for query in rng.choice(len(first), min(40, len(first)), replace=False):
        assert variances[query] == len(
            slow.fewest_blocks(n_bins, widths, first[query], last[query])
        )
    exact = [
        np.add.reduceat(np.arange(n_bins) ** 2, np.arange(0, n_bins, width)) for width in widths
    ]
    estimates, _, _ = fewest_blocks(errors, exact, first, last)
    np.testing.assert_array_equal(
        estimates, slow.range_rows(n_bins, first, last) @ np.arange(n_bins) ** 2
    )


def test_fewest_blocks_pass_over_levels_without_a_count():
    layout = TreeLayout(RangeTree.regular(8, 2))
    errors = TreeErrors(layout, np.array([1.0, np.inf, 1.0]), np.zeros(3))
    noisy = [np.array([4, 4]), np.empty(0, dtype=np.int64), np.ones(8, dtype=np.int64)]
    estimates, variances, _ = fewest_blocks(errors, noisy, np.array([0, 0, 1]), np.array([8, 6, 8]))
    np.testing.assert_array_equal(estimates, [8, 6, 7])
    np.testing.assert_array_equal(variances, [2, 3, 4])


@pytest.mark.parametrize("count_total", [False, True])
def test_layouts_number_nodes_from_one_root(count_total):
    layout = TreeLayout(RangeTree.regular(10, 3, count_total=count_total))
    assert layout.has_bare_root is not count_total
    np.testing.assert_array_equal(np.diff(layout.level_starts), [1, 2, 4, 10])
    np.testing.assert_array_equal(layout.child_starts[:8], [1, 3, 6, 7, 10, 13, 16, 17])
    sums = layout.block_sums(np.arange(10))
    np.testing.assert_array_equal(sums[-2], [3, 12, 21, 9])
    assert sums[0].sum() == 45


def test_a_single_bin_is_a_tree_of_one_node():
    layout = TreeLayout(RangeTree.regular(1, 2))
    errors = TreeErrors(layout, np.array([3.0]), np.array([5.0]))
    assert errors.node_estimates([np.array([7])]).tolist() == [7.0]
    variance, cumulant = errors.moments(np.array([0]), np.array([1]))
    assert (variance.tolist(), cumulant.tolist()) == ([3.0], [5.0])
