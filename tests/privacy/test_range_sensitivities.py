"""Sensitivities of range strategies and degree sequences, by brute force over all neighbours of
small histograms.
"""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.model.range_tree import RangeTree
from tallytree.privacy.sensitivity import (
    block_differences_sensitivity,
    edge_degrees_sensitivity,
    edge_nodes_sensitivity,
    histogram_sensitivity,
    linear_queries_sensitivity,
    sizes_sensitivity,
)
from tallytree.strategies.hats import HatLevel, Hats
from tallytree.strategies.level_budgets import equal_shares
from tallytree.strategies.strategies import (
    HatStrategy,
    TreeStrategy,
    WaveletStrategy,
    exact_answers,
    matrix_strategy,
    sensitivities,
)
from tallytree.strategies.wavelet import haar_levels

N_BINS = 5


def worst_change(answer, contributions):
    """Largest change of a vector of answers, in L1 and squared L2, when one unit's rows are
    removed.
    """
    l1, l2_squared = 0, 0
    for counts in product(range(contributions + 1), repeat=N_BINS):
        before = answer(np.array(counts))
        for rows in combinations_with_replacement(range(N_BINS), contributions):
            after = np.array(counts) - np.bincount(rows, minlength=N_BINS)
            if after.min() >= 0:
                change = np.abs(before - answer(after))
                l1, l2_squared = max(l1, int(change.sum())), max(l2_squared, int((change**2).sum()))
    return l1, l2_squared


def levels_of(strategy):
    return [
        lambda counts, level=level: exact_answers(strategy, counts)[level]
        for level in range(len(strategy.shares))
    ]


STRATEGIES = {
    "flat": TreeStrategy("flat", RangeTree.flat(N_BINS), equal_shares(1)),
    "tree": TreeStrategy("hierarchical", RangeTree.regular(N_BINS, 2), equal_shares(3)),
    "tree with total": TreeStrategy(
        "hierarchical", RangeTree.regular(N_BINS, 3, count_total=True), equal_shares(3)
    ),
    "wavelet": WaveletStrategy(N_BINS, equal_shares(haar_levels(N_BINS))),
    "hats": HatStrategy("optimised", Hats(N_BINS, (HatLevel(3, 20_000), HatLevel(2, 9_000)), 4)),
    "matrix": matrix_strategy(
        "matrix", np.concatenate([np.eye(N_BINS), [[0.5, -0.25, 1, 0, 0.75]]])
    ),
}


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize("name", STRATEGIES)
def test_sensitivity_of_every_level_is_the_largest_change(name, contributions):
    strategy = STRATEGIES[name]
    for answer, bound in zip(
        levels_of(strategy), sensitivities(strategy, contributions=contributions)
    ):
        assert worst_change(answer, contributions) == (bound.l1, bound.l2_squared)


def test_histogram_and_difference_sensitivities_grow_with_contributions():
    for bound in (
        histogram_sensitivity(contributions=3),
        block_differences_sensitivity(contributions=3),
    ):
        assert (bound.l1, bound.l2_squared) == (3, 9)


def sorted_degrees(edges, n_nodes):
    return np.sort(np.bincount(np.array(edges, dtype=int).ravel(), minlength=n_nodes))


def test_sorted_degrees_change_by_two_when_an_edge_is_protected():
    nodes = range(5)
    edges = [(a, b) for a in nodes for b in nodes if a < b]
    worst = 0
    for chosen in product([False, True], repeat=len(edges)):
        graph = [edge for edge, taken in zip(edges, chosen) if taken]
        for removed in graph[:1]:
            change = np.abs(
                sorted_degrees(graph, 5) - sorted_degrees([e for e in graph if e != removed], 5)
            )
            assert change.max() <= 1
            worst = max(worst, int(change.sum()))
    bound = edge_degrees_sensitivity()
    assert (worst, bound.l1, bound.l2_squared) == (2, 2, 2)


def test_the_number_of_nodes_changes_by_two_when_an_edge_is_protected():
    edges = [(a, b) for a in range(4) for b in range(4) if a < b]
    worst: dict[object, int] = dict.fromkeys(("nodes", *range(1, 6)), 0)
    for chosen in product([False, True], repeat=len(edges)):
        graph = [edge for edge, taken in zip(edges, chosen) if taken]
        for removed in graph:
            fewer = [edge for edge in graph if edge != removed]
            ends = [np.unique(np.array(one, dtype=int)).size for one in (graph, fewer)]
            worst["nodes"] = max(worst["nodes"], abs(ends[0] - ends[1]))
            for number in range(
                1, 6
            ):  # the largest degrees, filled up with zeros, whatever their number
                padded = [
                    np.pad(sorted_degrees(one, 4), (1, 0))[-number:] for one in (graph, fewer)
                ]
                worst[number] = max(worst[number], int(np.abs(padded[0] - padded[1]).sum()))
    bound = edge_nodes_sensitivity()
    assert (worst.pop("nodes"), bound.l1, bound.l2_squared) == (2, 2, 4)
    assert max(worst.values()) == edge_degrees_sensitivity().l1


def test_sorted_counts_change_by_one_when_a_count_is_protected():
    for counts in product(range(4), repeat=4):
        for place in range(4):
            fewer = np.array(counts) - (np.arange(4) == place)
            if fewer.min() >= 0:
                assert np.abs(np.sort(counts) - np.sort(fewer)).sum() == sizes_sensitivity().l1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((2, 3), dtype=np.int64), "ask nothing"),
        (np.ones((2, 3)), "whole numbers"),
        (np.full((1, 2), 2**21), "below 2\\^20"),
        (np.zeros((0, 3), dtype=np.int64), "at least one row"),
    ],
)
def test_refuses_matrices_without_a_sensitivity(rows, message):
    with pytest.raises(RequestError, match=message):
        linear_queries_sensitivity(rows)
