from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tallytree as tt
from tallytree.boxes.checks import check_charges
from tallytree.boxes.draft import combine_measurements
from tallytree.boxes.kernels.squared_parts import SquaredParts
from tallytree.errors import RequestError
from tallytree.kernels.partitions import cut_deviations
from tallytree.papers.rivals.partitions import best_number_of_parts, merge_noisy_bins
from tallytree.privacy.sensitivity import deviation_score_sensitivity, squares_score_sensitivity
from tests.reference.partitions import all_partitions, squares_cost

MERGE = ["noisy-merge", "structure-merge"]
STEPS = np.repeat([40, 900, 0, 300, 310, 0], [200, 100, 300, 150, 50, 224])


def squared_error(method, epsilon, seed=1):
    made = tt.spatial(
        counts=STEPS,
        mechanism=method,
        epsilon=epsilon,
        insecure_seed=seed,
        nonnegative=False,
        integers=False,
    )
    return float(((made.surface.density - STEPS) ** 2).mean())


@pytest.mark.parametrize("method", MERGE)
@pytest.mark.parametrize("epsilon", ["0.01", "0.1"])
def test_merged_bins_beat_single_ones_threefold_on_steps(method, epsilon):
    flat = 2 / float(Fraction(epsilon)) ** 2
    assert np.mean([squared_error(method, epsilon, seed) for seed in range(5)]) < flat / 3


@pytest.mark.parametrize("method", MERGE)
def test_merged_bins_are_saved_loaded_and_verified(method, tmp_path):
    made = tt.spatial(counts=STEPS, mechanism=method, epsilon="0.1", insecure_seed=2)
    assert made.verify(), made.verify()
    made.save(tmp_path / "line")
    assert tt.verify(tmp_path / "line")
    loaded = tt.load(tmp_path / "line")
    whole, part = loaded.total(), loaded.range([(200, 300)])
    assert whole.estimate == made.total().estimate
    assert part.estimate == pytest.approx(90_000, abs=6 * part.std_error + 2000)
    assert loaded.estimates.leaves.sum() < 30
    shares = [Fraction(step["share"]) for step in made.manifest["privacy"]["steps"]]
    assert sum(shares) == 1


def test_noisy_first_is_the_best_of_all_numbers_of_parts():
    noisy, variance = np.array([9, 7, 8, 30, 29, 2, 41, 3]), 8.0
    found = best_number_of_parts(noisy, variance).tolist()
    # the papers' way: the best partition for every number of parts, then the best of these
    by_number = [
        min(
            (edges for edges in all_partitions(8) if len(edges) == k + 1),
            key=lambda edges: squares_cost(noisy, edges, 0),
        )
        for k in range(1, 9)
    ]
    estimated = [
        squares_cost(noisy, edges, 0) + 2 * variance * k - 8 * variance
        for k, edges in enumerate(by_number, 1)
    ]
    assert found == list(by_number[int(np.argmin(estimated))]) == [0, 3, 5, 6, 7, 8]


def test_noisy_first_publishes_means_of_noisy_bins():
    made = tt.spatial(
        counts=STEPS,
        mechanism="noisy-first",
        epsilon="0.1",
        insecure_seed=2,
        nonnegative=False,
        integers=False,
    )
    (bins,) = made.noisy
    starts = made.estimates.tree.low[bins.nodes][:, 0]
    noisy = np.empty(len(STEPS))
    noisy[starts] = bins.values
    edges = best_number_of_parts(noisy.astype(np.int64), bins.variance)
    means = np.add.reduceat(noisy, edges[:-1]) / np.diff(edges)
    np.testing.assert_allclose(made.surface.density, np.repeat(means, np.diff(edges)), atol=1e-6)
    assert (
        len(edges) - 1 > 6
    )  # at this price single draws become parts: why there is another method


def test_structure_first_spends_a_quarter_a_quarter_and_a_half():
    made = tt.spatial(
        counts=np.repeat([5, 90, 0], 20), mechanism="structure-first", epsilon=2, insecure_seed=1
    )
    number, boundaries, counts = made.manifest["privacy"]["steps"]
    assert [step["share"] for step in (number, boundaries, counts)] == ["1/4", "1/4", "1/2"]
    n_parts = counts["boxes"]
    assert boundaries["boxes"] == n_parts - 1
    # epsilon/4 divided by k - 1 choices, over twice the sensitivity 2F - 1
    rate = Fraction(1, 2) / (n_parts - 1) / (2 * (2 * boundaries["largest_count"] - 1))
    assert Fraction(boundaries["rate"]) == rate
    # The bins that gave the number of parts are kept, and not used for the counts.
    assert [one.query for one in made.noisy if one.of_boxes] == ["part"]


def test_structure_first_finds_steps_where_the_budget_is_large():
    steps = np.repeat([4, 90, 30], [10, 6, 14])
    made = tt.spatial(counts=steps, mechanism="structure-first", epsilon=4000, insecure_seed=3)
    assert np.flatnonzero(np.diff(made.surface.density)).tolist() == [9, 15]


@pytest.mark.parametrize("change", ["rate", "largest_count", "boxes"])
def test_a_forged_choice_of_boundaries_is_noticed(change):
    made = tt.spatial(
        counts=np.repeat([5, 90, 0], 20), mechanism="structure-first", epsilon=2, insecure_seed=1
    )
    assert made.verify()
    made.manifest["privacy"]["steps"][1][change] = 0 if change == "boxes" else 7
    assert not made.verify()


