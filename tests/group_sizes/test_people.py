"""Releases with people by class: they agree with the sizes in every table, on disk too and by a
second program; answers.
"""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.group_sizes.release.release import Release
from tallytree.model.people import NO_PEOPLE
from tests.forging import forge

CLASSES = {"age": ["child", "adult"], "sex": ["f", "m"]}
READ: dict[str, Any] = {
    "group": "hh",
    "levels": ["state", "county"],
    "root": "US",
    "people": CLASSES,
}


def people(n: int = 900, seed: int = 3) -> pa.Table:
    """Members of households whose number depends on tenure; some have an age on no list."""
    rng = np.random.default_rng(seed)
    county = rng.integers(0, 5, n)
    tenure = rng.choice(["own", "rent"], n, p=[0.6, 0.4])
    size = 1 + rng.poisson(np.where(tenure == "own", 2.0, 0.8))
    house = np.repeat(np.arange(n), size)
    first = np.r_[True, np.diff(house) > 0]
    age = np.where(
        first, "adult", rng.choice(["child", "adult", "ghost"], len(house), p=[0.6, 0.38, 0.02])
    )
    return pa.table(
        {
            "hh": house,
            "state": [f"s{place // 3}" for place in county[house]],
            "county": [f"c{place}" for place in county[house]],
            "tenure": tenure[house],
            "age": age,
            "sex": rng.choice(["f", "m"], len(house)),
        }
    )


TABLE = people()
BARE = tt.read(TABLE, public="groups", **READ)
BY_CELLS = tt.read(TABLE, by=["tenure"], people_by=["tenure"], public="cells", **READ)
WHOLE = tt.read(
    TABLE,
    by={"tenure": ["own", "rent"]},
    people_by=["tenure"],
    unit="group",
    contributions=6,
    public="regions",
    **READ,
)


@pytest.fixture(scope="module", params=["bare", "cells", "group"])
def made(request: pytest.FixtureRequest) -> Release:
    counts = {"bare": BARE, "cells": BY_CELLS, "group": WHOLE}[request.param]
    return tt.release(counts, epsilon=1, insecure_seed=4)


@pytest.fixture
def folder(made: Release, tmp_path: Path) -> Path:
    return made.save(tmp_path / "out")


def test_a_second_program_finds_that_people_and_sizes_agree(made: Release, folder: Path) -> None:
    """DuckDB over the two files alone: whole, positive, every table the sum of finer ones, and Σ
    size × count = people.
    """
    counts = duckdb.read_parquet(str(folder / "counts.parquet"))
    people = duckdb.read_parquet(str(folder / "people.parquet"))
    assert people.filter("count <= 0").fetchall() == []
    assert counts.filter("count <= 0").fetchall() == []
    assert str(people.select("count").types[0]) == "BIGINT"
    names = [name for name in people.columns if name not in ("level", "region", "count")]
    assert names == [*(["tenure"] if made.attributes else []), "age", "sex"]
    apart = []
    for name in names:
        apart += duckdb.sql(
            f"""SELECT * EXCLUDE ({name}, count), sum(CASE WHEN {name} IS NULL THEN count ELSE -count END) AS gap
            FROM people GROUP BY ALL HAVING gap <> 0"""
        ).fetchall()
    listed = ", ".join(names)
    apart += duckdb.sql(
        f"""WITH below AS (SELECT level - 1 AS level, regexp_replace(region, '/[^/]*$', '') AS region, {listed},
                                  -count AS count FROM people WHERE level > 0),
                 above AS (SELECT level, region, {listed}, count FROM people WHERE level < 2)
        SELECT level, region, {listed}, sum(count) AS gap FROM (FROM below UNION ALL FROM above) GROUP BY ALL HAVING gap <> 0"""
    ).fetchall()
    tenure = "tenure, " if made.attributes else ""
    apart += duckdb.sql(
        f"""SELECT level, region, {tenure} sum(n) AS gap FROM (
            SELECT level, region, {tenure} size * count AS n FROM counts
            UNION ALL SELECT level, region, {tenure} -count FROM people WHERE age IS NULL AND sex IS NULL
        ) GROUP BY ALL HAVING gap <> 0"""
    ).fetchall()
    assert apart == []
    assert duckdb.sql(
        "SELECT count(*) FROM people WHERE level = 1 AND age = 'child' AND sex = 'f'"
    ).fetchall() != [(0,)]


