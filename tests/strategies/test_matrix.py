import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.strategies.bump_rows import BumpRows
from tallytree.strategies.dense_nonnegative import dense_nonnegative_least_squares
from tallytree.strategies.matrix import MatrixErrors
from tallytree.strategies.strategies import (
    LARGEST_COEFFICIENT,
    MatrixStrategy,
    exact_answers,
    matrix_strategy,
)
from tallytree.strategies.workloads import AllRanges, prefixes
from tests.reference import ranges as slow


@given(st.integers(1, 12), st.integers(0, 6), st.sampled_from([0.0, 0.7]), st.integers(0, 2**32))
def test_moments_and_estimates_equal_dense_least_squares(n_bins, n_more, share, seed):
    rng = np.random.default_rng(seed)
    rows = np.concatenate(
        [np.eye(n_bins, dtype=np.int64) * 5, rng.integers(-3, 4, (n_more, n_bins))]
    )
    if seed % 2:  # bins that do not come first, one by one, have no short way
        rows = np.ascontiguousarray(rows[::-1])
    errors = MatrixErrors(rows, variance=2.0, cumulant=3.0)
    first, last = slow.all_ranges(n_bins)
    queries = slow.range_rows(n_bins, first, last, share)
    expected = slow.moments(
        rows.astype(float), np.full(len(rows), 2.0), np.full(len(rows), 3.0), queries
    )
    for ours, theirs in zip(errors.moments(first, last, share), expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    noisy = rng.integers(0, 100, len(rows))
    np.testing.assert_allclose(
        errors.estimates(noisy),
        np.linalg.lstsq(rows.astype(float), noisy.astype(float), rcond=None)[0],
        atol=1e-9,
    )


def test_real_matrices_are_measured_in_whole_numbers():
    strategy = matrix_strategy("m", np.array([[0.5, 0.25], [1.0, 0.0], [1e-9, 0.0], [0.0, -1 / 3]]))
    assert strategy.rows.tolist() == [[32768, 16384], [65536, 0], [0, -21845]]
    answers = exact_answers(strategy, np.array([2, 1]))
    assert answers[0].tolist() == [81920, 131072, -21845]
    kept = matrix_strategy("m", np.array([[1.0, 2.0], [0, 3]]))
    assert kept.rows.tolist() == [[1, 2], [0, 3]]


def test_huge_counts_are_cut_off_before_sums_overflow():
    strategy = matrix_strategy("m", np.eye(3) * 0.7)
    answers = exact_answers(strategy, np.full(3, 2**62))
    assert np.all(answers[0] > 0)
    assert answers[0].max() <= 2**61 // 3


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((3, 3)), "all 0"),
        (np.ones((2, 3)), "rank is too low"),
        (np.full((3, 3), np.nan), "finite"),
        (np.ones(3), "one row per query"),
        (np.ones((1, 5000)), "at most 4,096 bins"),
    ],
)
def test_refuses_matrices_that_are_no_strategy(matrix, message):
    with pytest.raises(RequestError, match=message):
        matrix_strategy("m", matrix)


def test_refuses_a_strategy_of_low_rank_when_it_is_used():
    rows = np.array([[1, 1, 0], [0, 0, 1], [2, 2, 0], [1, 1, 1]])
    errors = MatrixErrors(MatrixStrategy("m", rows).rows, 1.0, 1.0)
    with pytest.raises(RequestError, match="rank below the 3 bins"):
        errors.moments(np.array([0]), np.array([1]))
    assert LARGEST_COEFFICIENT < 2**20


@given(st.integers(1, 15), st.integers(0, 2**32))
def test_dense_nonnegative_least_squares(n_bins, seed):
    from scipy.optimize import nnls

    rng = np.random.default_rng(seed)
    rows = np.concatenate([np.eye(n_bins), rng.normal(size=(n_bins // 2, n_bins))])
    answers = rng.normal(0, 3, len(rows))
    ours = dense_nonnegative_least_squares(rows.T @ rows, rows.T @ answers)
    np.testing.assert_allclose(ours, nnls(rows, answers)[0], atol=1e-8)


@pytest.mark.parametrize(("n_bins", "n_bumps"), [(1, 0), (6, 2), (9, 4)])
def test_bins_and_bumps_have_a_short_way_to_the_same_inverse(n_bins: int, n_bumps: int) -> None:
    rng = np.random.default_rng(n_bins)
    rows = np.concatenate(
        [np.diag(rng.integers(1, 9, n_bins)), rng.integers(0, 5, (n_bumps, n_bins))]
    )
    found = BumpRows.of(rows)
    assert found is not None
    covariance = np.linalg.inv(rows.T @ rows)
    np.testing.assert_allclose(found.inverse(), covariance @ rows.T, atol=1e-12)
    for workload in (AllRanges(n_bins), prefixes(n_bins)):
        assert found.total_error(workload) == pytest.approx(
            float((covariance * workload.gram()).sum())
        )


@pytest.mark.parametrize(
    "rows", [np.ones((3, 3)), np.eye(3)[:2], np.diag([1, 0, 1]), -np.eye(3), np.eye(3)[[1, 0, 2]]]
)
def test_other_matrices_have_none(rows: np.ndarray) -> None:
    assert BumpRows.of(rows) is None
