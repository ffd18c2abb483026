"""Where ledger rows live: one append-only table in an SQLite file or a PostgreSQL database.

Only :mod:`tallytree.ledger.accounts` and :mod:`tallytree.ledger.rows` use this module. A
transaction opened here sees the account as it stands, keeps every other writer out until it ends,
and is on disk before it returns; a process killed inside it leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from tallytree.errors import MissingExtraError, NothingRecordedError, RequestError, StorageError
from tallytree.ledger.schema import VERSION, make_schema, stored_version
from tallytree.model.address import check_address, without_secrets

WAIT_SECONDS = 120
"""How long a writer waits for the others before it gives up; a turn takes milliseconds."""


def ledger_url(ledger: str) -> URL:
    """Read a ledger's address: a path or ``sqlite:///path`` for a file, ``postgresql://…`` for a
    server.
    """
    check_address(ledger, "The ledger")
    try:
        url = make_url(ledger) if "://" in ledger else URL.create("sqlite", database=ledger)
    except (ArgumentError, ValueError):
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
    return (
        url.database or ""
        if url.drivername == "sqlite+pysqlite"
        else url.set(query={}).render_as_string()
    )


@contextmanager
def ledger_transaction(
    ledger: str, *, account: str | None = None, create: bool = False
) -> Iterator[Connection]:
    """One transaction on the ledger.

    Parameters
    ----------
    account
        The account to write to; no other transaction writes to it at the same time. ``None`` to
        read only.
    create
        Make the file and the table first if they are not there.

    Notes
    -----
    A ledger of a newer format is refused.
    """
    url = ledger_url(ledger)
    engine = _engine(url, writes=account is not None, create=create)
    # What fails before the transaction is to end has recorded nothing; of its end nobody knows.
    failure: type[StorageError] = NothingRecordedError
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":
                _prepare_server(connection)
            _check_version(connection, shown(url), create=create)
            if account is not None:
                _take_turn(connection, f"account {account}")
            yield connection
            failure = StorageError
    except IntegrityError as error:
        raise NothingRecordedError(
            f"Another program wrote to the ledger {shown(url)} without waiting for its turn; "
            "nothing was recorded. Try again."
        ) from error
    except DBAPIError as error:
        # Drivers quote statements over many lines, and a damaged file quotes itself.
        said = without_secrets(str(error.orig), ledger)
        reason = said[:200] or "the server refused it"
        raise failure(
            f"The ledger {shown(url)} cannot be used; nothing may be released: {reason}"
        ) from error
    except (SQLAlchemyError, UnicodeError, OverflowError) as error:
        # Whatever else a damaged file makes the libraries stumble over.
        raise failure(
            f"The ledger {shown(url)} is damaged and cannot be read; nothing may be released."
        ) from error


def _check_version(connection: Connection, name: str, *, create: bool) -> None:
    """Refuse a ledger that is not there, unless it is to be made, and one of a newer format."""
    version = stored_version(connection)
    if version == 0 and create:
        _take_turn(connection, "table")
        version = stored_version(connection)
        if version == 0:
            make_schema(connection)
            version = VERSION
    if version == 0:
        raise RequestError(
            f"{name} holds no ledger yet. Open an account first: tallytree ledger create"
        )
    if version > VERSION:
        raise NothingRecordedError(
            f"The ledger {name} has format {version}, which a newer tallytree wrote; this one "
            f"knows up to {VERSION}. Upgrade "
            "tallytree; nothing may be released until then."
        )


@lru_cache(maxsize=16)
def _engine(url: URL, *, writes: bool, create: bool) -> Engine:
    # Connections are not kept (NullPool): releases are rare, and a forked process must never share
    # one.
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
            raise RequestError(
                f"There is no ledger {shown(url)}. Open an account first: tallytree ledger create"
            )
        if not path.parent.is_dir():
            raise NothingRecordedError(
                f"The ledger {shown(url)} cannot be made: its folder does not exist."
            )
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=WAIT_SECONDS,
            isolation_level=None,
        )
        # SQLite's default rollback journal, not a write-ahead log, which network file systems
        # cannot hold. EXTRA also puts the journal's removal on disk: a power cut right after the
        # commit must not undo a reservation.
        connection.execute("PRAGMA synchronous = EXTRA").close()
        return connection

    engine = create_engine(url, creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # IMMEDIATE takes the only write lock before the first read, so that nothing read here can
        # be out of date.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes or create else "BEGIN")

    return engine


def _prepare_server(connection: Connection) -> None:
    # A server set to acknowledge commits before they are on disk could forget a reservation whose
    # noise was drawn.
    connection.execute(
        text(
            "SELECT set_config('lock_timeout', :limit, true), "
            "set_config('idle_in_transaction_session_timeout', :limit, true), "
            "set_config('synchronous_commit', CASE setting WHEN 'off' THEN 'on' ELSE setting END, "
            "true) "
            "FROM (SELECT current_setting('synchronous_commit') AS setting) AS current"
        ),
        {"limit": f"{WAIT_SECONDS}s"},
    )


def _take_turn(connection: Connection, name: str) -> None:
    """Wait until nobody else holds this name, on a server; a file has one lock, which its writers
    hold already.

    Who takes both takes the table's turn before an account's, so that no two wait for one another.
    """
    if connection.dialect.name != "postgresql":
        return
    # Advisory locks need no right to update rows, so that a role with SELECT and INSERT alone can
    # use the ledger.
    digest = hashlib.sha256(f"tallytree ledger {name}".encode()).digest()
    number = int.from_bytes(digest[:8], "big", signed=True)
    connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})
