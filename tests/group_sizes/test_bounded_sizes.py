"""Under a public bound the last size stands for all larger ones, and is called so everywhere."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.group_sizes.report import group_sizes_payload

SIZES = [1, 2, 2, 3, 5, 7, 40] * 30
PEOPLE = pd.DataFrame(
    [
        (f"{state}{group}", state)
        for state in "ab"
        for group, size in enumerate(SIZES)
        for _ in range(size)
    ],
    columns=["household", "state"],
)
READING: dict[str, Any] = {"group": "household", "levels": ["state"]}
EXACT: dict[str, Any] = {"epsilon": 1000, "insecure_seed": 1}
VIEWS = ("naive", "cumulative", ["sizes", "cumulative"])


def bounded(**how: Any) -> Any:
    """A release that tells sizes up to 5 apart; nearly without noise."""
    counts = tt.read(PEOPLE, **READING, public="groups")
    return tt.release(counts, **EXACT | {"max_size": 5} | how)


WAYS = {
    "adaptive": bounded,
    "naive": lambda: bounded(view="naive"),
    "cumulative": lambda: bounded(view="cumulative"),
    "views": lambda: bounded(view=["sizes", "cumulative"]),
    "dense": lambda: bounded(mechanism="topdown"),
    "whole groups": lambda: tt.release(
        tt.read(PEOPLE, **READING, unit="group", public="regions"),
        max_size=5,
        **EXACT | {"epsilon": 50},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_tables_call_the_last_size_a_class(way: str, tmp_path: Path) -> None:
    made = WAYS[way]()
    table = made.table().to_pandas()
    root = table[table.level == 0]
    assert dict(zip(root["class"], root["count"])) == {
        "1": 60, "2": 120, "3": 60, "5+": 180,
    }  # fmt: skip
    assert root["size"].max() == 5
    folder = made.save(tmp_path / "out")
    stored = pq.read_table(folder / "counts.parquet")
    assert set(stored["class"].to_pylist()) == {"1", "2", "3", "5+"}
    again = tt.load(folder)
    assert again.table().equals(made.table())
    assert again.verify().passed
    assert "5+" in json.dumps(again.manifest["public"])


@pytest.mark.parametrize("how", [{"max_size": None}, {"max_size": 50, "view": "hybrid"}], ids=str)
def test_sizes_are_themselves_without_a_bound(how: dict[str, Any]) -> None:
    made = bounded(**how)
    assert "class" not in made.table().column_names
    assert made.region("total").of_size(40) == 60


def test_questions_reach_no_further_than_the_bound() -> None:
    made = bounded()
    total = made.region("total")
    assert (total.at_least(5), total.at_least(3), total.between(1, 4)) == (180, 240, 240)
    for ask in (
        lambda: total.at_least(6),
        lambda: total.of_size(5),
        lambda: total.of_size(40),
        lambda: total.between(3, 7),
    ):
        with pytest.raises(RequestError, match=r"5\+"):
            ask()
    answers = tt.ask(made, mean=True, total=True, quantile=0.99, largest=1).facts
    assert answers["mean size"].startswith("at least 3.")
    assert answers["entities"].startswith("at least ")
    assert answers["quantile 0.99"] == answers["size of group 1 from the largest"] == "5+"
    assert tt.ask(made, quantile=0.3).facts["quantile 0.3"] == "2"
    assert "at least" in repr(total)


def test_intervals_of_open_answers_have_no_upper_end() -> None:
    reply = tt.ask(bounded(epsilon=1), mean=True, at_least=5, copies=5)
    mean, many = (
        reply.facts["intervals"]["mean size"],
        reply.facts["intervals"]["groups of at least 5"],
    )
    assert mean["high"] is None
    assert mean["low"] > 0
    assert many["high"] is not None
    assert any("no end" in row for row in reply.rows)


def test_the_truth_is_counted_like_the_release() -> None:
    made = bounded()
    found = tt.evaluate(made, tt.read(PEOPLE, **READING, public="groups"))
    assert [level.emd for level in found.levels] == [0, 0]
    assert found.sizes[-1].sizes == "5 and more"


def test_releases_of_other_bounds_are_not_compared() -> None:
    first = bounded()
    with pytest.raises(RequestError, match=r"different bounds \(5\+ and none\)"):
        tt.compare(first, bounded(max_size=None), copies=4)
    same = tt.compare(first, bounded(insecure_seed=2), copies=4)
    assert "5+" in same.table["class"].to_pylist()
    published = tt.compare(first, PEOPLE, copies=4, **READING, public="groups")
    assert not any(published.table["difference"].to_pylist())


@pytest.mark.parametrize(
    "form", ["csv", "json-stat", "sdmx-csv", "xlsx", "frictionless", "parquet"]
)
def test_exports_name_the_class(form: str, tmp_path: Path) -> None:
    out = tmp_path / ("out.zip" if form == "frictionless" else "out")
    tt.export(bounded(), format=form, out=str(out))
    if form == "csv":
        with out.open(encoding="utf-8") as file:
            assert "5+" in {row["class"] for row in csv.DictReader(file)}
    elif form == "json-stat":
        assert (
            "5+" in json.loads(out.read_text())["dimension"]["size"]["category"]["label"].values()
        )
    elif form == "parquet":
        assert "5+" in pq.read_table(out)["class"].to_pylist()


def test_microdata_and_pages_name_the_class(tmp_path: Path) -> None:
    made = bounded()
    groups = pq.read_table(
        tt.microdata(made, out=tmp_path / "groups") / "synthetic_groups.parquet"
    ).to_pandas()
    assert set(groups.loc[groups["size"] == 5, "class"]) == {"5+"}
    assert group_sizes_payload(made)["words"]["open"] == 5
    assert "open" not in group_sizes_payload(bounded(max_size=None))["words"]
    assert "5+" in str(made.plot()._repr_svg_())