def test_folders_come_back_and_verify_notices_changed_people(made: Release, folder: Path) -> None:
    assert tt.verify(folder)
    again = tt.load(folder)
    assert again.people_table(["age", "sex"]).equals(made.people_table(["age", "sex"]))
    table = pq.read_table(folder / "people.parquet")
    count = table["count"].to_numpy().copy()
    count[0] += 1
    pq.write_table(
        table.set_column(table.num_columns - 1, "count", pa.array(count)), folder / "people.parquet"
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["people.parquet"]["sha256"] = sha256(
        (folder / "people.parquet").read_bytes()
    ).hexdigest()
    forge(folder, manifest)
    failed = [check.name for check in tt.verify(folder).checks if not check.passed]
    assert failed == [
        "every table of people by age, sex adds up",
        "people add up to sizes times groups",
    ]


def test_a_forged_share_for_people_is_noticed(tmp_path: Path) -> None:
    folder = tt.release(BARE, epsilon=1).save(tmp_path / "out")
    assert tt.verify(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["privacy"]["people"][0]["sensitivity"]["l1"] = 2
    forge(folder, manifest)
    failed = [check.name for check in tt.verify(folder).checks if not check.passed]
    assert failed == ["the figures per level agree with the record"]


def test_measurements_are_estimated_again(tmp_path: Path) -> None:
    made = tt.release(BY_CELLS, epsilon=1, insecure_seed=3)
    again = tt.re_estimate(made.save(tmp_path / "out"))
    assert made.people is not None
    assert again.people is not None
    assert np.array_equal(again.people.slots, made.people.slots)
    assert again.table(by="tenure").equals(made.table(by="tenure"))


def test_without_noise_people_are_exact() -> None:
    made = tt.release(BY_CELLS, epsilon=10_000, insecure_seed=1)
    assert made.people is not None
    assert np.array_equal(made.people.cells, BY_CELLS.entity_counts)


def test_errors_of_people_are_told_per_table(made: Release) -> None:
    truth = (
        {True: BY_CELLS, False: BARE}[bool(made.attributes)]
        if made.mechanism == "adaptive"
        else WHOLE
    )
    told = tt.evaluate(made, truth)
    names = ["US", "state", "county"]
    assert [one.name for one in told.people] == [
        *names,
        *([f"{name} by tenure" for name in names] if made.attributes else []),
    ]
    assert made.people is not None
    exact = truth.people_of((), 0)[0]
    error = np.abs(made.people.cells.sum(axis=0) - exact)
    assert told.people[0].mean_error == pytest.approx(error.mean())
    assert told.to_json()["people"][0]["name"] == "US"
    with pytest.raises(RequestError, match="same classes"):
        tt.evaluate(
            made, replace(truth, public=replace(truth.public, people=NO_PEOPLE), entity_counts=None)
        )


def test_questions_about_people(made: Release) -> None:
    told = tt.ask(made, region=["US/s0", "US/s1"], people=True, where=["age=child"])
    assert told.columns == ("age", "sex", "count")
    assert [row[:2] for row in told.rows] == [["child", "f"], ["child", "m"], ["child", "other"]]
    everyone = tt.ask(made, people=True)
    assert sum(row[-1] for row in everyone.rows) == made.region("US").n_entities
    for question, says in [
        ({"people": True, "mean": True}, "leave out mean"),
        ({"people": True, "where": ["age=old"]}, "no value"),
        ({"where": ["age=child"], "total": True}, "no attribute"),
        ({"people": True, "region": ["US", "US/s0"]}, "must not overlap"),
    ]:
        with pytest.raises(RequestError, match=says):
            tt.ask(made, **question)
    bare = tt.release(
        tt.read(TABLE, public="groups", **READ | {"people": ()}), epsilon=1, insecure_seed=1
    )
    with pytest.raises(RequestError, match="counts no people"):
        tt.ask(bare, people=True)
    with pytest.raises(RequestError, match="counts no people"):
        bare.people_table("age")


def test_people_have_intervals() -> None:
    """Six copies reach as far as seven errors do; an error four times the noise beyond them has a
    chance below one in 10⁶.
    """
    made = tt.release(BY_CELLS, epsilon=1, insecure_seed=3)
    told = tt.ask(made, region="US/s1", where=["tenure=rent", "sex=f"], people=True, copies=6)
    assert told.columns == ("age", "sex", "count", "std_error", "low", "high")
    truth = TABLE.to_pylist()
    for age, _, count, std_error, low, high in told.rows:
        true = sum(
            (row["state"], row["tenure"], row["sex"]) == ("s1", "rent", "f")
            and (row["age"] if row["age"] in CLASSES["age"] else "other") == age
            for row in truth
        )
        assert low <= count <= high
        assert abs(true - count) <= 20 * std_error + 1


@pytest.mark.parametrize(
    ("counts", "options", "says"),
    [
        (BARE, {"mechanism": "matching"}, "counts no people"),
        (BARE, {"people_share": "1"}, "below 1"),
        (WHOLE, {"max_size": 9}, "leave out max_size"),
        (
            tt.read(TABLE, public="groups", **READ | {"people": ()}),
            {"people_share": "1/2"},
            "goes with data",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_before_payment(
    counts: Any, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(RequestError, match=says):
        tt.release(counts, epsilon=1, **options)


def test_the_statement_names_the_classes_and_the_bound() -> None:
    says = tt.release(WHOLE, epsilon=1).manifest["privacy"]["statement"]
    assert "one hh with all its entities (of which at most 6 are counted)" in says
    assert (
        "which values tenure may have; which values age, sex may have. Not covered: any one hh "
        "alone in" in says
    )


def test_a_larger_share_counts_people_better() -> None:
    def scale(**share: Any) -> list[str]:
        return [
            table["scale"]
            for table in tt.release(BARE, epsilon=1, **share).manifest["privacy"]["people"]
        ]

    assert scale() == ["4"]
    assert scale(people_share="1/2") == ["2"]
