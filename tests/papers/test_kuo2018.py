"""The tables of kuo2018 on a small country: what is run, at which budgets, and that printed figures
stand where they belong.
"""

from __future__ import annotations

import importlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tallytree import release
from tallytree.cli import main
from tallytree.cli.reproduce import Paper
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.papers.cells import Cell, mean_of_runs
from tallytree.papers.housing import housing_counts
from tallytree.papers.kuo2018 import figures, runs, tables
from tallytree.papers.kuo2018 import reproduce as kuo2018
from tests.reference.distances import earth_movers_distance
from tests.reference.group_sizes import counts_from_lists, lists_from_counts

LEAVES = [("a", "a1"), ("a", "a2"), ("b", "b1")]
SIZES = [[1, 1, 2, 3, 3, 9], [0, 2, 2, 5], [1, 4, 4, 4, 12]]
SCALE = runs.Scale(runs=2, max_size=20, households=0, epsilons=(0.5,))


def country() -> ConfidentialCounts:
    counts = counts_from_lists(SIZES)
    return ConfidentialCounts(
        PublicFacts(hierarchy_from_leaves(["state", "county"], LEAVES)), counts, counts.n_groups()
    )


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kuo2018, "QUICK", SCALE)
        patch.setattr(kuo2018, "data_sets", lambda *_: {"housing": country()})
        patch.setattr(runs, "MAX_SIZE", 20)
        patch.setattr(tables, "MAX_SIZE", 20)
        return kuo2018.reproduce(quick=True)


def by_hand(
    counts: ConfidentialCounts, truth: list[list[list[int]]], **options: Any
) -> list[float]:
    """Mean earth mover's distance per region of two seeded releases, level by level, from plain
    lists.
    """
    tree, runs = counts.hierarchy, []
    for seed in (0, 1):
        lists = lists_from_counts(
            release(counts, max_size=20, insecure_seed=seed, **options).counts
        )
        parts = [lists[tree.level_slice(level)] for level in range(tree.n_levels)]
        runs.append(
            [
                np.mean([earth_movers_distance(a, b) for a, b in zip(made, true)])
                for made, true in zip(parts, truth)
            ]
        )
    return np.mean(runs, axis=0).tolist()


def found(cells: list[Cell], table: str, row: str) -> list[float | None]:
    return [cell.ours for cell in cells if (cell.table, cell.row) == (table, row)]


ROOT, STATES = SIZES[0] + SIZES[1] + SIZES[2], [SIZES[0] + SIZES[1], SIZES[2]]


def test_every_level_of_a_figure_has_the_budget_that_it_names(cells: list[Cell]) -> None:
    """0.5 per level: 1 for two levels, 3/2 for three. With any other total the seeded noise, and so
    the error, differs.
    """
    two = runs.upper_levels(country(), 2)
    expected = by_hand(two, [[ROOT], STATES], epsilon=1, view=("sizes", "sizes"), merge="weighted")
    assert found(cells, "Figure 5", "housing sizes×sizes weighted") == pytest.approx(expected)
    expected = by_hand(
        two, [[ROOT], STATES], epsilon=1, view=("cumulative", "sizes"), merge="average"
    )
    assert found(cells, "Figure 4", "housing cumulative×sizes average") == pytest.approx(expected)
    expected = by_hand(country(), [[ROOT], STATES, SIZES], epsilon="1.5", view="hybrid")
    assert found(cells, "Figure 6", "housing hybrid×hybrid×hybrid weighted") == pytest.approx(
        expected
    )
    columns = {cell.column for cell in cells if cell.table == "Figure 6"}
    assert columns == {f"level {level}, ε = 0.5 per level" for level in range(3)}


def test_tables_share_one_unit_of_budget(cells: list[Cell]) -> None:
    table = "§6.2.2 bottom-up and H_c, ε = 1"
    every = [[ROOT], STATES, SIZES]
    bottom_up = by_hand(country(), every, epsilon=1, mechanism="bottom-up", view="cumulative")
    assert found(cells, table, "housing BU") == pytest.approx(bottom_up)
    assert found(cells, table, "housing H_c") == pytest.approx(
        by_hand(country(), every, epsilon=1, view="cumulative")
    )
    (naive,) = by_hand(runs.upper_levels(country(), 1), [[ROOT]], epsilon=1, view="naive")
    assert found(cells, "§6.2.1 naive, ε = 1", "housing") == pytest.approx([naive])


def test_the_omniscient_method_knows_the_sizes(cells: list[Cell]) -> None:
    """√2/ε for each of 8 sizes in all, of 6 and 3 in the states, of 4, 3 and 3 in the counties."""
    noise = 2**0.5 / 0.5
    expected = [8 * noise, (6 + 3) / 2 * noise, (4 + 3 + 3) / 3 * noise]
    assert found(cells, "Figure 6", "housing omniscient") == pytest.approx(expected)


