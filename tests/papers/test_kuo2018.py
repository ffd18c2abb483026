"""The tables of kuo2018 on a small country: what is run, at which budgets, and that printed figures
stand where they belong.
"""

from __future__ import annotations

import importlib
import json
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
from tallytree.papers.kuo2018 import reproduce as kuo2018
from tests.reference.distances import earth_movers_distance
from tests.reference.group_sizes import counts_from_lists, lists_from_counts

LEAVES = [("a", "a1"), ("a", "a2"), ("b", "b1")]
SIZES = [[1, 1, 2, 3, 3, 9], [0, 2, 2, 5], [1, 4, 4, 4, 12]]
SCALE = kuo2018.Scale(runs=2, max_size=20, households=0, epsilons=(0.5,))


def country() -> ConfidentialCounts:
    counts = counts_from_lists(SIZES)
    return ConfidentialCounts(
        PublicFacts(hierarchy_from_leaves(["state", "county"], LEAVES)), counts, counts.n_groups()
    )


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kuo2018, "QUICK", SCALE)
        patch.setattr(kuo2018, "_data_sets", lambda *_: {"housing": country()})
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
    two = kuo2018.upper_levels(country(), 2)
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
    (naive,) = by_hand(kuo2018.upper_levels(country(), 1), [[ROOT]], epsilon=1, view="naive")
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
    assert (
        f"quick: True; cut: {kuo2018.CUTS}; data: built-in, synthetic; noise: insecure seeds"
        in printed.err
    )
    rows = [line.split("\t") for line in printed.out.splitlines()]
    assert rows[0] == ["table", "row", "column", "paper", "ours", "±", "unit"]
    assert rows[1][:3] == ["§6.2.1 naive, ε = 1", "housing", "level 0"]
    written = json.loads((tmp_path / "cells.json").read_text(encoding="utf-8"))
    assert written["settings"]["quick"] is True
    assert len(written["cells"]) == len(cells)


@pytest.mark.parametrize("paper", list(Paper))
def test_every_reproduction_says_what_a_quick_run_cuts(paper: Paper) -> None:
    module = importlib.import_module(f"tallytree.papers.{paper.value}.reproduce")
    assert "instead of" in module.CUTS


def test_data_that_are_not_at_hand_have_printed_figures_alone(cells: list[Cell]) -> None:
    white = [cell for cell in cells if cell.row.startswith("White")]
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


def test_errors_by_place_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kuo2018, "PARTS", (0.0, 0.5, 1.0))
    truth, estimate = (
        counts_from_lists([sizes]).region(0) for sizes in ([1, 1, 3, 9], [0, 1, 5, 6])
    )
    assert kuo2018.errors_by_place(truth, estimate) == [0.5, 2.5]
    fewer = counts_from_lists([[1, 1, 3]]).region(0)  # a missing group counts as empty
    assert kuo2018.errors_by_place(truth, fewer) == [0, 4.5]


def test_figure_1_has_both_views_at_the_root(cells: list[Cell]) -> None:
    rows = [cell for cell in cells if cell.table == "Figure 1, housing"]
    assert {cell.row for cell in rows} == {"sizes", "cumulative"}
    assert len(rows) == 2 * (len(kuo2018.PARTS) - 1)


def test_levels_without_consistency_are_estimated_by_themselves(cells: list[Cell]) -> None:
    alone = by_hand(
        kuo2018.upper_levels(country(), 2),
        [[ROOT], STATES],
        epsilon="0.5",
        mechanism="bottom-up",
        view="sizes",
    )
    assert found(cells, "Figure 6", "housing sizes without consistency")[1] == pytest.approx(
        alone[1]
    )
    root = by_hand(
        kuo2018.upper_levels(country(), 1),
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
    two = kuo2018.upper_levels(country(), 2)
    assert lists_from_counts(two.leaf_counts) == [sorted(part) for part in STATES]
    assert two.n_groups.tolist() == [10, 5]
    assert kuo2018.upper_levels(country(), 3).hierarchy.n_levels == 3


def test_printed_figures_stand_only_beside_the_printed_setting() -> None:
    """Three levels share ε in the paper; a histogram of the root alone has all of it and compares
    with nothing.
    """
    tables = {}
    for name, counts in (("taxi", country()), ("Hawaiian", kuo2018.upper_levels(country(), 1))):
        rows = kuo2018._bottom_up_table({name: counts}, SCALE)
        tables[name] = {
            (cell.row, cell.column): cell.paper for cell in rows if cell.row.startswith(name)
        }
    assert tables["taxi"]["taxi BU", "level 2"] == 772.8
    assert tables["taxi"]["taxi H_c", "level 0"] == 10_547
    assert set(tables["Hawaiian"].values()) == {None}