def test_counts_that_were_not_kept_are_charged_too():
    made = tt.spatial(
        counts=np.repeat([5, 90, 0], 20), mechanism="structure-first", epsilon=2, insecure_seed=1
    )
    steps = made.manifest["privacy"]["steps"]
    parts = [one for one in made.noisy if one.of_boxes]
    assert check_charges(made.estimates, made.manifest, parts).passed
    steps.append(dict(steps[0]))
    assert not check_charges(made.estimates, made.manifest, parts).passed


def test_values_of_one_column_are_binned():
    values = np.random.default_rng(1).normal(50, 5, size=(5000, 1))
    made = tt.spatial(
        values, box=[(0, 100)], resolution=200, mechanism="noisy-first", epsilon=1, insecure_seed=1
    )
    assert made.range([(40, 60)]).estimate == pytest.approx(4770, abs=200)


def test_bins_stay_single_where_merging_does_not_pay():
    wild = np.random.default_rng(4).integers(0, 10**6, size=300)
    assert np.array_equal(merge_noisy_bins(wild, 2.0), np.arange(301))
    assert merge_noisy_bins(np.zeros(300, dtype=np.int64), 2.0).tolist() == [0, 300]


@pytest.mark.parametrize("contributions", [1, 2])
def test_no_neighbour_changes_a_boundary_score_by_more_than_the_sensitivity(contributions):
    worst = 0
    for counts in product(range(3), repeat=4):
        before = cut_deviations(np.array(counts))
        for bins in product(range(4), repeat=contributions):
            neighbour = np.array(counts)
            np.add.at(neighbour, list(bins), 1)
            worst = max(worst, int(np.abs(cut_deviations(neighbour) - before).max()))
    assert worst == deviation_score_sensitivity(contributions=contributions).l1


@pytest.mark.parametrize(
    ("largest", "n_bins", "contributions", "reached"), [(1, 5, 1, 1), (2, 5, 1, 3), (2, 4, 2, 4)]
)
def test_no_neighbour_changes_squared_deviations_by_more_than_the_sensitivity(
    largest, n_bins, contributions, reached
):
    """All scores of all choices of boundaries, counts cut off at the largest; neighbours above it
    too.
    """

    def scores(counts):
        best = SquaredParts.of(np.minimum(counts, largest), n_bins - 1)
        return [
            best.last_cuts(j, end) for j in range(1, n_bins) for end in range(j + 1, n_bins + 1)
        ]

    known = {
        counts: scores(np.array(counts)) for counts in product(range(largest + 2), repeat=n_bins)
    }
    worst = 0
    for counts, before in known.items():
        for bins in product(range(n_bins), repeat=contributions):
            neighbour = np.array(counts)
            np.add.at(neighbour, list(bins), 1)
            after = known.get(tuple(neighbour.tolist()))
            if after is not None:
                worst = max(worst, *(int(np.abs(a - b).max()) for a, b in zip(before, after)))
    assert worst == reached <= squares_score_sensitivity(largest, contributions=contributions).l1


def test_scores_prefer_the_step():
    assert cut_deviations(np.array([5, 5, 5, 9, 9])).argmin() == 2


def test_lines_have_one_column():
    with pytest.raises(RequestError, match="along one column, and 2"):
        tt.spatial(counts=np.ones((4, 4), dtype=int), mechanism="noisy-first", epsilon=1)
    with pytest.raises(RequestError, match="at least one column"):
        tt.spatial(np.ones((4, 0)), box=[], mechanism="noisy-first", epsilon=1)
    column = tt.spatial(
        np.ones(4), box=[(0, 2)], mechanism="noisy-first", epsilon=1, insecure_seed=1
    )
    assert column.shape == (4096,)


def test_one_answer_about_two_boxes_that_overlap_is_not_believed():
    """Cells that a step asks about twice pay twice, whatever it says of its share."""
    made = tt.spatial(
        counts=np.repeat([5, 90, 0], 20), mechanism="structure-first", epsilon=2, insecure_seed=1
    )
    assert check_charges(made.estimates, made.manifest, made.noisy).passed
    one = made.noisy[0]
    twice = replace(one, nodes=np.repeat(one.nodes, 2), values=np.repeat(one.values, 2))
    assert not check_charges(made.estimates, made.manifest, [twice, *made.noisy[1:]]).passed


def test_noisy_bins_of_structure_first_are_kept_and_not_used(tmp_path):
    """They chose the number of parts; counts of parts follow from the second half alone."""
    counts = np.repeat([0, 90, 30], [5, 6, 5])
    made = tt.spatial(counts=counts, mechanism="structure-first", epsilon=2, insecure_seed=4)
    kept = {one.query: one for one in made.noisy}
    assert list(kept) == ["bin, for the number of parts", "part"]
    bins, parts = kept["bin, for the number of parts"], kept["part"]
    assert bins.nodes.tolist() == list(range(16))
    assert np.abs(bins.values - counts).max() < 60
    assert not np.array_equal(bins.values, counts)
    # A quarter of the budget, 1/2: variance 2p/(1 − p)², p = e^(−1/2).
    assert bins.variance == pytest.approx(2 * np.exp(-0.5) / (1 - np.exp(-0.5)) ** 2)
    values, variances = combine_measurements(made.estimates.tree.n_nodes, list(made.noisy))
    assert values[parts.nodes] == pytest.approx(parts.values)
    assert np.isfinite(variances).sum() == len(parts.nodes)
    made.save(tmp_path / "out")
    loaded = tt.load(tmp_path / "out")
    assert loaded.verify()
    again = {one.query: one for one in loaded.noisy}["bin, for the number of parts"]
    assert again.values.tolist() == bins.values.tolist()
    assert tt.re_estimate(tmp_path / "out").table().equals(made.table())
