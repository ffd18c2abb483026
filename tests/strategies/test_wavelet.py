import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tallytree.strategies.wavelet import (
    WaveletErrors,
    haar_answers,
    haar_estimates,
    haar_levels,
    haar_matrix,
)
from tests.reference import ranges as slow


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40))
def test_answers_are_the_padded_haar_transform_and_invert_exactly(counts):
    counts = np.array(counts)
    answers = haar_answers(counts)
    assert len(answers) == haar_levels(len(counts))
    for ours, rows in zip(answers, slow.haar_rows(len(counts))):
        np.testing.assert_array_equal(ours, rows @ counts)
    np.testing.assert_array_equal(haar_estimates(answers, len(counts)), counts)
    np.testing.assert_array_equal(
        haar_matrix(len(counts)), np.concatenate(slow.haar_rows(len(counts)))
    )


@given(st.integers(1, 40), st.sampled_from([0.0, 0.4]), st.integers(0, 2**32))
def test_moments_of_every_range_follow_from_the_inverse_transform(n_bins, share, seed):
    levels = haar_levels(n_bins)
    variance, cumulant = np.random.default_rng(seed).uniform(0.5, 5, (2, levels))
    sizes = [len(level) for level in haar_answers(np.zeros(n_bins, dtype=np.int64))]
    # Column i: the estimates of all bins when answer i alone is 1.
    units = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=0)
    inverse = np.stack(
        [haar_estimates([unit[:, i] for unit in units], n_bins) for i in range(sum(sizes))], axis=1
    )
    first, last = slow.all_ranges(n_bins)
    coefficients = slow.range_rows(n_bins, first, last, share) @ inverse
    ours = WaveletErrors(n_bins, variance, cumulant).moments(first, last, share)
    np.testing.assert_allclose(ours[0], coefficients**2 @ np.repeat(variance, sizes), atol=1e-12)
    np.testing.assert_allclose(ours[1], coefficients**4 @ np.repeat(cumulant, sizes), atol=1e-12)
