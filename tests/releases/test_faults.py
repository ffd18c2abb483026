"""A fault at every write and a power cut at every flush: what was paid for ends in one release,
after one more run.
"""

import errno
import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import StorageError
from tallytree.ledger import accounts as ledger
from tallytree.ledger.accounts import create_account, read_history
from tallytree.ledger.chain import summarise
from tallytree.ledger.checks import check_history
from tallytree.privacy.budget import Budget
from tallytree.storage import rename
from tests.releases.power_cuts import ForgetfulDisk

PEOPLE = pa.table({"household": [1, 1, 2, 3, 3, 3, 4, 5, 5], "state": ["GA"] * 6 + ["NY"] * 3})
READ = ["--public", "groups", "--group", "household", "--levels", "state"]
RELEASES = {
    "group sizes": ["release", "people.parquet", *READ, "--epsilon", "1"],
    "histogram": [
        "histogram",
        "people.parquet",
        "--column",
        "household",
        "--bounds",
        "0,8",
        "--bins",
        "8",
        "--epsilon",
        "1",
    ],
}
# Every case of every kind: TALLYTREE_FUZZ=2 pytest tests/releases/test_faults.py
THOROUGH = int(os.environ.get("TALLYTREE_FUZZ", "1")) > 1
KEYS = {"group sizes": ["--idempotency-key", "monday"], "histogram": []}


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


def command(name: str) -> list[str]:
    paid = ["--ledger", "ledger.db", "--dataset", "census", "--out", "deep/out"]
    return [*RELEASES[name], *paid, *KEYS[name]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data and a ledger, in which the process stands."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    pq.write_table(PEOPLE, "people.parquet")
    create_account("ledger.db", "census", Budget("pure", Fraction(10)))
    return home


def finish(name: str) -> None:
    """What a user does who finds that a run died: resume, or where that needs the data, the same
    command again.
    """
    n_paid = len(reservations())
    code = (
        run("resume", "deep/out", "--ledger", "ledger.db")
        if Path("deep/.out.tallytree").exists()
        else 2
    )
    if code != 0 and not Path("deep/out").exists():
        assert run(*command(name)) == 0
    assert len(reservations()) == max(1, n_paid)
    assert_one_complete_release()


def reservations() -> list[Any]:
    return [entry for entry in read_history("ledger.db", "census") if entry.kind == "reserve"]


def assert_one_complete_release() -> None:
    history = read_history("ledger.db", "census")
    assert check_history(history) == []
    assert [entry.kind for entry in history] == ["create", "reserve", "measured", "complete"]
    assert summarise(history).spent == 1
    assert tt.verify("deep/out")
    assert (
        run(
            "ledger",
            "verify",
            "--ledger",
            "ledger.db",
            "--dataset",
            "census",
            "--release",
            "deep/out",
        )
        == 0
    )
    assert [path.name for path in Path("deep").iterdir()] == ["out"]


@pytest.mark.parametrize(
    "names", [False, True], ids=["unflushed names are lost", "unflushed names are kept"]
)
@pytest.mark.parametrize("name", RELEASES)
def test_a_power_cut_at_every_flush(
    name: str, names: bool, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts: list[Path] = []

    def cut(number: int) -> None:
        there = tmp_path / f"cut-{number}"
        disk.leave(there, names=names)
        # SQLite flushes by itself, inside the transaction: what it committed is there.
        shutil.copy("ledger.db", there / "ledger.db")
        shutil.copy("people.parquet", there / "people.parquet")
        cuts.append(there)

    disk = ForgetfulDisk(place, cut)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk.fsync)
        assert run(*command(name)) == 0
        cut(disk.n_flushed)
    assert disk.n_flushed > 20
    every = 1 if THOROUGH else 6
    for there in cuts[::every]:
        monkeypatch.chdir(there)
        finish(name)


class FullDisk:
    """Refuses the write with a certain number, as a full disk does: a file opened to write, a
    flush, a new name, a row.
    """

    def __init__(self, patch: pytest.MonkeyPatch, number: int | None = None) -> None:
        self.number, self.n_writes = number, 0
        for owner, name in (
            (os, "fsync"), (Path, "mkdir"), (Path, "rename"), (Path, "write_text"), (pq.ParquetWriter, "write_batch"),
            (pq.ParquetWriter, "close"), (rename, "_renameat2"), (Path, "chmod"),
        ):  # fmt: skip
            patch.setattr(owner, name, self._watched(getattr(owner, name)))
        opened = Path.open

        def open_file(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if mode[0] in "wax":
                self._write()
            return opened(path, mode, *arguments, **options)

        patch.setattr(Path, "open", open_file)
        written = ledger.write_row

        def write_row(*arguments: Any) -> Any:
            try:
                self._write()
            except OSError as error:
                raise StorageError(str(error)) from None
            return written(*arguments)

        patch.setattr(ledger, "write_row", write_row)

    def _watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            self._write()
            return function(*arguments, **options)

        return watched

    def _write(self) -> None:
        self.n_writes += 1
        if self.n_writes == self.number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", RELEASES)
def test_a_full_disk_at_every_write(
    name: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path(shutil.copytree(place, tmp_path / "clean")))
        disk = FullDisk(patch)
        assert run(*command(name)) == 0
    assert disk.n_writes > 40
    for number in range(1, disk.n_writes + 1, 1 if THOROUGH else 9):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(Path(shutil.copytree(place, tmp_path / f"full-{number}")))
            with pytest.MonkeyPatch.context() as full:
                FullDisk(full, number)
                capsys.readouterr()
                code = run(*command(name))
            told = capsys.readouterr().err
            if reservations() and not Path("deep/out").exists():
                assert code == 4, f"write {number}: {told}"
                assert "tallytree resume" in told
            assert code in (0, 2, 4), told
            assert "Traceback" not in told
            finish(name)
