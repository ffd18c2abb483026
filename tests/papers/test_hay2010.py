import numpy as np
import pytest

from tallytree.errors import StorageError
from tallytree.papers.cells import tables
from tallytree.papers.hay2010 import reproduce as hay2010
from tallytree.papers.hay2010 import theorems as hay2010_theorems


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


def test_inference_beats_blocks_at_all_range_sizes():
    cells = hay2010.figure_6("synthetic", hay2010.synthetic_counts(512), runs=4, n_ranges=100)
    assert len(tables(cells)) == 3
    for rows in tables(cells).values():
        noisy, zeroed, ours = (
            by_column(rows, row) for row in ("H̃", "H̄ (zeroed subtrees)", "H̄ (top-down)")
        )
        for size in noisy:
            assert zeroed[size] < noisy[size]
            assert ours[size] < noisy[size]


def test_errors_vanish_inside_long_runs():
    counts = np.repeat([0, 1, 50], [900, 99, 1])
    cells = hay2010.figure_7("steps", counts, runs=20)
    inferred, noisy = by_column(cells, "error of S̄"), by_column(cells, "error of S̃")
    assert inferred["rank = 1"] == pytest.approx(noisy["rank = 1"], rel=1)
    inside = [column for column in inferred if 200 < int(column.split(" = ")[1]) < 800]
    assert max(inferred[column] for column in inside) < noisy["rank = 1"] / 20


def test_all_cells_without_data(monkeypatch):
    monkeypatch.setattr(hay2010, "QUICK_RUNS", 1)
    monkeypatch.setattr(hay2010, "synthetic_counts", lambda: np.arange(64) % 5)
    cells = hay2010.reproduce(quick=True)
    assert {cell.table.split(",")[0] for cell in cells} == {
        "Theorem 4 (iv)", "Theorem 2", "Appendix E", "Figure 5", "Figure 5 in ratios", "Figure 6", "Figure 7",
    }  # fmt: skip
    assert all(cell.ours is not None for cell in cells)


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
    for name, counts in hay2010.load_counts(data_folder, hay2010.HISTOGRAMS).items():
        for rows in tables(hay2010.figure_6(name, counts, runs=10)).values():
            noisy, zeroed, ours = (
                by_column(rows, row) for row in ("H̃", "H̄ (zeroed subtrees)", "H̄ (top-down)")
            )
            assert all(zeroed[size] < noisy[size] for size in noisy)
            assert all(ours[size] < zeroed[size] for size in noisy)
