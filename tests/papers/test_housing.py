import numpy as np
import pytest

from tallytree.papers.housing import housing_counts


@pytest.mark.parametrize("n_households", [100, 20_000, 60_000, 200_000])
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_every_household_is_placed_however_few_there_are(n_households: int, seed: int) -> None:
    counts = housing_counts(n_households, seed)
    assert counts.n_groups.sum() == n_households + 50
    assert (counts.hierarchy.n_leaves, counts.hierarchy.level_size(1)) == (3_144, 52)


def test_sizes_look_like_those_of_households() -> None:
    leaves = housing_counts(2_000_000).leaf_counts
    shares = np.bincount(leaves.size, weights=leaves.count)[:8] / 2_000_000
    np.testing.assert_allclose(shares[1:5], [0.267, 0.328, 0.161, 0.134], atol=0.01)
