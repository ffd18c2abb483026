"""Ledgers to test against: a file and a real PostgreSQL server."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from tests.ledger.postgres_server import postgres_server


@pytest.fixture(scope="session")
def new_database() -> Iterator[Callable[[], str]]:
    """Makes an empty database on a running server and returns its address."""
    with postgres_server() as address:
        numbers = count()
        engine = create_engine(
            address.format(database="postgres").replace("postgresql:", "postgresql+psycopg:"),
            isolation_level="AUTOCOMMIT",
        )

        def make() -> str:
            name = f"ledger_{next(numbers)}"
            with engine.connect() as connection:
                connection.execute(text(f"CREATE DATABASE {name}"))
            return address.format(database=name)

        yield make
        engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a ledger that does not exist yet."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return request.getfixturevalue("new_database")()
