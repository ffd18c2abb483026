import numpy as np

from tallytree.streams.kernels import (
    MOST_ARRIVALS,
    block_sums,
    square_root_weights,
    weighted_rows,
)
from tests.reference import streams as reference


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


def test_rows_are_weighted_sums_of_the_past():
    rng = np.random.default_rng(1)
    counts, weights = rng.integers(0, 1000, 40), square_root_weights(40)
    expected = reference.rows(weights.tolist(), counts.tolist())
    assert weighted_rows(weights, counts, 0).tolist() == expected
    assert weighted_rows(weights, counts, 31).tolist() == expected[31:]
    assert len(weighted_rows(weights, counts, 40)) == 0


def test_enormous_counts_saturate_instead_of_wrapping_around():
    counts = np.array([MOST_ARRIVALS, 7, MOST_ARRIVALS - 1, MOST_ARRIVALS] + [MOST_ARRIVALS] * 996)
    weights = square_root_weights(1000)
    expected = reference.rows(weights.tolist(), counts.tolist())
    assert weighted_rows(weights, counts, 0).tolist() == expected
    assert expected[0] == 2**56
    assert expected[-1] == 2**61
    assert block_sums(counts[:5], 2).tolist() == [MOST_ARRIVALS + 7, 2 * MOST_ARRIVALS - 1]
    assert block_sums(np.full(2**22, MOST_ARRIVALS), 2**21).tolist() == [2**61, 2**61]
    assert block_sums(np.full(2**21 - 1, MOST_ARRIVALS), 2**21 - 1).tolist() == [2**61 - 2**40]
