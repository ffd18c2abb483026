"""Releases with attributes of groups: every table adds up, on disk too and by a second program;
answers; estimating again.
"""

import json
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import RequestError
from tallytree.group_sizes.release.release import Release
from tallytree.model.attributes import COLUMNS
from tallytree.model.count_of_counts import counts_at
from tests.forging import forge
from tests.reference.lattice import margins_by_hand, rows_by_hand

NAMES = ("tenure", "head")
READ: dict[str, Any] = {"levels": ["state", "county"], "size": "size", "root": "US"}
VALUES = {"tenure": ["own", "rent"], "head": ["adult", "old"]}


def households(n: int = 3000, seed: int = 7) -> pa.Table:
    """Sizes that depend on place and attributes, one value outside every list, one large household."""
    rng = np.random.default_rng(seed)
    county = rng.integers(0, 6, n)
    tenure = rng.choice(["own", "rent", "boat"], n, p=[0.6, 0.37, 0.03])
    head = rng.choice(["adult", "old"], n, p=[0.8, 0.2])
    size = 1 + rng.poisson(
        np.where(tenure == "own", 2.2, 1.1) * np.where(head == "old", 0.5, 1.0) + 0.1 * county
    )
    size[0] = 90
    places = {
        "state": [f"s{place // 3}" for place in county],
        "county": [f"c{place}" for place in county],
    }
    return pa.table({**places, "tenure": tenure, "head": head, "size": size})


TABLE = households()
BY_CELLS = tt.read(TABLE, by=NAMES, public="cells", **READ)
BY_GROUPS = tt.read(TABLE, by=VALUES, unit="group", public="regions", **READ)


@pytest.fixture(scope="module", params=["entity", "group"])
def made(request: pytest.FixtureRequest) -> Release:
    if request.param == "entity":
        return tt.release(BY_CELLS, epsilon=1, insecure_seed=3)
    return tt.release(BY_GROUPS, epsilon=1, max_size=100, insecure_seed=3)


@pytest.fixture
def folder(made: Release, tmp_path: Path) -> Path:
    return made.save(tmp_path / "out")


def test_every_margin_is_the_sum_of_the_finest_one(made: Release) -> None:
    """Against adding up the released cells one group at a time."""
    assert made.verify()
    finest = made.table(by=NAMES).filter(pa.compute.equal(made.table(by=NAMES)["level"], 2))
    groups = []
    for row in finest.to_pylist():
        groups += [
            (tuple(row["region"].split("/")), (row["tenure"], row["head"]), row["size"])
        ] * row["count"]
    assert made.margins is not None
    everything = rows_by_hand(read_back(made), NAMES)
    assert everything == margins_by_hand(groups)
    assert rows_by_hand(made.table(), ()) == {
        (region, (), size): n
        for (region, shown, size), n in everything.items()
        if shown == (None, None)
    }


def read_back(made: Release) -> pa.Table:
    return made.tables(noisy=False)["counts.parquet"].read_all()  # type: ignore[union-attr]


def test_a_second_program_finds_that_every_margin_adds_up(folder: Path) -> None:
    """DuckDB over ``counts.parquet`` alone: whole, positive, and each coarser row the sum of the
    finer ones, both ways.
    """
    counts = duckdb.read_parquet(str(folder / "counts.parquet"))
    assert counts.filter("count <= 0 OR size < 0").fetchall() == []
    assert [str(kind) for kind in counts.select("count, size").types] == ["BIGINT", "BIGINT"]
    apart = []
    for name, other in (NAMES, NAMES[::-1]):
        apart += duckdb.sql(
            f"""SELECT level, region, {other}, size, sum(CASE WHEN {name} IS NULL THEN count ELSE -count END) AS gap
            FROM counts GROUP BY ALL HAVING gap <> 0"""
        ).fetchall()
    apart += duckdb.sql(
        """WITH below AS (SELECT level - 1 AS level, regexp_replace(region, '/[^/]*$', '') AS region, tenure, head, size,
                                 -count AS count FROM counts WHERE level > 0),
                above AS (SELECT level, region, tenure, head, size, count FROM counts WHERE level < 2)
        SELECT level, region, tenure, head, size, sum(count) AS gap FROM (FROM below UNION ALL FROM above)
        GROUP BY ALL HAVING gap <> 0"""
    ).fetchall()
    assert apart == []
    states = duckdb.sql(
        "SELECT region FROM counts WHERE tenure IS NULL AND head = 'old' AND level = 1"
    ).fetchall()
    assert {region for (region,) in states} == {"US/s0", "US/s1"}


