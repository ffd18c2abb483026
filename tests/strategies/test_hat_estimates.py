import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.ranges.quantiles import quantile_interval
from tallytree.strategies.hat_estimates import HatErrors
from tallytree.strategies.hats import HatLevel, Hats
from tallytree.strategies.intervals import half_widths, largest_half_widths
from tallytree.strategies.matrix import MatrixErrors
from tests.reference import ranges as slow
from tests.reference.hats import dense_rows

SMALL = Hats(40, (HatLevel(12, 14_000), HatLevel(4, 15_000)), 5)


@pytest.mark.parametrize("share", [0.0, 0.7])
def test_moments_and_estimates_equal_dense_least_squares(share):
    ours, dense = HatErrors(SMALL, 2.0, 3.0), MatrixErrors(dense_rows(SMALL), 2.0, 3.0)
    first, last = slow.all_ranges(40)
    for fast, exact in zip(ours.moments(first, last, share), dense.moments(first, last, share)):
        np.testing.assert_allclose(fast, exact, rtol=1e-9)
    ends = np.arange(41)
    moments = dense.moments(np.zeros_like(ends), ends, share)
    np.testing.assert_allclose(ours.prefix_variances(share), moments[0], rtol=1e-8, atol=1e-22)
    for confidence in (0.5, 0.9, 0.999):
        widest = largest_half_widths(moments[0], 3 / 2.0**2, confidence)
        assert np.all(half_widths(*moments, confidence) <= widest)
    noisy = np.random.default_rng(1).integers(0, 10**9, 40 + SMALL.n_hats)
    np.testing.assert_allclose(ours.estimates(noisy), dense.estimates(noisy), rtol=1e-9, atol=1e-9)


@given(
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.1, 0.5, 0.93, 1.0]),
    st.sampled_from([1.0, 1e8, 1e10, 1e12]),
)
def test_quantile_intervals_equal_those_of_the_matrix(seed, q, variance):
    sums = np.concatenate([[0.0], np.cumsum(np.random.default_rng(seed).normal(5, 10, 40))])
    noise = variance, 3 * variance**2
    ours = quantile_interval(sums, HatErrors(SMALL, *noise), q, 0.9)
    assert ours == quantile_interval(sums, MatrixErrors(dense_rows(SMALL), *noise), q, 0.9)


def test_a_histogram_of_many_bins_from_release_to_answer(tmp_path):
    values = np.random.default_rng(3).normal(2500, 400, 20_000).clip(0, 4999).astype(int)
    how = {"bins": 5000, "bounds": (0, 5000), "epsilon": 1, "insecure_seed": 5}
    release = tt.histogram(values, **how, mechanism="optimised")
    assert release.manifest["mechanism"]["kind"] == "hats"
    release.save(tmp_path / "out")
    again = tt.load(tmp_path / "out")
    assert again.verify()
    answers = again.ranges([(2000, 3000), (0, 5000), (100, 101)])
    truth = [
        np.sum((values >= low) & (values < high))
        for low, high in ((2000, 3000), (0, 5000), (100, 101))
    ]
    assert np.all(np.abs(answers.estimate - truth) < 6 * answers.std_error)
    tree = tt.histogram(values, **how, mechanism="hierarchical").ranges([(2000, 3000)])
    assert answers.std_error[0] < tree.std_error[0]
    median = again.quantile(0.5)
    assert median.low <= np.median(values) <= median.high
    with pytest.raises(RequestError, match="least squares of hats"):
        tt.histogram(values, **how, mechanism="optimised", nonnegative="least-squares")
