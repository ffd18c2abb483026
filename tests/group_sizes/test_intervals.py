from pathlib import Path

import numpy as np
import pytest

from tallytree import load, release, verify, with_intervals
from tallytree.errors import RequestError
from tallytree.group_sizes.intervals.answers import answer
from tallytree.group_sizes.intervals.bands import count_band, cumulative_band, half_widths
from tallytree.group_sizes.intervals.copies import Copies, copy_release
from tallytree.group_sizes.intervals.intervals import (
    count_intervals,
    total_ends,
    whole_interval,
    zero_ends,
)
from tallytree.group_sizes.intervals.total_ends import TotalEnds
from tallytree.group_sizes.intervals.zero_cells import (
    REACHES,
    first_sizes,
    groups_per_size,
    places_of,
)
from tallytree.group_sizes.release.questions import (
    GROUPS,
    groups_of_at_least,
    groups_of_size,
    kth_largest,
    quantile,
)
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize, counts_at
from tallytree.papers.housing import housing_counts

TRUTH = housing_counts(400_000, seed=5)


@pytest.mark.proof
def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    inside: dict[tuple[int, bool], list[float]] = {}
    totals: dict[int, list[bool]] = {1: [], 2: []}
    for seed in range(6):
        made = release(TRUTH, epsilon=1, insecure_seed=seed)
        found = count_intervals(copy_release(made, copies=20, seed=1000 * (seed + 1)))
        region = made.counts.region_of_run()
        true = counts_at(TRUTH.counts_on_levels, region, made.counts.size)
        covered = (found.low <= true) & (true <= found.high)
        for level in (1, 2):
            for large in (False, True):
                cells = (made.hierarchy.level_of[region] == level) & (
                    (made.counts.count > 30) == large
                )
                inside.setdefault((level, large), []).append(float(covered[cells].mean()))
        errors = entities(TRUTH.counts_on_levels) - entities(made.counts)
        for place in range(1, made.hierarchy.n_regions):
            level = int(made.hierarchy.level_of[place])
            low, high = found.totals.of(level, int(made.n_groups[place]))
            totals[level].append(low <= errors[place] <= high)
    for share in inside.values():
        assert 0.90 < np.mean(share) < 0.995
    for within in totals.values():
        assert 0.90 < np.mean(within) < 0.995


def entities(counts: CountsBySize) -> IntArray:
    """Number of entities of every region."""
    return np.array(
        [int((run.size * run.count).sum()) for run in map(counts.region, range(counts.n_regions))]
    )


def test_ends_of_totals_go_by_level_and_number_of_groups() -> None:
    copies = copy_release(release(TRUTH, epsilon=1, insecure_seed=2), copies=4)
    found, tree = total_ends(copies), copies.release.hierarchy
    errors = [
        entities(truth) - entities(copied) for truth, copied in zip(copies.truths, copies.copies)
    ]
    # 51 states in 4 copies are just enough for one pool, whatever their number of groups.
    of_states = np.concatenate([each[tree.level_slice(1)] for each in errors])
    low, high = whole_interval(of_states, 0.95)
    assert found.steps[1] == ((0, min(low, 0), max(high, 0)),)
    assert found.of(1, 10**6) == (min(low, 0), max(high, 0))
    assert all(low <= 0 <= high for steps in found.steps for _, low, high in steps)
    assert len(found.steps[2]) > 1
    assert found == TotalEnds.from_json(found.to_json())
    assert TotalEnds().of(0, 5) is None


def test_intervals_are_kept_with_the_release(tmp_path: Path) -> None:
    small = housing_counts(20_000)
    made = with_intervals(release(small, epsilon=1, insecure_seed=1), copies=3)
    assert made.table().column_names == [
        "level",
        "region",
        "size",
        "count",
        "std_error",
        "low",
        "high",
    ]
    made.save(tmp_path / "out")
    assert verify(tmp_path / "out")
    again = load(tmp_path / "out")
    assert again.table().equals(made.table())
    assert (again.intervals.low <= again.counts.count).all()
    assert (again.intervals.low >= 0).all()
    assert again.intervals.totals == made.intervals.totals


def test_answers_and_bands_have_intervals() -> None:
    made = release(TRUTH, epsilon=1, view="hybrid", insecure_seed=3)
    copies = copy_release(made, copies=12)
    large = answer(copies, "US/Georgia", groups_of_at_least(6))
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
            inner = (curve > low) & (curve < high) & (low > 0) & (high < curve[-1])
            for truth, copy in more:
                off = np.cumsum(
                    dense(copy.region(index), len(curve)) - dense(truth.region(index), len(curve))
                )
                held.append(bool(((off >= low - curve) & (off <= high - curve))[inner].all()))
    # 20 copies have 21 places for one more: at most 20/21 = 95.2 % can be promised.
    assert 0.90 < np.mean(held) < 0.99


@pytest.mark.parametrize("smooth", [False, True])
def test_half_widths_hold_one_more_row_as_often_as_they_say(smooth: bool) -> None:
    rng = np.random.default_rng(2)
    held = []
    for _ in range(1500):
        errors = rng.laplace(scale=np.repeat([1.0, 5.0, 30.0], 10), size=(40, 30))
        squares = errors[:-1] ** 2
        shared = np.repeat(squares.reshape(39, 3, 10).mean(axis=2), 10, axis=1)
        half = half_widths(squares, 0.9, smooth=shared if smooth else None)
        held.append(bool((np.abs(errors[-1]) <= half).all()))
    # Rank 36 of 39 copies and one more, 0.9; the spread of all copies stands for that of the
    # others. Deviation 0.008.
    assert 0.87 < np.mean(held) < 0.93


