from fractions import Fraction

import numpy as np
import pytest

from tallytree.errors import StorageError
from tallytree.kernels.range_moments import running_sum
from tallytree.papers.cells import Cell
from tallytree.papers.hay2010 import claims as hay2010_claims
from tallytree.papers.hay2010 import ranges
from tallytree.papers.hay2010 import reproduce as hay2010
from tallytree.papers.hay2010 import theorems as hay2010_theorems
from tallytree.privacy.randomness import KeyStream


def by_column(cells, row):
    return {cell.column: cell.ours for cell in cells if cell.row == row}


def test_the_query_of_theorem_4():
    measured, predicted, bound, exact = hay2010.theorem_4(runs=200)
    assert bound.ours == pytest.approx(bound.paper, abs=0.005)
    assert exact.ours > bound.ours
    # 200 squares of nearly normal errors have a relative error of 10 %, their ratio of 14 %.
    assert predicted.ours == pytest.approx(1.0, abs=0.4)
    assert measured.ours == pytest.approx(exact.ours, rel=0.5)
    assert measured.ours > bound.ours


def test_errors_of_sorted_counts_stay_below_theorem_2():
    cells = hay2010_theorems.theorem_2({"steps": np.repeat([0, 3, 9], [50, 40, 10])}, runs=10)
    found = {(cell.row, cell.column): cell.ours for cell in cells}
    assert found["steps", "distinct counts d"] == 3
    assert found["steps", "Σ (ln³ n_i + 1)"] == pytest.approx(
        3 + sum(np.log(n) ** 3 for n in (50, 40, 10))
    )
    assert found["steps", "error of S̃"] == pytest.approx(200, rel=0.01)
    assert (
        found["steps", "least c"]
        == found["steps", "error of S̄, measured"] / found["steps", "Σ (ln³ n_i + 1)"]
    )
    # A thousand times as many equal counts cost S̃ a thousand times the error, S̄ a few times.
    few, many = (found[f"{n:,} equal counts", "error of S̄, measured"] for n in (100, 100_000))
    assert many < 8 * few
    assert all(c < 1 for (_, column), c in found.items() if column == "least c")


def test_all_ranges_stay_within_appendix_e():
    cells = hay2010_theorems.appendix_e(16, runs=40)
    found = {(cell.row.split(",")[0], cell.column): cell.ours for cell in cells}
    bound = found["bound on the error of all ranges", "alpha = 1"]
    assert bound == pytest.approx(16 * 5**1.5 * np.log(2 * 16**2 / 0.05))
    assert found["records for an error of 1 %", "alpha = 1"] == pytest.approx(100 * bound)
    assert found["runs of H̃ within the bound", "alpha = 1"] == 1
    assert found["H̄", "alpha = 1"] < found["H̃", "alpha = 1"] < bound / 10
    assert found["H̃", "alpha = 0.1"] == pytest.approx(10 * found["H̃", "alpha = 1"], rel=0.3)


def test_inference_beats_sorting_and_noise_on_unattributed_histograms():
    cells = hay2010.figure_5("synthetic", hay2010.synthetic_counts(), runs=3)
    noisy, ordered, isotonic = (by_column(cells, row) for row in ("S̃", "S̃_r", hay2010.CUT_OFF))
    plain, gains = by_column(cells, "S̄"), by_column(cells, "synthetic")
    for column in noisy:
        assert (
            isotonic[column] <= plain[column] < noisy[column]
        )  # no count is below 0, so cutting off there is nearer
        assert gains[column] == pytest.approx(noisy[column] / plain[column])
        assert isotonic[column] < noisy[column] / 10  # at least an order of magnitude (§5.1)
        assert isotonic[column] <= ordered[column] * 1.05


def test_blum_et_al_beside_the_tree_by_hand():
    cells = hay2010_theorems.blum_bound(n_bins=8, delta=0.5, share=0.1)
    found = {cell.column: cell.ours for cell in cells}
    assert found["H̃, error of 10%"] == pytest.approx(16 * 8 * np.log(2 * 64 / 0.5) / 0.1)
    expected = np.log(8) * (np.log(np.log(8)) + np.log(20)) / 0.001
    assert found["Blum et al., error of 10%"] == pytest.approx(expected)
    assert found["H̃, for a tenth of the error"] == pytest.approx(10)
    assert found["Blum et al., for a tenth of the error"] > 1000


def test_the_spread_of_a_quantile_by_hand():
    # Of 100 runs the 95 % quantile is off by √(100 · 0.95 · 0.05) = 2.2 places: 93 to 97.
    assert hay2010_theorems.spread_of_quantile(np.arange(1.0, 101.0), 0.95) == (97 - 93) / 2


