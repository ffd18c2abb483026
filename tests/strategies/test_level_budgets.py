from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from tallytree.errors import RequestError
from tallytree.model.range_tree import RangeTree
from tallytree.privacy.noise_variances import NoiseKind, level_variances
from tallytree.strategies.errors import tree_range_error
from tallytree.strategies.level_budgets import exact_shares, level_shares, without_empty_levels

ALLOCATIONS = ["equal", "geometric", "optimal-blocks", "optimal"]


@given(
    st.lists(st.floats(0.0, 1e6), min_size=1, max_size=25).filter(lambda weights: sum(weights) > 0)
)
def test_shares_are_exact(weights: list[float]) -> None:
    shares = exact_shares(weights)
    assert sum(shares) == 1
    assert all((share > 0) == (weight > 0) for share, weight in zip(shares, weights))
    assert all(
        abs(float(share) - weight / sum(weights)) <= len(weights) / 2**20
        for share, weight in zip(shares, weights)
    )


@pytest.mark.parametrize(
    "weights", [[], [0.0, 0.0], [-1.0, 2.0], [float("nan")], [float("inf"), 1.0]]
)
def test_weights_without_a_meaning_are_refused(weights: list[float]) -> None:
    with pytest.raises(RequestError):
        exact_shares(weights)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
@pytest.mark.parametrize("noise", ["laplace", "discrete-laplace", "gaussian"])
def test_every_allocation_sums_to_one(allocation: str, noise: NoiseKind) -> None:
    tree = RangeTree.regular(1000, 7)
    shares = level_shares(tree, allocation, noise=noise)  # type: ignore[arg-type]
    assert len(shares) == tree.n_levels
    assert sum(shares) == 1
    assert all(share >= 0 for share in shares)


def test_equal_and_geometric() -> None:
    tree = RangeTree.regular(27, 3)
    assert level_shares(tree) == (Fraction(1, 3),) * 3
    coarse, middle, fine = (float(share) for share in level_shares(tree, "geometric"))
    assert middle / coarse == pytest.approx(3 ** (1 / 3), rel=1e-4)
    assert fine / middle == pytest.approx(3 ** (1 / 3), rel=1e-4)


def least_by_search(tree: RangeTree, noise: NoiseKind, *, consistent: bool) -> float:
    """Least error over all divisions of the budget, by a general optimiser on the logarithms of the
    shares.
    """

    def error(logs: list[float]) -> float:
        weights = [2.0**log for log in logs]
        return tree_range_error(
            tree,
            level_variances([w / sum(weights) for w in weights], noise=noise),
            consistent=consistent,
        )

    found = minimize(
        error,
        [0.0] * tree.n_levels,
        method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4000},
    )
    return float(found.fun)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("n_bins", "branching"), [(64, 4), (100, 3), (512, 23)])
def test_optimal_allocations_cannot_be_improved(
    n_bins: int, branching: int, noise: NoiseKind
) -> None:
    tree = RangeTree.regular(n_bins, branching)
    for allocation, consistent in (("optimal-blocks", False), ("optimal", True)):
        variances = level_variances(level_shares(tree, allocation, noise=noise), noise=noise)  # type: ignore[arg-type]
        reached = tree_range_error(tree, variances, consistent=consistent)
        assert reached <= least_by_search(tree, noise, consistent=consistent) * (1 + 1e-6)


def test_levels_without_a_share_can_be_dropped() -> None:
    tree = RangeTree.regular(64, 4)
    shares = level_shares(tree, "optimal")
    assert shares[0] > 0
    assert shares[1] == 0
    fewer, kept = without_empty_levels(tree, shares)
    assert fewer.widths == (16, 1)
    assert sum(kept) == 1
    assert tree_range_error(fewer, level_variances(kept)) == tree_range_error(
        tree, level_variances(shares)
    )
    with pytest.raises(RequestError):
        without_empty_levels(tree, (Fraction(1), Fraction(0), Fraction(0)))


def test_an_unknown_allocation_is_refused() -> None:
    with pytest.raises(RequestError, match="equal, geometric"):
        level_shares(RangeTree.flat(3), "best")  # type: ignore[arg-type]
