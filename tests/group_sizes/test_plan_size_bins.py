"""Bins of sizes: their edges, their predicted noise against dense matrices, and what a look finds."""

import time

import numpy as np
import pytest

from tallytree.group_sizes.plan.size_bins import (
    SizeBins,
    best_block,
    bins_after_look,
    look_edges,
    looks_first,
    seen_bins,
    single_sizes,
    suffix_deviations,
)
from tests.reference import size_bins as reference


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(
    ("n_bins", "block"), [(1, 0), (7, 0), (7, 2), (7, 3), (9, 3), (10, 4), (5, 5)]
)
def test_predicted_noise_is_that_of_least_squares(n_bins: int, block: int, gaussian: bool) -> None:
    slow = reference.suffix_deviations(SizeBins(np.arange(n_bins + 1), block), gaussian=gaussian)
    np.testing.assert_allclose(suffix_deviations(n_bins, block, gaussian=gaussian), slow)


def test_blocks_are_taken_where_there_are_many_bins_or_gaussian_noise() -> None:
    assert best_block(np.ones(8), gaussian=False) == 0
    assert best_block(np.ones(60), gaussian=False) > 1
    assert best_block(np.ones(8), gaussian=True) > 1
    assert best_block(np.ones(1), gaussian=True) == 0


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("n_bins", [2, 23, 90, 512, 2000])
def test_no_block_has_clearly_less_noise_than_the_one_taken(n_bins: int, gaussian: bool) -> None:
    widths = np.maximum(1.0, np.arange(n_bins) // 40)
    noise = [
        (widths * suffix_deviations(n_bins, block, gaussian=gaussian)).sum()
        for block in [0, *range(2, n_bins + 1)]
    ]
    taken = best_block(widths, gaussian=gaussian)
    if taken:
        assert noise[taken - 1] < 1.001 * min(noise)
    else:
        assert min(noise) >= 0.95 * noise[0]


def test_a_million_bins_are_planned_in_a_second() -> None:
    answers = np.full(len(look_edges(10**6, least_size=0)) - 1, 10**6)
    start = time.process_time()
    single = single_sizes(10**6, least_size=0, gaussian=True)
    edges = look_edges(10**6, least_size=0)
    found = bins_after_look(answers, 1.0, [1, 50], [0.01, 0.01], edges, gaussian=False)
    assert time.process_time() - start < 1
    assert single.n_bins == found.n_bins == 10**6 + 1
    for bins, gaussian in ((single, True), (found, False)):
        noise = {
            part: suffix_deviations(bins.n_bins, round(part * bins.block), gaussian=gaussian).sum()
            for part in (0.97, 0.99, 1, 1.01, 1.03)
        }
        assert noise[1] < 1.001 * min(noise.values())


def test_every_size_lies_in_one_bin() -> None:
    for bins in (
        single_sizes(12, least_size=0, gaussian=True),
        SizeBins(look_edges(500, least_size=1)),
    ):
        sizes = np.arange(bins.edges[0], bins.edges[-1])
        place = bins.bin_of(sizes)
        assert np.all(bins.edges[place] <= sizes)
        assert np.all(sizes < bins.edges[place + 1])
        # Larger groups count at the bound, smaller ones in the first bin.
        assert bins.bin_of(np.array([0, 10**9])).tolist() == [0, bins.n_bins - 1]


def test_a_look_is_taken_unless_the_bound_is_low() -> None:
    assert [looks_first(bound) for bound in (7, 64, 65, None)] == [False, False, True, True]
    assert look_edges(None, least_size=1)[-1] == 2**24 + 1
    assert look_edges(80, least_size=1)[-1] == 81


def look(counts_of_size: np.ndarray, edges: np.ndarray, std: float) -> np.ndarray:
    binned = np.add.reduceat(
        np.append(counts_of_size, np.zeros(edges[-1] - len(counts_of_size))), edges[:-1]
    )
    noise = np.random.default_rng(5).laplace(0, std / np.sqrt(2), len(binned))
    return np.rint(binned + noise).astype(np.int64)


def test_a_loose_bound_adds_a_few_bins() -> None:
    households = np.append(0, np.rint(1e6 * 0.5 ** np.arange(1, 18))).astype(np.int64)
    found = []
    for bound in (20, 10_000, None):
        edges = look_edges(bound, least_size=0)
        answers = look(households[: edges[-1]], edges, 40.0)
        found.append(bins_after_look(answers, 40.0, [1, 50], [6.0, 6.0], edges, gaussian=False))
    assert np.all(np.diff(found[0].edges)[:10] == 1)
    assert found[1].n_bins <= found[0].n_bins + 11
    assert found[2].n_bins <= found[0].n_bins + 22
    assert [int(bins.edges[-1]) for bins in found] == [21, 10_001, 2**24 + 1]


def test_bins_grow_with_the_noise() -> None:
    spread = np.full(2000, 200)
    edges = look_edges(2000, least_size=0)
    answers = look(spread, edges, 10.0)
    fine, coarse = (
        bins_after_look(answers, 10.0, [1, 30], [std, std], edges, gaussian=False).n_bins
        for std in (2.0, 500.0)
    )
    assert fine > 2 * coarse


def test_ghosts_are_rare_wherever_the_bound_is() -> None:
    """Laplace noise alone beyond the last size: fewer than 1 look in 12 sees any, and next to none
    sees far ones.
    """
    edges = np.concatenate([np.arange(9), 2 ** np.arange(4, 25)])
    rng = np.random.default_rng(3)
    near = far = 0
    for _ in range(2000):
        counts = rng.laplace(0, 1, len(edges) - 1)
        counts[:8] += 1000
        ghosts = np.flatnonzero(seen_bins(counts, np.sqrt(2), edges)[8:])
        near += len(ghosts) > 0
        far += bool(np.any(ghosts > 6))
    assert near < 2000 / 12
    assert far <= 2


def test_a_far_crowd_is_seen() -> None:
    edges = np.concatenate([np.arange(9), 2 ** np.arange(4, 25)])
    counts = np.zeros(len(edges) - 1)
    counts[:8] = 1000
    counts[15] = 20
    seen = seen_bins(counts, np.sqrt(2), edges)
    assert seen[:8].all()
    assert seen[15]
    assert not seen[17:].any()