def test_piped_tables_and_json_name_table_and_settings(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cells: list[Cell],
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(kuo2018, "reproduce", lambda **_: cells)
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "kuo2018", "--quick", "--json", str(tmp_path / "cells.json")])
    assert ended.value.code == 0
    printed = capsys.readouterr()
    rows = [line.split("\t") for line in printed.out.splitlines()]
    assert rows[:6] == [
        ["setting", "value"],
        ["paper", "kuo2018"],
        ["quick", "True"],
        ["cut", kuo2018.CUTS],
        ["data", "built-in, synthetic"],
        ["noise", "insecure seeds 0, 1, 2, …, one per run"],
    ]
    assert rows[6] == ["table", "row", "column", "paper", "ours", "±", "unit", "remark"]
    assert rows[7][:3] == ["§3.1 error measure", "sizes 2", "‖H − Ĥ‖₁"]
    written = json.loads((tmp_path / "cells.json").read_text(encoding="utf-8"))
    assert written["settings"]["quick"] is True
    assert len(written["cells"]) == len(cells)


@pytest.mark.parametrize("paper", list(Paper))
def test_every_reproduction_says_what_a_quick_run_cuts(paper: Paper) -> None:
    module = importlib.import_module(f"tallytree.papers.{paper.value}.reproduce")
    assert "instead of" in module.CUTS


def test_data_that_are_not_at_hand_have_printed_figures_alone(cells: list[Cell]) -> None:
    white = [cell for cell in cells if cell.row in ("White", "White BU", "White H_c")]
    assert [cell.paper for cell in white] == [
        4_809_679_734,
        448_909,
        8_722,
        152.3,
        17_000,
        1_511.8,
        363.8,
    ]
    assert all(cell.ours is None for cell in white)
    assert all(cell.remark == runs.NOT_AT_HAND for cell in white)


def test_the_error_measures_of_section_3_by_hand(cells: list[Cell]) -> None:
    """A hundred groups of 1 taken for 2 or 5: moved by 1 or 4 each, and 100 missing in two cells."""
    found = {
        (cell.row, cell.column.split(" ")[0]): (cell.paper, cell.ours)
        for cell in cells
        if cell.table == "§3.1 error measure"
    }
    assert found["sizes 2", "EMD"] == (100, 100)
    assert found["sizes 5", "EMD"] == (400, 400)
    assert all(paper == ours for paper, ours in found.values())
    assert len(found) == 4  # the two norms share a name up to the space, and their values differ


def test_the_omniscient_example_fits_the_root_of_two(cells: list[Cell]) -> None:
    (cell,) = (cell for cell in cells if cell.table == "§6.2 omniscient")
    assert cell.ours == pytest.approx(2352 * 2**0.5 / 0.1)
    assert cell.ours == pytest.approx(cell.paper, rel=0.01)
    assert pytest.approx(10_518, abs=1) == 2352 * (2 / 0.1) ** 0.5


def test_cutting_off_at_zero_costs_what_the_mean_of_positive_noise_says() -> None:
    """Scale 2/ε: E[X⁺] = Σ k p^k (1 − p)/(1 + p) = p/(1 − p²); cell s is in K + 1 − s running sums."""
    p = np.exp(-0.5)
    positive = sum(k * p**k * (1 - p) / (1 + p) for k in range(1, 200))
    by_hand = sum(positive * (21 - s) for s in range(21))
    assert tables.expected_cut_off_error(20, 1.0) == pytest.approx(by_hand)
    # §6.2.1 with K = 100,000: the figure that is printed for whites.
    white = tables.expected_cut_off_error(runs.MAX_SIZE, 1.0)
    assert white == pytest.approx(4.7977e9, rel=1e-4)
    assert white == pytest.approx(tables.NAIVE["White"], rel=0.003)
    empty = np.zeros(401, dtype=np.int64)
    found = [tables.cut_off_error(empty, Fraction(1), seed) for seed in range(40)]
    mean, spread = mean_of_runs(found)
    assert spread is not None
    assert abs(mean - tables.expected_cut_off_error(400, 1.0)) < 5 * spread


def test_the_naive_table_has_both_ways(cells: list[Cell]) -> None:
    rows = [cell for cell in cells if cell.table == tables.NAIVE_TABLE]
    assert [cell.row for cell in rows] == [
        "housing",
        f"housing, {tables.CUT_OFF}",
        f"White, {tables.CUT_OFF}",
        "White",
    ]
    # Other data than the paper's: its figure is a remark, not a pair.
    assert [cell.paper for cell in rows[:2]] == [None, None]
    assert rows[0].remark == "other data; the paper prints 4,462,728,374"


def test_every_release_keeps_the_four_demands_of_problem_1(cells: list[Cell]) -> None:
    rows = [cell for cell in cells if cell.table == "Problem 1"]
    assert {cell.row for cell in rows} == {"housing, cumulative", "housing, hybrid"}
    assert all(cell.ours == 0 for cell in rows)


def test_merging_is_compared_run_by_run(cells: list[Cell]) -> None:
    two = runs.upper_levels(country(), 2)
    views = ("cumulative", "sizes")
    errors = {
        merge: by_hand(two, [[ROOT], STATES], epsilon=1, view=views, merge=merge)
        for merge in ("weighted", "average")
    }
    expected = [a / b for a, b in zip(errors["weighted"], errors["average"])]
    assert found(cells, figures.MERGING_TABLE, "housing cumulative×sizes") == pytest.approx(
        expected
    )