def test_blocks_of_ranges_by_hand():
    """Four bins: a pair fits one block at two of three places, else takes two; three bins take a
    pair and one more.
    """
    assert ranges.mean_blocks(3, 1) == pytest.approx(1)
    assert ranges.mean_blocks(3, 2) == pytest.approx((1 + 2 + 1) / 3)
    assert ranges.mean_blocks(3, 3) == pytest.approx(2)
    at = {(cell.row, cell.column): cell.ours for cell in ranges.expected_cells()}
    assert at["height 16", "range size = 1"] == pytest.approx(1 / 256)
    assert at["height 16", "range size = 2"] == pytest.approx(2 / 256 / 1.5, rel=1e-4)
    # 4 to 8 times at the largest ranges (§5.2), with 2^15 hosts and with 2^16.
    assert at["height 16", "range size = 16384"] == pytest.approx(4.57, abs=0.005)
    assert at["height 17", "range size = 32768"] == pytest.approx(7.56, abs=0.005)


def test_plain_sums_have_the_expected_error_and_cut_bins_do_not():
    """L̃ has size · 2p/(1 − p)², and of empty bins cut off at 0 the mean square of a sum is size ·
    var + (size · mean)² with mean p/(1 − p²).
    """
    epsilon, runs = Fraction(1, 10), 12
    cells = ranges.figure_6("empty", np.zeros(256, dtype=np.int64), epsilon, runs, n_ranges=200)
    p = np.exp(-0.1)
    plain, cut = by_column(cells, "L̃"), by_column(cells, "L̃ (bins cut off at 0)")
    variance = 2 * p / (1 - p) ** 2
    mean = p / (1 - p**2)
    for size in (1, 8, 64):
        column = f"range size = {size}"
        assert plain[column] == pytest.approx(size * variance, rel=0.5)
        expected = size * (variance / 2 - mean**2) + (size * mean) ** 2
        assert cut[column] == pytest.approx(expected, rel=0.3)
    assert all(cell.spread is not None for cell in cells)


def test_each_estimator_of_a_range_by_hand():
    """Without noise to speak of all of them say the truth."""
    counts, epsilon = np.array([3, 0, 5, 1]), Fraction(10**6)
    plan = hay2010_theorems.binary_plan(4, epsilon)
    errors = hay2010_theorems.tree_errors(plan)
    stream = KeyStream.from_insecure_seed(0)
    found = ranges.estimators_of_ranges(counts, plan, errors, epsilon, stream)
    first, last = np.array([0, 1, 2]), np.array([4, 3, 3])
    sums = running_sum(counts)
    assert len(found) == 6
    for estimate in found.values():
        assert estimate(first, last) == pytest.approx(sums[last] - sums[first])


def test_inference_beats_blocks_at_all_range_sizes():
    counts = hay2010.synthetic_counts(512)
    for epsilon in hay2010.EPSILONS:
        rows = ranges.figure_6("synthetic", counts, epsilon, runs=4, n_ranges=100)
        noisy, zeroed, ours = (
            by_column(rows, row) for row in ("H̃", "H̄ (zeroed subtrees)", "H̄ (top-down)")
        )
        for size in noisy:
            assert zeroed[size] < noisy[size]
            assert ours[size] < noisy[size]


def test_claims_are_read_off_the_figures():
    """Two sizes of ranges, one ε: L̃ 4 and 8, H̃ 6 and 6, H̄ 3 and 2."""
    table = "Figure 6, by hand, epsilon 1"
    by_row = {
        "L̃": (4, 8), "H̃": (6, 6), "L̃ (bins cut off at 0)": (4, 16), "H̄ (zeroed subtrees)": (3, 2),
    }  # fmt: skip
    cells = [
        Cell(table, row, f"range size = {size}", None, float(error), "squared error", 0.5)
        for row, errors in by_row.items()
        for size, error in zip((1, 2), errors)
    ]
    cells += [
        Cell("Figure 5 in ratios", "by hand", f"epsilon = {epsilon}", None, gain, "ratio")
        for epsilon, gain in ((1, 9.0), (0.1, 30.0))
    ]
    cells += [
        Cell("Figure 5, by hand", row, "epsilon = 1", None, error, "squared error")
        for row, error in (("S̃_r", 2.0), ("S̄", 1.0))
    ]
    claims = hay2010_claims.claims(cells + ranges.expected_cells())
    found = {(cell.row.split(": ", 1)[1], cell.column): cell for cell in claims}
    gain = found[
        "S̄ has an error at least an order of magnitude below S̃", "least gain over all data and ε"
    ]
    assert (gain.ours, gain.remark) == (9, "does not hold: by hand at epsilon = 1: 9.0")
    linear = found[
        "the error of L̃ grows linearly with the size of the range",
        "power of the size, farthest from 1",
    ]
    assert linear.ours == pytest.approx(1)
    assert linear.remark.endswith("the power is up to 2.00")
    below = found["the error of H̄ is below that of H̃ at all sizes, ε and data", "largest over all"]
    assert below.ours == 0.5
    assert below.spread == pytest.approx(0.5 * np.hypot(0.5 / 3, 0.5 / 6))
    bins = found["H̄ can be better than L̃ even at single bins", "least over all data and ε"]
    assert (bins.ours, bins.remark[:5]) == (0.75, "holds")
    larger = found[
        "inference reduces the error of larger ranges by 45 to 98 %",
        "least where L̃ is worse than H̃",
    ]
    assert larger.ours == 0.75  # of size 2 alone: 1 − 2/8
    crossing = found[
        "beyond ranges of about 2,000 the error of L̃ is above that of H̃",
        "height 16: first power of two above",
    ]
    assert (crossing.ours, crossing.remark[:5]) == (4096, "holds")


