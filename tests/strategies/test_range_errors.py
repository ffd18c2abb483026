import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.model.range_tree import RangeTree
from tallytree.privacy.noise_variances import level_variances, noise_variance
from tallytree.strategies.errors import (
    block_uses,
    flat_range_error,
    level_contributions,
    tree_range_error,
    wavelet_range_error,
)
from tallytree.strategies.level_budgets import level_shares
from tests.reference import range_errors as slow


@st.composite
def trees(draw: st.DrawFn) -> tuple[RangeTree, list[float]]:
    """Any nested widths over up to 40 bins, with any variance per level."""
    n_bins = draw(st.integers(1, 40))
    widths = [1]
    while draw(st.booleans()) and widths[0] < n_bins:
        widths.insert(0, widths[0] * draw(st.integers(2, 6)))
    variances = draw(st.lists(st.floats(0.05, 20.0), min_size=len(widths), max_size=len(widths)))
    return RangeTree(n_bins, tuple(widths)), variances


@settings(deadline=None, max_examples=150)
@given(trees())
def test_consistent_error_equals_dense_least_squares(case: tuple[RangeTree, list[float]]) -> None:
    tree, variances = case
    assert tree_range_error(tree, variances) == pytest.approx(
        slow.consistent_tree_error(tree, variances), rel=1e-10
    )


@settings(deadline=None, max_examples=60)
@given(trees())
def test_error_without_consistency_equals_covering_every_range(
    case: tuple[RangeTree, list[float]],
) -> None:
    tree, variances = case
    expected = slow.fewest_blocks_error(tree, variances)
    assert tree_range_error(tree, variances, consistent=False) == pytest.approx(expected, rel=1e-12)