def test_public_totals_of_cells_hold_and_no_size_is_beyond_a_bound() -> None:
    made = tt.release(BY_CELLS, epsilon="1/10", max_size=20, insecure_seed=1)
    assert BY_CELLS.cell_counts is not None
    assert np.array_equal(made.cell_groups, BY_CELLS.cell_counts.n_groups())
    assert made.counts.size.max() <= 20
    assert made.verify()


def test_folders_come_back_and_verify_notices_a_changed_cell(made: Release, folder: Path) -> None:
    assert tt.verify(folder)
    again = tt.load(folder)
    assert again.table(by=NAMES).equals(made.table(by=NAMES))
    assert again.table().equals(made.table())
    assert again.attributes == made.attributes
    counts = pq.read_table(folder / "counts.parquet")
    place = next(
        i
        for i, row in enumerate(counts.to_pylist())
        if row["level"] == 1 and row["tenure"] and not row["head"]
    )
    raised = counts["count"].to_numpy().copy()
    raised[place] += 1
    changed = counts.set_column(counts.schema.get_field_index("count"), "count", pa.array(raised))
    pq.write_table(changed, folder / "counts.parquet")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["counts.parquet"]["sha256"] = sha256(
        (folder / "counts.parquet").read_bytes()
    ).hexdigest()
    forge(folder, manifest)
    failed = [check.name for check in tt.verify(folder).checks if not check.passed]
    assert failed == ["every table by tenure, head adds up"]


def test_measurements_are_estimated_again(tmp_path: Path) -> None:
    made = tt.release(BY_CELLS, epsilon=1, insecure_seed=3)
    again = tt.re_estimate(made.save(tmp_path / "out"))
    assert again.table(by=NAMES).equals(made.table(by=NAMES))


def test_questions_about_values(made: Release) -> None:
    rented = made.region("US/s0", ["tenure=rent"])
    of_values = [
        made.region("US/s0", [f"tenure={value}"]).n_groups for value in made.attributes.values[0]
    ]
    assert sum(of_values) == made.region("US/s0").n_groups
    assert made.region("US/s0", ["tenure=own"]).mean() > rented.mean()
    asked = tt.ask(made, region="US", where=["tenure=rent", "head=old"], total=True)
    assert asked.facts["groups"] == made.region("US", ["head=old", "tenure=rent"]).n_groups
    for where, says in [
        (["rooms=3"], "no attribute"),
        (["tenure=x"], "no value"),
        (["tenure=own", "tenure=rent"], "twice"),
    ]:
        with pytest.raises(RequestError, match=says):
            made.region("US", where)
    bare = tt.release(tt.read(TABLE, public="groups", **READ), epsilon=1, insecure_seed=1)
    with pytest.raises(RequestError, match="has no attributes"):
        bare.region("US", ["tenure=own"])
    with pytest.raises(RequestError, match="has no attributes"):
        bare.table(by="tenure")


def test_errors_are_told_per_table(made: Release) -> None:
    truth = BY_CELLS if made.mechanism == "adaptive" else BY_GROUPS
    errors = {(level.level, level.by): level for level in tt.evaluate(made, truth).levels}
    assert len(errors) == 12
    assert errors[1, ("tenure",)].name == "state by tenure"
    assert errors[2, NAMES].regions <= 6 * 9
    with pytest.raises(RequestError, match="same values"):
        tt.evaluate(made, tt.read(TABLE, by={"tenure": ["own"]}, public="cells", **READ))


def test_without_noise_every_table_is_exact() -> None:
    exact = tt.evaluate(tt.release(BY_CELLS, epsilon=10_000, insecure_seed=1), BY_CELLS)
    assert max(level.emd for level in exact.levels) == 0


def test_answers_about_values_have_intervals() -> None:
    """Six copies reach as far as seven errors do: the truth lies outside once in three or four
    times, not far.
    """
    made = tt.release(BY_CELLS, epsilon=1, insecure_seed=3)
    told = tt.ask(made, region="US/s1", where=["tenure=rent"], mean=True, at_least=3, copies=6)
    assert told.columns == ("question", "answer", "std_error", "low", "high")
    state = [row for row in TABLE.to_pylist() if row["state"] == "s1" and row["tenure"] == "rent"]
    mean = sum(row["size"] for row in state) / len(state)
    interval = told.facts["intervals"]["mean size"]
    assert interval["low"] - 0.05 <= mean <= interval["high"] + 0.05
    three = tt.ask(made, region="US/s1", where=["tenure=rent"], size=3, copies=2).facts[
        "intervals"
    ]["groups of size 3"]
    every = tt.ask(made, region="US/s1", where=["tenure=rent"], copies=2)
    row = next(row for row in every.rows if row[0] == 3)
    assert (three["value"], three["low"], three["high"]) == (row[1], row[3], row[4])
    assert max(row[3], row[5]) <= row[1] <= min(row[4], row[6])
    none = tt.ask(made, region="US/s1", where=["tenure=rent", "head=old"], size=60, copies=2)
    assert none.facts["intervals"]["groups of size 60"]["low"] == 0


