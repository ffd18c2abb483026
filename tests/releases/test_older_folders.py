"""Folders that earlier versions wrote still load, verify, answer as they did, and get their report."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import tallytree as tt
from tallytree.boxes.manifest import UNIFORMITY
from tests.releases.older_folders import EXPECTED, FORMAT_1, run

# A grid histogram is read as the map that it is, whose checks have other words.
GRID = "grid-histogram"
CHECKS_OF_MAPS = {
    "counts are not negative": "counts are nonnegative",
    "estimates follow from the noisy answers": "counts follow from the noisy ones",
    "counts follow from the noisy answers": "counts follow from the noisy ones",
    "the privacy record can be read": "noise and rates of every step cost what the manifest states",
    "the measurements cost at most epsilon = 1": "no cell was asked for more than the whole budget",
    "the measurements cost at most rho = 1": "no cell was asked for more than the whole budget",
    "each query states its sensitivity": "noise and rates of every step cost what the manifest "
    "states",
    "the figures per level agree with the record": "noise and rates of every step cost what the "
    "manifest states",
}
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(name: str, tmp_path: Path) -> Path:
    """A copy: nothing that a test does can change the fixture."""
    return Path(shutil.copytree(FORMAT_1 / name, tmp_path / name))


def assert_same(found: Any, wanted: Any, where: str) -> None:
    """Equal, in whole numbers and words exactly; what is wanted must be there, and more may be."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict), where
        for key, value in wanted.items():
            assert key in found, f"{where}: {key}"
            assert_same(found[key], value, f"{where}: {key}")
    elif isinstance(wanted, list):
        assert isinstance(found, list), where
        assert len(found) == len(wanted), where
        for number, value in enumerate(wanted):
            assert_same(found[number], value, f"{where}: {number}")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9), where
    else:
        assert found == wanted, where


def restated(made: Any, statement: str) -> str:
    """The statement of an older folder says who is protected and how well; now it also says what is
    held fixed.
    """
    if statement.startswith("NOT PRIVATE"):
        return statement
    new = str(made.manifest["privacy"]["statement"])
    who = re.search(r"(?:removing|removing any) (.+?) (?:changes|is hidden)", statement)
    loss = re.search(r"(e\^|rho = )([0-9/]+)\.$", statement)
    assert who is not None
    assert loss is not None
    # Rows that nobody named were "all rows of one row".
    named = re.sub(
        r"all rows of one row, at most (\d+)", r"up to \1 rows", who[1].replace("any one", "one")
    )
    assert new.startswith(f"Adding or removing {named.replace('one', 'any one', 1)} ")
    assert made.manifest["privacy"]["epsilon" if loss[1] == "e^" else "rho"] == loss[2]
    assert "fixed" in new
    return new


def of_maps_now(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Standard errors of boxes that a query cuts include what is not known inside them, and are
    larger; the note says so.
    """
    answers = []
    for now, before in zip(found["answers"], wanted["answers"], strict=True):
        assert (now["std_error"] > before["std_error"]) == (before["by_area"] > 0)
        answers.append(before | ({"std_error": now["std_error"]} if before["by_area"] > 0 else {}))
    return wanted | {"note": UNIFORMITY, "answers": answers}


def renamed(answer: dict[str, Any]) -> dict[str, Any]:
    """What was called the level of an interval is its confidence, and standard errors have a
    shorter name.
    """
    names = {"level": "confidence", "standard_error": "std_error"}
    return {
        names.get(name, name): [renamed(one) for one in value] if name == "answers" else value
        for name, value in answer.items()
    }


def checks_of_now(name: str, lines: list[str]) -> set[str]:
    """The lines of checks as they are printed now."""
    if EXPECTED[name]["kind"] != GRID:
        return set(lines)
    return {f"{line[:8]}{CHECKS_OF_MAPS.get(line[8:], line[8:])}" for line in lines}


def test_no_folder_is_left_out() -> None:
    assert sorted(EXPECTED) == sorted(path.name for path in FORMAT_1.iterdir() if path.is_dir())
    kinds = {facts["kind"] for facts in EXPECTED.values()}
    assert kinds == {"group-sizes", "histogram", "grid-histogram", "degrees", "map"}


@pytest.mark.parametrize("name", EXPECTED)
def test_loads_with_its_statement_and_all_rows(name: str, folder: Path) -> None:
    made, wanted = tt.load(folder), EXPECTED[name]
    assert made.manifest["kind"] == ("map" if wanted["kind"] == GRID else wanted["kind"])
    assert made.manifest["privacy"]["statement"] == restated(made, wanted["statement"])
    cells = int(made.estimates.leaves.sum()) if wanted["kind"] == GRID else made.table().num_rows
    assert cells == wanted["rows"]["counts.parquet"]
    assert made.private == ("insecure_seed" not in wanted["call"])
    assert repr(made)


@pytest.mark.parametrize("name", EXPECTED)
def test_verifies_by_every_check_of_then(name: str, folder: Path, capsys: Captured) -> None:
    tt.verify(folder).raise_if_failed()
    code, out, err = run(capsys, "verify", folder)
    assert code == 0, err
    assert checks_of_now(name, EXPECTED[name]["verify"]) <= set((out + err).splitlines())


@pytest.mark.parametrize("name", EXPECTED)
def test_states_the_same_privacy_loss(name: str, folder: Path, capsys: Captured) -> None:
    code, out, err = run(capsys, "verify", folder, "--privacy")
    wanted = EXPECTED[name]["verify --privacy"]
    assert code == int(any(line.startswith("FAILED") for line in wanted)), err
    assert checks_of_now(name, wanted) <= set((out + err).splitlines())


@pytest.mark.parametrize("name", EXPECTED)
def test_answers_as_it_did(name: str, folder: Path, capsys: Captured) -> None:
    asked = 0
    for query in EXPECTED[name]["queries"]:
        code, out, err = run(capsys, "query", folder, *query["options"], "--json")
        assert code == 0, err
        found, wanted = json.loads(out), renamed(query["answer"])
        if EXPECTED[name]["kind"] == "map":
            wanted = of_maps_now(found, wanted)
        assert_same(found, wanted, " ".join(query["options"]))
        asked += 1
    for box in EXPECTED[name].get("boxes", ()):
        sides = list(zip(box["low"], box["high"]))
        assert_same(vars(tt.load(folder).range(sides)), renamed(box["answer"]), str(sides))
        asked += 1
    assert asked > 0


@pytest.mark.parametrize("name", EXPECTED)
def test_gets_its_report(name: str, folder: Path, capsys: Captured) -> None:
    code, _, err = run(capsys, "report", folder)
    assert code == 0, err
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert len(page) > 10_000


@pytest.mark.parametrize("name", EXPECTED)
def test_saved_again_it_is_the_same_release(name: str, folder: Path) -> None:
    made = tt.load(folder)
    again = tt.load(made.save(folder.parent / "again"))
    assert again.table().equals(made.table())
    assert again.manifest == made.manifest
    tt.verify(folder.parent / "again").raise_if_failed()
