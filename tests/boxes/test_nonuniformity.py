"""What is not known inside boxes: how clustered points are, and whether intervals of queries that
cut boxes hold.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tallytree as tt
from tallytree.boxes.draft import Draft, combine_measurements
from tallytree.boxes.estimates import estimate_map
from tallytree.boxes.methods import grow
from tallytree.boxes.nonuniformity import clustering, shared_along_borders, unknown_inside
from tallytree.kernels.trees.least_squares import variances_from_below
from tallytree.model.box_tree import box_sums, prefix_sums
from tallytree.options.maps import MethodOptions
from tallytree.papers.dpbench.made_up import tuned_maps
from tallytree.releases.query_evaluation import spread_classes
from tests.boxes.surveys import PlainSurvey


def estimated(counts, **options):
    """A map without noise that nevertheless states a variance of next to nothing."""
    draft = Draft(counts.shape, PlainSurvey(counts, 1.0))
    grow(draft, MethodOptions(**options))
    tree, measurements = draft.finish()
    values, _ = combine_measurements(tree.n_nodes, measurements)
    variances = np.where(tree.is_leaf, 1e-9, np.inf)
    found = estimate_map(tree, values, variances)
    return found, variances_from_below(variances, tree.child_starts)


def test_clustering_by_hand():
    one_place, even = np.zeros((4, 4), dtype=np.int64), np.full((4, 4), 5)
    one_place[1, 1] = 80
    # Quarters of 80, 0, 0, 0 out of 80: (60² + 3 · 20²) over 4 · 3/16 · 80², which is 4800 over
    # 4800.
    assert clustering(*estimated(one_place, mechanism="quadtree", depth=1)) == pytest.approx(1.0)
    assert clustering(*estimated(even, mechanism="quadtree", depth=1)) == pytest.approx(
        0.0, abs=1e-6
    )
    halves = np.zeros((4, 4), dtype=np.int64)
    halves[:2] = 5
    # 20, 20, 0, 0 out of 40: 4 · 10² over 4 · 3/16 · 40².
    assert clustering(*estimated(halves, mechanism="quadtree", depth=1)) == pytest.approx(
        400 / 1200
    )
    assert (
        clustering(*estimated(even, mechanism="uniform-grid", cells=1)) == 1.0
    )  # one box says nothing
    found, noise = estimated(halves, mechanism="quadtree", depth=1)
    huge = replace(
        found, unbiased=np.full_like(found.unbiased, 1e200)
    )  # as a damaged folder may hold it
    assert clustering(huge, noise) == 1.0
    found, _ = estimated(halves, mechanism="quadtree", depth=1)
    loose, edge = unknown_inside(found, 0.5, 0.25)
    np.testing.assert_allclose(loose, found.published + 0.5 * found.published**2)
    np.testing.assert_allclose(edge, found.published * 0.25)


def test_what_boxes_along_a_border_share_by_hand():
    slides = 2 / (np.pi * 10 / np.sqrt(2))
    even = np.full((8, 8), 5)
    assert shared_along_borders(estimated(even, mechanism="quadtree", depth=2)[0]) == pytest.approx(
        slides
    )
    assert shared_along_borders(
        estimated(even, mechanism="uniform-grid", cells=1)[0]
    ) == pytest.approx(slides)
    lines = np.zeros((8, 8), dtype=np.int64)
    lines[:, [0, 4]] = 6
    # Four boxes of 24, all points in the left halves: along the second column both boxes of a
    # stretch err by +12 and -12, so β² is 2 · 12² over 2 · 1/4 · 24², which is 1; along the first
    # 0. (0 + 1)/2 over 4 sides.
    assert shared_along_borders(
        estimated(lines, mechanism="quadtree", depth=2)[0]
    ) == pytest.approx(np.sqrt(1 / 8))
    # One line at the left of the upper boxes and at the right of the lower ones: errors of opposite
    # sign, which cancel.
    crossed = np.zeros((8, 8), dtype=np.int64)
    crossed[:4, [0, 4]] = 6
    crossed[4:, [3, 7]] = 6
    assert shared_along_borders(
        estimated(crossed, mechanism="quadtree", depth=2)[0]
    ) == pytest.approx(slides)


@pytest.mark.parametrize(
    ("columns", "shared", "growth"),
    [
        # Halves of four columns hold 0.8 and 0.2, those of eight 0.75 and 0.25: β² is 4 · 0.3², and
        # 4 · 0.25² a step above.
        ([12, 12, 3, 3, 4, 4, 1, 1], 0.36, 0.36 / 0.25),
        # 3/4 and 1/4 below 5/8 and 3/8: four times as much, and lines in random places double it.
        ([15, 15, 5, 5, 9, 9, 3, 3], 0.25, 2.0),
        # What falls from step to step is not taken to fall on.
        ([12, 12, 8, 8, 3, 3, 2, 2], 0.04, 1.0),
    ],
)
def test_what_boxes_share_goes_on_to_grow_as_it_did(columns, shared, growth):
    found, _ = estimated(np.tile(columns, (16, 2)), mechanism="quadtree", depth=3)
    # Along one of two columns, over 4 sides; and no less than the slides have.
    expected = max(2 / (np.pi * 10 / np.sqrt(2)), np.sqrt(shared * growth / 2 / 4))
    assert shared_along_borders(found) == pytest.approx(expected)


def coverage(counts, runs, **options):
    """How often 95 % intervals hold the true count, by class of box."""
    sums, held = prefix_sums(counts), {}
    for seed in range(runs):
        made = tt.spatial(counts=counts, insecure_seed=seed, **options)
        for name, (low, high) in spread_classes(counts.shape, "boxes").items():
            corners = np.stack([low, high], axis=2)[:300]
            answers = made.ranges(corners.astype(float))
            exact = box_sums(sums, low[:300], high[:300])
            held.setdefault(name, []).append(
                np.mean((answers.low <= exact) & (exact <= answers.high))
            )
    return {name: float(np.mean(shares)) for name, shares in held.items() if name != "everything"}


def town():
    rng = np.random.default_rng(4)
    points = [rng.normal(centre, spread, size=(4000, 2)) for centre, spread in ((20, 3), (44, 8))]
    return np.histogram2d(*np.concatenate(points).clip(0, 63.9).T, bins=64, range=[(0, 64)] * 2)[
        0
    ].astype(np.int64)


@pytest.mark.parametrize(
    ("method", "least"), [("uniform-grid", 0.8), ("adaptive-grid", 0.9), ("adaptive-tree", 0.9)]
)
def test_intervals_of_all_sizes_hold(method, least):
    """A uniform grid as wide as the town itself is the hard case: all of its border errs to one
    side.
    """
    shares = coverage(town(), 6, mechanism=method, epsilon=0.5)
    assert min(shares.values()) > least, shares


def test_intervals_hold_where_points_lie_on_lines_too_fine_to_be_told_apart():
    roads = dict(tuned_maps(128))["roads (synthetic)"]
    counts = (
        np.random.default_rng(1)
        .multinomial(10_000, roads.ravel() / roads.sum())
        .reshape(roads.shape)
    )
    shares = coverage(counts, 6, mechanism="adaptive", epsilon=0.1)
    assert min(shares.values()) > 0.9, shares


@pytest.mark.data
@pytest.mark.proof
@pytest.mark.parametrize("name", ["GOWALLA", "STROKE", "SF-CABS-S"])
def test_intervals_of_all_sizes_hold_on_real_maps(name, data_folder: Path):
    with np.load(data_folder / "dpbench_2d" / "dpbench_2d.npz") as arrays:
        counts = arrays[name].astype(np.int64)
    for epsilon in (0.1, 1):
        shares = coverage(counts, 4, epsilon=epsilon)
        assert min(shares.values()) > 0.9, (epsilon, shares)