def test_every_count_of_every_table_has_an_interval(tmp_path: Path) -> None:
    """Eight copies: at least 85 in 100 of the counts of each table that has two hundred of them
    hold.
    """
    made = tt.with_intervals(tt.release(BY_CELLS, epsilon=1, insecure_seed=3), copies=8)
    assert made.intervals is not None
    assert made.margins is not None
    assert BY_CELLS.cell_counts is not None
    lattice = made.lattice
    truth = lattice.margins(BY_CELLS.cell_counts)
    true = counts_at(truth, made.margins.region_of_run(), made.margins.size)
    held = (made.intervals.low <= true) & (true <= made.intervals.high)
    for family in lattice.families:
        own = np.isin(made.margins.region_of_run(), lattice.rows_in_margins(family))
        assert own.sum() < 200 or held[own].mean() > 0.85
    assert held.mean() > 0.9
    assert len(made.intervals.zeros.steps) == len(lattice.families)
    again = tt.load(made.save(tmp_path / "out"))
    assert again.table(by=NAMES).equals(made.table(by=NAMES))
    regions = made.table()
    assert regions.column_names[-3:] == ["std_error", "low", "high"]
    assert np.array_equal(regions["low"].to_numpy(), made.region_intervals.low)
    assert tt.compare(again, made).levels[0].clear == 0


def test_sizes_in_classes_by_attributes(tmp_path: Path) -> None:
    counts = tt.read(TABLE, by=["tenure"], classes=["1-2", "3-4", "5+"], public="cells", **READ)
    made = tt.release(counts, epsilon=1, insecure_seed=3)
    assert made.verify()
    again = tt.load(made.save(tmp_path / "out"))
    rows = again.table(by="tenure").to_pylist()
    assert {row["class"] for row in rows} == {"1-2", "3-4", "5+"}
    told = tt.ask(again, where=["tenure=own"], at_least=3).facts["groups of at least 3"]
    assert told == sum(
        row["count"]
        for row in rows
        if row["level"] == 0 and row["tenure"] == "own" and row["size"] >= 3
    )
    assert (
        max(
            level.emd
            for level in tt.evaluate(
                tt.release(counts, epsilon=10_000, insecure_seed=1), counts
            ).levels
        )
        == 0
    )


def test_exports_have_a_column_per_attribute(made: Release, tmp_path: Path) -> None:
    """Against the release's own file: the same rows, with "all" for null."""
    tt.export(made, out=str(tmp_path / "counts.csv"))
    folder = made.save(tmp_path / "out")
    told = duckdb.sql(
        f"SELECT region, tenure, head, size, count FROM '{tmp_path}/counts.csv'"
    ).fetchall()
    own = duckdb.sql(
        f"""SELECT region, coalesce(tenure, 'all'), coalesce(head, 'all'), size, count FROM '{folder}/counts.parquet'"""
    ).fetchall()
    assert sorted(told) == sorted(own)
    tt.export(made, out=str(tmp_path / "stat.json"), format="json-stat")
    cube = json.loads((tmp_path / "stat.json").read_text())
    assert cube["id"][:4] == ["region", "tenure", "head", "size"]
    assert cube["size"][1:3] == [size + 1 for size in made.attributes.shape]


