from fractions import Fraction

import numpy as np
import pytest

from tallytree.boxes.draft import Draft
from tallytree.boxes.grids import best_grid_branching, grid_size, second_grid_sizes
from tallytree.boxes.methods import NAMES, grow, method_named
from tallytree.boxes.shares import geometric_shares, proportional_shares
from tallytree.boxes.trees import first_level, geometric_ratio, halvings
from tallytree.errors import RequestError
from tallytree.options.maps import MethodOptions
from tests.boxes.surveys import PlainSurvey, share_of


def fits(method, shape):
    return len(shape) == 1 or not method_named(method).one_column


def grown(method, counts, *, epsilon=1.0, **options):
    survey = PlainSurvey(counts, epsilon)
    draft = Draft(counts.shape, survey)
    grow(draft, MethodOptions(mechanism=method, **options))
    tree, measurements = draft.finish()
    return survey, tree, measurements


@pytest.mark.parametrize(
    ("method", "shape"),
    [
        (method, shape)
        for method in NAMES
        for shape in [(40,), (16, 16), (5, 12), (6, 4, 3)]
        if fits(method, shape)
    ],
)
def test_every_method_tiles_the_map_and_measures_its_leaves(method, shape):
    counts = np.random.default_rng(1).poisson(3, size=shape)
    survey, tree, measurements = grown(method, counts)
    assert tree.tiles()
    measured = np.unique(np.concatenate([one.nodes for one in measurements]))
    assert set(np.flatnonzero(tree.is_leaf)) <= set(measured)
    if method.startswith("kd"):  # medians of boxes one cell wide are not asked for
        assert Fraction(7, 10) < share_of(survey) <= 1
    elif method == "privtree":
        assert [share for _, share, _ in survey.asked] == [Fraction(1, 2)] * 2
    elif method.startswith("structure"):  # nor are boundaries where nothing suggests any
        assert share_of(survey) in (Fraction(3, 4), Fraction(7, 8), 1)
    elif method not in ("adaptive", "adaptive-tree"):
        assert share_of(survey) == 1


def test_uniform_grid_follows_the_slides():
    assert grid_size(1_000_000 * 0.1, (1024, 1024)) == 100
    assert grid_size(0, (1024, 1024)) == 1
    assert grid_size(1e12, (256, 256)) == 256
    counts = np.full((64, 64), 10)
    survey, tree, _ = grown("uniform-grid", counts, epsilon=0.1)
    m = round((counts.sum() * 0.1 / 10) ** 0.5)
    assert tree.is_leaf.sum() == m * m
    assert [(query, share) for query, share, _ in survey.asked] == [
        ("number of points", Fraction(1, 20)),
        ("cell", Fraction(19, 20)),
    ]
    survey, _, _ = grown("uniform-grid", counts, n_points=40_960)
    assert [query for query, _, _ in survey.asked] == ["cell"]


def test_adaptive_grid_follows_the_slides():
    # m2 = ceil(sqrt(N' (1 - alpha) eps / 5)).
    assert second_grid_sizes(np.array([-7, 0, 1, 500, 2000]), 0.5, (256, 256)).tolist() == [
        1,
        1,
        1,
        8,
        15,
    ]
    counts = np.zeros((100, 100), dtype=np.int64)
    counts[:10, :10] = 30
    survey, tree, _ = grown("adaptive-grid", counts, alpha=Fraction(1, 4), cells=10)
    assert survey.asked[0] == ("coarse cell", Fraction(1, 4), 100)
    assert survey.asked[1] == ("fine cell", Fraction(3, 4), 99 + 100)
    assert tree.is_leaf.sum() == 199


@pytest.mark.parametrize(("n_points", "first"), [(100_000, 25), (400_000, 50), (10_000, 10)])
def test_the_coarse_grid_has_a_quarter_of_the_uniform_grids_cells_per_side(n_points, first):
    # m1 = max(10, sqrt(N eps / 10) / 4) at eps = 1: 100 / 4, 200 / 4, and 32 / 4, which is below
    # 10.
    survey, _, _ = grown("adaptive-grid", np.zeros((300, 300), dtype=np.int64), n_points=n_points)
    assert survey.asked[0] == ("coarse cell", Fraction(1, 2), first**2)


