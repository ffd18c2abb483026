import numpy as np
import pytest
from scipy.optimize import nnls

import tallytree as tt
from tallytree.boxes.answers import MapSurface
from tallytree.boxes.draft import Draft, combine_measurements
from tallytree.boxes.estimates import estimate_map
from tallytree.boxes.methods import grow
from tallytree.model.box_tree import box_sums, prefix_sums
from tallytree.options.maps import MethodOptions
from tests.boxes.surveys import PlainSurvey
from tests.reference.boxes import contains


def lonely_cells():
    """A few cells hold everything."""
    counts = np.zeros((128, 128), dtype=np.int64)
    counts[0, 0], counts[100, 3], counts[77, 90] = 30_000, 5000, 2000
    return counts


def noisy_map(counts, seed, epsilon):
    survey = PlainSurvey(counts, epsilon)
    draft = Draft(counts.shape, survey)
    rng = np.random.default_rng(seed)
    exact = survey.count

    def count(low, high, share, query):
        return exact(low, high, share, query) + np.rint(
            rng.laplace(0, 1 / (epsilon * float(share)), len(low))
        ).astype(int)

    survey.count = count
    grow(draft, MethodOptions(mechanism="adaptive-tree"))
    tree, measurements = draft.finish()
    return tree, *combine_measurements(tree.n_nodes, measurements)


def test_sparse_estimates_add_up_and_are_closer_where_data_are_sparse():
    counts, errors = lonely_cells(), np.zeros(2)
    ends = np.sort(np.random.default_rng(1).integers(0, 129, size=(500, 2, 2)), axis=2)
    low, high = (ends[(ends[:, :, 0] < ends[:, :, 1]).all(axis=1)][:, :, side] for side in (0, 1))
    truth = box_sums(prefix_sums(counts), low, high)
    for seed in range(5):
        tree, values, variances = noisy_map(counts, seed, 0.05)
        for place, sparse in enumerate((False, True)):
            found = estimate_map(tree, values, variances, sparse=sparse)
            sums = np.bincount(tree.parent[1:], weights=found.published[1:], minlength=tree.n_nodes)
            assert np.all(found.published >= 0)
            assert np.array_equal(sums[~tree.is_leaf], found.published[~tree.is_leaf])
            errors[place] += np.abs(
                MapSurface(found).answer(low.astype(float), high.astype(float)) - truth
            ).mean()
    assert errors[1] < 0.95 * errors[0]


def test_unbiased_estimates_do_not_depend_on_sparsity():
    tree, values, variances = noisy_map(lonely_cells(), 1, 0.05)
    plain, sparse = (estimate_map(tree, values, variances, sparse=flag) for flag in (False, True))
    assert np.array_equal(plain.unbiased, sparse.unbiased)
    both = [
        estimate_map(tree, values, variances, nonnegative=False, sparse=flag).published
        for flag in (False, True)
    ]
    assert np.array_equal(*both)


@pytest.mark.parametrize(("method", "sparse"), [("adaptive-tree", True), ("quadtree", False)])
def test_the_manifest_says_how_counts_were_made_nonnegative(method, sparse):
    release = tt.spatial(counts=lonely_cells(), mechanism=method, epsilon=0.1, insecure_seed=1)
    assert release.manifest["published"] == {
        "nonnegative": True,
        "integers": True,
        "sparse": sparse,
        "smoothed": False,
    }
    assert release.verify()
    release.manifest["published"]["sparse"] = not sparse
    assert [check.name for check in release.verify().checks if not check.passed] == [
        "counts follow from the noisy ones"
    ]


@pytest.mark.parametrize("seed", range(8))
def test_the_nonnegative_optimum_is_that_of_dense_algebra(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 5, size=2))
    draft = Draft(shape, PlainSurvey(np.zeros(shape, dtype=np.int64)))
    blocks, _ = draft.split_grid(draft.root, int(rng.integers(1, 4)))
    draft.split_grid(blocks, rng.integers(1, 4, size=len(blocks)))  # leaves lie at several depths
    tree, _ = draft.finish()
    values, variances = rng.normal(0, 3, tree.n_nodes), rng.uniform(0.5, 4, tree.n_nodes)
    variances[~tree.is_leaf & (rng.random(tree.n_nodes) < 0.5)] = np.inf
    found = estimate_map(
        tree, values, variances, nonnegative="least-squares", integers=False
    ).published
    leaves, counted = np.flatnonzero(tree.is_leaf), np.isfinite(variances)
    rows = np.array(
        [[contains(tree, node, leaf) for leaf in leaves] for node in range(tree.n_nodes)],
        dtype=float,
    )
    weights = 1 / np.sqrt(variances[counted])
    expected, _ = nnls(rows[counted] * weights[:, None], values[counted] * weights)
    np.testing.assert_allclose(found, rows @ expected, atol=1e-8)


def test_the_subtree_rule_zeroes_what_is_negative():
    draft = Draft((4,), PlainSurvey(np.zeros(4, dtype=np.int64)))
    draft.split_grid(draft.root, 4)
    tree, _ = draft.finish()
    values = np.array([1.0, -2.0, 3.0, 0.0, 0.0, 1.0, 2.0])
    made = estimate_map(tree, values, np.ones(7), nonnegative="subtree", integers=False)
    assert made.unbiased[1] < 0
    assert made.published[1] == 0
    assert np.all(made.published >= 0)
    np.testing.assert_allclose(made.published[0], made.published[tree.is_leaf].sum())
