import numpy as np
import pytest

from tallytree.kernels.stream_rows import (
    MOST_ARRIVALS,
    block_sums,
    halves,
    power_weights,
    row_moments,
    square_root_weights,
    weighted_rows,
)
from tests.reference import streams as reference


def rows_from(weights, counts, first, rows=None, columns=None):
    ones = np.ones(len(weights), dtype=np.int64)
    columns = ones if columns is None else columns
    high, low = halves(counts, columns[: len(counts)])
    return weighted_rows(
        weights.astype(np.uint32), ones if rows is None else rows, high, low, first
    ).tolist()


def test_weights_are_rounded_binomials_that_never_rise():
    assert square_root_weights(300).tolist() == reference.weights(300)
    assert square_root_weights(1).tolist() == [2**16]
    many = square_root_weights(70_000)
    assert np.all(np.diff(many) <= 0)
    # f_k lies between 1/√(π(k + 1/2)) and 1/√(π k).
    k = np.arange(1, len(many))
    assert np.all(
        np.abs(many[1:] / 2**16 - 1 / np.sqrt(np.pi * (k + 0.25))) < 2**-16 + 0.01 / k**2.5
    )


@pytest.mark.parametrize(("thousandths", "bits"), [(500, 16), (537, 8), (510, 12)])
def test_weights_of_other_powers_are_rounded_and_never_rise(thousandths, bits):
    found = power_weights(200, thousandths, bits)
    assert found.tolist() == reference.weights(200, thousandths, bits)
    assert np.all(np.diff(power_weights(70_000, thousandths, bits)) <= 0)


def test_rows_are_weighted_sums_of_the_past():
    rng = np.random.default_rng(1)
    counts, weights = rng.integers(0, 1000, 40), square_root_weights(40)
    expected = reference.rows(weights.tolist(), counts.tolist())
    assert rows_from(weights, counts, 0) == expected
    assert rows_from(weights, counts, 31) == expected[31:]
    assert rows_from(weights, counts, 40) == []
    rows, columns = rng.integers(1, 2**8, 40), rng.integers(1, 2**18, 40)
    scaled = reference.rows(weights.tolist(), counts.tolist(), rows.tolist(), columns.tolist())
    assert rows_from(weights, counts, 0, rows, columns) == scaled


def test_enormous_counts_saturate_instead_of_wrapping_around():
    counts = np.array([MOST_ARRIVALS, 7, MOST_ARRIVALS - 1, MOST_ARRIVALS] + [MOST_ARRIVALS] * 996)
    weights = square_root_weights(1000)
    expected = reference.rows(weights.tolist(), counts.tolist())
    assert rows_from(weights, counts, 0) == expected
    assert rows_from(weights, counts + 5, 0) == rows_from(
        weights, np.minimum(counts + 5, MOST_ARRIVALS), 0
    )
    assert expected[0] == 2**56
    assert expected[-1] == 2**61
    assert block_sums(counts[:5], 2).tolist() == [MOST_ARRIVALS + 7, 2 * MOST_ARRIVALS - 1]
    assert block_sums(np.full(2**22, MOST_ARRIVALS), 2**21).tolist() == [2**61, 2**61]
    assert block_sums(np.full(2**21 - 1, MOST_ARRIVALS), 2**21 - 1).tolist() == [2**61 - 2**40]


def test_the_largest_factors_saturate_too():
    """max r Σ w just below 2^32, d = 2^18, all counts the largest: 2^90 without the limit."""
    n_steps = 1000
    weights, ones = np.full(n_steps, 2**14), np.ones(n_steps, dtype=np.int64)
    counts = np.full(n_steps, MOST_ARRIVALS)
    assert set(rows_from(weights, counts, 0, 2**8 * ones, 2**18 * ones)) == {2**61}
    few = rows_from(weights, counts // 2**30, 0, 2**8 * ones, 2**18 * ones)
    assert few == [min(t * 2**50, 2**61) for t in range(1, n_steps + 1)]


def test_moments_are_sums_of_powers_of_what_each_count_takes():
    rng = np.random.default_rng(2)
    for n_steps in (1, 2, 3, 4, 7, 30):
        inverse, arrivals, rows = rng.normal(size=(3, n_steps))
        taken = reference.taken(inverse, arrivals, rows)
        squares, fourths = row_moments(inverse, arrivals, rows)
        np.testing.assert_allclose(squares, (taken**2).sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(fourths, (taken**4).sum(axis=1), rtol=1e-12)
