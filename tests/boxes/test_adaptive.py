from fractions import Fraction

import numpy as np
import pytest

import tallytree as tt
from tallytree.boxes.adaptive import asked_depths, depth_shares
from tallytree.boxes.draft import Draft, combine_measurements
from tallytree.boxes.measure import CellCharges
from tallytree.boxes.methods import grow
from tallytree.boxes.smoothing import smooth_tree
from tallytree.model.box_tree import uniform_density
from tallytree.options.maps import MethodOptions
from tests.boxes.surveys import PlainSurvey
from tests.kernels.test_tree_nonnegative import assert_adds_up


def clumps(seed, shape=(64, 64), n_points=4000):
    rng = np.random.default_rng(seed)
    cells = tuple(
        np.clip(rng.normal(0.5, 0.12, n_points) * side, 0, side - 1).astype(int) for side in shape
    )
    return np.bincount(np.ravel_multi_index(cells, shape), minlength=np.prod(shape)).reshape(shape)


def released(counts, epsilon=1.0, seed=1, **options):
    return tt.spatial(
        counts=counts, mechanism="adaptive", epsilon=epsilon, insecure_seed=seed, **options
    )


def test_questions_come_at_few_depths():
    assert asked_depths((256, 256), 1e6) == (3, 5, 6, 8)
    # The slides' grids over 10, 50 and 100 points per unit of noise are of 1, 2 and 3 cells a side.
    assert asked_depths((256, 256), 10) == (0, 2, 4, 6, 8)
    assert asked_depths((256, 256), 50) == (1, 3, 5, 6, 8)
    assert asked_depths((256, 256), 100) == (2, 4, 6, 8)
    assert asked_depths((4096,), 1e6) == (2, 5, 9, 12)
    assert asked_depths((256,), 1e6) == (2, 5, 8)
    assert asked_depths((64, 64, 64), 1e6) == (2, 3, 4, 5, 6)
    assert asked_depths((1, 1), 1e6) == (0,)


def test_shares_add_up_and_the_first_is_larger_where_few_boxes_will_be_split():
    for points in (0.0, 1e2, 1e4, 1e6):
        shares = depth_shares((3, 5, 7, 8), 2, points, Fraction(49, 50))
        assert sum(shares) == Fraction(49, 50)
        assert all(share > 0 for share in shares)
    # log2(4096) / 2 - 3 = 3 halvings of even land within reach, in steps of two: the first question
    # has 1 / (1 + 1.5 · 1.5).
    assert float(depth_shares((3, 5, 7, 8), 2, 4096.0, Fraction(1))[0]) == pytest.approx(
        1 / 3.25, abs=1e-3
    )
    # With many points all questions are within reach: alike for a line; for a map they weigh more
    # the deeper they are.
    assert depth_shares((3, 6, 9, 12), 1, 1e12, Fraction(1))[0] == Fraction(1, 4)
    weights = [1, 2 ** (2 / 3), 2 ** (4 / 3), 2 ** (5 / 3)]
    assert float(depth_shares((3, 5, 7, 8), 2, 1e20, Fraction(1))[0]) == pytest.approx(
        1 / sum(weights), abs=1e-3
    )
    assert depth_shares((0,), 2, 9.0, Fraction(1)) == (Fraction(1),)


@pytest.mark.parametrize("shape", [(64,), (33, 17), (8, 9, 10), (1, 5)])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_every_cell_pays_the_whole_budget_once(shape, epsilon):
    counts = clumps(3, shape)
    draft = Draft(shape, PlainSurvey(counts, epsilon))
    grow(draft, MethodOptions(mechanism="adaptive"))
    tree, measurements = draft.finish()
    charges = CellCharges(shape)
    for one in measurements:
        charges.charge(tree.low[one.nodes], tree.high[one.nodes], one.share)
    assert tree.tiles()
    assert charges.spent.min() == charges.spent.max() == charges.denominator


def test_an_even_map_stays_in_large_boxes_and_a_rough_one_does_not():
    rng = np.random.default_rng(2)
    even, rough = rng.poisson(5, (64, 64)), clumps(4, n_points=20_000)
    n_even, n_rough = (int(released(one, 0.2).estimates.leaves.sum()) for one in (even, rough))
    assert n_even < 1100 < 64 * 64
    assert n_rough > 200
    sizes = released(rough, 0.2).estimates
    boxes = (sizes.tree.high - sizes.tree.low).prod(axis=1)[sizes.leaves]
    assert boxes.max() >= 64
    assert boxes.min() <= 4


@pytest.mark.parametrize("nonnegative", [True, False])
def test_smoothed_counts_add_up_and_follow_from_what_was_measured(nonnegative):
    release = released(clumps(7), 0.3, nonnegative=nonnegative)
    published, tree = release.estimates.published, release.estimates.tree
    assert_adds_up(published.astype(float), tree.child_starts)
    assert release.verify()
    if nonnegative:
        assert published.min() >= 0
        assert release.manifest["published"]["smoothed"] is True


def test_boxes_that_are_not_cut_are_asked_together():
    # Said to hold points that no answer shows: the whole has what is left of the budget where that
    # tells the most.
    empty = np.zeros(64 * 64, dtype=np.int64)
    first, last = released(empty, 1.0, n_points=1000).noisy
    assert (len(first.nodes), last.nodes.tolist()) == (4, [0])
    assert first.share + last.share == 1
    first, last = released(empty.reshape(64, 64), 1.0, n_points=60).noisy
    assert (len(first.nodes), last.nodes.tolist()) == (16, [0])
    # With many points the first answers of a map are not sharp enough.
    first, last = released(empty.reshape(64, 64), 1.0, n_points=10**6).noisy
    assert len(first.nodes) == len(last.nodes) == 64


def test_smoothing_keeps_the_root_and_draws_even_counts_to_even_shares():
    rng = np.random.default_rng(9)
    even = rng.poisson(20, (32, 32))
    release = tt.spatial(counts=even, mechanism="quadtree", depth=5, epsilon=0.2, insecure_seed=4)
    estimates, tree = release.estimates, release.estimates.tree
    smoothed = smooth_tree(tree, *combine_measurements(tree.n_nodes, list(release.noisy)))
    assert smoothed.counts[0] == pytest.approx(estimates.unbiased[0])
    assert smoothed.counts.min() >= 0
    assert_adds_up(smoothed.counts, tree.child_starts)

    def squares(values):
        return float(((uniform_density(tree, tree.is_leaf, values) - even) ** 2).mean())

    assert squares(smoothed.counts) < 0.1 * squares(estimates.unbiased)


def test_a_map_without_points_is_released_like_any_other():
    release = released(np.zeros((16, 16), dtype=np.int64), 1.0)
    assert release.verify()
    assert release.estimates.published.min() >= 0
