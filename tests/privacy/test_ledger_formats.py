"""Ledgers of older formats stay readable and usable, newer ones are refused, damaged ones are one sentence."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from tallytree.cli import main
from tallytree.errors import RequestError, StorageError, TallytreeError
from tallytree.model.part import Part
from tallytree.privacy.budget import Budget
from tallytree.privacy.ledger import (
    Purpose,
    close_account,
    complete,
    create_account,
    find_open,
    list_accounts,
    migrate_account,
    note_measured,
    read_history,
    reserve,
)
from tallytree.privacy.ledger_chain import FORMATS, Entry, history_as_json, history_from_json
from tallytree.privacy.ledger_checks import check_history
from tallytree.privacy.ledger_schema import VERSION
from tallytree.privacy.ledger_tables import ledger_url
from tallytree.privacy.ledger_terms import Parts

FIRST = Path(__file__).parents[1] / "fixtures" / "ledger-1.db"
ONE = Budget("pure", Fraction(1))
RECEIPT = {
    "dataset": "census",
    "position": 3,
    "key": "georgia",
    "definition": "pure",
    "amount": "1",
    "charge": "1",
}


@pytest.fixture
def first(tmp_path: Path) -> str:
    """A ledger that was written before accounts had parts and rows a format."""
    shutil.copy(FIRST, tmp_path / "ledger.db")
    return str(tmp_path / "ledger.db")


def test_a_ledger_of_the_first_format_is_read_as_it_is(first: str) -> None:
    before = Path(first).read_bytes()
    found = {account.dataset: (account.unit, account.spent, account.closed) for account in list_accounts(first)}
    assert found == {
        "census": ("entity", Fraction(3, 2), False),
        "old": ("entity", 0, True),
        "visits": ("person", Fraction(1, 8), False),
    }
    history = read_history(first, "census")
    assert check_history(history, [{**RECEIPT, "hash": history[3].hash}]) == []
    assert {entry.format for entry in history} == {FORMATS[0]}
    assert history_from_json(history_as_json(history)) == history
    opened = find_open(first, "census", "georgia")
    assert opened is not None
    assert opened.reservation == history[3]
    with pytest.raises(RequestError, match="no account 'nobody'"):
        read_history(first, "nobody")
    assert Path(first).read_bytes() == before


def test_it_is_used_and_keeps_its_rows(first: str) -> None:
    before = read_history(first, "census")
    reserve(first, "census", Budget("pure", Fraction(1, 2)), secure=True, purpose=Purpose(key="new"))
    after = read_history(first, "census")
    assert after[:-1] == before
    assert [entry.format for entry in after[-2:]] == list(FORMATS)
    assert check_history(after) == []
    note_measured(first, before[3], digest="d1")
    complete(first, before[3], result_digest="m1")
    migrate_account(first, "census", unit="person", parts=Parts("state", ("Georgia", "Ohio", "Texas")))
    assert read_history(first, "census")[-1].charge == 0  # both claims are listed parts
    reserve(first, "census", ONE, secure=True, unit="person")
    with pytest.raises(RequestError, match="no part"):
        reserve(first, "census", ONE, secure=True, unit="person", part=Part("state", "georgia"))
    assert check_history(read_history(first, "census")) == []
    with pytest.raises(Exception, match="append-only"), closing(sqlite3.connect(first)) as connection:
        connection.execute("DELETE FROM tallytree_ledger")


def test_old_accounts_keep_their_unit(first: str) -> None:
    reserve(first, "visits", Budget("pure", Fraction(1, 2)), secure=True, unit="person")
    with pytest.raises(RequestError, match="counts losses per 'person', this release protects 'entity'"):
        reserve(first, "visits", ONE, secure=True)
    with pytest.raises(RequestError, match="closed already"):
        close_account(first, "old")
    for account in list_accounts(first):
        assert check_history(read_history(first, account.dataset)) == []


def test_programs_of_the_first_format_cannot_write_to_this_one(first: str) -> None:
    migrate_account(first, "census")
    names = [field for field in read_history(first, "census")[0].as_row() if field != "format"]
    values = ", ".join(f"'{name}'" if name != "position" else "9" for name in names).replace("'kind'", "'close'")
    with closing(sqlite3.connect(first)) as connection, pytest.raises(sqlite3.IntegrityError, match="format"):
        connection.execute(f"INSERT INTO tallytree_ledger ({', '.join(names)}) VALUES ({values})")


def test_a_newer_format_is_refused_with_the_reason(ledger: str) -> None:
    create_account(ledger, "census", ONE)
    engine = create_engine(ledger_url(ledger))
    with engine.begin() as connection:
        connection.execute(text(f"INSERT INTO tallytree_ledger_version VALUES ({VERSION + 1})"))
    engine.dispose()
    for use in (lambda: list_accounts(ledger), lambda: reserve(ledger, "census", ONE, secure=True)):
        with pytest.raises(StorageError, match=f"has format {VERSION + 1}, which a newer tallytree wrote.*Upgrade"):
            use()


SERVER_OF_THE_FIRST_FORMAT = """
CREATE TABLE tallytree_ledger (dataset TEXT NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL,
 recorded_at TEXT NOT NULL, definition TEXT NOT NULL, unit TEXT NOT NULL, amount TEXT NOT NULL, charge TEXT NOT NULL,
 spent TEXT NOT NULL, key TEXT, part_of TEXT, part TEXT, purpose TEXT NOT NULL, digest TEXT NOT NULL, detail TEXT NOT NULL,
 previous_hash TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (dataset, position),
 CONSTRAINT tallytree_ledger_key UNIQUE (dataset, kind, key),
 CONSTRAINT tallytree_ledger_kind CHECK (kind IN ('create', 'reserve', 'complete', 'close')));
