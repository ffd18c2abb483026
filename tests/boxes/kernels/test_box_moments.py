import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tallytree.boxes.draft import Draft
from tallytree.boxes.kernels.moments import BoxNoise, box_moments
from tallytree.kernels.range_moments import quartics
from tallytree.kernels.trees.least_squares import variances_from_below
from tests.boxes.surveys import PlainSurvey
from tests.reference.ranges import moments


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 4), st.integers(0, 2**32)
)
def test_moments_of_boxes_equal_dense_algebra(shape, pieces, seed):
    rng = np.random.default_rng(seed)
    draft = Draft(tuple(shape), PlainSurvey(np.zeros(shape, dtype=np.int64)))
    blocks, _ = draft.split_grid(draft.root, pieces)
    draft.split_grid(blocks, max(shape))
    tree, _ = draft.finish()
    variance, cumulant = rng.uniform(0.5, 4, (2, tree.n_nodes))
    missing = ~tree.is_leaf & (rng.random(tree.n_nodes) < 0.4)
    variance[missing], cumulant[missing] = np.inf, 0.0
    below = variances_from_below(variance, tree.child_starts)
    quartic = quartics(tree.child_starts, variance, cumulant, below)
    noise = BoxNoise(tree.child_starts, tree.low, tree.high, variance, cumulant, below, quartic)
    lows = rng.integers(0, shape, (20, len(shape)))
    highs = rng.integers(lows + 1, np.array(shape) + 1)
    expected = moments(
        cells_of(tree.low, tree.high, shape)[~missing],
        variance[~missing],
        cumulant[~missing],
        cells_of(lows, highs, shape),
    )
    for ours, theirs in zip(box_moments(noise, lows, highs), expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


def cells_of(lows, highs, shape):
    """One row per box with 1 on its cells, row-major."""
    rows = np.zeros((len(lows), *shape))
    for number, (low, high) in enumerate(zip(lows, highs)):
        rows[(number, *(slice(a, b) for a, b in zip(low, high)))] = 1
    return rows.reshape(len(lows), -1)
