"""Ledgers of format 1 stay readable and usable, newer ones are refused, damaged ones are one
sentence.
"""

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
from tallytree.errors import StorageError, TallytreeError
from tallytree.ledger.accounts import (
    Purpose,
    complete,
    create_account,
    find_open,
    list_accounts,
    note_measured,
    read_history,
    reserve,
)
from tallytree.ledger.chain import FORMAT, Entry, history_as_json, history_from_json
from tallytree.ledger.checks import check_history
from tallytree.ledger.schema import VERSION
from tallytree.ledger.tables import ledger_url
from tallytree.privacy.budget import Budget

FROZEN = Path(__file__).parents[1] / "fixtures" / "format-1" / "ledger.db"
ONE = Budget("pure", Fraction(1))


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """A copy of a ledger that was written in format 1."""
    shutil.copy(FROZEN, tmp_path / "ledger.db")
    return str(tmp_path / "ledger.db")


def test_a_ledger_of_format_1_is_read_and_used(saved: str) -> None:
    found = {
        account.dataset: (account.unit, account.spent, account.closed)
        for account in list_accounts(saved)
    }
    assert found == {
        "census": ("entity", Fraction(3, 2), False),
        "old": ("entity", 0, True),
        "visits": ("person", Fraction(1, 8), False),
    }
    history = read_history(saved, "census")
    assert {entry.format for entry in history} == {FORMAT}
    assert history_from_json(history_as_json(history)) == history
    opened = find_open(saved, "census", "georgia")
    assert opened is not None
    reserve(
        saved, "census", Budget("pure", Fraction(1, 2)), secure=True, purpose=Purpose(key="new")
    )
    note_measured(saved, opened.reservation, digest="d1")
    complete(saved, opened.reservation, result_digest="m1")
    after = read_history(saved, "census")
    assert after[: len(history)] == history
    assert check_history(after, [opened.reservation.receipt()]) == []
    with (
        pytest.raises(Exception, match="append-only"),
        closing(sqlite3.connect(saved)) as connection,
    ):
        connection.execute("DELETE FROM tallytree_ledger")


def test_a_newer_format_is_refused_with_the_reason(ledger: str) -> None:
    create_account(ledger, "census", ONE)
    engine = create_engine(ledger_url(ledger))
    with engine.begin() as connection:
        connection.execute(text(f"INSERT INTO tallytree_ledger_version VALUES ({VERSION + 1})"))
    engine.dispose()
    for use in (lambda: list_accounts(ledger), lambda: reserve(ledger, "census", ONE, secure=True)):
        with pytest.raises(
            StorageError, match=f"has format {VERSION + 1}, which a newer tallytree wrote.*Upgrade"
        ):
            use()


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


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_files_are_one_sentence_or_noticed(
    seed: int, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Path(saved).read_bytes()
    truth = read_history(saved, "census")
    address = tmp_path / "damaged.db"
    refused = 0
    for copy in damaged_copies(whole, random.Random(seed), 150):
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


VALUES = [
    None,
    7,
    -1,
    2.5,
    b"\xff\x00",
    "",
    "x",
    "1/0",
    "1e99999999",
    "9" * 9999,
    "\N{SNOWMAN}",
    '{"parts": 1}',
]


@pytest.mark.parametrize("column", list(read_history(str(FROZEN), "census")[0].as_row()))
def test_wrong_values_in_rows_are_one_sentence(column: str, saved: str) -> None:
    with closing(sqlite3.connect(saved, isolation_level=None)) as connection:
        # A table without any of its constraints, as another program might leave it.
        connection.execute(
            "CREATE TABLE loose AS SELECT * FROM tallytree_ledger WHERE dataset = 'census'"
        )
        connection.execute("DROP TABLE tallytree_ledger")
        connection.execute("ALTER TABLE loose RENAME TO tallytree_ledger")
        for row in (1, 3):  # not the last one: that it is missing only a receipt can show
            before = connection.execute(
                f"SELECT {column} FROM tallytree_ledger WHERE rowid = {row}"
            ).fetchone()[0]
            for value in VALUES:
                if str(value) == str(before) or value == before:
                    continue
                connection.execute(
                    f"UPDATE tallytree_ledger SET {column} = ? WHERE rowid = {row}", (value,)
                )
                complaint = complaint_of(lambda: read_history(saved, "census"))
                assert complaint or check_history(read_history(saved, "census"))
                complaint_of(lambda: list_accounts(saved))
                complaint_of(lambda: find_open(saved, "census", "georgia"))
            connection.execute(
                f"UPDATE tallytree_ledger SET {column} = ? WHERE rowid = {row}", (before,)
            )
    assert check_history(read_history(saved, "census")) == []


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
