"""A query is one statement that reads, whatever the database; ``test_postgres.py`` asks a real
server.
"""

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

import tallytree as tt
from tallytree.errors import InputError, RequestError
from tallytree.ingest import databases
from tallytree.ingest.databases import READ_ONLY
from tallytree.ingest.engine import open_session
from tallytree.model.place import Place

ROWS = "CREATE TABLE employees (firm INT, region TEXT); INSERT INTO employees VALUES (1, 'a'), (1, 'a'), (2, 'b');"
SELECTS = "SELECT firm, region FROM employees"


def _sqlite(folder: Path) -> tuple[str, Path]:
    file = folder / "base.sqlite"
    connection = sqlite3.connect(file)
    connection.executescript(ROWS + "CREATE TABLE victim AS SELECT 1 AS id;")
    connection.close()
    return f"sqlite://{file}", file


def _duckdb(folder: Path) -> tuple[str, Path]:
    file = folder / "base.duckdb"
    with duckdb.connect(file) as connection:
        connection.execute(ROWS + "CREATE TABLE victim AS SELECT 1 AS id;")
    return f"duckdb://{file}", file


@pytest.mark.parametrize("make", [_sqlite, _duckdb])
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (f"{SELECTS}; DROP TABLE victim; COMMIT", "this has 3 statements"),
        ("DELETE FROM victim", "this begins with DELETE"),
        ("ATTACH 'elsewhere.db' AS elsewhere", "this begins with ATTACH"),
        ("PRAGMA database_list", "this begins with PRAGMA"),
        ("WITH gone AS (DELETE FROM victim RETURNING 1) " + SELECTS, "this holds a DELETE"),
        ("", "this has no statement"),
    ],
)
def test_other_statements_are_refused(make: Any, sql: str, said: str, tmp_path: Path) -> None:
    url, file = make(tmp_path)
    before = file.read_bytes()
    with pytest.raises(RequestError, match=said):
        tt.read(url, group="firm", levels=["region"], sql=sql, public="groups")
    assert file.read_bytes() == before


@pytest.mark.parametrize("make", [_sqlite, _duckdb])
def test_the_database_itself_takes_one_query(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where our own look at the query sees nothing: one statement, and a file that is not written
    to.
    """
    monkeypatch.setattr(
        databases, "refuse_all_but_one_query", lambda sql, dialect, strict=False: None
    )
    url, file = make(tmp_path)
    before, written = file.read_bytes(), tmp_path / "written.csv"
    for sql in (
        f"{SELECTS}; DROP TABLE victim",
        f"{SELECTS}; COMMIT; DROP TABLE victim; COMMIT",
        f"{SELECTS}; COPY (SELECT 1) TO '{written}'",
        "DROP TABLE victim",
    ):
        with pytest.raises((InputError, RequestError)):
            tt.read(url, group="firm", levels=["region"], sql=sql, public="groups")
        assert (file.read_bytes(), written.exists()) == (before, False)


@pytest.mark.parametrize("place", [Place(sql=SELECTS), Place(table="employees")])
def test_sqlite_is_read_only_once_it_is_open(place: Place, tmp_path: Path) -> None:
    url, _ = _sqlite(tmp_path)
    with open_session() as session:
        table, _ = databases.open_database(session, url, place)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            session.engine_of(table).con.execute("DELETE FROM victim")


@pytest.mark.parametrize("place", [Place(sql="SELECT 1"), Place(table="employees")])
def test_mysql_reads_only_before_it_is_asked_anything(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server of that kind is at hand: what an engine is asked, in which order."""
    asked: list[str] = []

    def run(statement: str) -> SimpleNamespace:
        asked.append(statement)
        return SimpleNamespace(close=lambda: None)

    engine = SimpleNamespace(
        name="mysql",
        dialect="mysql",
        current_database="base",
        raw_sql=run,
        sql=asked.append,
        table=lambda name, database: asked.append(name),
        list_tables=lambda database=None: ["employees"],
        list_databases=list,
        disconnect=lambda: None,
    )
    monkeypatch.setattr(databases, "_connect", lambda *_: engine)
    with open_session() as session:
        databases.open_database(session, "mysql://host/base", place)
        assert asked == [READ_ONLY["mysql"], place.sql or place.table]
        with pytest.raises(RequestError, match="this has 2 statements"):
            databases.open_database(
                session, "mysql://host/base", Place(sql="SELECT 1; DROP TABLE x")
            )
        with pytest.raises(RequestError, match="cannot be read as one"):
            databases.open_database(
                session, "mysql://host/base", Place(sql="SELECT " + "(" * 3_000)
            )
        assert len(asked) == 2
