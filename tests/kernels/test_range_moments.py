import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tallytree.kernels.range_moments import tree_moments, tree_noise
from tallytree.kernels.trees.least_squares import variances_from_below
from tallytree.model.range_tree import RangeTree
from tallytree.strategies.tree_layout import TreeLayout
from tests.reference import ranges as slow
from tests.reference.trees import leaf_membership


@given(
    st.integers(1, 33),
    st.integers(2, 6),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(0, 2**32),
)
def test_moments_of_every_range_equal_dense_algebra(n_bins, branching, count_total, share, seed):
    layout = TreeLayout(RangeTree.regular(n_bins, branching, count_total=count_total))
    rng = np.random.default_rng(seed)
    variance, cumulant = rng.uniform(0.5, 5, (2, len(layout.widths)))
    unmeasured = rng.random(len(variance)) < 0.3
    unmeasured[-1] = False
    unmeasured[0] |= layout.has_bare_root
    variance[unmeasured], cumulant[unmeasured] = np.inf, 0.0
    per_node = np.repeat(variance, np.diff(layout.level_starts))
    below = variances_from_below(per_node, layout.child_starts)
    tree = tree_noise(
        layout.widths, layout.level_starts, layout.child_starts, variance, cumulant, below
    )

    first, last = slow.all_ranges(n_bins)
    counted = np.isfinite(per_node)
    expected = slow.moments(
        leaf_membership(layout.child_starts)[counted],
        per_node[counted],
        np.repeat(cumulant, np.diff(layout.level_starts))[counted],
        slow.range_rows(n_bins, first, last, share),
    )
    for ours, theirs in zip(tree_moments(tree, first, last, share), expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


def test_an_empty_range_has_the_error_of_its_share_alone():
    layout = TreeLayout(RangeTree.regular(10, 3))
    variance, cumulant = np.array([np.inf, 1, 2, 3.0]), np.array([0, 1, 1, 1.0])
    per_node = np.repeat(variance, np.diff(layout.level_starts))
    below = variances_from_below(per_node, layout.child_starts)
    tree = tree_noise(
        layout.widths, layout.level_starts, layout.child_starts, variance, cumulant, below
    )
    empty = tree_moments(tree, np.array([4]), np.array([4]), 0.5)
    whole = tree_moments(tree, np.array([0]), np.array([10]))
    np.testing.assert_allclose(empty[0], whole[0] / 4)
    np.testing.assert_allclose(empty[1], whole[1] / 16)
