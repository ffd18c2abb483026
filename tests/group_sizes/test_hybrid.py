"""The hybrid estimate against a slow twin, and what it promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tallytree.errors import InputError
from tallytree.group_sizes.estimate import Estimate, estimate_hybrid
from tallytree.group_sizes.estimate.hybrid import laplace_scale
from tallytree.model.arrays import offsets_from_lengths
from tests.reference import hybrid as twin
from tests.reference.group_sizes import lists_from_counts

Region = tuple[list[int], list[int], int]
"""Cumulative cells, tail values, number of groups."""


@st.composite
def noisy_regions(draw: st.DrawFn) -> Region:
    n_groups = draw(st.integers(0, 9))
    cumulative = draw(st.lists(st.integers(-4, 13), max_size=6))
    tail = draw(st.lists(st.integers(-5, 40), max_size=n_groups))
    return cumulative, tail, n_groups


def estimate(regions: list[Region], noise_variance: float) -> Estimate:
    parts = []
    for part in (0, 1):
        lists = [region[part] for region in regions]
        parts.append(np.array([value for row in lists for value in row], dtype=np.int64))
        parts.append(offsets_from_lengths(np.array([len(row) for row in lists], dtype=np.int64)))
    n_groups = np.array([n for _, _, n in regions], dtype=np.int64)
    return estimate_hybrid(*parts, n_groups, noise_variance)


@given(st.lists(noisy_regions(), max_size=4), st.sampled_from([0.0, 0.1, 2.0]))
def test_runs_are_what_the_twin_finds_group_by_group(
    regions: list[Region], variance: float
) -> None:
    found = estimate(regions, variance)
    assert_array_equal(found.n_groups(), [n for _, _, n in regions])
    assert lists_from_counts(found.counts()) == [
        twin.estimate_region(*region, variance) for region in regions
    ]
    assert_allclose(found.variance, 2 * variance / found.count)


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(0, 10), st.integers(0, 5))
def test_without_noise_it_is_the_truth(sizes: list[int], threshold: int, spare: int) -> None:
    n_tail = min(sum(size >= threshold for size in sizes) + spare, len(sizes))
    cumulative, tail = twin.view_of(sizes, threshold, n_tail)
    found = estimate([(cumulative, tail, len(sizes))], 0.0)
    assert lists_from_counts(found.counts()) == [sorted(sizes)]


def test_an_outlier_survives_a_cumulative_count_that_denies_it() -> None:
    # All five groups seem to lie below 3, but one tail value cannot be noise.
    found = estimate([([5, 5, 5], [3, 4, 900], 5)], 2.0)
    assert lists_from_counts(found.counts()) == [[0, 0, 0, 0, 900]]
    # The same value within the reach of noise does not count.
    found = estimate([([5, 5, 5], [3, 4, 7], 5)], 2.0)
    assert lists_from_counts(found.counts()) == [[0, 0, 0, 0, 0]]


def test_groups_beyond_the_listed_tail_get_the_threshold() -> None:
    found = estimate([([0, 1], [50], 4)], 2.0)
    assert lists_from_counts(found.counts()) == [[1, 2, 2, 50]]


def test_laplace_scale_inverts_the_variance() -> None:
    for scale in (0.05, 0.3, 1.0, 40.0):
        p = np.exp(-1 / scale)
        assert laplace_scale(2 * p / (1 - p) ** 2) == pytest.approx(scale)
    assert laplace_scale(0.0) == 0.0


def test_refuses_more_tail_values_than_groups() -> None:
    with pytest.raises(InputError, match="more tail values than groups"):
        estimate([([1], [5, 6], 1)], 1.0)