def test_three_levels_of_a_country_are_those_of_its_west_coast() -> None:
    counts = housing_counts(2_000)
    ((name, coast),) = runs.with_levels({"housing": counts}, 3)
    assert name == "housing, West Coast"
    tree = coast.hierarchy
    assert tree.labels[tree.level_slice(1)].tolist() == list(runs.WEST_COAST)
    assert tree.n_leaves == 58 + 36 + 39
    whole = counts.hierarchy
    for label in runs.WEST_COAST:
        there, here = whole.find(f"US/{label}"), tree.find(f"West Coast/{label}")
        before, after = counts.counts_on_levels.region(there), coast.counts_on_levels.region(here)
        assert before.size.tolist() == after.size.tolist()
        assert before.count.tolist() == after.count.tolist()
    ((name, two),) = runs.with_levels({"housing": counts}, 2)
    assert (name, two.hierarchy.level_size(1)) == ("housing", 52)


def test_errors_by_place_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "PARTS", (0.0, 0.5, 1.0))
    truth, estimate = (
        counts_from_lists([sizes]).region(0) for sizes in ([1, 1, 3, 9], [0, 1, 5, 6])
    )
    assert figures.errors_by_place(truth, estimate) == [0.5, 2.5]
    fewer = counts_from_lists([[1, 1, 3]]).region(0)  # a missing group counts as empty
    assert figures.errors_by_place(truth, fewer) == [0, 4.5]


def test_figure_1_has_both_views_at_the_root(cells: list[Cell]) -> None:
    rows = [cell for cell in cells if cell.table == "Figure 1, housing"]
    assert {cell.row for cell in rows} == {"sizes", "cumulative"}
    assert len(rows) == 2 * (len(figures.PARTS) - 1)


def test_levels_without_consistency_are_estimated_by_themselves(cells: list[Cell]) -> None:
    alone = by_hand(
        runs.upper_levels(country(), 2),
        [[ROOT], STATES],
        epsilon="0.5",
        mechanism="bottom-up",
        view="sizes",
    )
    assert found(cells, "Figure 6", "housing sizes without consistency")[1] == pytest.approx(
        alone[1]
    )
    root = by_hand(
        runs.upper_levels(country(), 1),
        [[ROOT]],
        epsilon="0.5",
        mechanism="bottom-up",
        view="sizes",
    )
    assert found(cells, "Figure 6", "housing sizes without consistency")[0] == pytest.approx(
        root[0]
    )


def test_error_bars_are_of_the_mean(cells: list[Cell]) -> None:
    assert mean_of_runs([1.0, 2.0, 6.0]) == (
        3.0,
        pytest.approx(np.std([1, 2, 6], ddof=1) / np.sqrt(3)),
    )
    figures = [
        cell for cell in cells if cell.table.startswith("Figure") and "omniscient" not in cell.row
    ]
    assert all(cell.spread is not None for cell in figures)


def test_cutting_levels_off_keeps_the_groups() -> None:
    two = runs.upper_levels(country(), 2)
    assert lists_from_counts(two.leaf_counts) == [sorted(part) for part in STATES]
    assert two.n_groups.tolist() == [10, 5]
    assert runs.upper_levels(country(), 3).hierarchy.n_levels == 3


def test_printed_figures_stand_only_beside_the_printed_setting() -> None:
    """Three levels share ε in the paper; a histogram of the root alone has all of it and compares
    with nothing, and neither does housing that is made in another way.
    """
    found = {}
    for name, counts in (
        ("taxi", country()),
        ("Hawaiian", runs.upper_levels(country(), 1)),
        ("housing", country()),
    ):
        rows = list(tables.bottom_up_table({name: counts}, SCALE))
        found[name] = {(cell.row, cell.column): cell for cell in rows if cell.row.startswith(name)}
    taxi = found["taxi"]
    assert taxi["taxi BU", "level 2"].paper == 772.8
    assert taxi["taxi H_c", "level 0"].paper == 10_547
    assert taxi["taxi BU", "level 0"].remark == tables.ADDED_UP
    assert taxi["taxi H_c", "level 2"].remark == tables.HALF
    half = taxi["taxi H_c, ε = ½ per level", "level 2"]
    assert half.paper is None
    assert "1,601.8" in half.remark
    for name in ("Hawaiian", "housing"):
        assert {cell.paper for cell in found[name].values()} == {None}
    assert found["housing"]["housing BU", "level 2"].remark == "other data; the paper prints 24.9"


def test_the_paper_bound_on_sizes_holds_wherever_its_figures_stand() -> None:
    small = runs.Scale(runs=1, max_size=20, households=0, epsilons=(1.0,))
    assert runs.max_size_of("taxi", country(), small) == 100_000
    assert runs.max_size_of("Hawaiian", runs.upper_levels(country(), 1), small) == 100_000
    assert runs.max_size_of("housing", country(), small) == 20
