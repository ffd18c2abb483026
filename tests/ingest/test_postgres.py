"""Reading from a real PostgreSQL server: tables and queries, counted inside it."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import InputError, RequestError
from tests.ledger.postgres_server import postgres_server


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A database with a table of employees, firms and regions."""
    with postgres_server() as server:
        place = server.format(database="postgres")
        with psycopg.connect(place) as connection:
            connection.execute("CREATE TABLE employees (person int, firm int, region text)")
            rows = [(1, 1, "a%s"), (2, 1, "a%s"), (3, 2, "a%s"), (4, 3, "b")]
            connection.cursor().executemany("INSERT INTO employees VALUES (%s, %s, %s)", rows)
            connection.execute("CREATE SCHEMA hr")
            connection.execute("CREATE TABLE hr.staff AS SELECT * FROM employees WHERE person < 3")
            connection.execute("CREATE TABLE victim AS SELECT 1 AS id")
            connection.execute(
                "CREATE FUNCTION harm() RETURNS int LANGUAGE plpgsql AS "
                "$$ BEGIN DELETE FROM victim; INSERT INTO victim VALUES (2); RETURN 1; END $$"
            )
            connection.execute("CREATE VIEW harmful AS SELECT firm, region, harm() FROM employees")
        yield place


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"table": "employees"}, {"a%s": [(1, 1), (2, 1)], "b": [(1, 1)]}),
        ({"table": "public.employees"}, {"a%s": [(1, 1), (2, 1)], "b": [(1, 1)]}),
        ({"table": "hr.staff"}, {"a%s": [(2, 1)]}),
        ({"sql": "SELECT * FROM employees WHERE person > 1;"}, {"a%s": [(1, 2)], "b": [(1, 1)]}),
        (
            {"sql": "SELECT firm, region FROM employees WHERE region LIKE 'a%'"},
            {"a%s": [(1, 1), (2, 1)]},
        ),
    ],
    ids=[
        "table",
        "table with its schema",
        "table of another schema",
        "query",
        "query with a percent sign",
    ],
)
def test_counts_come_from_tables_and_queries(
    address: str, place: dict[str, str], expected: dict[str, list[tuple[int, int]]]
) -> None:
    counts = tt.read(address, group="firm", levels=["region"], **place, public="groups")
    leaves = counts.hierarchy.level_slice(1)
    labels = counts.hierarchy.labels[leaves]
    found = {
        label: list(
            zip(
                counts.leaf_counts.region(i).size.tolist(),
                counts.leaf_counts.region(i).count.tolist(),
            )
        )
        for i, label in enumerate(labels)
    }
    assert found == expected


def test_no_view_is_left_behind(address: str) -> None:
    tt.read(
        address, group="firm", levels=["region"], sql="SELECT * FROM employees", public="groups"
    )
    with psycopg.connect(address) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_views WHERE viewname LIKE 'tallytree%'"
        ).fetchone() == (0,)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("employes", "employees"),
        ("Employees", "employees"),
        ("staff", "hr.staff"),
        ("hr.stafff", "hr.staff"),
    ],
)
def test_a_table_that_is_not_there_is_guessed(address: str, asked: str, meant: str) -> None:
    with pytest.raises(InputError) as caught:
        tt.read(address, group="firm", table=asked, public="groups")
    assert str(caught.value) == (
        f"The postgresql database has no table {asked!r}; its tables are "
        f"'employees', 'harmful', 'victim', 'hr.staff'. Did you mean {meant!r}?"
    )


def test_the_server_says_why_a_connection_fails(address: str) -> None:
    host = address.partition("?")[2]
    with pytest.raises(InputError, match='FATAL: database "nowhere" does not exist') as caught:
        tt.read(
            f"postgresql://tallytree:hidden@/nowhere?{host}",
            group="firm",
            table="employees",
            public="groups",
        )
    assert "hidden" not in str(caught.value)
    with pytest.raises(InputError, match='FATAL: role "nobody-here" does not exist'):
        tt.read(
            f"postgresql://nobody-here@/postgres?{host}",
            group="firm",
            table="employees",
            public="groups",
        )


SELECTS = "SELECT firm, region FROM employees"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (f"{SELECTS}; DROP TABLE victim; COMMIT", "this has 3 statements"),
        ("SELECT 1; DROP TABLE victim; COMMIT", "this has 3 statements"),
        ("DROP TABLE victim", "this begins with DROP"),
        ("EXPLAIN ANALYZE DELETE FROM victim", "this begins with EXPLAIN"),
        ("WITH gone AS (DELETE FROM victim RETURNING 1) " + SELECTS, "this holds a DELETE"),
        ("SELECT firm, region INTO victim2 FROM employees", "this holds an INTO"),
        (" ;; -- nothing", "this has no statement"),
        # What a parser of our own may not see, the server does.
        (
            f"{SELECTS} WHERE region !~~* ANY (ARRAY['(']) ; DROP TABLE victim; COMMIT",
            "this has 3 statements",
        ),
        ("SELECT firm, region, harm() FROM employees", "changes its database"),
        (
            "SELECT firm, region, harm() FROM employees, set_config('transaction_read_only', "
            "'off', true)",
            "cannot be read",
        ),
    ],
)
def test_a_query_only_reads(address: str, sql: str, said: str) -> None:
    with pytest.raises((InputError, RequestError)) as caught:
        tt.read(address, group="firm", levels=["region"], sql=sql, public="groups")
    assert said in str(caught.value)
    assert _victim(address) == [(1,)]


def _victim(address: str) -> list[tuple[int]]:
    with psycopg.connect(address) as connection:
        return connection.execute("SELECT * FROM victim").fetchall()


def test_a_view_that_changes_the_database_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="changes its database"):
        tt.read(address, group="firm", levels=["region"], table="harmful", public="groups")
    assert _victim(address) == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "TABLE employees",
        "WITH few AS (SELECT * FROM employees) SELECT * FROM few",
        "(SELECT firm, region FROM employees) UNION ALL VALUES (9, 'c');",
        "SELECT firm, region FROM employees WHERE region <> '; DROP TABLE victim'",
        "SELECT firm, region FROM employees -- ; DROP TABLE victim",
        "SELECT firm, region FROM employees /* ; /* nested */ DROP TABLE victim */",
        "SELECT firm, region FROM employees WHERE region <> $x$; DROP TABLE victim$x$",
    ],
)
def test_every_form_of_one_query_is_read(address: str, sql: str) -> None:
    assert (
        tt.read(address, group="firm", levels=["region"], sql=sql, public="groups").n_groups.sum()
        >= 3
    )


def test_the_server_itself_takes_one_statement(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where our own look at the query sees nothing, the server still prepares one statement alone."""
    monkeypatch.setattr(
        "tallytree.ingest.databases.refuse_all_but_one_query", lambda sql, dialect: None
    )
    for sql in ("SELECT 1; DROP TABLE victim; COMMIT", "SELECT 1; COMMIT; DROP TABLE victim"):
        with pytest.raises(InputError, match="cannot be read"):
            tt.read(address, group="firm", levels=["region"], sql=sql, public="groups")
        assert _victim(address) == [(1,)]


def test_a_config_of_somebody_else_changes_nothing(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "release.toml"
    config.write_text(
        f"""source = "{address}"
sql = "{SELECTS}; drop table victim; commit"
group = "firm"
levels = ["region"]
public = "groups"
epsilon = 1.0
out = "{tmp_path / "out"}"
"""
    )
    with pytest.raises(SystemExit) as ended:
        main(["release", str(config)])
    assert (ended.value.code, _victim(address)) == (2, [(1,)])
    assert "this has 3 statements" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()
