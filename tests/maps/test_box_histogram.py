"""Histograms that are maps of one column: the same numbers, in the form of a histogram."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.boxes.bins import BoxErrors, bin_counts
from tallytree.errors import RequestError
from tallytree.kinds.verbs import verify_privacy
from tallytree.ranges.release import RangeHistogram
from tests.forging import forge

EDGES = np.concatenate([np.arange(0, 50.0), np.arange(50, 150, 2.0), [150, 400]])


def made_up(n_bins: int, scale: int, seed: int) -> Any:
    """Counts of a bell, of few full bins and of a flat stretch."""
    rng = np.random.default_rng(seed)
    place = np.arange(n_bins) / n_bins
    shape = (
        np.exp(-(((place - 0.3) / 0.1) ** 2))
        + (rng.random(n_bins) < 0.03) * 3
        + (place > 0.6) * 0.3
    )
    return rng.multinomial(scale, shape / shape.sum())


def boxes(counts: Any, **options: Any) -> RangeHistogram:
    return tt.histogram(
        counts=counts, mechanism="adaptive", **({"epsilon": 1, "insecure_seed": 1} | options)
    )


def test_it_is_the_map_of_its_column() -> None:
    counts = made_up(len(EDGES) - 1, 5_000, 1)
    histogram = boxes(counts, edges=EDGES)
    line = tt.spatial(
        counts=counts, edges=[EDGES], mechanism="adaptive", epsilon=1, insecure_seed=1
    )
    assert histogram.boxes is not None
    assert (
        histogram.boxes.table()
        .drop_columns(["low_value", "high_value", "first_value", "end_value"])
        .equals(
            line.table().drop_columns(
                [name for name in line.table().column_names if name.partition("_")[1]]
            )
        )
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
    np.testing.assert_allclose(
        errors.moments(none, ends, 0.3)[0][[0, -1]], [0.09 * whole, 0.49 * whole]
    )
    # A half of all, from both sides: P − T/2 = −(S − T/2).
    full = np.full_like(ends, 128)
    np.testing.assert_allclose(
        errors.moments(none, ends, 0.5)[0], errors.moments(ends, full, 0.5)[0]
    )
    assert errors.moments(none, none)[0].max() == 0


def test_intervals_hold() -> None:
    """95 % intervals of ranges of all lengths, over shapes and scales: at least 90 % of each
    length, 93 % of all.
    """
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
    """1,000 rows over 1,024 bins at ε = 0.1: a strategy pays for every bin, boxes for what there
    is.
    """
    counts, ratios = made_up(1024, 1_000, 5), []
    for seed in range(7):
        errors = [
            np.square(np.cumsum(found.counts - counts)).mean()
            for found in (
                tt.histogram(counts=counts, mechanism=name, epsilon="1/10", insecure_seed=seed)
                for name in ("adaptive", "hierarchical")
            )
        ]
        ratios.append(errors[0] / errors[1])
    assert np.median(ratios) < 0.5


def test_auto_goes_by_how_many_rows_there_are(tmp_path: Path) -> None:
    counts = made_up(100, 5_000, 6)
    few, many = (
        tt.histogram(counts=counts * times, epsilon=1, insecure_seed=1) for times in (1, 1000)
    )
    assert (few.mechanism, few.manifest["mechanism"]["asked_for"]) == ("adaptive", "auto")
    assert many.mechanism == "optimised"
    assert many.manifest["mechanism"]["look"] == "1/50"
    looked = many.noisy.looked  # type: ignore[union-attr]
    assert abs(looked - 5_000_000) < 2_000
    assert f"about {looked:,} points" in many.manifest["mechanism"]["reason"]
    for made in (few, many):
        saved = made.save(tmp_path / made.mechanism)
        assert tt.load(saved).table().equals(made.table())
        assert tt.verify(saved).passed
    again = tt.load(tmp_path / "optimised")
    assert again.noisy.looked == looked  # type: ignore[union-attr]


@pytest.mark.parametrize("workload", ["ranges", "prefixes"])
def test_auto_goes_on_with_the_best_strategy_for_the_workload(workload: str) -> None:
    counts = made_up(100, 5_000, 6)
    few, many = (
        tt.histogram(counts=counts * times, epsilon=1, insecure_seed=1, workload=workload)
        for times in (1, 1000)
    )
    assert few.mechanism == "adaptive"
    assert many.manifest["mechanism"]["look"] == "1/50"
    assert f"({workload})" in many.manifest["mechanism"]["reason"]


@pytest.mark.parametrize(
    "more",
    [
        {"workload": "identity"},
        {"workload": [(0, 5), (9, 70)]},
        {"nonnegative": "subtree", "mechanism": "hierarchical"},
    ],
    ids=str,
)
def test_auto_looks_only_where_boxes_may_serve(more: dict[str, Any]) -> None:
    made = tt.histogram(counts=made_up(100, 5_000, 6), epsilon=1, insecure_seed=1, **more)
    assert "look" not in made.manifest["mechanism"]
    assert made.boxes is None
    assert tt.histogram(counts=[3] * 64, epsilon=1, insecure_seed=1).boxes is None


def test_a_look_that_is_forged_is_noticed(tmp_path: Path) -> None:
    saved = tt.histogram(counts=made_up(100, 5_000, 6) * 1000, epsilon=1).save(tmp_path / "many")
    manifest = json.loads((saved / "manifest.json").read_text())
    assert verify_privacy(saved).passed
    manifest["mechanism"]["look"] = "1/25"
    forge(saved, manifest)
    assert not verify_privacy(saved).passed
