import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.boxes.draft import Draft
from tallytree.boxes.kernels.trees import box_uncertainty, fewest_boxes
from tallytree.kernels.trees.least_squares import variances_from_below
from tests.boxes.surveys import PlainSurvey
from tests.reference.boxes import box_variance, leaf_weights


def random_tree(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 7, size=2))
    draft = Draft(shape, PlainSurvey(np.zeros(shape, dtype=np.int64)))
    cells, _ = draft.split_grid(draft.root, int(rng.integers(1, 4)))
    draft.split_grid(cells, rng.integers(1, 4, size=len(cells)))
    tree, _ = draft.finish()
    variances = rng.uniform(0.1, 5, size=tree.n_nodes)
    variances[~tree.is_leaf & (rng.random(tree.n_nodes) < 0.4)] = np.inf
    ends = np.sort(rng.uniform(0, 1, size=(6, 2, 2)), axis=2) * np.array(shape)[None, :, None]
    whole = np.rint(ends[:3])
    ends[:3] = np.where(whole[:, :, :1] < whole[:, :, 1:], whole, ends[:3])
    return rng, tree, variances, ends[:, :, 0], ends[:, :, 1]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), prune=st.booleans())
def test_variances_are_those_of_dense_least_squares(seed, prune):
    rng, tree, variances, low, high = random_tree(seed)
    stops = tree.is_leaf | (prune & (rng.random(tree.n_nodes) < 0.2))
    leaves = stops & ~tree.below(stops)
    values = rng.normal(size=tree.n_nodes)
    loose, edge = rng.uniform(1, 9, size=(2, tree.n_nodes))
    noise = variances, variances_from_below(variances, tree.child_starts), values, loose, edge
    found, by_area, n_cut, unknown = box_uncertainty(tree, leaves, noise, low, high)
    expected = [box_variance(tree, leaves, variances, a, b) for a, b in zip(low, high)]
    assert found == pytest.approx(expected, rel=1e-9)
    weights = [leaf_weights(tree, leaves, a, b) for a, b in zip(low, high)]
    assert by_area == pytest.approx([w[w < 1] @ values[leaves][w < 1] for w in weights])
    assert unknown == pytest.approx(
        [
            (w * (1 - w)) @ loose[leaves] + (np.sqrt(w * (1 - w)) @ edge[leaves]) ** 2
            for w in weights
        ]
    )
    assert n_cut.tolist() == [int(((w > 0) & (w < 1)).sum()) for w in weights]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_fewest_boxes_of_values_that_add_up_are_sums_of_leaves(seed):
    rng, tree, variances, low, high = random_tree(seed)
    values = np.where(tree.is_leaf, rng.normal(size=tree.n_nodes), 0.0)
    for node in range(tree.n_nodes - 1, 0, -1):
        values[tree.parent[node]] += values[node]
    found, spread = fewest_boxes(tree, values, variances, low, high)
    expected = [
        leaf_weights(tree, tree.is_leaf, a, b) @ values[tree.is_leaf] for a, b in zip(low, high)
    ]
    assert found == pytest.approx(expected)
    assert np.all(spread > 0)
