"""The whole life of a stream on the command line."""

import json
import shutil
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.storage.work import claim
from tests.forging import forge

STREAM = [
    "stream", "visits.parquet", "--column", "day", "--start", "2025-01-01", "--every", "day", "--horizon", "365",
    "--rho", "1/2", "--definition", "zcdp", "--entity", "visit", "--out", "out",
]  # fmt: skip
PAID = ["--ledger", "ledger.db", "--dataset", "visits"]


def with_options(options: list[str]) -> list[str]:
    """The call with these options instead of its own ones of the same names."""
    words, names = list(STREAM), options[::2]
    for name in names:
        if name in words:
            del words[words.index(name) : words.index(name) + 2]
    return [*words, *options]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    days = np.sort(np.random.default_rng(1).integers(0, 60, 3000))
    pq.write_table(
        pa.table({"day": [date(2025, 1, 1) + timedelta(days=int(day)) for day in days]}),
        "visits.parquet",
    )
    return tmp_path


def test_the_life_of_a_stream(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ledger", "create", "--dataset", "visits", "--rho", "1", "--unit", "visit") == 0
    before: dict[str, pa.Table] = {}
    for until, n_steps in (("2025-01-10", 10), ("2025-01-11", 11), ("2025-02-28", 59)):
        capsys.readouterr()
        assert run(*STREAM, *PAID, "--until", until, "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert told["steps"] == n_steps
        assert "that a row stays in the step in which it was first counted" in told["statement"]
        tables = {
            name: pq.read_table(place / "out" / name)
            for name in ("counts.parquet", "noisy.parquet")
        }
        for name, table in before.items():
            assert tables[name].slice(0, table.num_rows).equals(table)
        before = tables
        assert run("verify", "out") == run("verify", "--privacy", "out") == 0
        assert run("ledger", "verify", *PAID, "--release", "out") == 0
    manifest = json.loads((place / "out" / "manifest.json").read_text())
    shutil.copytree("out", "forged")
    forge(place / "forged", {**manifest, "steps": {**manifest["steps"], "start": "2024-01-01"}})
    assert run("ledger", "verify", *PAID, "--release", "forged") == 1
    capsys.readouterr()
    assert run("ledger", "status", "--dataset", "visits", "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["spent"], status["unfinished"]) == ("1/2", [])
    assert run("query", "out", "--range", "2025-02-01:2025-02-28", "--json") == 0
    (answer,) = json.loads(capsys.readouterr().out)["answers"]
    days = np.array(pq.read_table("visits.parquet")["day"].to_pylist())
    truth = int(((days >= date(2025, 2, 1)) & (days <= date(2025, 2, 28))).sum())
    assert abs(answer["estimate"] - truth) < 8 * answer["std_error"]
    assert run("report", "out") == 0
    assert run(*STREAM, *PAID, "--until", "2025-03-01") == 0  # does not mind the report
    assert "out holds 60 steps, up to 2025-03-01 (scaled-root)" in capsys.readouterr().err


def test_refusals_change_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*STREAM, "--until", "2025-01-10") == 0
    kept = {file.name: file.read_bytes() for file in (place / "out").iterdir()}
    for options, told in (
        (["--until", "2025-01-09"], "is released up to step 2025-01-10 already"),
        (["--until", "2025-01-11", "--horizon", "366"], "holds another stream: horizon"),
        (["--until", "2025-01-11", "--rho", "1"], "holds another stream: rho"),
        (["--until", "2025-01-11", "--every", "week"], "holds another stream: every"),
        (["--until", "2025-01-11", "--column", "time"], "has no column 'time'"),
        (["--until", "soon"], "A date is written as in 2025-01-31"),
    ):
        capsys.readouterr()
        assert run(*with_options(options)) == 2
        told_here = capsys.readouterr().err
        assert told in told_here
        assert len(told_here.strip().splitlines()) == 1
    work = claim("out", overwrite=True)
    assert run(*STREAM, "--until", "2025-01-11") == 2
    assert "Another run is writing" in capsys.readouterr().err
    work.release()
    assert {file.name: file.read_bytes() for file in (place / "out").iterdir()} == kept
    assert run(*STREAM, "--until", "2025-01-11") == 0
    assert tt.load("out").n_steps == 11


def test_a_stream_without_a_horizon(capsys: pytest.CaptureFixture[str]) -> None:
    without = [word for word in STREAM if word not in ("--horizon", "365")]
    for until in ("2025-01-10", "2025-02-10"):
        assert run(*without, "--until", until) == 0
    assert tt.load("out").plan.epochs == (2**10, 2**20)
    assert run("verify", "out") == 0
