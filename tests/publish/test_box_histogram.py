"""Histograms that are maps of one column: the same numbers, in the form of a histogram."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.maps.bins import BoxErrors, bin_counts
from tallytree.released.histogram.release import RangeHistogram

EDGES = np.concatenate([np.arange(0, 50.0), np.arange(50, 150, 2.0), [150, 400]])


def made_up(n_bins: int, scale: int, seed: int) -> Any:
    """Counts of a bell, of few full bins and of a flat stretch."""
    rng = np.random.default_rng(seed)
    place = np.arange(n_bins) / n_bins
    shape = np.exp(-(((place - 0.3) / 0.1) ** 2)) + (rng.random(n_bins) < 0.03) * 3 + (place > 0.6) * 0.3
    return rng.multinomial(scale, shape / shape.sum())


def boxes(counts: Any, **options: Any) -> RangeHistogram:
    return tt.histogram(counts=counts, mechanism="adaptive", **({"epsilon": 1, "insecure_seed": 1} | options))


def test_it_is_the_map_of_its_column() -> None:
    counts = made_up(len(EDGES) - 1, 5_000, 1)
    histogram = boxes(counts, edges=EDGES)
    line = tt.spatial(counts=counts, edges=[EDGES], mechanism="adaptive", epsilon=1, insecure_seed=1)
    assert histogram.boxes is not None
    assert (
        histogram.boxes.table()
        .drop_columns(["low_value", "high_value", "first_value", "end_value"])
        .equals(line.table().drop_columns([name for name in line.table().column_names if name.partition("_")[1]]))
    )
    assert int(histogram.counts.sum()) == int(line.total().estimate)
    ends = [(0, 400), (0, 20), (33, 120), (148, 400), (17, 18)]
    ours, theirs = histogram.ranges(ends), line.ranges([[pair] for pair in ends])
    np.testing.assert_allclose(ours.std_error, theirs.std_error)
    # A cut box gives whole numbers here and parts of them there.
    assert np.abs(ours.estimate - theirs.estimate).max() <= 1
    assert np.abs(ours.low - theirs.low).max() <= 1


@pytest.mark.parametrize("integers", [True, False])
def test_bins_are_even_parts_of_boxes(integers: bool) -> None:
    histogram = boxes(made_up(300, 2_000, 2), epsilon="1/10", integers=integers)
    assert histogram.boxes is not None
    estimates = histogram.boxes.estimates
    tiles = np.flatnonzero(estimates.leaves)
    assert any(estimates.tree.volume[tiles] > 3)
    for node in tiles:
        low, high = int(estimates.tree.low[node, 0]), int(estimates.tree.high[node, 0])
        inside, count = histogram.counts[low:high], estimates.published[node]
        assert inside.sum() == pytest.approx(count)
        even = count * np.arange(1, high - low + 1) / (high - low)
        assert np.abs(np.cumsum(inside) - even).max() <= (0.5 if integers else 1e-9)


def test_negative_boxes_are_divided_exactly() -> None:
    raw = boxes(made_up(64, 5, 3), epsilon="1/100", nonnegative="no")
    assert raw.boxes is not None
    tree, counts = raw.boxes.estimates.tree, bin_counts(raw.boxes.estimates)
    assert raw.counts.min() < 0
    for node in np.flatnonzero(raw.boxes.estimates.leaves):
        inside = counts[tree.low[node, 0] : tree.high[node, 0]]
        assert inside.sum() == raw.boxes.estimates.published[node]
        assert inside.max() - inside.min() <= 1


def test_errors_of_a_share_are_those_of_the_difference() -> None:
    histogram = boxes(made_up(128, 3_000, 4))
    errors = histogram.errors
    assert isinstance(errors, BoxErrors)
    ends = np.array([0, 13, 64, 128])
    none = np.zeros_like(ends)
    # P − q T = (1 − q) P − q S: for the whole that is (1 − q) T, for nothing − q T.
    whole = errors.moments(none[:1], ends[-1:])[0][0]
    np.testing.assert_allclose(errors.moments(none, ends, 0.3)[0][[0, -1]], [0.09 * whole, 0.49 * whole])
    # A half of all, from both sides: P − T/2 = −(S − T/2).
    full = np.full_like(ends, 128)
    np.testing.assert_allclose(errors.moments(none, ends, 0.5)[0], errors.moments(ends, full, 0.5)[0])
    assert errors.moments(none, none)[0].max() == 0


def test_intervals_hold() -> None:
    """95 % intervals of ranges of all lengths, over shapes and scales: at least 90 % of each length, 93 % of all."""
    held: dict[int, list[bool]] = {}
    for seed in range(60):
        counts = made_up(256, (2_000, 50_000)[seed % 2], seed)
        histogram = boxes(counts, epsilon=("1/5", "1")[seed // 2 % 2], insecure_seed=seed)
        sums = np.concatenate([[0], np.cumsum(counts)])
        for length in (1, 8, 64, 200):
            first = np.arange(0, 256 - length, 7)
            answers = histogram.ranges(np.stack([first, first + length], axis=1).astype(float))
            truth = sums[first + length] - sums[first]
            held.setdefault(length, []).extend((answers.low <= truth) & (truth <= answers.high))
    assert min(np.mean(one) for one in held.values()) >= 0.9
    assert np.mean([np.mean(one) for one in held.values()]) >= 0.93


def test_it_is_saved_verified_and_estimated_again(tmp_path: Path) -> None:
    histogram = boxes(list(range(40)), insecure_seed=None)
    saved = histogram.save(tmp_path / "boxes")
    assert tt.verify(saved).passed
    loaded = tt.load(saved)
    assert isinstance(loaded, RangeHistogram)
    assert loaded.table().equals(histogram.table())
    assert loaded.quantile(0.5) == histogram.quantile(0.5)
    assert loaded.mechanism == "adaptive"
    assert loaded.density is None


def test_what_does_not_go_with_it_is_refused() -> None:
    for more in ({"branching": 2}, {"workload": "prefixes"}, {"budget": "optimal"}):
        with pytest.raises(RequestError, match="adaptive chooses its questions itself"):
            boxes([1, 2, 3], **more)
    with pytest.raises(RequestError, match="Fewest blocks"):
        boxes([1, 2, 3]).fewest_blocks(0, 2)


def test_it_costs_less_than_strategies_where_counts_are_few() -> None:
    """100 rows over 1,024 bins at ε = 1: a strategy pays for every bin, boxes for what there is."""
    counts, ratios = np.zeros(1024, dtype=np.int64), []
    counts[500:520] = 5
    for seed in range(5):
        errors = [
            np.square(
                np.cumsum(tt.histogram(counts=counts, mechanism=name, epsilon=1, insecure_seed=seed).counts - counts)
            )
            for name in ("adaptive", "hierarchical")
        ]
        ratios.append(errors[0].mean() / errors[1].mean())
    assert np.median(ratios) < 0.5
