from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.boxes import smoothing
from tallytree.boxes.draft import combine_measurements
from tallytree.boxes.smoothing import _strips, give_back, smooth_tree
from tests.kernels.test_tree_nonnegative import assert_adds_up
from tests.reference.strips import given_back, strips_of


def in_order(strips):
    starts = np.cumsum([0, *(len(strip) for strip in strips[:-1])])
    return np.concatenate(strips), starts


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 2.0, 20.0]),
)
def test_equals_the_slow_twin(lengths, seed, bias):
    rng = np.random.default_rng(seed)
    places = rng.permutation(sum(lengths))
    strips = [part.tolist() for part in np.split(places, np.cumsum(lengths)[:-1])]
    total = rng.uniform(0.1, 60, len(places))
    drawn, variance = total * rng.random(len(places)), rng.uniform(0.1, 9, len(places))
    noisy = (
        drawn
        + rng.normal(0, np.sqrt(variance))
        + bias * rng.normal(size=len(lengths)).repeat(lengths)[places.argsort()]
    )
    found = give_back(drawn, noisy, variance, total, *in_order(strips))
    np.testing.assert_allclose(found, given_back(drawn, noisy, variance, total, strips), atol=1e-9)
    assert np.all((found >= 0) & (found <= total))


def test_a_box_without_neighbours_stays_as_it_was_drawn():
    alone = in_order([[0], [1]])
    drawn = np.array([3.0, 4.0])
    assert give_back(drawn, drawn + 50, np.ones(2), drawn + 90, *alone).tolist() == drawn.tolist()


def test_what_noise_explains_is_not_given_back_and_what_all_lose_is():
    rng = np.random.default_rng(3)
    strips = np.arange(4096).reshape(64, 64).tolist()
    drawn, variance, total = np.full(4096, 50.0), np.full(4096, 25.0), np.full(4096, 100.0)
    noise = rng.normal(0, 5, 4096)
    assert (
        np.abs(give_back(drawn, drawn + noise, variance, total, *in_order(strips)) - drawn).max()
        < 0.5
    )
    # Every strip loses or gains three points per box, less than the noise of a box and five times
    # that of the mean of 64.
    lost = np.repeat(rng.choice([-3.0, 3.0], 64), 64)
    found = give_back(drawn, drawn + lost + noise, variance, total, *in_order(strips))
    left = (drawn + lost - found).reshape(64, 64).mean(axis=1)
    assert np.sqrt(np.mean(left**2)) < 1.0


@pytest.mark.parametrize("shape", [(16, 16), (8, 13), (5, 6, 7)])
def test_strips_span_the_same_stretch_and_are_cut_alike(shape):
    release = tt.spatial(
        counts=np.ones(shape, dtype=np.int64),
        mechanism="quadtree",
        depth=3,
        epsilon=1,
        insecure_seed=2,
    )
    tree = release.estimates.tree
    starts = tree.child_starts
    for layer in tree.layers:
        nodes = np.arange(layer.start, layer.stop)
        nodes = nodes[np.diff(starts)[nodes] > 1][::-1]
        if len(nodes) == 0:
            continue
        first, last = starts[nodes], starts[nodes + 1]
        middle = first + (last - first + 1) // 2
        order, begins = _strips(tree, first, middle, last)
        found = [part.tolist() for part in np.split(order, begins[1:])]
        expected = strips_of(tree, list(zip(first.tolist(), middle.tolist(), last.tolist())))
        assert sorted(found) == sorted(expected)


def test_points_on_a_line_stay_on_it():
    # Two columns of cells beside each other, one dense and one thin: box by box the thin one is
    # lost in the noise of the other.
    counts = np.zeros((64, 64), dtype=np.int64)
    counts[:, 20], counts[:, 21] = 60, 4
    thin = {True: [], False: []}
    for seed in range(8):
        release = tt.spatial(
            counts=counts, mechanism="quadtree", depth=6, epsilon=4, insecure_seed=seed
        )
        tree = release.estimates.tree
        measured = combine_measurements(tree.n_nodes, list(release.noisy))
        leaf = tree.is_leaf & (tree.low[:, 1] == 21)
        for back in (True, False):
            with patch.object(
                smoothing, "give_back", give_back if back else lambda drawn, *rest: drawn
            ):
                smoothed = smooth_tree(tree, *measured).counts
            assert_adds_up(smoothed, tree.child_starts)
            assert smoothed.min() >= 0
            thin[back].append(smoothed[leaf].sum() - counts[:, 21].sum())
    error = {back: np.sqrt(np.mean(np.square(found))) for back, found in thin.items()}
    assert error[True] < 0.5 * error[False]


def test_lines_have_no_strips():
    counts = np.arange(256) % 7
    with patch.object(smoothing, "give_back", None):
        tt.spatial(counts=counts, mechanism="adaptive", epsilon=1, insecure_seed=1)
