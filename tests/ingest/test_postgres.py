"""Reading from a real PostgreSQL server: tables and queries, counted inside it."""

from collections.abc import Iterator

import psycopg
import pytest

import tallytree as tt
from tallytree.errors import InputError
from tests.privacy.postgres_server import postgres_server


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
        yield place


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"table": "employees"}, {"a%s": [(1, 1), (2, 1)], "b": [(1, 1)]}),
        ({"table": "public.employees"}, {"a%s": [(1, 1), (2, 1)], "b": [(1, 1)]}),
        ({"table": "hr.staff"}, {"a%s": [(2, 1)]}),
        ({"sql": "SELECT * FROM employees WHERE person > 1;"}, {"a%s": [(1, 2)], "b": [(1, 1)]}),
        ({"sql": "SELECT firm, region FROM employees WHERE region LIKE 'a%'"}, {"a%s": [(1, 1), (2, 1)]}),
    ],
    ids=["table", "table with its schema", "table of another schema", "query", "query with a percent sign"],
)
def test_counts_come_from_tables_and_queries(
    address: str, place: dict[str, str], expected: dict[str, list[tuple[int, int]]]
) -> None:
    counts = tt.read(address, group="firm", levels=["region"], **place, public="groups")
    leaves = counts.hierarchy.level_slice(1)
    labels = counts.hierarchy.labels[leaves]
    found = {
        label: list(zip(counts.leaf_counts.region(i).size.tolist(), counts.leaf_counts.region(i).count.tolist()))
        for i, label in enumerate(labels)
    }
    assert found == expected


def test_no_view_is_left_behind(address: str) -> None:
    tt.read(address, group="firm", levels=["region"], sql="SELECT * FROM employees", public="groups")
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT count(*) FROM pg_views WHERE viewname LIKE 'tallytree%'").fetchone() == (0,)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("employes", "employees"), ("Employees", "employees"), ("staff", "hr.staff"), ("hr.stafff", "hr.staff")],
)
def test_a_table_that_is_not_there_is_guessed(address: str, asked: str, meant: str) -> None:
    with pytest.raises(InputError) as caught:
        tt.read(address, group="firm", table=asked, public="groups")
    assert str(caught.value) == (
        f"The postgresql database has no table {asked!r}; its tables are 'employees', 'hr.staff'. Did you mean {meant!r}?"
    )


def test_the_server_says_why_a_connection_fails(address: str) -> None:
    host = address.partition("?")[2]
    with pytest.raises(InputError, match='FATAL: database "nowhere" does not exist') as caught:
        tt.read(f"postgresql://tallytree:hidden@/nowhere?{host}", group="firm", table="employees", public="groups")
    assert "hidden" not in str(caught.value)
    with pytest.raises(InputError, match='FATAL: role "nobody-here" does not exist'):
        tt.read(f"postgresql://nobody-here@/postgres?{host}", group="firm", table="employees", public="groups")
