import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.group_sizes.plan.shapes import (
    Doubts,
    assumed_counts,
    named_shape,
    scattered_tables,
)
from tallytree.model.hierarchy import hierarchy_from_leaves


@pytest.mark.parametrize(
    ("name", "mean"),
    [("geometric:3", 3.0), ("poisson:4.5", 4.5), ("households", 2.6), ("geometric:1", 1.0)],
)
def test_shapes_have_their_mean(name: str, mean: float) -> None:
    shape = named_shape(name)
    assert shape.sum() == pytest.approx(1)
    assert (shape * np.arange(len(shape))).sum() == pytest.approx(mean, rel=0.02)


@pytest.mark.parametrize(
    "name",
    ["unicorn", "geometric", "geometric:0.5", "zipf:1", "poisson:-1", "geometric:nan", "zipf:x"],
)
def test_unknown_shapes_are_refused(name: str) -> None:
    with pytest.raises(RequestError, match="shape"):
        named_shape(name)


def test_assumed_data_keep_group_totals_and_follow_the_shape() -> None:
    tree = hierarchy_from_leaves(["leaf"], [("a",), ("b",), ("c",)])
    assumed = assumed_counts(tree, np.array([100_000, 0, 7]), named_shape("households"), seed=3)
    assert assumed.n_groups.tolist() == [100_000, 0, 7]
    drawn = assumed.leaf_counts.region(0)
    got = np.bincount(drawn.size, weights=drawn.count)[:7] / drawn.count.sum()
    np.testing.assert_allclose(got, named_shape("households")[:7], atol=0.01)


def test_scattered_tables_keep_clear_means_and_never_fall_below_zero() -> None:
    tree = hierarchy_from_leaves(
        ["region", "town"], [(f"r{leaf // 3}", f"t{leaf}") for leaf in range(6)]
    )
    leaves = np.array([[400, 0, 9], [250, 30, 0], [90, 2, 1], [800, 40, 0], [20, 60, 3], [5, 0, 2]])
    table = np.stack([tree.sum_from_leaves(column) for column in leaves.T], axis=1)
    variance = 25.0 + 0.02 * table**2
    doubts = Doubts(variance, np.zeros((3, len(table))), np.zeros((3, *table.shape)))
    drawn = np.stack([scattered_tables(tree, table, doubts, seed=seed) for seed in range(3000)])
    assert drawn.min() == 0
    assert not drawn[:, leaves == 0].any()
    clear = leaves >= 20
    np.testing.assert_allclose(drawn.mean(axis=0)[clear], leaves[clear], rtol=0.03)
    np.testing.assert_allclose(drawn.sum(axis=1).mean(axis=0), table[0], rtol=0.03)
    # Siblings are drawn together with the region above, so sums spread as it does, not as much as
    # they do alone.
    root = drawn.sum(axis=1)
    np.testing.assert_allclose(root.var(axis=0)[:2], variance[0, :2], rtol=0.2)
    assert (drawn.var(axis=0)[leaves > 100] > 100).all()


def test_regions_are_scattered_as_a_whole_too() -> None:
    """Another number of groups, and groups moved between sizes: what a region's counts do together."""
    tree = hierarchy_from_leaves(["town"], [(f"t{leaf}",) for leaf in range(40)])
    leaves = np.tile([400, 300, 200, 100], (40, 1))
    table = np.concatenate([leaves.sum(axis=0)[None], leaves])
    shared, along = np.zeros((2, 41)), np.zeros((2, 41, 4))
    shared[:, 1:] = [[0.04], [0.01]]
    along[0], along[1] = 1.0, [-1.2, -0.2, 1.0, 3.4]
    doubts = Doubts(np.zeros(table.shape), shared, along)
    drawn = np.stack([scattered_tables(tree, table, doubts, seed=seed) for seed in range(300)])
    assert drawn.min() >= 0
    np.testing.assert_allclose(drawn.mean(axis=(0, 1)), leaves[0], rtol=0.02)
    groups = drawn.sum(axis=2)
    assert (groups / 1000).std() == pytest.approx(0.2, rel=0.1)
    assert (drawn[:, :, 3] / groups).std() == pytest.approx(0.1 * 0.34, rel=0.1)
    # Large counts are more where small ones are fewer, beyond what the number of groups says.
    assert np.corrcoef((drawn / groups[:, :, None]).reshape(-1, 4).T)[0, 3] < -0.9