def test_the_band_of_counts_is_wider_than_single_intervals_and_not_much() -> None:
    made = release(TRUTH, epsilon=1, view="hybrid", insecure_seed=3)
    copies = copy_release(made, copies=20)
    index = made.hierarchy.find("US/Georgia")
    own = slice(*made.counts.offsets[index : index + 2].tolist())
    size, found = made.counts.size[own], count_intervals(copies)
    counts, low, high = count_band(copies, "US/Georgia")
    assert np.array_equal(counts[size], made.counts.count[own])
    single, together = (found.high - found.low)[own], (high - low)[size]
    common = made.counts.count[own] > 100
    assert (together[common] > single[common]).all()
    assert (together[common] < 6 * single[common]).all()


def dense(table: CountsBySize, length: int) -> IntArray:
    return np.bincount(table.size, weights=table.count, minlength=length)[:length].astype(np.int64)


def test_possible_truths_keep_totals_and_vary() -> None:
    made = release(housing_counts(20_000), epsilon=1, insecure_seed=4)
    copies = copy_release(made, copies=3)
    for truth in copies.truths:
        assert (truth.n_groups() == made.counts.n_groups()).all()
        assert not np.array_equal(truth.count, made.counts.count)
    mean = np.mean([dense(truth.region(0), 5) for truth in copies.truths], axis=0)
    assert np.allclose(mean[1:], dense(made.counts.region(0), 5)[1:], rtol=0.25)


def test_zero_ends_are_those_of_zero_counts_that_are_alike() -> None:
    """Every step against a loop over all cells of all copies."""
    made = release(housing_counts(20_000), epsilon=1, view="hybrid", insecure_seed=4)
    few = copy_release(made, copies=3)
    ends, tree = zero_ends(few, confidence=0.9), made.hierarchy
    level, found = 1, 0
    like: dict[tuple[int, int], list[int]] = {}
    largest = max(int(table.size.max()) for table in (*few.truths, *few.copies))
    sizes = np.arange(
        first_sizes(int(places_of(np.array([largest]))[0]) + 1 + max(REACHES))[-1].astype(int)
    )
    for truth, copied in zip(few.truths, few.copies):
        for region in range(tree.n_regions)[tree.level_slice(level)]:
            counts, true = copied.region(region), dense(truth.region(region), len(sizes))
            near, wide = (groups_per_size(counts, places_of(sizes), reach)[0] for reach in REACHES)
            for size in np.setdiff1d(sizes, counts.size).tolist():
                density = near[size] or wide[size]
                octave = int(np.floor(np.log2(density))) if density else -99
                like.setdefault((0 if near[size] else 1, octave), []).append(int(true[size]))
    for (reach, octave), trues in like.items():
        if len(trues) >= 200:
            found += 1
            least = 2.0**octave if octave > -99 else 0.0
            high = [end for start, end in ends.steps[level][reach] if start <= least][-1]
            assert (np.array(trues) <= high).mean() >= 0.9 - 1e-9
            assert high == 0 or (np.array(trues) <= high - 1).mean() < 0.9
    assert found >= 5


def test_groups_per_size_counts_what_is_near() -> None:
    counts = release(housing_counts(20_000), epsilon=1, insecure_seed=4).counts
    table = counts.regions(slice(0, 3))
    starts = first_sizes(60)
    for reach in REACHES:
        found = groups_per_size(table, np.arange(40), reach)
        for place in range(40):
            low, high = starts[max(place - reach, 0)], starts[place + reach + 1]
            for region in range(3):
                own = table.region(region)
                near = own.count[(own.size >= low) & (own.size < high)].sum()
                assert np.isclose(found[region, place], near / (high - low))


def test_a_count_of_zero_has_an_upper_end() -> None:
    made = release(housing_counts(20_000), epsilon=1, view="hybrid", insecure_seed=4)
    copies = copy_release(made, copies=6)
    georgia = made.region("US/Georgia")
    sizes = np.setdiff1d(np.arange(30), georgia.size)
    ends = zero_ends(copies).of(made.counts.region(made.hierarchy.find("US/Georgia")), 1, sizes)[0]
    assert ends.max() >= 1
    for size, end in ((int(sizes[ends.argmax()]), ends.max()), (1000 * int(georgia.size[-1]), 0)):
        found = answer(copies, "US/Georgia", groups_of_size(size))
        assert (found.value, found.low, found.high) == (0, 0, end)


def test_answers_about_sizes_follow_their_order() -> None:
    made = release(housing_counts(20_000), epsilon=1, view="hybrid", insecure_seed=4)
    copies = copy_release(made, copies=12)
    found = [
        answer(copies, "US/Texas", question)
        for question in (kth_largest(1), kth_largest(3), quantile(0.5))
    ]
    values = [one.value for one in found]
    assert values == sorted(values, reverse=True)
    assert all(0 <= one.low <= one.value <= one.high for one in found)
    groups = answer(copies, "US/Texas", GROUPS)
    assert groups.low == groups.value == groups.high == made.region("US/Texas").n_groups
    with pytest.raises(RequestError, match="k must be from 1"):
        answer(copies, "US/Texas", kth_largest(10**9))
