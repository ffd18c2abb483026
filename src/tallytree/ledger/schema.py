"""The ledger's tables: ``tallytree_ledger`` with a row per entry, ``tallytree_ledger_version`` with
their format.
"""

from __future__ import annotations

from typing import get_args

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    func,
    insert,
    select,
    text,
    union_all,
)

from tallytree.errors import StorageError
from tallytree.ledger.chain import Kind
from tallytree.model.unit import ENTITY

VERSION = 1

_KINDS = ", ".join(f"'{kind}'" for kind in get_args(Kind))

metadata = MetaData()
versions = Table(
    "tallytree_ledger_version",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
)
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
    Column("format", Text, nullable=False),
    UniqueConstraint("dataset", "kind", "key", name="tallytree_ledger_key"),
    CheckConstraint(f"kind IN ({_KINDS})", name="tallytree_ledger_kind"),
)
Index("tallytree_ledger_part", entries.c.dataset, entries.c.part_of)
Index("tallytree_ledger_unit", entries.c.dataset, entries.c.unit)

_of_account = entries.c.dataset == bindparam("dataset")
_of_key = entries.c.key == bindparam("key")
_last_position = select(func.max(entries.c.position)).where(_of_account).scalar_subquery()


def _one_with(*conditions: object) -> object:
    """The position of one row, found by an index; which one does not matter."""
    return select(entries.c.position).where(_of_account, *conditions).limit(1).scalar_subquery()  # type: ignore[arg-type]


# The first and the last row of an account, those that fix its terms, its closing row, the rows
# under a key, and a row with a name for the unit. One part per index: a single OR would make SQLite
# read the whole account.
DECIDING_ROWS = union_all(
    *(
        select(entries).where(_of_account, condition)
        for condition in (
            entries.c.position == 0,
            entries.c.position == _last_position,
            entries.c.position == _one_with(entries.c.unit > ENTITY),
            entries.c.position == _one_with(entries.c.unit < ENTITY),
            entries.c.kind == "terms",
            entries.c.kind == "close",
            and_(entries.c.kind == "reserve", _of_key),
            and_(entries.c.kind == "measured", _of_key),
            and_(entries.c.kind == "complete", _of_key),
            and_(entries.c.kind == "advance", _of_key),
        )
    )
)

# A guard against accidents and against other programs; whoever owns the database can drop it, which
# the hash chain and the receipts in the manifests are for.
_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER tallytree_ledger_no_{action.lower()} BEFORE {action} ON tallytree_ledger "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for action in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE OR REPLACE FUNCTION tallytree_ledger_is_append_only() RETURNS trigger LANGUAGE "
        "plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
        "CREATE TRIGGER tallytree_ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON "
        "tallytree_ledger "
        "FOR EACH STATEMENT EXECUTE FUNCTION tallytree_ledger_is_append_only()",
    ],
}
_TABLES_THERE = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN (:entries, "
    ":versions)",
    "postgresql": "SELECT name FROM unnest(ARRAY[:entries, :versions]) AS name WHERE "
    "to_regclass(name) IS NOT NULL",
}


def stored_version(connection: Connection) -> int:
    """Version of the ledger that is there; 0 for none."""
    names = {"entries": entries.name, "versions": versions.name}
    there = set(connection.execute(text(_TABLES_THERE[connection.dialect.name]), names).scalars())
    if entries.name not in there:
        return 0
    version = (
        connection.execute(select(func.max(versions.c.version))).scalar()
        if versions.name in there
        else None
    )
    if not isinstance(version, int) or version < 1:
        raise StorageError(
            "The ledger does not say which format it has; it is damaged. Nothing may be released."
        )
    return version


def make_schema(connection: Connection) -> None:
    """Make the tables of this version."""
    metadata.create_all(connection)
    for statement in _APPEND_ONLY[connection.dialect.name]:
        connection.exec_driver_sql(statement)
    connection.execute(insert(versions).values(version=VERSION))
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("GRANT SELECT ON tallytree_ledger_version TO PUBLIC")