def test_errors_vanish_inside_long_runs():
    counts = np.repeat([0, 1, 50], [900, 99, 1])
    cells = hay2010.figure_7("steps", counts, runs=20)
    inferred, noisy = by_column(cells, "error of S̄"), by_column(cells, "error of S̃")
    assert inferred["rank = 1"] == pytest.approx(noisy["rank = 1"], rel=1)
    inside = [column for column in inferred if 200 < int(column.split(" = ")[1]) < 800]
    assert max(inferred[column] for column in inside) < noisy["rank = 1"] / 20


def test_all_cells_without_data(monkeypatch):
    monkeypatch.setattr(hay2010, "QUICK_RUNS", 2)
    monkeypatch.setattr(hay2010, "N_BINS_OF_THE_PAPER", 256)
    monkeypatch.setattr(hay2010, "synthetic_counts", lambda *_: np.arange(64) % 5)
    cells = hay2010.reproduce(quick=True)
    assert {cell.table.split(",")[0] for cell in cells} == {
        "Theorem 4 (iv)", "Theorem 2", "Appendix E", "Appendix E beside Blum et al.", "Figure 5",
        "Figure 5 in ratios", "Figure 6", "Figure 7", "§5 in words",
    }  # fmt: skip
    assert all(cell.ours is not None for cell in cells)


def test_every_noisy_figure_has_its_spread():
    counts = hay2010.synthetic_counts(64)
    cells = hay2010.figure_5("few", counts, runs=3) + hay2010.figure_7("few", counts, runs=3)
    cells += ranges.figure_6("few", counts, Fraction(1), runs=3, n_ranges=5)
    cells += hay2010_theorems.theorem_2({"few": counts}, runs=3)
    cells += hay2010_theorems.appendix_e(8, runs=20) + hay2010_theorems.theorem_4(4, runs=9)
    exact = {
        "S(I)", "error of S̃", "distinct counts d", "Σ (ln³ n_i + 1)", "records for an error of 1 %",
        "bound on the error of all ranges", "gain of H̄ over H̃, at least",
        "gain of H̄ over H̃, exactly",
    }  # fmt: skip
    for cell in cells:
        computed = bool({cell.row, cell.column} & exact) and cell.table.split(",")[0] != "Figure 5"
        assert (cell.spread is None) == computed, cell


def test_sorted_histograms_get_an_order_and_others_keep_theirs():
    found = hay2010.in_an_order({"falling": np.arange(50)[::-1], "own": np.array([0, 3, 1])})
    assert sorted(found["falling in a drawn order"]) == list(range(50))
    assert not (np.diff(found["falling in a drawn order"]) <= 0).all()
    assert found["own"].tolist() == [0, 3, 1]
    assert len(found["synthetic, height 16"]) == 2**15
    # As many bins are not empty as in DPBench's NETTRACE.
    assert (found["synthetic, height 16"] > 0).mean() == pytest.approx(0.034, abs=0.01)


def test_a_folder_without_the_data_is_refused(tmp_path):
    with pytest.raises(StorageError, match="is missing"):
        hay2010.reproduce(data=tmp_path)


@pytest.mark.data
@pytest.mark.proof
def test_gains_on_real_data_are_near_those_we_measured_before(data_folder):
    """Squared error of S̃ over that of S̄ at ε = 1, 0.1, 0.01."""
    expected = {
        "NETTRACE": (68, 115, 261),
        "SEARCHLOGS": (8.7, 32, 117),
        "HEPTH": (8.6, 41, 174),
        "INCOME": (4.8, 8.7, 17),
        "ego-Facebook": (12.5, 63, 247),
        "email-Enron": (78, 314, 1363),
    }
    for name, counts in hay2010.load_counts(data_folder, expected).items():
        cells = hay2010.figure_5(name, counts, runs=50)
        gains = [cell.ours for cell in cells if cell.row == f"{name}, cut off at 0"]
        np.testing.assert_allclose(gains, expected[name], rtol=0.25)


@pytest.mark.data
@pytest.mark.proof
def test_inference_beats_blocks_at_all_range_sizes_on_real_data(data_folder):
    histograms = hay2010.load_counts(data_folder, hay2010.HISTOGRAMS)
    for name, counts in hay2010.in_an_order(histograms).items():
        for epsilon in hay2010.EPSILONS:
            rows = ranges.figure_6(name, counts, epsilon, runs=10)
            noisy, zeroed = (by_column(rows, row) for row in ("H̃", "H̄ (zeroed subtrees)"))
            ours = by_column(rows, "H̄ (top-down)")
            assert all(zeroed[size] < noisy[size] for size in noisy)
            assert all(ours[size] < zeroed[size] for size in noisy)
