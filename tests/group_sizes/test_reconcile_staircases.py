from dataclasses import replace

import numpy as np

from tallytree.group_sizes.estimate.staircases import Staircases
from tallytree.group_sizes.kernels.curves import Blocks, Curves
from tallytree.group_sizes.kernels.rows import Rows
from tallytree.group_sizes.reconcile.largest import large_sizes
from tallytree.group_sizes.reconcile.staircases import Leaves, consistent_leaves, families_of_leaves
from tallytree.model.hierarchy import hierarchy_from_leaves

# Two states of two counties; sizes up to 3 are told apart.
HIERARCHY = hierarchy_from_leaves(
    ["state", "county"], [("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")]
)
N_SIZES = 4
# A look that tells next to nothing.
LOOK = Curves(np.full((1, N_SIZES), 4.0), np.full((1, N_SIZES), 1e6), np.empty((0, 0)))


def measured(
    heights: list[list[float]], rows: list[list[float]], clear: list[int], reach: float = 1.0
) -> Staircases:
    height = np.array(heights, dtype=float)
    lengths = [len(sizes) for sizes in rows]
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    sizes = np.array([size for region in rows for size in region], dtype=float)
    n_regions, n_sizes = height.shape
    ends = np.tile(np.arange(1, n_sizes + 1), n_regions)
    answers = np.rint(height).astype(np.int64).ravel()
    return Staircases(
        Curves(height, np.full_like(height, 0.01), np.empty((0, 0))),
        Blocks(np.arange(n_regions + 1) * n_sizes, ends, answers, 0.02),
        Rows(offsets, sizes, np.zeros(n_regions), np.zeros(n_regions), 0.02),
        np.array(clear),
        reach,
    )


def all_at_once(leaves: Staircases) -> Leaves:
    return Leaves(families_of_leaves(HIERARCHY), lambda regions: leaves, N_SIZES)


def noisier(level: Staircases, variance: float) -> Staircases:
    return replace(level, rows=level.rows._replace(noise_variance=variance))


def test_a_large_group_stays_in_its_county_though_the_level_between_was_not_measured() -> None:
    root = measured([[8, 5, 1, 1]], [[700.0]], [1])
    leaves = measured(
        [[2, 1, 0, 0], [2, 1, 0, 0], [2, 2, 1, 1], [2, 1, 0, 0]],
        [[4.0], [4.0], [701.0], [4.0]],
        [0, 0, 1, 0],
    )
    groups = HIERARCHY.sum_from_leaves(np.full(4, 2))
    found = consistent_leaves(HIERARCHY, groups, [root, None], all_at_once(leaves), LOOK)
    assert 700 <= found.region(2).size[-1] <= 701
    assert all(found.region(leaf).size[-1] < 10 for leaf in (0, 1, 3))
    assert found.n_groups().tolist() == [2, 2, 2, 2]


def test_large_groups_are_lowered_only_by_what_noise_explains() -> None:
    """Of 1,000 rows, most at the last size: noise of scale 2 lifts the largest by 12, the tenth by
    8.
    """
    noise_variance, n_sizes = 8.0, 100
    scale = 2.0
    noise = n_sizes + scale * np.log(1001 / (2 * np.arange(1, 1001)))
    explained = noisier(
        measured([[1.0]], [np.maximum(noise, n_sizes).tolist()], [0]), noise_variance
    )
    np.testing.assert_allclose(large_sizes([explained.largest], 20, n_sizes), n_sizes, atol=1)
    clear = [400.0, 300.0, *np.maximum(noise, n_sizes)[2:].tolist()]
    clearly = replace(explained, rows=explained.rows._replace(sizes=np.array(clear)))
    found = large_sizes([clearly.largest], 20, n_sizes)
    assert found[:2].tolist() == [400, 300]
    np.testing.assert_allclose(found[2:], n_sizes, atol=1)


def test_large_groups_go_where_the_less_noisy_level_saw_them() -> None:
    """The states take the large group for the first one's; the counties, measured with a tenth of
    the noise, know better.
    """
    root = measured([[8, 5, 1, 1]], [[700.0]], [1])
    states = noisier(
        measured([[4, 3, 0.5, 0.5], [4, 2, 0.5, 0.5]], [[650.0], [600.0]], [0, 0]), 2.0
    )
    leaves = measured(
        [[2, 1, 0, 0], [2, 1, 0, 0], [2, 2, 1, 1], [2, 1, 0, 0]],
        [[4.0], [4.0], [701.0], [4.0]],
        [0, 0, 1, 0],
    )
    groups = HIERARCHY.sum_from_leaves(np.full(4, 2))
    found = consistent_leaves(HIERARCHY, groups, [root, states], all_at_once(leaves), LOOK)
    assert found.region(2).size[-1] >= 600


def test_a_ghost_among_the_leaves_is_no_group_where_the_root_shows_none() -> None:
    """The noise of the leaves reaches 80, that of the root 20: its row at 2 is no group of 90, but
    may be one of 10.
    """
    root = measured([[8, 5, 0, 0]], [[2.0]], [0], reach=20.0)
    groups = HIERARCHY.sum_from_leaves(np.full(4, 2))
    for size, reach, is_kept in [(90.0, 80.0, False), (10.0, 5.0, True)]:
        leaves = measured([[2, 1, 0, 0]] * 4, [[4.0], [4.0], [size], [4.0]], [0, 0, 1, 0], reach)
        found = consistent_leaves(HIERARCHY, groups, [root, None], all_at_once(leaves), LOOK)
        assert (found.size.max() >= N_SIZES) == is_kept


def test_no_group_is_larger_than_a_public_bound() -> None:
    root = measured([[8, 5, 1, 1]], [[700.0]], [1])
    leaves = measured(
        [[2, 1, 0, 0]] * 3 + [[2, 2, 1, 1]], [[4.0], [4.0], [4.0], [701.0]], [0, 0, 0, 1]
    )
    groups = HIERARCHY.sum_from_leaves(np.full(4, 2))
    assert (
        consistent_leaves(HIERARCHY, groups, [root, None], all_at_once(leaves), LOOK, 50).size.max()
        == 50
    )
