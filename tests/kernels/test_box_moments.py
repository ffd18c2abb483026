import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.ranges.grid import GridErrors, GridLayout
from tests.reference.ranges import moments

WIDTHS = [(1,), (2, 1), (3, 1), (4, 2, 1), (6, 3, 1), (8, 4, 2, 1)]


def node_rows(layout):
    """One row per node with 1 on its cells, row-major."""
    rows = np.zeros((layout.n_nodes, *layout.shape))
    for node, (low, high) in enumerate(zip(*layout.bounds)):
        rows[(node, *(slice(a, b) for a, b in zip(low, high)))] = 1
    return rows.reshape(layout.n_nodes, -1)


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3), st.sampled_from(WIDTHS), st.booleans(), st.integers(0, 2**32)
)
def test_moments_of_boxes_equal_dense_algebra(shape, widths, skip_first, seed):
    rng = np.random.default_rng(seed)
    layout = GridLayout(tuple(shape), widths)
    variance, cumulant = rng.uniform(0.5, 4, (2, len(widths)))
    if skip_first and len(widths) > 1:
        variance[0], cumulant[0] = np.inf, 0
    errors = GridErrors(layout, variance, cumulant)
    lows = rng.integers(0, shape, (20, len(shape)))
    highs = rng.integers(lows + 1, np.array(shape) + 1)
    boxes = np.zeros((20, *shape))
    for number, (low, high) in enumerate(zip(lows, highs)):
        boxes[(number, *(slice(a, b) for a, b in zip(low, high)))] = 1
    counted = np.isfinite(errors.node_variances)
    per_node = np.repeat(cumulant, [layout.level_size(level) for level in range(len(widths))])
    cumulants = np.concatenate([[0.0], per_node]) if layout.has_bare_root else per_node
    expected = moments(
        node_rows(layout)[counted], errors.node_variances[counted], cumulants[counted], boxes.reshape(20, -1)
    )
    for ours, theirs in zip(errors.box_moments(lows, highs), expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("shape", [(5,), (4, 7), (3, 2, 5)])
@pytest.mark.parametrize("widths", WIDTHS)
def test_layouts_nest_and_sums_are_those_of_the_nodes(shape, widths):
    layout = GridLayout(shape, widths)
    rows = node_rows(layout)
    for node in range(layout.n_nodes):
        children = slice(layout.child_starts[node], layout.child_starts[node + 1])
        if children.start < children.stop:
            np.testing.assert_array_equal(rows[children].sum(axis=0), rows[node])
    counts = np.random.default_rng(1).integers(0, 9, shape).ravel()
    sums = layout.block_sums(counts)
    first = 1 if layout.has_bare_root else 0
    in_tree_order = np.concatenate([level[order] for level, order in zip(sums, layout.orders)])
    np.testing.assert_array_equal(in_tree_order, rows[first:] @ counts)
    errors = GridErrors(layout, np.ones(len(widths)), np.ones(len(widths)))
    np.testing.assert_allclose(layout.from_leaves(errors.node_estimates(sums)[layout.leaves]), counts, atol=1e-9)
    np.testing.assert_array_equal(layout.from_leaves(layout.to_leaves(counts)), counts)
