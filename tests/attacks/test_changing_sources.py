"""Data that change while they are read, and databases that take one name for another."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ibis
import psycopg
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.errors import InputError
from tallytree.ingest.engine import Session
from tests.ledger.postgres_server import postgres_server

SHAPE: dict[str, Any] = {"group": "firm", "levels": ["region"], "public": "groups"}
ROWS = [("p", "a", "x"), ("P", "a", "x"), ("q", "A", "x"), ("r", "b", "X")]
CHANGED = [*ROWS, ("z", "a", "x"), ("y", "new", "x")]


def sizes(counts: Any) -> dict[str, list[tuple[int, int]]]:
    """Size and count of every leaf region."""
    hierarchy = counts.hierarchy
    leaves = hierarchy.labels[hierarchy.level_slice(hierarchy.n_levels - 1)]
    found = (counts.leaf_counts.region(place) for place in range(len(leaves)))
    return {
        label: list(zip(one.size.tolist(), one.count.tolist()))
        for label, one in zip(leaves, found, strict=True)
    }


@pytest.fixture
def after_first_query(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Has something happen between the first query of a reading and the second."""

    def arrange(change: Callable[[], None]) -> None:
        fetch, n_queries = Session.fetch, [0]

        def fetch_and_change(self: Session, table: Any, source: str) -> Any:
            found = fetch(self, table, source)
            n_queries[0] += 1
            if n_queries[0] == 1:
                change()
            return found

        monkeypatch.setattr(Session, "fetch", fetch_and_change)

    return arrange


def table(rows: list[tuple[str, str, str]]) -> pa.Table:
    return pa.table(dict(zip(("person", "firm", "region"), zip(*rows))))


@pytest.mark.parametrize("write", [pq.write_table, pv.write_csv], ids=["Parquet", "CSV"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    write: Callable[..., None],
    tmp_path: Path,
    after_first_query: Callable[[Callable[[], None]], None],
) -> None:
    """Without it the regions are of one state and the groups of another."""
    file = tmp_path / ("rows.parquet" if write is pq.write_table else "rows.csv")
    write(table(ROWS), file)
    assert sizes(tt.read(str(file), **SHAPE))["x"] == [(1, 1), (2, 1)]
    after_first_query(lambda: write(table(CHANGED), file))
    with pytest.raises(InputError, match="changed while it was read"):
        tt.read(str(file), **SHAPE)


def test_a_file_that_is_written_anew_before_or_after_is_none_that_changes(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    for rows in (ROWS, CHANGED):
        pq.write_table(table(rows), file)
        assert sum(len(found) for found in sizes(tt.read(str(file), **SHAPE)).values()) == 3


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    """A database whose columns take "a" for "A"."""
    file = tmp_path / "rows.db"
    with sqlite3.connect(file) as connection:
        columns = ", ".join(f"{name} TEXT COLLATE NOCASE" for name in ("person", "firm", "region"))
        connection.execute(f"CREATE TABLE people ({columns})")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", ROWS)
    connection.close()
    return file


EXACT = {"X": [(1, 1)], "x": [(1, 1), (2, 1)]}
# Of each unit one row counts, and the four units are four.
FOUR_UNITS = 4


def test_sqlite_compares_letter_by_letter(sqlite_file: Path) -> None:
    address = f"sqlite:///{sqlite_file}"
    assert sizes(tt.read(address, table="people", **SHAPE)) == EXACT
    of_units = tt.read(
        address, table="people", **{**SHAPE, "public": "regions"}, unit="person", contributions=1
    )
    assert of_units.leaf_counts.n_entities().sum() == FOUR_UNITS
    part = tt.read(address, table="people", **{**SHAPE, "group": "person"}, where="firm=a")
    assert sizes(part) == {"x": [(1, 2)]}


def test_a_sqlite_database_that_changes_is_refused(
    sqlite_file: Path, after_first_query: Callable[[Callable[[], None]], None]
) -> None:
    def change() -> None:
        with sqlite3.connect(sqlite_file) as connection:
            connection.execute("INSERT INTO people VALUES ('z', 'a', 'x')")
        connection.close()

    after_first_query(change)
    with pytest.raises(InputError, match="changed while it was read"):
        tt.read(f"sqlite:///{sqlite_file}", table="people", **SHAPE)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as started:
        yield started.format(database="postgres")


@pytest.fixture
def postgres(server: str) -> str:
    """The same rows, in columns with an exact collation and in columns without."""
    with psycopg.connect(server) as connection:
        connection.execute("DROP TABLE IF EXISTS exact, alike")
        connection.execute(
            "CREATE COLLATION IF NOT EXISTS alike (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false)"
        )
        for name, more in (("exact", ""), ("alike", "COLLATE alike")):
            columns = ", ".join(f"{one} text {more}" for one in ("person", "firm", "region"))
            connection.execute(f"CREATE TABLE {name} ({columns})")
            connection.cursor().executemany(f"INSERT INTO {name} VALUES (%s, %s, %s)", ROWS)
    return server


def test_postgresql_compares_letter_by_letter(postgres: str) -> None:
    for name in ("exact", "alike"):
        assert sizes(tt.read(postgres, table=name, **SHAPE)) == EXACT
        of_units = tt.read(
            postgres, table=name, **{**SHAPE, "public": "regions"}, unit="person", contributions=1
        )
        assert of_units.leaf_counts.n_entities().sum() == FOUR_UNITS


@pytest.mark.parametrize("place", [{"table": "exact"}, {"sql": "SELECT * FROM exact"}])
def test_postgresql_is_read_as_it_was_at_the_first_query(
    place: dict[str, str],
    postgres: str,
    after_first_query: Callable[[Callable[[], None]], None],
) -> None:
    def change() -> None:
        with psycopg.connect(postgres) as connection:
            connection.execute("INSERT INTO exact VALUES ('z', 'a', 'x'), ('y', 'new', 'x')")

    after_first_query(change)
    assert sizes(tt.read(postgres, **place, **SHAPE)) == EXACT


def test_rows_of_databases_without_case_are_counted_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """MySQL and SQL Server take "a" for "A"; whatever they are asked is a list of rows."""
    engine = ibis.duckdb.connect()
    engine.con.register("rows", table(ROWS))
    engine.con.execute("CREATE TABLE people AS SELECT * FROM rows")
    people = engine.table("people")
    asked: list[str] = []
    monkeypatch.setattr("tallytree.ingest.sources.WITHOUT_CASE", ("duckdb",))
    bring = Session.bring

    def listen(self: Session, rows: Any, source: str) -> Any:
        asked.append(ibis.to_sql(rows))
        return bring(self, rows, source)

    monkeypatch.setattr(Session, "bring", listen)
    assert sizes(tt.read(people, **SHAPE)) == EXACT
    assert "GROUP BY" not in asked[0]
    assert "person" not in asked[0]
