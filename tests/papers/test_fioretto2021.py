"""Table 7 and the figures: the pattern among sound mechanisms, and the chain's two calibrations."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tallytree.papers.cells import Cell
from tallytree.papers.fioretto2021 import reproduce as fioretto2021
from tallytree.papers.fioretto2021 import scaling as pgsr_scaling
from tallytree.papers.fioretto2021.reproduce import OUTLIERS, TABLE_7, data_sets
from tallytree.papers.fioretto2021.runs import (
    MECHANISMS,
    Exact,
    Noisy,
    epsilon_spent_by_chain,
    exact_table,
    run,
)
from tallytree.papers.fioretto2021.scaling import synthetic_taxis
from tallytree.papers.housing import housing_counts

SMALL = fioretto2021.Scale(2, 30_000, 12, ("1.0",), (5,), 5.0)


@pytest.fixture(scope="module")
def housing() -> Exact:
    return exact_table(housing_counts(outliers=OUTLIERS), 199)


def errors(exact: Exact, epsilon: str, name: str) -> np.ndarray:
    return np.array(run(MECHANISMS[name], Noisy(exact, Fraction(epsilon), seed=1)).l1)


@pytest.mark.parametrize("epsilon", ["0.1", "1.0"])
def test_cumulative_dp_beats_tree_dp_and_topdown_at_every_level(
    housing: Exact, epsilon: str
) -> None:
    best = errors(housing, epsilon, "M_c^dp")
    assert (best < errors(housing, epsilon, "M_H^dp")).all()
    assert (best < errors(housing, epsilon, "TopDown")).all()


def test_the_chain_is_accurate_only_where_it_is_not_private(housing: Exact) -> None:
    wrong, sound = errors(housing, "1.0", "M_c^ch NOT ε-DP"), errors(housing, "1.0", "M_c^ch sound")
    assert (sound > 10 * wrong).all()
    np.testing.assert_allclose(epsilon_spent_by_chain(housing.hierarchy, 1.0), 3197 / 3)


def test_only_rounded_relaxations_break_sums(housing: Exact) -> None:
    for name, mechanism in MECHANISMS.items():
        violations = run(mechanism, Noisy(housing, Fraction(1), seed=0)).violations
        assert (violations > 0) == ("rounded" in name)


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fioretto2021, "FULL", SMALL)
        patch.setattr(fioretto2021, "scaling_cells", lambda *_: iter(()))
        return fioretto2021.reproduce()


def test_cells_name_the_budget_really_spent(cells: list[Cell]) -> None:
    spent = {cell.row: cell.ours for cell in cells if cell.column == "ε spent"}
    assert spent["ε = 1.0  M_c^ch NOT ε-DP"] == pytest.approx(1065.67, abs=0.01)
    assert spent["ε = 1.0  M_c^ch sound"] == 1.0
    printed = {
        (cell.row, cell.column): cell.paper for cell in cells if cell.table == "Table 7, census"
    }
    assert printed["ε = 1.0  M_c^dp", "level 3"] == 91.0
    assert {cell.table.split(",")[0] for cell in cells} == {"Table 7", "Figure 8", "Figure 9"}
    assert set(TABLE_7["census", "0.1"]) <= set(MECHANISMS)


def test_half_the_noise_has_columns_of_its_own(cells: list[Cell]) -> None:
    found = {(cell.row, cell.column): cell for cell in cells if cell.table == "Table 7, census"}
    exact = fioretto2021.data_sets(None, SMALL)["census"]
    for name in fioretto2021.AT_TWICE_EPSILON:
        runs = [run(MECHANISMS[name], Noisy(exact, Fraction(2), seed)).l1 for seed in range(2)]
        for level in range(3):
            cell = found[f"ε = 1.0  {name}", f"level {level + 1}, at 2ε"]
            assert cell.paper is None
            assert cell.ours == pytest.approx(np.mean([one[level] for one in runs]) / 1e3)
            assert cell.spread == pytest.approx(abs(runs[0][level] - runs[1][level]) / 2 / 1e3)
    assert all(
        cell.remark for (row, column), cell in found.items() if cell.paper and "level" in column
    )
    text = found["ε = 1.0  M_H^dp", "level 3, at 2ε"].remark
    assert text == "twice the ε; the paper prints 128.8 at ε"


def test_figures_of_other_data_are_remarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in generator at a hundredth of the groups, and taxis of another year."""
    monkeypatch.setattr(fioretto2021, "QUICK", SMALL)
    monkeypatch.setattr(fioretto2021, "scaling_cells", lambda *_: iter(()))
    cells = [c for c in fioretto2021.reproduce(quick=True) if c.table == "Table 7, census"]
    assert all(cell.paper is None for cell in cells)
    by_row = {(cell.row, cell.column): cell.remark for cell in cells}
    assert by_row["ε = 1.0  M_c^dp", "level 3"] == "other data; the paper prints 91"
    outcome = run(MECHANISMS["M_c^dp"], Noisy(synthetic_taxis().cut(4), Fraction(1), seed=0))
    taxi = list(fioretto2021._table_7("taxi", "row", "M_c^dp", "1.0", [outcome], SMALL))
    assert [cell.paper for cell in taxi] == [None] * 4
    assert taxi[2].remark == "other data; the paper prints 307.8"


def test_every_noisy_figure_has_its_spread(cells: list[Cell]) -> None:
    exact = {cell.column for cell in cells if cell.spread is None}
    assert exact == {"ε spent"}


def test_the_sweep_runs_every_method_on_the_same_instance() -> None:
    pytest.importorskip(
        "highspy", reason="SKIPPED LOUDLY: install the extra 'solvers' to test the sweep"
    )
    tiny = Exact(
        pgsr_scaling.synthetic_taxis().hierarchy, pgsr_scaling.synthetic_taxis().table // 100
    )
    cells = list(pgsr_scaling.scaling_cells(tiny, (2,), 2.0))
    seconds = {cell.row: cell.ours for cell in cells}
    assert len(seconds) == 11
    assert seconds["M_H^dp (tree-dp)"] is not None
    assert seconds["M_H (tree-exact), HiGHS"] is not None
    assert seconds["M_dp^OP (tree-program), HiGHS"] is None  # far out of time, as in the paper
    remarks = {cell.row: cell.remark for cell in cells}
    assert remarks["M_dp^OP (tree-program), HiGHS"] == "not solved in 2 s"
    assert all(
        cell.spread is not None
        for cell in cells
        if "HiGHS" not in cell.row and "OSQP" not in cell.row
    )


@pytest.mark.proof
@pytest.mark.data
def test_the_pattern_of_table_7_on_county_housing(data_folder: Path) -> None:
    exact = data_sets(data_folder, fioretto2021.FULL)["census"]
    for epsilon in ("0.1", "0.5", "1.0"):
        best = errors(exact, epsilon, "M_c^dp")
        assert (best < errors(exact, epsilon, "M_H^dp")).all()
        assert (best < errors(exact, epsilon, "TopDown")).all()
