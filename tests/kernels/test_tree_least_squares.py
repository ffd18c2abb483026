import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.kernels.trees.least_squares import tree_least_squares, variances_from_below
from tests.reference import trees as slow


def regular_tree(n_leaves, branching):
    """Offsets of children and of levels for a tree cut off at ``n_leaves``, the root included."""
    sizes = [n_leaves]
    while sizes[0] > 1:
        sizes.insert(0, -(-sizes[0] // branching))
    return offsets_for(sizes, [branching] * (len(sizes) - 1))


def offsets_for(sizes, fanouts):
    level_starts = np.concatenate([[0], np.cumsum(sizes)])
    starts = [
        level_starts[level + 1] + np.minimum(np.arange(size) * fanouts[level], sizes[level + 1])
        for level, size in enumerate(sizes[:-1])
    ]
    starts.append(np.full(sizes[-1] + 1, level_starts[-1]))
    return np.concatenate(starts), level_starts


@st.composite
def noisy_trees(draw, exact_nodes=False):
    n_leaves, branching = draw(st.integers(1, 40)), draw(st.integers(2, 7))
    child_starts, level_starts = regular_tree(n_leaves, branching)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    variances = rng.uniform(0.1, 10, len(child_starts) - 1)
    inner = np.flatnonzero(np.diff(child_starts) > 0)
    variances[inner[rng.random(len(inner)) < draw(st.sampled_from([0, 0.4, 1]))]] = np.inf
    noisy = np.round(rng.normal(draw(st.sampled_from([0.0, 3.0, 1e6])), 8, len(variances)))
    return noisy, variances, child_starts, level_starts


@given(noisy_trees())
def test_equals_dense_least_squares_on_ragged_trees_with_any_variances(tree):
    noisy, variances, child_starts, _ = tree
    fast = tree_least_squares(noisy, variances, child_starts)
    np.testing.assert_allclose(
        fast, slow.least_squares(noisy, variances, child_starts), rtol=1e-9, atol=1e-9
    )


def test_equals_the_papers_weights_on_a_perfect_binary_tree():
    """qardaji2013 Figure 1: n'_7 of the eight-leaf tree whose top node is not counted."""
    child_starts, level_starts = regular_tree(8, 2)
    noisy = np.zeros(15)
    variances = np.where(np.arange(15) == 0, np.inf, 1.0)
    weights = []
    for node in (7, 3, 1, 4, 9, 10, 8):
        unit = noisy.copy()
        unit[node] = 1
        weights.append(tree_least_squares(unit, variances, child_starts)[level_starts[3]])
    np.testing.assert_allclose(weights, np.array([13, 5, 3, -2, -1, -1, -8]) / 21, atol=1e-12)


def test_estimates_add_up_on_a_large_tree():
    child_starts, level_starts = regular_tree(100_003, 16)
    noisy = np.random.default_rng(1).normal(50, 10, len(child_starts) - 1)
    estimates = tree_least_squares(noisy, np.ones(len(noisy)), child_starts)
    inner = level_starts[-2]
    sums = np.add.reduceat(estimates, child_starts[:inner])
    sums[-1] = estimates[child_starts[inner - 1] :].sum()
    np.testing.assert_allclose(sums, estimates[:inner], rtol=1e-10)


def test_a_public_count_is_kept():
    estimates = tree_least_squares(
        np.array([10.0, 4, 4]), np.array([0.0, 1, 3]), np.array([1, 3, 3, 3])
    )
    np.testing.assert_allclose(estimates, [10, 4.5, 5.5])


def test_variances_from_below_match_proposition_3():
    child_starts, level_starts = regular_tree(64, 4)
    from_below = variances_from_below(np.ones(len(child_starts) - 1), child_starts)
    for level, steps in zip(range(3, -1, -1), range(1, 5)):
        expected = 4 ** (steps - 1) / sum(4**i for i in range(steps))
        np.testing.assert_allclose(
            from_below[level_starts[level] : level_starts[level + 1]], expected
        )


@pytest.mark.parametrize(
    ("variances", "child_starts", "message"),
    [
        ([1, np.inf, 1], [1, 3, 3, 3], "every leaf must be counted"),
        ([1, -1, 1], [1, 3, 3, 3], "at least 0"),
        ([1, 1, np.nan], [1, 3, 3, 3], "at least 0"),
        ([1, 1, 1], [1, 3, 3], "one more than nodes"),
        ([1, 1, 1], [1, 1, 3, 3], "parents before children"),
        ([1, 1, 1], [1, 4, 3, 3], "parents before children"),
    ],
)
def test_refuses_what_is_not_a_tree(variances, child_starts, message):
    with pytest.raises(RequestError, match=message):
        tree_least_squares(np.zeros(3), np.array(variances, dtype=float), np.array(child_starts))


def test_refuses_noisy_counts_of_another_length():
    with pytest.raises(RequestError, match="as many noisy counts"):
        tree_least_squares(np.zeros(4), np.ones(3), np.array([1, 3, 3, 3]))
