"""Where ledger rows live: one append-only table in an SQLite file or a PostgreSQL database.

Only :mod:`tallytree.privacy.ledger` uses this module. A transaction opened here sees the account as it stands, keeps every
other writer out until it ends, and is on disk before it returns; a process killed inside it leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from sqlalchemy import (
    URL,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
    text,
    union_all,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.pool import NullPool

from tallytree.errors import MissingExtraError, RequestError, StorageError

WAIT_SECONDS = 120
"""How long a writer waits for the others before it gives up; a turn takes milliseconds."""

_UNDEFINED_TABLE = "42P01"

metadata = MetaData()
entries = Table(
    "tallytree_ledger",
    metadata,
    Column("dataset", Text, primary_key=True),
    # The primary key alone already makes it impossible for two writers to append at the same place.
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("recorded_at", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("amount", Text, nullable=False),
    Column("charge", Text, nullable=False),
    Column("spent", Text, nullable=False),
    Column("key", Text),
    Column("part_of", Text),
    Column("part", Text),
    Column("purpose", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("previous_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
    UniqueConstraint("dataset", "kind", "key", name="tallytree_ledger_key"),
    CheckConstraint("kind IN ('create', 'reserve', 'complete', 'close')", name="tallytree_ledger_kind"),
)
Index("tallytree_ledger_part", entries.c.dataset, entries.c.part_of)

_of_account = entries.c.dataset == bindparam("dataset")
_of_key = entries.c.key == bindparam("key")
_last_position = select(func.max(entries.c.position)).where(_of_account).scalar_subquery()
# The first and the last row of an account, its closing row, and the rows under a key. One part per index: a single OR
# would make SQLite read the whole account.
DECIDING_ROWS = union_all(
    *(
        select(entries).where(_of_account, condition)
        for condition in (
            entries.c.position == 0,
            entries.c.position == _last_position,
            entries.c.kind == "close",
            and_(entries.c.kind == "reserve", _of_key),
            and_(entries.c.kind == "complete", _of_key),
        )
    )
)

ACCOUNT_NAMES = select(entries.c.dataset).distinct().order_by(entries.c.dataset)


def rows_of(dataset: str, **values: str | int) -> Select[tuple[object, ...]]:
    """The query for the rows of an account whose columns have the given values, in order."""
    conditions = [entries.c[column] == value for column, value in values.items()]
    return select(entries).where(entries.c.dataset == dataset, *conditions).order_by(entries.c.position)


# A guard against accidents and against other programs; whoever owns the database can drop it, which the hash chain and
# the receipts in the manifests are for.
_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER tallytree_ledger_no_{action.lower()} BEFORE {action} ON tallytree_ledger "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for action in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE OR REPLACE FUNCTION tallytree_ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
        "CREATE TRIGGER tallytree_ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON tallytree_ledger "
        "FOR EACH STATEMENT EXECUTE FUNCTION tallytree_ledger_is_append_only()",
    ],
}


def ledger_url(ledger: str) -> URL:
    """Read a ledger's address: a path or ``sqlite:///path`` for a file, ``postgresql://…`` for a server."""
    try:
        url = make_url(ledger) if "://" in ledger else URL.create("sqlite", database=ledger)
    except ArgumentError:
        raise RequestError(_address_help("an address that cannot be read")) from None
    match url.get_backend_name():
        case "sqlite" if url.database and url.database != ":memory:" and not url.query:
            return url.set(drivername="sqlite+pysqlite")
        case "postgresql" | "postgres":
            return url.set(drivername="postgresql+psycopg")
        case _:
            raise RequestError(_address_help(shown(url)))


def _address_help(given: str) -> str:
    return f"The ledger is {given!r}; give the path of a file (ledger.db, sqlite:///ledger.db) or postgresql://host/database."


def shown(url: URL) -> str:
    """The address without its password and options."""
    return url.database or "" if url.drivername == "sqlite+pysqlite" else url.set(query={}).render_as_string()


@contextmanager
def ledger_transaction(ledger: str, *, account: str | None = None, create: bool = False) -> Iterator[Connection]:
    """One transaction on the ledger.

    Parameters
    ----------
    account
        The account to write to; no other transaction writes to it at the same time. ``None`` to read only.
    create
        Make the file and the table first if they are not there.
    """
    url = ledger_url(ledger)
    engine = _engine(url, writes=account is not None, create=create)
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":
                _prepare_server(connection, account, create=create)
            if create and not inspect(connection).has_table(entries.name):
                metadata.create_all(connection)
                for statement in _APPEND_ONLY[engine.dialect.name]:
                    connection.exec_driver_sql(statement)
            yield connection
    except IntegrityError as error:
        raise StorageError(
            f"Another program wrote to the ledger {shown(url)} without waiting for its turn; nothing was recorded. Try again."
        ) from error
    except DBAPIError as error:
        if "no such table" in str(error.orig) or getattr(error.orig, "sqlstate", None) == _UNDEFINED_TABLE:
            message = f"{shown(url)} holds no ledger yet. Open an account first: tallytree ledger create"
            raise RequestError(message) from None
        raise StorageError(f"The ledger {shown(url)} cannot be used; nothing may be released: {error.orig}") from error


@lru_cache(maxsize=16)
def _engine(url: URL, *, writes: bool, create: bool) -> Engine:
    # Connections are not kept (NullPool): releases are rare, and a forked process must never share one.
    if url.drivername == "sqlite+pysqlite":
        return _sqlite_engine(url, writes=writes, create=create)
    try:
        return create_engine(
            url,
            poolclass=NullPool,
            isolation_level="READ COMMITTED",
            use_native_hstore=False,
            connect_args={"connect_timeout": 30},
        )
    except ImportError:
        raise MissingExtraError("A ledger on PostgreSQL", "postgres") from None


def _sqlite_engine(url: URL, *, writes: bool, create: bool) -> Engine:
    path = Path(url.database or "")

    def connect() -> sqlite3.Connection:
        if not create and not path.is_file():
            raise RequestError(f"There is no ledger {shown(url)}. Open an account first: tallytree ledger create")
        if not path.parent.is_dir():
            raise StorageError(f"The ledger {shown(url)} cannot be made: its folder does not exist.")
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=WAIT_SECONDS,
            isolation_level=None,
        )
        # SQLite's default rollback journal, not a write-ahead log, which network file systems cannot hold. EXTRA also
        # puts the journal's removal on disk: a power cut right after the commit must not undo a reservation.
        connection.execute("PRAGMA synchronous = EXTRA").close()
        return connection

    engine = create_engine(url, creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # IMMEDIATE takes the only write lock before the first read, so that nothing read here can be out of date.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes or create else "BEGIN")

    return engine


def _prepare_server(connection: Connection, account: str | None, *, create: bool) -> None:
    # A server set to acknowledge commits before they are on disk could forget a reservation whose noise was drawn.
    connection.execute(
        text(
            "SELECT set_config('lock_timeout', :limit, true), set_config('idle_in_transaction_session_timeout', :limit, true), "
            "set_config('synchronous_commit', CASE setting WHEN 'off' THEN 'on' ELSE setting END, true) "
            "FROM (SELECT current_setting('synchronous_commit') AS setting) AS current"
        ),
        {"limit": f"{WAIT_SECONDS}s"},
    )
    # Advisory locks need no right to update rows, so that a role with SELECT and INSERT alone can use the ledger.
    for name in (["table"] if create else []) + ([f"account {account}"] if account is not None else []):
        digest = hashlib.sha256(f"tallytree ledger {name}".encode()).digest()
        number = int.from_bytes(digest[:8], "big", signed=True)
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})
