from dataclasses import replace

import numpy as np

from tallytree.consistency.staircases import _large_sizes, consistent_leaves
from tallytree.estimate.staircases import Staircases
from tallytree.kernels.staircase_curves import Curves
from tallytree.model.hierarchy import hierarchy_from_leaves

# Two states of two counties; sizes up to 3 are told apart.
HIERARCHY = hierarchy_from_leaves(["state", "county"], [("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")])
N_SIZES = 4


def measured(heights: list[list[float]], rows: list[list[float]], clear: list[int]) -> Staircases:
    height = np.array(heights)
    lengths = [len(sizes) for sizes in rows]
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    sizes = np.array([size for region in rows for size in region], dtype=float)
    return Staircases(
        Curves(height, np.full_like(height, 0.01), np.empty((0, 0))), offsets, sizes, np.array(clear), 0.02
    )


def test_a_large_group_stays_in_its_county_though_the_level_between_was_not_measured() -> None:
    root = measured([[8, 5, 1, 1]], [[700.0]], [1])
    leaves = measured(
        [[2, 1, 0, 0], [2, 1, 0, 0], [2, 2, 1, 1], [2, 1, 0, 0]], [[4.0], [4.0], [701.0], [4.0]], [0, 0, 1, 0]
    )
    groups = HIERARCHY.sum_from_leaves(np.full(4, 2))
    found = consistent_leaves(HIERARCHY, groups, [root, None, leaves], N_SIZES)
    assert 700 <= found.region(2).size[-1] <= 701
    assert all(found.region(leaf).size[-1] < 10 for leaf in (0, 1, 3))
    assert found.n_groups().tolist() == [2, 2, 2, 2]


def test_large_groups_are_lowered_only_by_what_noise_explains() -> None:
    """Of 1,000 rows, most at the last size: noise of scale 2 lifts the largest by 12, the tenth by 8."""
    noise_variance, n_sizes = 8.0, 100
    scale = 2.0
    noise = n_sizes + scale * np.log(1001 / (2 * np.arange(1, 1001)))
    explained = replace(measured([[1.0]], [np.maximum(noise, n_sizes).tolist()], [0]), noise_variance=noise_variance)
    np.testing.assert_allclose(_large_sizes([explained], 20, n_sizes), n_sizes, atol=1)
    clear = [400.0, 300.0, *np.maximum(noise, n_sizes)[2:].tolist()]
    found = _large_sizes([replace(explained, row_sizes=np.array(clear))], 20, n_sizes)
    assert found[:2].tolist() == [400, 300]
    np.testing.assert_allclose(found[2:], n_sizes, atol=1)
