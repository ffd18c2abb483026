"""Tables and queries of databases as Ibis tables; addresses are never shown, they may hold a
password.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import ibis

from tallytree.errors import InputError, MissingExtraError, RequestError, TallytreeError
from tallytree.ingest.engine import Session, guarded, kind_of
from tallytree.ingest.one_query import refuse_all_but_one_query
from tallytree.model.address import check_address, without_secrets
from tallytree.model.place import Place

# Schemas that databases keep for themselves.
OWN_SCHEMAS = ("information_schema", "pg_catalog")
# The extra that brings the driver of a database.
EXTRAS = {"postgres": "postgres", "postgresql": "postgres", "sqlite": "sqlite"}

# Ibis knows its engines by the first word of an address.
READABLE = {"duckdb", *EXTRAS, *(entry.name for entry in entry_points(group="ibis.backends"))}


def open_database(session: Session, url: str, place: Place) -> tuple[Any, str]:
    """The table or query of a database, and what messages call it."""
    table, sql = place.table, place.sql
    if (table is None) == (sql is None):
        raise RequestError(
            "A database URL needs either table= (the name of a table) or sql= (a query)."
        )
    scheme, _, rest = url.partition("://")
    name = (
        f"table {table!r} of the {scheme} database"
        if table is not None
        else f"the query on the {scheme} database"
    )
    file = Path(rest.partition("?")[0])
    if scheme not in READABLE:
        raise InputError(
            f"This is no database that can be read: {scheme[:30]}. Give postgres://, sqlite:// or "
            "duckdb://, or another that Ibis reaches, such as mysql://."
        )
    if scheme == "duckdb":
        return _open_duckdb(session, file, name, place), name
    engine = session.adopt(_connect(url, scheme, file))
    if engine.name == "sqlite":  # Ibis ends a transaction with each query
        session.watch(name, lambda: engine.con.execute("PRAGMA data_version").fetchone())
    if table is None:
        return guarded(lambda: _open_query(session, engine, sql or ""), name), name
    guarded(lambda: _begin_reading(engine), name)
    schema, own = _find(table, guarded(lambda: _tables(engine), f"The {scheme} database"), scheme)
    return guarded(lambda: engine.table(own, database=schema or None), name), name


# The first statement of reading; what follows can change nothing until the connection ends. On
# PostgreSQL it also sees one state of the database alone: a release counts more than once.
READ_ONLY = {
    "postgres": "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "sqlite": "PRAGMA query_only = ON",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
}


def _begin_reading(engine: Any) -> None:
    """Read only from here on."""
    if engine.name in READ_ONLY:
        engine.raw_sql(READ_ONLY[engine.name]).close()


def _open_query(session: Session, engine: Any, sql: str) -> Any:
    """One query, word for word as a view that ends with the connection; elsewhere as Ibis parses
    and writes it anew.

    A view holds one query that writes nothing: the database sees to it, whatever our own look at
    the text has missed.
    """
    has_views = engine.name in ("postgres", "sqlite")
    refuse_all_but_one_query(sql, engine.dialect, strict=not has_views)
    if not has_views:
        _begin_reading(engine)
        return engine.sql(sql)
    view = session.new_name()
    # psycopg hands several statements on, unless they are prepared; SQLite takes one at a time.
    more = {"prepare": True} if engine.name == "postgres" else {}
    engine.con.execute(f"CREATE TEMPORARY VIEW {view} AS {sql}", **more).close()
    _begin_reading(engine)
    return engine.table(view)


def _tables(engine: Any) -> list[tuple[str, str]]:
    """Schema and name of every table; the schema is empty where the name is enough."""
    usual = engine.list_tables()
    here = engine.current_database
    others = [
        schema for schema in engine.list_databases() if schema != here and _is_of_users(schema)
    ]
    found = [(schema, name) for schema in others for name in engine.list_tables(database=schema)]
    return [*(("", name) for name in usual), *((here, name) for name in usual), *found]


def _is_of_users(schema: str) -> bool:
    return schema not in OWN_SCHEMAS and not schema.startswith("pg_")


def _open_duckdb(session: Session, file: Path, name: str, place: Place) -> Any:
    """A table of a DuckDB file. It is attached to our own DuckDB, read-only, so that it spills into
    the private folder.
    """
    if not file.is_file():
        raise InputError(f"There is no duckdb database {file}; check the path after duckdb://.")
    own, catalog, view, sql = session.connection, session.new_name(), session.new_name(), place.sql
    if sql is not None:
        refuse_all_but_one_query(sql, "duckdb")
    guarded(lambda: own.attach(file, catalog, read_only=True), f"The duckdb database {file}")
    own.con.execute(f"USE {catalog}")
    if place.table is not None:
        listed = own.con.execute(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = ?",
            [catalog],
        ).fetchall()
        usual = [("", table) for schema, table in listed if schema == "main"]
        schema, table = (
            part.replace('"', '""') for part in _find(place.table, [*usual, *listed], "duckdb")
        )
        sql = f'SELECT * FROM "{schema or "main"}"."{table}"'
    # DuckDB would run further statements as well.
    statements = guarded(
        lambda: own.con.extract_statements(f"CREATE TEMP VIEW {view} AS {sql}"), name
    )
    if len(statements) != 1:
        raise RequestError("sql= takes one query; this has several statements.")
    guarded(lambda: own.con.execute(statements[0]), name)
    return own.table(view, database=("temp", "main"))


def _find(asked: str, known: Sequence[tuple[str, str]], scheme: str) -> tuple[str, str]:
    """Schema and name of the table that is asked for; refuses with those that there are, the
    nearest one first.
    """
    written = {f"{schema}.{name}" if schema else name: (schema, name) for schema, name in known}
    if asked in written:
        return written[asked]
    by_case = {spelled.lower(): spelled for spelled in reversed(written)}
    # Without a schema, a table of the same name in another schema is meant; else one that is
    # written much alike.
    elsewhere = [spelled for spelled, (_, name) in written.items() if name.lower() == asked.lower()]
    near = difflib.get_close_matches(asked.lower(), by_case, n=1)
    meant = elsewhere or [by_case[one] for one in near]
    hint = f" Did you mean {meant[0]!r}?" if meant else ""
    bare = {name for schema, name in known if not schema}
    shown = [
        spelled for spelled, (schema, name) in written.items() if not schema or name not in bare
    ]
    listed = ", ".join(repr(one) for one in shown[:30]) + (", …" if len(shown) > 30 else "")
    raise InputError(
        f"The {scheme} database has no table {asked!r}; its tables are {listed or 'none'}.{hint}"
    )


def _connect(url: str, scheme: str, file: Path) -> Any:
    if scheme == "sqlite" and not file.is_file():
        raise InputError(f"There is no sqlite database {file}; check the path after sqlite://.")
    check_address(url, f"The {scheme} database")
    try:
        return ibis.connect(url)
    except ImportError:
        problem = _missing_driver(scheme)
    except Exception as error:
        problem = InputError(f"Cannot connect to the {scheme} database: {_reason(error, url)}")
    raise problem


def _missing_driver(scheme: str) -> TallytreeError:
    """The driver of a database is not installed: how to install it, where tallytree has an extra or
    Ibis has.
    """
    if scheme in EXTRAS:
        return MissingExtraError(f"Reading from {scheme}", EXTRAS[scheme])
    return InputError(
        f"Reading from {scheme} needs a driver that tallytree does not bring; install Ibis with "
        "it: "
        f"pip install 'ibis-framework[{scheme}]'. Or export the table to a Parquet file."
    )


def _reason(error: Exception, url: str) -> str:
    """What the server said, in one sentence; nothing of it where it repeats the address or the
    password.
    """
    said = without_secrets(str(error), url)
    if not said:
        return f"{kind_of(error)}. Check the address, the user and the network."
    return said if said.endswith((".", "?")) else f"{said}."
