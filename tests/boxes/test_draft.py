from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.boxes.draft import Draft, combine_measurements
from tests.boxes.surveys import PlainSurvey


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 9), min_size=2, max_size=3),
    first=st.integers(1, 7),
    seed=st.integers(0, 100),
)
def test_grids_below_grids_tile_and_count_every_point_once(shape, first, seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, size=shape)
    draft = Draft(tuple(shape), PlainSurvey(counts))
    cells, _ = draft.split_grid(draft.root, first)
    finer, origin = draft.split_grid(cells, rng.integers(1, 5, size=len(cells)))
    assert np.array_equal(np.unique(origin), np.arange(len(cells)))
    assert draft.count(finer, Fraction(1), "cell").sum() == counts.sum()
    tree, (measurement,) = draft.finish()
    assert tree.tiles()
    assert np.array_equal(np.sort(measurement.nodes), np.flatnonzero(tree.is_leaf))
    for node, value in zip(measurement.nodes, measurement.values):
        assert (
            value
            == counts[tuple(slice(a, b) for a, b in zip(tree.low[node], tree.high[node]))].sum()
        )
    assert np.diff(tree.child_starts).max(initial=0) <= 2 ** len(shape)


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=2),
    share=st.floats(0, 1),
    seed=st.integers(0, 100),
)
def test_united_boxes_cover_the_same_cells_and_no_family_is_left_whole(shape, share, seed):
    rng = np.random.default_rng(seed)
    draft = Draft(tuple(shape), PlainSurvey(np.zeros(shape, dtype=np.int64)))
    nodes = draft.root
    for _ in range(3):
        nodes, _ = draft.split_grid(nodes, 2)
    chosen = nodes[rng.random(len(nodes)) < share]
    united = draft.united(chosen)
    assert np.array_equal(painted(draft, united), painted(draft, chosen))
    parent = np.concatenate(draft.parent)
    for node in range(draft.n_nodes):
        family = np.flatnonzero(parent == node)
        assert len(family) == 0 or not set(family.tolist()) <= set(united.tolist())


def painted(draft, nodes):
    found = np.zeros(draft.shape, dtype=np.int64)
    for low, high in zip(*draft.boxes(nodes)):
        found[tuple(slice(a, b) for a, b in zip(low, high))] += 1
    return found


def test_a_grid_cuts_where_its_lines_round_to_cells():
    draft = Draft((10, 7), PlainSurvey(np.zeros((10, 7), dtype=np.int64)))
    cells, _ = draft.split_grid(draft.root, 3)
    low, high = draft.boxes(cells)
    assert sorted(set(low[:, 0].tolist())) == [0, 3, 6]
    assert sorted(set(high[:, 1].tolist())) == [2, 4, 7]


def test_a_node_in_one_piece_stays_and_is_measured_twice():
    draft = Draft((4, 4), PlainSurvey(np.ones((4, 4), dtype=np.int64)))
    cells, _ = draft.split_grid(draft.root, 2)
    draft.count(cells, Fraction(1, 2), "coarse")
    same, _ = draft.split_grid(cells, 1)
    assert np.array_equal(same, cells)
    draft.count(same, Fraction(1, 4), "fine")
    tree, measurements = draft.finish()
    values, variances = combine_measurements(tree.n_nodes, measurements)
    assert np.isinf(variances[0])
    # Inverse variances add up: 1/8 + 1/32.
    assert variances[1:] == pytest.approx(1 / (1 / 8 + 1 / 32))
    assert values[1:] == pytest.approx(4)


def test_cuts_split_in_two():
    draft = Draft((8, 8), PlainSurvey(np.zeros((8, 8), dtype=np.int64)))
    halves = draft.split_at(draft.root, 0, np.array([3]))
    quarters = draft.split_at(halves, 1, np.array([1, 6]))
    tree, _ = draft.finish()
    assert tree.tiles()
    assert tree.n_nodes == 7
    assert draft.boxes(quarters)[1].tolist() == [[3, 1], [3, 8], [8, 6], [8, 8]]
