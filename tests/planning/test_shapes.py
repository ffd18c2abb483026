import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.planning.group_sizes.shapes import assumed_counts, named_shape, shape_from_counts


@pytest.mark.parametrize(
    ("name", "mean"), [("geometric:3", 3.0), ("poisson:4.5", 4.5), ("households", 2.6), ("geometric:1", 1.0)]
)
def test_shapes_have_their_mean(name: str, mean: float) -> None:
    shape = named_shape(name)
    assert shape.sum() == pytest.approx(1)
    assert (shape * np.arange(len(shape))).sum() == pytest.approx(mean, rel=0.02)


@pytest.mark.parametrize(
    "name", ["unicorn", "geometric", "geometric:0.5", "zipf:1", "poisson:-1", "geometric:nan", "zipf:x"]
)
def test_unknown_shapes_are_refused(name: str) -> None:
    with pytest.raises(RequestError, match="shape"):
        named_shape(name)


def test_assumed_data_keep_group_totals_and_follow_the_shape() -> None:
    tree = hierarchy_from_leaves(["leaf"], [("a",), ("b",), ("c",)])
    assumed = assumed_counts(tree, np.array([100_000, 0, 7]), named_shape("households"), seed=3)
    assert assumed.n_groups.tolist() == [100_000, 0, 7]
    drawn = assumed.leaf_counts.region(0)
    got = shape_from_counts(drawn.size, drawn.count)[:7]
    np.testing.assert_allclose(got, named_shape("households")[:7], atol=0.01)
