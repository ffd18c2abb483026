from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.degree_sequences.kernels import is_graphical, nearest_graphical
from tallytree.errors import InputError
from tests.reference.graphs import all_degree_sequences


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 4, 5])
def test_against_all_graphs_of_a_few_nodes(n_nodes):
    graphical = all_degree_sequences(n_nodes)
    known = {tuple(row) for row in graphical}
    for wanted in combinations_with_replacement(range(-1, n_nodes + 2), n_nodes):
        assert is_graphical(np.array(wanted)) == (wanted in known)
        nearest = nearest_graphical(np.array(wanted))
        assert tuple(nearest) in known
        assert np.abs(nearest - wanted).sum() == np.abs(graphical - wanted).sum(axis=1).min()


@given(st.lists(st.integers(-3, 60), min_size=1, max_size=60))
def test_the_nearest_sequence_is_graphical_and_never_higher(wanted):
    nearest = nearest_graphical(np.array(wanted))
    assert is_graphical(nearest)
    assert np.all(nearest <= np.maximum(np.sort(wanted), 0))
    if is_graphical(np.array(wanted)):
        np.testing.assert_array_equal(nearest, np.sort(wanted))


def test_degrees_of_a_real_graph_stay():
    rng = np.random.default_rng(5)
    ends = rng.integers(0, 2000, (10_000, 2))
    simple = {(min(a, b), max(a, b)) for a, b in ends.tolist() if a != b}
    degrees = np.bincount(np.array(sorted(simple)).ravel(), minlength=2000)
    assert is_graphical(degrees)
    np.testing.assert_array_equal(nearest_graphical(degrees), np.sort(degrees))


def test_no_nodes_and_no_numbers():
    assert is_graphical(np.array([], dtype=np.int64))
    assert len(nearest_graphical(np.array([], dtype=np.int64))) == 0
    with pytest.raises(InputError, match="whole numbers"):
        nearest_graphical(np.array([1.5]))