def test_trees_share_their_budget_as_they_say():
    counts = np.ones((16, 16), dtype=np.int64)
    assert [share for _, share, _ in grown("quadtree", counts, depth=3)[0].asked] == [
        Fraction(1, 4)
    ] * 4
    shares = [float(share) for _, share, _ in grown("quad-opt", counts, depth=3)[0].asked]
    assert shares[2] / shares[1] == pytest.approx(2 ** (1 / 3), rel=1e-4)
    kd = grown("kd-tree", counts, depth=2)[0].asked
    medians = [(share, boxes) for query, share, boxes in kd if query.startswith("median")]
    assert [boxes for _, boxes in medians] == [1, 2, 4, 8]
    assert sum(share for share, _ in medians) == Fraction(3, 10)
    hybrid = grown("kd-hybrid", counts, depth=4)[0].asked
    assert sum(query.startswith("median") for query, _, _ in hybrid) == 4


def test_adaptive_tree_splits_where_points_are_and_looks_twice_elsewhere():
    counts = np.zeros((64, 64), dtype=np.int64)
    counts[3, 5] = 10_000
    _, tree, measurements = grown("adaptive-tree", counts)
    leaves = np.flatnonzero(tree.is_leaf)
    holds = leaves[np.all((tree.low[leaves] <= [3, 5]) & (tree.high[leaves] > [3, 5]), axis=1)]
    assert tree.volume[holds].tolist() == [1]
    spent = np.zeros(tree.n_nodes)
    for one in measurements:
        spent[one.nodes] += float(one.share)
    # On every way from the root to a leaf the shares add up to all of the budget.
    on_the_way = spent.copy()
    for layer in tree.layers[1:]:
        on_the_way[layer] += on_the_way[tree.parent[layer]]
    assert on_the_way[leaves] == pytest.approx(1)


def test_shares_are_exact():
    assert sum(geometric_shares(9, 1.26, Fraction(7, 10))) == Fraction(7, 10)
    assert geometric_shares(3, 1.0) == (Fraction(1, 3),) * 3
    assert min(proportional_shares([1e-12, 1.0])) == Fraction(1, 1_000_000)
    assert geometric_ratio(2) == pytest.approx(2 ** (1 / 3))
    assert [halvings(shape) for shape in [(1, 1), (2, 1), (5, 5), (256, 256), (257, 2)]] == [
        0,
        1,
        3,
        8,
        9,
    ]


def test_best_branching_comes_from_the_exact_error():
    assert 2 <= best_grid_branching((256, 256)) <= 16


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mechanism": "voronoi"}, "mechanism 'voronoi' is not known"),
        ({"mechanism": "adaptive-grid", "alpha": Fraction(1)}, "alpha lies between 0 and 1"),
        ({"mechanism": "adaptive-grid", "alpha": Fraction(5, 4)}, "alpha lies between 0 and 1"),
        ({"mechanism": "flat", "alpha": Fraction(1, 2)}, "alpha goes with adaptive-grid"),
        ({"mechanism": "quadtree", "depth": 0}, "depth is a whole number"),
        ({"mechanism": "flat", "depth": 2}, "depth goes with"),
        ({"mechanism": "uniform-grid", "cells": -3}, "cells is a whole number"),
        ({"prune": float("nan")}, "prune"),
        ({"n_points": -1}, "n_points"),
    ],
)
def test_bad_options_are_refused(options, says):
    with pytest.raises(RequestError, match=says):
        MethodOptions(**options)


def test_trees_too_large_for_memory_are_refused_before_they_grow():
    survey = PlainSurvey(np.zeros((2, 2), dtype=np.int64))
    draft = Draft((20_000, 20_000), survey)
    for method, options in [
        ("flat", {}),
        ("uniform-grid", {"cells": 10_000}),
        ("quadtree", {"depth": 14}),
    ]:
        with pytest.raises(RequestError, match=r"GiB; at most"):
            grow(draft, MethodOptions(mechanism=method, **options))
    assert survey.asked == []


def test_the_adaptive_tree_starts_with_fewer_boxes_where_there_are_few_points():
    assert [first_level(points, 2) for points in (0, 5.9, 6, 24, 95, 96, 1e9)] == [
        0,
        0,
        1,
        2,
        2,
        3,
        3,
    ]
    assert [first_level(points, 3) for points in (0, 12, 96, 1e9)] == [0, 1, 2, 2]
    for n_points, level in ((20, 1), (100_000, 3)):
        survey, _, _ = grown("adaptive-tree", np.full((32, 32), 7), n_points=n_points)
        assert survey.asked[0][0] == f"level {level}"