CREATE INDEX tallytree_ledger_part ON tallytree_ledger (dataset, part_of);
CREATE FUNCTION tallytree_ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS
 $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE TRIGGER tallytree_ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON tallytree_ledger
 FOR EACH STATEMENT EXECUTE FUNCTION tallytree_ledger_is_append_only();
"""


def test_a_server_of_the_first_format_is_upgraded_by_its_owner_alone(new_database: Callable[[], str]) -> None:
    ledger = new_database()
    user = ledger.replace("tallytree@", "statistician@")
    engine = create_engine(ledger_url(ledger))
    with engine.begin() as connection:
        connection.exec_driver_sql(SERVER_OF_THE_FIRST_FORMAT)
        connection.exec_driver_sql("CREATE ROLE statistician LOGIN")
        connection.exec_driver_sql("GRANT SELECT, INSERT ON tallytree_ledger TO statistician")
        for entry in read_history(str(FIRST), "census"):
            row = {name: value for name, value in entry.as_row().items() if name != "format"}
            columns = ", ".join(row)
            connection.execute(
                text(f"INSERT INTO tallytree_ledger ({columns}) VALUES ({', '.join(f':{name}' for name in row)})"), row
            )
    engine.dispose()
    before = read_history(user, "census")
    assert before == read_history(str(FIRST), "census")
    with pytest.raises(StorageError, match="only the owner of its table can upgrade it: tallytree ledger migrate"):
        reserve(user, "census", ONE, secure=True)
    migrate_account(ledger, "census")
    paid = reserve(user, "census", ONE, secure=True)
    note_measured(user, paid, digest="d1")
    history = read_history(user, "census")
    assert history[:-2] == before
    assert check_history(history) == []


def damaged_copies(whole: bytes, dice: random.Random, n: int) -> list[bytes]:
    """A file cut short, overwritten in places, with flipped bits, or of random bytes altogether."""
    copies = [b"", whole[:1], b"SQLite format 3\x00", whole[:16] + dice.randbytes(len(whole) - 16)]
    for _ in range(n):
        changed = bytearray(whole)
        match dice.randrange(4):
            case 0:
                changed = changed[: dice.randrange(len(whole))]
            case 1:
                start = dice.randrange(len(whole))
                changed[start : start + 100] = dice.randbytes(min(100, len(whole) - start))
            case 2:
                for _ in range(20):
                    changed[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
            case _:
                changed[: dice.randrange(100, 4096)] = bytes(100)
        copies.append(bytes(changed))
    return copies


@pytest.mark.parametrize("version", [1, 2])
def test_damaged_files_are_one_sentence_or_noticed(
    version: int, first: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if version == 2:
        migrate_account(first, "census", parts=Parts("state", ("Georgia", "Ohio")))
    whole = Path(first).read_bytes()
    truth = read_history(first, "census")
    address = tmp_path / "damaged.db"
    refused = 0
    for copy in damaged_copies(whole, random.Random(version), 150):
        address.write_bytes(copy)
        history: list[Entry] = []
        with suppress(TallytreeError):
            history = read_history(str(address), "census")
        # What can still be read is the beginning of the truth, or the check notices.
        assert check_history(history) or history == truth[: len(history)]
        for use in (
            lambda: list_accounts(str(address)),
            lambda: find_open(str(address), "census", "georgia"),
            lambda: reserve(str(address), "census", Budget("pure", Fraction(1, 100)), secure=True),
        ):
            refused += bool(complaint_of(use))
    assert refused > 100
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(["ledger", "status", "--ledger", str(address)])
    assert end.value.code in (0, 2)
    assert len(capsys.readouterr().err.splitlines()) <= 1


VALUES = [None, 7, -1, 2.5, b"\xff\x00", "", "x", "1/0", "1e99999999", "9" * 9999, "\N{SNOWMAN}", '{"parts": 1}']


@pytest.mark.parametrize("column", list(read_history(str(FIRST), "census")[0].as_row()))
def test_wrong_values_in_rows_are_one_sentence(column: str, first: str) -> None:
    migrate_account(first, "census")
    with closing(sqlite3.connect(first, isolation_level=None)) as connection:
        # A table without any of its constraints, as another program might leave it.
        connection.execute("CREATE TABLE loose AS SELECT * FROM tallytree_ledger WHERE dataset = 'census'")
        connection.execute("DROP TABLE tallytree_ledger")
        connection.execute("ALTER TABLE loose RENAME TO tallytree_ledger")
        for row in (1, 3):  # not the last one: that it is missing only a receipt can show
            saved = connection.execute(f"SELECT {column} FROM tallytree_ledger WHERE rowid = {row}").fetchone()[0]
            for value in VALUES:
                if str(value) == str(saved) or value == saved:
                    continue
                connection.execute(f"UPDATE tallytree_ledger SET {column} = ? WHERE rowid = {row}", (value,))
                complaint = complaint_of(lambda: read_history(first, "census"))
                assert complaint or check_history(read_history(first, "census"))
                complaint_of(lambda: list_accounts(first))
                complaint_of(lambda: find_open(first, "census", "georgia"))
            connection.execute(f"UPDATE tallytree_ledger SET {column} = ? WHERE rowid = {row}", (saved,))
    assert check_history(read_history(first, "census")) == []


def complaint_of(use: Callable[[], object]) -> str:
    """What the one sentence says, empty where nothing is wrong; any other error is one of ours."""
    try:
        use()
    except TallytreeError as refusal:
        complaint = str(refusal)
    else:
        return ""
    assert complaint
    assert "\n" not in complaint
    return complaint
