import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.group_sizes.kernels.blocks import (
    Predictions,
    Prior,
    advance,
    cells_between,
    next_blocks,
)
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.tuning.blocks import BLUR, FIRST_SIZES
from tests.reference import staircases as reference


def prior_for(fall: np.ndarray, n_regions: int, excess: float = 1.0) -> Prior:
    rows = np.atleast_2d(fall)
    return Prior(
        rows, np.zeros_like(rows), np.full_like(rows, excess), np.zeros(n_regions, dtype=np.int64)
    )


def start(n_groups: list[int]) -> Predictions:
    n = len(n_groups)
    return Predictions(np.array(n_groups, dtype=float), np.zeros(n), np.full(n, -1))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 12), max_size=6), min_size=1, max_size=4),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.integers(0, 3),
)
def test_cells_between_counts_cells(
    regions: list[list[int]], widths: list[int], first: int
) -> None:
    region = np.repeat(np.arange(len(regions)), [len(sizes) for sizes in regions])
    size = np.array([size for sizes in regions for size in sizes], dtype=np.int64)
    counts = counts_from_runs(region, size, np.ones_like(size), len(regions))
    ends = first + np.cumsum(widths)
    offsets = np.arange(len(regions) + 1) * len(widths)
    found = cells_between(
        counts, np.full(len(regions), first), offsets, np.tile(ends, len(regions))
    )
    bounds = [first, *ends.tolist()]
    expected = [
        reference.cells(sizes, a, b) for sizes in regions for a, b in itertools.pairwise(bounds)
    ]
    assert found.tolist() == expected


def test_cells_are_counted_without_overflow() -> None:
    counts = counts_from_runs(np.array([0]), np.array([2**40]), np.array([2**36]), 1)
    ends = np.array([2**24])
    assert cells_between(counts, np.zeros(1, dtype=np.int64), np.array([0, 1]), ends).tolist() == [
        2**60
    ]


@pytest.mark.parametrize("noise_variance", [0.01, 2.0, 200.0, 1e6])
def test_blocks_cover_all_sizes_and_obey_the_rule(noise_variance: float) -> None:
    fall = np.full(64, 0.1)
    prior = prior_for(fall, 2, excess=0.0)
    offsets, ends, after = next_blocks(prior, start([1000, 10]), noise_variance, 0, 64)
    assert (after.stop == 64).all()
    for region, n_groups in enumerate([1000, 10]):
        own = ends[offsets[region] : offsets[region + 1]].tolist()
        assert own[-1] == 64
        begin, height = 0, float(n_groups)
        for end in own:
            width = end - begin
            assert 1 <= width <= max(1, begin)
            falls = height * 0.9 ** np.arange(width) * 0.1
            spread = (falls + (0.2 * falls) ** 2).sum()
            assert width == 1 or width**2 * spread <= BLUR * noise_variance * (1 + 1e-9)
            height *= 0.9**width
            begin = end


def test_more_noise_means_wider_blocks() -> None:
    prior = prior_for(np.full(256, 0.02), 1)
    counts = [
        len(next_blocks(prior, start([5000]), variance, 0, 256)[1])
        for variance in (1.0, 100.0, 1e4)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_blocks_end_where_groups_are_far_apart() -> None:
    prior = prior_for(np.full(32, 0.5), 1, excess=1e4)
    _offsets, ends, after = next_blocks(prior, start([20]), 2.0, 0, 32)
    assert after.stop[0] == ends[-1] >= FIRST_SIZES
    assert after.stop[0] < 32
    # A region that has ended is not asked again.
    more_offsets, more_ends, _ = next_blocks(prior, after, 2.0, 16, 32)
    assert len(more_ends) == 0
    assert more_offsets.tolist() == [0, 0]


def test_advance_moves_towards_the_answers_and_stays_falling() -> None:
    prior = prior_for(np.full(8, 0.2), 3)
    before = start([100, 100, 100])
    offsets, ends, _ = next_blocks(prior, before, 2.0, 0, 8)
    expected = 100 * 0.8 ** np.arange(1, 9)
    sums = np.add.reduceat(expected, [0, *ends[: offsets[1] - 1]])
    answers = np.concatenate([np.rint(factor * sums) for factor in (1.0, 0.5, 10.0)]).astype(
        np.int64
    )
    after = advance(prior, before, 2.0, 0, (offsets, ends), answers)
    assert after.height[0] == pytest.approx(expected[-1], rel=0.1)
    assert after.height[1] < after.height[0] < after.height[2] <= 100
    assert (after.variance > 0).all()
    assert (before.height == 100).all()
