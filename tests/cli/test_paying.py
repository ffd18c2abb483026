"""Every command that releases pays from the ledger, once per key."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallytree.cli import main

COMMANDS = {
    "release": ["release", "rows.parquet", "--group", "household", "--levels", "state"],
    "histogram": ["histogram", "rows.parquet", "--column", "household", "--bins", "4", "--bounds", "0,8"],
    "degrees": ["degrees", "rows.parquet", "--column", "household"],
}


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"household": [1, 1, 2, 3, 3, 3, 4], "state": ["GA"] * 6 + ["NY"]}), "rows.parquet")
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_pays_once_and_is_refused_what_is_not_there(
    name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("ledger", "create", "--dataset", "census", "--epsilon", "1.5") == 0
    command = [*COMMANDS[name], "--epsilon", "1", "--ledger", "ledger.db", "--dataset", "census", "--json"]
    capsys.readouterr()
    for before in (False, True):
        assert run(*command, "--out", "out", "--idempotency-key", "spring") == 0
        assert json.loads(capsys.readouterr().out)["already_released"] is before
    assert run("verify", "--privacy", "out") == 0
    assert run("ledger", "verify", "--dataset", "census", "--release", "out") == 0
    capsys.readouterr()
    assert run(*command, "--out", "more") == 3
    refused = capsys.readouterr()
    assert "has ε = 0.5 left of 1.5; the release asks for ε = 1" in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    assert refused.out == ""
    assert not (place / "more").exists()
    assert run(*command, "--insecure-seed", "1", "--out", "more") == 2
    assert run("ledger", "status", "--dataset", "census", "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["spent"], status["unfinished"]) == ("1", [])


@pytest.mark.parametrize(
    "options",
    [
        ["--dataset", "census"],
        ["--ledger", "ledger.db"],
        ["--idempotency-key", "spring"],
        ["--part", "state=GA"],
        ["--ledger", "ledger.db", "--dataset", "census", "--part", "GA"],
        ["--ledger", "ledger.db", "--dataset", "nobody"],
    ],
)
def test_half_a_payment_is_refused(options: list[str], place: Path) -> None:
    run("ledger", "create", "--dataset", "census", "--epsilon", "3")
    assert run(*COMMANDS["release"], "--epsilon", "1", "--out", "out", *options) == 2
    assert not (place / "out").exists()


def test_parts_are_paid_in_parallel(capsys: pytest.CaptureFixture[str]) -> None:
    run("ledger", "create", "--dataset", "census", "--epsilon", "1", "--parts", "state=GA,NY")
    for state in ("GA", "NY"):
        paid = ["--ledger", "ledger.db", "--dataset", "census", "--part", f"state={state}"]
        assert run(*COMMANDS["release"], "--epsilon", "1", "--out", state, *paid) == 0
    capsys.readouterr()
    run("ledger", "status", "--json", "--dataset", "census")
    assert json.loads(capsys.readouterr().out)["remaining"] == "0"


def test_a_release_for_another_key_does_not_replace_one(place: Path) -> None:
    run("ledger", "create", "--dataset", "census", "--epsilon", "3")
    command = [*COMMANDS["release"], "--epsilon", "1", "--ledger", "ledger.db", "--dataset", "census", "--out", "out"]
    assert run(*command, "--idempotency-key", "spring") == 0
    before = (place / "out" / "manifest.json").read_bytes()
    assert run(*command, "--idempotency-key", "summer") == 2
    assert (place / "out" / "manifest.json").read_bytes() == before
