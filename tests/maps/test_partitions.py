from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.kernels.boxes.partitions import cut_deviations
from tallytree.maps.partitions import merge_noisy_bins
from tallytree.privacy.sensitivity import deviation_score_sensitivity

LINE = ["noisy-first", "structure-first"]
STEPS = np.repeat([40, 900, 0, 300, 310, 0], [200, 100, 300, 150, 50, 224])


def squared_error(method, epsilon, seed=1):
    made = tt.spatial(
        counts=STEPS, method=method, epsilon=epsilon, insecure_seed=seed, nonnegative=False, integers=False
    )
    return float(((made.surface.density - STEPS) ** 2).mean())


@pytest.mark.parametrize("method", LINE)
@pytest.mark.parametrize("epsilon", ["0.01", "0.1"])
def test_merged_bins_beat_single_ones_threefold_on_steps(method, epsilon):
    flat = 2 / float(Fraction(epsilon)) ** 2
    assert np.mean([squared_error(method, epsilon, seed) for seed in range(5)]) < flat / 3


@pytest.mark.parametrize("method", LINE)
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


def test_values_of_one_column_are_binned():
    values = np.random.default_rng(1).normal(50, 5, size=(5000, 1))
    made = tt.spatial(values, box=[(0, 100)], resolution=200, method="noisy-first", epsilon=1, insecure_seed=1)
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


def test_scores_prefer_the_step():
    assert cut_deviations(np.array([5, 5, 5, 9, 9])).argmin() == 2


def test_lines_have_one_column():
    with pytest.raises(RequestError, match="along one column, and 2"):
        tt.spatial(counts=np.ones((4, 4), dtype=int), method="noisy-first", epsilon=1)
    with pytest.raises(RequestError, match="at least one column"):
        tt.spatial(np.ones((4, 0)), box=[], method="noisy-first", epsilon=1)
    column = tt.spatial(np.ones(4), box=[(0, 2)], method="noisy-first", epsilon=1, insecure_seed=1)
    assert column.shape == (4096,)