def test_commands_compare_and_look_beforehand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line takes attributes with every verb that reads."""
    pq.write_table(TABLE, tmp_path / "t.parquet")
    reading = [
        "--levels",
        "state,county",
        "--size",
        "size",
        "--root",
        "US",
        "--by",
        "tenure",
        "--by",
        "head",
    ]
    out = str(tmp_path / "out")
    told = [
        (
            [
                "release",
                *reading,
                "--public",
                "cells",
                "--epsilon",
                "1",
                "--want",
                "state:tenure",
                "--out",
                out,
            ],
            0,
        ),
        (["release", *reading, "--public", "cells", "--epsilon", "1", "--dry-run"], 0),
        (["plan", "--like", out, "--epsilon", "1", "--runs", "1"], 0),
        (["evaluate", out, *reading], 0),
        (["query", out, "--where", "tenure=rent", "--where", "head=old", "--mean", "--json"], 0),
        (["query", out, "--where", "tenure=boot", "--mean"], 2),
    ]
    for words, code in told:
        source = [str(tmp_path / "t.parquet")]
        place = {"release": 1, "evaluate": 2}.get(words[0])
        command = words if place is None else [*words[:place], *source, *words[place:]]
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == code, command
    printed = capsys.readouterr()
    assert "county by tenure, head" in printed.out
    assert "Sizes do not depend on tenure, head" in printed.out + printed.err
    assert printed.out.count("county by tenure, head") >= 3


def test_the_statement_names_what_is_fixed() -> None:
    made = tt.release(BY_CELLS, epsilon=1)
    says = made.manifest["privacy"]["statement"]
    assert (
        "how many groups each region has of each combination of tenure, head; tenure, head of each "
        "group" in says
    )
    whole = tt.release(BY_GROUPS, epsilon=1, max_size=9)
    assert whole.manifest["privacy"]["statement"].endswith(
        "which regions there are; which values tenure, head may have. Not covered: any one group "
        "alone in a region."
    )
    assert whole.manifest["public"]["attributes"][0] == {
        "name": "tenure",
        "values": ["own", "rent", "other"],
    }


def test_a_workload_moves_the_split() -> None:
    def shares(**want: Any) -> dict[str, str]:
        levels = tt.release(BY_CELLS, epsilon=1, insecure_seed=1, **want).manifest["privacy"][
            "levels"
        ]
        return {level["name"]: level["share"] for level in levels if level["share"] != "0"}

    cells, regions = shares(), shares(want=["US", "state", "county"])
    assert Fraction(cells["county by tenure, head"]) >= Fraction(2, 5)
    assert regions["county by tenure, head"] == "3/100"
    assert set(regions) <= {"US", "state", "county", "county by tenure, head"}


@pytest.mark.parametrize(
    ("counts", "options", "says"),
    [
        (BY_CELLS, {"mechanism": "matching"}, "measures levels alone"),
        (BY_CELLS, {"goal": "leaves"}, "want= names the tables"),
        (BY_CELLS, {"want": ["town:tenure"]}, "names a level 'town'"),
        (BY_CELLS, {"want": ["state:rooms"]}, "no attribute 'rooms'"),
        (BY_GROUPS, {"want": ["state"]}, "same share"),
        (tt.read(TABLE, public="groups", **READ), {"want": ["state"]}, "there are none"),
    ],
)
def test_what_cannot_be_done_is_refused_before_payment(
    counts: Any, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(RequestError, match=says):
        tt.release(counts, epsilon=1, **options)


@pytest.mark.parametrize("name", sorted(COLUMNS))
@pytest.mark.parametrize("option", ["by", "people"])
def test_a_name_that_a_column_of_the_tables_has_is_refused_when_it_is_read(
    name: str, option: str
) -> None:
    people = pa.table({"house": [1, 1, 2], "state": ["a", "a", "b"], name: ["x", "x", "x"]})
    with pytest.raises(RequestError, match=f"cannot be called '{name}'"):
        tt.read(people, group="house", levels=["state"], public="groups", **{option: {name: ["x"]}})


def test_every_column_that_tables_of_a_release_have_is_known(tmp_path: Path) -> None:
    """Of a release with all that adds columns, of its exports and of its microdata."""
    people = pa.table({"house": [1, 1, 2, 3], "state": ["a", "a", "b", "b"], "sex": [*"fmfm"]})
    read = {"group": "house", "levels": ["state"], "root": "US"}
    with_people = tt.read(people, people={"sex": ["f", "m"]}, public="groups", **read)
    in_classes = tt.read(people, classes=["1", "2+"], public="groups", **read)
    names = set()
    for place, counts in enumerate((with_people, in_classes, BY_CELLS)):
        folder = tmp_path / str(place)
        tt.release(counts, epsilon=1, intervals=3, insecure_seed=1, out=folder)
        tt.microdata(folder, out=tmp_path / f"{place} microdata")
        tt.export(folder, format="parquet", out=str(tmp_path / f"{place} parquet"))
        for file in tmp_path.rglob("*.parquet"):
            names |= {*pq.ParquetFile(file).schema_arrow.names}
        tt.export(folder, format="csv", out=str(tmp_path / f"{place}.csv"))
        head = (tmp_path / f"{place}.csv").read_text().splitlines()[0]
        names |= {name.strip('"') for name in head.split(",")}
    assert names - {"US", "state", "county", "total", "sex", *NAMES} <= COLUMNS
