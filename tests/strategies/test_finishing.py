from fractions import Fraction

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.model.bins import numbered_bins
from tallytree.model.confidential_histogram import ConfidentialHistogram
from tallytree.model.range_tree import RangeTree
from tallytree.privacy.budget import Budget
from tallytree.privacy.randomness import KeyStream
from tallytree.ranges.measure import measure_histogram
from tallytree.ranges.plan import plan_histogram
from tallytree.strategies.estimates import estimate_bins, range_errors
from tallytree.strategies.finishing import check_nonnegative, finish_bins
from tallytree.strategies.level_budgets import equal_shares
from tallytree.strategies.strategies import TreeStrategy, WaveletStrategy, matrix_strategy
from tallytree.strategies.wavelet import haar_levels, haar_matrix

N_BINS = 50
SPARSE = np.where(np.arange(N_BINS) % 9 == 0, 30, 0)
STRATEGIES = {
    "flat": TreeStrategy("flat", RangeTree.flat(N_BINS), equal_shares(1)),
    "tree": TreeStrategy("hierarchical", RangeTree.regular(N_BINS, 4), equal_shares(3)),
    "total": TreeStrategy(
        "hierarchical", RangeTree.regular(N_BINS, 8, count_total=True), equal_shares(3)
    ),
    "wavelet": WaveletStrategy(N_BINS, equal_shares(haar_levels(N_BINS))),
    "matrix": matrix_strategy("matrix", np.concatenate([np.eye(N_BINS), np.ones((2, N_BINS)) / 4])),
}


def measured(name, seed=1):
    plan = plan_histogram(STRATEGIES[name], Budget("pure", Fraction(1, 2)))
    histogram = ConfidentialHistogram((numbered_bins(N_BINS),), SPARSE)
    noisy = measure_histogram(histogram, plan, KeyStream.from_insecure_seed(seed)).levels
    errors = range_errors(plan.strategy, plan.noise)
    return errors, noisy, estimate_bins(errors, noisy)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("rule", ["top-down", "least-squares", "subtree", "no"])
@pytest.mark.parametrize("integers", [False, True])
def test_what_is_published_keeps_its_promises(name, rule, integers):
    errors, noisy, estimates = measured(name)
    assert estimates.min() < 0, "the case is worth testing"
    if rule == "subtree" and name in ("wavelet", "matrix"):
        with pytest.raises(RequestError, match="needs a tree"):
            finish_bins(errors, noisy, estimates, nonnegative=rule, integers=integers)
        return
    counts = finish_bins(errors, noisy, estimates, nonnegative=rule, integers=integers)
    assert counts.shape == (N_BINS,)
    assert (counts.dtype == np.int64) == integers
    if rule != "no":
        assert counts.min() >= 0
    if rule in ("no", "top-down"):  # the total is kept
        assert counts.sum() == pytest.approx(estimates.sum(), abs=0.51 if integers else 1e-6)
    if rule == "no":
        assert np.abs(counts - estimates).max() < (1 if integers else 1e-6)


@pytest.mark.parametrize("name", ["wavelet", "matrix"])
def test_nonnegative_least_squares_of_matrices(name):
    from scipy.optimize import nnls

    errors, noisy, estimates = measured(name)
    ours = finish_bins(errors, noisy, estimates, nonnegative="least-squares", integers=False)
    rows = haar_matrix(N_BINS) if name == "wavelet" else STRATEGIES[name].rows.astype(float)
    np.testing.assert_allclose(ours, nnls(rows, np.concatenate(noisy).astype(float))[0], atol=1e-6)


@pytest.mark.parametrize("name", STRATEGIES)
def test_rounding_does_not_pile_up_over_long_ranges(name):
    errors, noisy, estimates = measured(name)
    counts = finish_bins(errors, noisy, estimates, nonnegative="no", integers=True)
    drift = np.abs(np.cumsum(counts - estimates))
    assert drift.max() < (4 if name == "tree" else 8)


def test_top_down_is_closer_to_sparse_data_than_unbiased_estimates():
    gains = []
    for seed in range(30):
        errors, noisy, estimates = measured("tree", seed)
        counts = finish_bins(errors, noisy, estimates, nonnegative="top-down", integers=True)
        gains.append([np.square(estimates - SPARSE).mean(), np.square(counts - SPARSE).mean()])
    unbiased, published = np.mean(gains, axis=0)
    assert published < 0.6 * unbiased


def test_names_of_rules():
    assert (check_nonnegative(True), check_nonnegative(False)) == ("top-down", "no")
    with pytest.raises(RequestError, match="nonnegative is one of"):
        check_nonnegative("clip")


def test_wavelets_of_many_bins_have_no_dense_least_squares():
    strategy = WaveletStrategy(5000, equal_shares(haar_levels(5000)))
    plan = plan_histogram(strategy, Budget("pure", Fraction(1)))
    errors = range_errors(strategy, plan.noise)
    with pytest.raises(RequestError, match="at most 4,096 bins"):
        finish_bins(errors, [], np.zeros(5000), nonnegative="least-squares", integers=True)