@settings(deadline=None, max_examples=60)
@given(trees())
def test_level_contributions_add_up_and_are_the_true_derivatives(
    case: tuple[RangeTree, list[float]],
) -> None:
    tree, variances = case
    parts = level_contributions(tree, variances)
    assert sum(parts) == pytest.approx(tree_range_error(tree, variances), rel=1e-10)
    for level, part in enumerate(parts):
        up, down = list(variances), list(variances)
        up[level] *= 1 + 1e-5
        down[level] *= 1 - 1e-5
        slope = (tree_range_error(tree, up) - tree_range_error(tree, down)) / 2e-5
        assert part == pytest.approx(slope, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("n_bins", [1, 2, 3, 4, 5, 7, 8, 11, 16, 19, 32])
def test_wavelet_error_equals_the_inverse_transform(n_bins: int) -> None:
    assert wavelet_range_error(n_bins, 3.0) == pytest.approx(
        slow.padded_haar_error(n_bins, 3.0), rel=1e-12
    )


@pytest.mark.parametrize("n_bins", [1, 2, 9, 45])
def test_flat_is_a_tree_of_one_level(n_bins: int) -> None:
    tree = RangeTree.flat(n_bins)
    assert flat_range_error(n_bins, 2.0) == pytest.approx(slow.consistent_tree_error(tree, [2.0]))
    assert tree_range_error(tree, [2.0]) == pytest.approx(flat_range_error(n_bins))
    assert tree_range_error(tree, [2.0], consistent=False) == pytest.approx(
        flat_range_error(n_bins)
    )


def test_a_level_that_is_not_counted_is_left_out() -> None:
    tree = RangeTree.regular(30, 3)
    without = RangeTree(30, (9, 1))
    variances = [2.0, math.inf, math.inf, 5.0]
    assert tree.widths == (27, 9, 3, 1)
    assert tree_range_error(tree, [math.inf, 2.0, math.inf, 5.0]) == tree_range_error(
        without, [2.0, 5.0]
    )
    assert level_contributions(tree, variances)[1:3] == (0.0, 0.0)


def test_wrong_variances_are_refused() -> None:
    tree = RangeTree.regular(8, 2)
    for variances in ([1.0, 1.0], [1.0, 1.0, math.inf], [1.0, 0.0, 1.0], [1.0, math.nan, 1.0]):
        with pytest.raises(RequestError):
            tree_range_error(tree, variances)


def test_uses_are_whole_numbers_beyond_64_bits() -> None:
    tree = RangeTree.regular(2**40, 2)
    n, h = tree.n_bins, tree.n_levels
    # qardaji2013 Prop. 1, summed over levels, plus the two blocks that answer the range of
    # everything.
    assert sum(block_uses(tree)) == h * n * n // 2 - n * n + n * h + n + 2


def equal_error(exponent: int, branching: int, *, consistent: bool) -> float:
    tree = RangeTree.regular(2**exponent, branching)
    return tree_range_error(tree, level_variances(level_shares(tree)), consistent=consistent)


# qardaji2013 Table 1, V^ex: exponent of N, best b, H_2, H_b (all trees, also ragged ones; exact up
# to 2^20).
TABLE_1 = [
    (4, 16, 79.53, 12.00), (5, 32, 163.83, 22.67), (6, 64, 299.15, 44.00), (7, 128, 498.38, 86.67), (8, 16, 773.98, 150.98),
    (9, 23, 1138.11, 221.57), (10, 32, 1602.73, 320.83), (11, 46, 2179.77, 463.83), (12, 16, 2881.12, 606.30),
    (13, 21, 3718.70, 795.53), (14, 26, 4704.43, 1011.33), (15, 32, 5850.26, 1278.08), (16, 16, 7168.16, 1557.37),
    (17, 20, 8670.09, 1932.04), (18, 23, 10368.05, 2278.98), (19, 27, 12274.03, 2719.40), (20, 16, 14400.02, 3183.34),
]  # fmt: skip


@pytest.mark.parametrize(("exponent", "branching", "binary", "best"), TABLE_1)
def test_table_1_without_consistency(
    exponent: int, branching: int, binary: float, best: float
) -> None:
    assert equal_error(exponent, 2, consistent=False) == pytest.approx(binary, abs=0.00501)
    assert equal_error(exponent, branching, consistent=False) == pytest.approx(best, abs=0.00501)


# Tables 1 and 3, H_2^c, exact (unsampled) cells, and the exact value at 2^10 and 2^11 where the
# paper sampled ranges.
@pytest.mark.parametrize(
    ("exponent", "printed"),
    [(4, 34.46), (5, 61.34), (6, 99.92), (7, 152.18), (8, 220.06), (9, 305.54), (10, 410.58)],
)
def test_binary_trees_with_consistency(exponent: int, printed: float) -> None:
    assert equal_error(exponent, 2, consistent=True) == pytest.approx(printed, abs=0.00501)


@pytest.mark.parametrize(
    ("exponent", "branching", "printed"),
    [(4, 16, 12.0), (6, 8, 37.07), (8, 16, 79.23), (7, 12, 54.17)],
)
def test_wide_trees_with_consistency(exponent: int, branching: int, printed: float) -> None:
    assert equal_error(exponent, branching, consistent=True) == pytest.approx(printed, abs=0.00501)


@pytest.mark.parametrize(
    ("exponent", "printed"),
    [(4, 28.52), (5, 49.65), (6, 82.60), (7, 133.96), (8, 214.39), (9, 340.92)],
)
def test_quad_is_the_binary_tree_with_geometric_budgets(exponent: int, printed: float) -> None:
    tree = RangeTree.regular(2**exponent, 2)
    error = tree_range_error(tree, level_variances(level_shares(tree, "geometric")))
    assert error == pytest.approx(printed, abs=0.00501)


def test_wavelet_values_that_were_computed_by_dense_algebra() -> None:
    measured = [wavelet_range_error(2**exponent) for exponent in range(4, 11)]
    assert measured == pytest.approx(
        [37.80, 64.23, 102.25, 153.89, 221.13, 305.95, 410.29], abs=0.00501
    )


def test_least_squares_is_a_little_better_than_perfect_tree_weights_on_a_ragged_tree() -> None:
    # The paper's 20.82 uses the weights of a perfect tree (ACCURACY.md).
    assert equal_error(4, 12, consistent=True) == pytest.approx(20.71, abs=0.00501)


def test_noise_variances() -> None:
    assert noise_variance("laplace", 0.5) == 8.0
    p = math.exp(-0.7)
    assert noise_variance("discrete-laplace", 0.7) == pytest.approx(2 * p / (1 - p) ** 2)
    assert noise_variance("discrete-laplace", 1e-4) == pytest.approx(2e8, rel=1e-6)
    assert noise_variance("gaussian", 0.5, sensitivity=3.0) == 9.0
    assert 0 < noise_variance("discrete-laplace", 1e6) < 1e-50
    for budget in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(RequestError):
            noise_variance("laplace", budget)
