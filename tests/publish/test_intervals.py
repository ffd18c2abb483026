from pathlib import Path

import numpy as np
import pytest

from tallytree import load, release, verify, with_intervals
from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize, counts_at
from tallytree.publish.intervals import Copies, copy_release, count_intervals, cumulative_band, interval, whole_interval
from tallytree.reproduce.housing import housing_counts

TRUTH = housing_counts(400_000, seed=5)


@pytest.mark.slow
def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    inside: dict[tuple[int, bool], list[float]] = {}
    for seed in range(6):
        made = release(TRUTH, epsilon=1, insecure_seed=seed)
        found = count_intervals(copy_release(made, copies=20, seed=1000 * (seed + 1)))
        region = made.counts.region_of_run()
        true = counts_at(TRUTH.counts_on_levels, region, made.counts.size)
        covered = (found.low <= true) & (true <= found.high)
        for level in (1, 2):
            for large in (False, True):
                cells = (made.hierarchy.level_of[region] == level) & ((made.counts.count > 30) == large)
                inside.setdefault((level, large), []).append(float(covered[cells].mean()))
    for share in inside.values():
        assert 0.90 < np.mean(share) < 0.995


def test_intervals_are_kept_with_the_release(tmp_path: Path) -> None:
    small = housing_counts(20_000)
    made = with_intervals(release(small, epsilon=1, insecure_seed=1), copies=3)
    assert made.table().column_names == ["level", "region", "size", "count", "std_error", "low", "high"]
    made.save(tmp_path / "out")
    assert verify(tmp_path / "out")
    again = load(tmp_path / "out")
    assert again.table().equals(made.table())
    assert (again.intervals.low <= again.counts.count).all()
    assert (again.intervals.low >= 0).all()


def test_answers_and_bands_have_intervals() -> None:
    made = release(TRUTH, epsilon=1, insecure_seed=3)
    copies = copy_release(made, copies=12)
    large = interval(copies, "US/Georgia", lambda region: region.at_least(6))
    assert large.low <= large.value <= large.high
    assert large.std_error > 0
    true = TRUTH.counts_on_levels.region(made.hierarchy.find("US/Georgia"))
    assert abs(large.value - true.count[true.size >= 6].sum()) < 8 * large.std_error
    curve, low, high = cumulative_band(copies, "US/Georgia")
    assert (low <= curve).all()
    assert (curve <= high).all()
    assert curve[-1] == made.region("US/Georgia").n_groups


def test_whole_intervals_hold_about_what_they_say() -> None:
    errors = np.random.default_rng(1).geometric(0.5, size=100_000) - 3
    low, high = whole_interval(errors, 0.95)
    assert 0.93 < ((errors >= low) & (errors <= high)).mean() < 0.97
    assert whole_interval(np.zeros(50, dtype=np.int64), 0.95) == (0, 0)


def test_one_copy_is_not_enough() -> None:
    with pytest.raises(RequestError, match="at least 2 copies"):
        copy_release(release(housing_counts(20_000), epsilon=1, insecure_seed=1), copies=1)


def test_a_band_holds_one_more_copy_as_often_as_it_says() -> None:
    made = release(housing_counts(20_000), epsilon=1, view="hybrid", insecure_seed=4)
    made_copies = copy_release(made, copies=240)
    pairs = list(zip(made_copies.truths, made_copies.copies))
    held = []
    for block in range(0, 240, 40):
        some, more = zip(*pairs[block : block + 20]), pairs[block + 20 : block + 40]
        known = Copies(made, *some)
        for path in ("US/Georgia", "US/Texas"):
            curve, low, high = cumulative_band(known, path)
            index = made.hierarchy.find(path)
            for truth, copy in more:
                off = curve_of(copy.region(index), len(curve)) - curve_of(truth.region(index), len(curve))
                inner = (curve > low) & (curve < high) & (low > 0) & (high < curve[-1])
                held.append(bool(((off >= low - curve) & (off <= high - curve))[inner].all()))
    # 20 copies have 21 places for one more: at most 20/21 = 95.2 % can be promised.
    assert 0.90 < np.mean(held) < 0.99


def curve_of(table: CountsBySize, length: int) -> IntArray:
    return np.cumsum(np.bincount(table.size, weights=table.count, minlength=length))[:length]


def test_possible_truths_keep_totals_and_vary() -> None:
    made = release(housing_counts(20_000), epsilon=1, insecure_seed=4)
    copies = copy_release(made, copies=3)
    for truth in copies.truths:
        assert (truth.n_groups() == made.counts.n_groups()).all()
        assert not np.array_equal(truth.count, made.counts.count)
    mean = np.mean([truth.region(0).count[1:4] for truth in copies.truths], axis=0)
    assert np.allclose(mean, made.counts.region(0).count[1:4], rtol=0.05)
