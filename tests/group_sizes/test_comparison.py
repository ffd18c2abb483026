"""Comparing releases: differences are those of the tables, and the same truth seldom looks like a
change.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import RequestError
from tallytree.releases.comparison import benjamini_hochberg, half_width, p_values
from tests.kinds.test_kinds import MAKERS


def homes(shift: float, seed: int) -> Any:
    """2,000 households in 8 counties of two states; ``shift`` moves households of two towards four."""
    rng = np.random.default_rng(seed)
    size = rng.choice([1, 2, 3, 4], p=[0.3, 0.4 - shift, 0.2, 0.1 + shift], size=2000)
    county = rng.integers(0, 8, 2000)
    table = pa.table({"state": county // 4, "county": county, "size": size})
    return tt.read(table, size="size", levels=["state", "county"], public="groups")


@cache
def released(shift: float, noise: int, *, data: int = 1) -> Any:
    return tt.with_intervals(
        tt.release(homes(shift, data), epsilon=1, insecure_seed=noise), copies=8
    )


def test_differences_are_those_of_the_tables() -> None:
    one, other = released(0.0, 1), released(0.2, 2)
    found = tt.compare(one, other)
    for row in found.table.to_pylist():
        first, second = (
            release.region(row["region"]).of_size(row["size"]) for release in (one, other)
        )
        assert (row["first"], row["second"], row["difference"]) == (first, second, second - first)
        assert row["low"] <= row["difference"] <= row["high"]
        assert row["clear_alone"] or not row["clear"]  # at rate/n and up to the rate itself
        assert row["clear_alone"] == (row["p_value"] < 0.05)
    keys = [(row["region"], row["size"]) for row in found.table.to_pylist()]
    assert set(keys) == {
        (row["region"], row["size"]) for r in (one, other) for row in r.table().to_pylist()
    }
    root = {row["size"]: row for row in found.table.to_pylist() if row["level"] == "total"}
    assert root[2]["clear"]
    assert root[4]["clear"]
    assert root[2]["difference"] < 0 < root[4]["difference"]


def test_the_same_truth_is_seldom_called_a_change() -> None:
    """10 pairs, 11 regions each: at a rate of 5 % at most 2 pairs show any clear change on a level;
    with errors four times too small more do.
    """
    pairs = [(released(0.0, seed), released(0.0, seed + 100)) for seed in range(2, 12)]
    alarms, bold = np.zeros(3), np.zeros(3)
    for one, other in pairs:
        alarms += [level.clear > 0 for level in tt.compare(one, other).levels]
        small = [
            replace(r, intervals=replace(r.intervals, std_error=r.intervals.std_error / 4))
            for r in (one, other)
        ]
        bold += [level.clear > 0 for level in tt.compare(*small).levels]
    assert np.all(alarms <= 2)
    assert bold.max() > alarms.max()


def test_benjamini_and_hochberg_by_hand() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        p = rng.uniform(size=7) ** 3
        ordered = sorted(p)
        most = max((k for k in range(1, 8) if ordered[k - 1] <= 0.1 * k / 7), default=0)
        expected = [value in ordered[:most] for value in p]
        assert benjamini_hochberg(p, 0.1).tolist() == expected
    assert benjamini_hochberg(np.zeros(0), 0.1).tolist() == []


def test_the_law_of_a_difference_is_that_of_two_laplace_variables() -> None:
    rng = np.random.default_rng(1)
    drawn = (
        np.abs(rng.laplace(size=400_000) - rng.laplace(size=400_000)) / 2
    )  # in units of the standard deviation, 2
    for far in (0.5, 1, 2, 3):
        assert p_values(np.array([1000 * far + 0.5]), np.array([1000.0]))[0] == pytest.approx(
            (drawn > far).mean(), rel=0.05
        )
    assert (drawn > half_width(np.ones(1), 0.05)[0]).mean() == pytest.approx(0.05, rel=0.05)
    alone = np.abs(rng.laplace(size=400_000)) / np.sqrt(2)
    assert (alone > half_width(np.ones(1), 0.05, single=True)[0]).mean() == pytest.approx(
        0.05, rel=0.05
    )


def test_regions_of_one_release_alone_are_left_out() -> None:
    one = released(0.0, 1)
    table = pa.table({"state": [0, 0, 1], "county": [0, 1, 9], "size": [1, 2, 2]})
    other = tt.release(
        tt.read(table, size="size", levels=["state", "county"], public="groups"),
        epsilon=1,
        insecure_seed=1,
    )
    found = tt.compare(one, other, copies=2)
    assert found.left_out == 7
    assert set(found.table["region"].to_pylist()) <= {
        "total",
        "total/0",
        "total/1",
        "total/0/0",
        "total/0/1",
    }


def test_what_cannot_be_compared_is_refused() -> None:
    one = released(0.0, 1)
    with pytest.raises(RequestError, match="of one kind"):
        tt.compare(one, MAKERS["degrees"]())
    with pytest.raises(RequestError, match="has no 'compare'"):
        tt.compare(MAKERS["degrees"](), MAKERS["degrees"]())
    with pytest.raises(RequestError, match="between 0 and 1"):
        tt.compare(one, one, rate=2)
    with pytest.raises(RequestError, match="A second release needs no size"):
        tt.compare(one, one, size="size")


def published(shift: float, data: int = 1) -> pa.Table:
    """The numbers that an office published about :func:`homes`: leaf, size, how many."""
    rng = np.random.default_rng(data)
    size = rng.choice([1, 2, 3, 4], p=[0.3, 0.4 - shift, 0.2, 0.1 + shift], size=2000)
    county = rng.integers(0, 8, 2000)
    rows = pa.table({"state": county // 4, "county": county, "size": size})
    return rows.group_by(["state", "county", "size"]).aggregate([([], "count_all")])


READ = {"size": "size", "count": "count_all", "levels": ["state", "county"]}


def test_a_release_is_compared_with_a_published_table() -> None:
    one, table = released(0.0, 1), published(0.2)
    found = tt.compare(one, table, **READ)
    exact = tt.read(table, **READ, public="groups")
    root = exact.leaf_counts.size, exact.leaf_counts.count
    for row in found.table.to_pylist():
        assert row["first"] == one.region(row["region"]).of_size(row["size"])
        if row["level"] == "total":
            assert row["second"] == root[1][root[0] == row["size"]].sum()
    clear = {
        row["size"] for row in found.table.to_pylist() if row["level"] == "total" and row["clear"]
    }
    assert {2, 4} <= clear
    assert "taken as exact" in found.to_json()["note"]


def test_the_truth_itself_is_seldom_called_a_change() -> None:
    """10 releases against their own truth: at most 3 have a clear change on a level; with errors
    four times too small more.
    """
    alarms, bold = np.zeros(3), np.zeros(3)
    for seed in range(2, 12):
        one = released(0.0, seed)
        alarms += [level.clear > 0 for level in tt.compare(one, published(0.0), **READ).levels]
        small = replace(
            one, intervals=replace(one.intervals, std_error=one.intervals.std_error / 4)
        )
        bold += [level.clear > 0 for level in tt.compare(small, published(0.0), **READ).levels]
    assert np.all(alarms <= 3)
    assert bold.max() > alarms.max()


def test_the_command_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    released(0.0, 1).save(tmp_path / "a")
    released(0.2, 2).save(tmp_path / "b")
    with pytest.raises(SystemExit) as end:
        main(
            [
                "compare",
                str(tmp_path / "a"),
                str(tmp_path / "b"),
                "--json",
                "--out",
                str(tmp_path / "c.csv"),
            ]
        )
    assert end.value.code == 0
    facts = json.loads(capsys.readouterr().out)
    table = pyarrow.csv.read_csv(tmp_path / "c.csv")
    assert sum(level["counts"] for level in facts["levels"]) == len(table)
    assert sum(level["clear"] for level in facts["levels"]) == table["clear"].to_pylist().count(
        True
    )
    pyarrow.csv.write_csv(published(0.2), tmp_path / "published.csv")
    page = tmp_path / "page.html"
    how = [
        "--size",
        "size",
        "--count",
        "count_all",
        "--levels",
        "state,county",
        "--page",
        str(page),
        "--json",
    ]
    with pytest.raises(SystemExit) as end:
        main(["compare", str(tmp_path / "a"), str(tmp_path / "published.csv"), *how])
    assert end.value.code == 0
    assert "taken as exact" in json.loads(capsys.readouterr().out)["note"]
    assert "a and published.csv" in page.read_text(encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        main(["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert "bears the loss of both" in capsys.readouterr().err.replace("\n", " ")
