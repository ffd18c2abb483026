"""A seed makes noise repeatable, so a release made with one says everywhere that it is not private."""

import base64
import gzip
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import RequestError
from tallytree.kinds.verbs import verify_privacy
from tallytree.ledger.accounts import create_account
from tallytree.privacy.budget import Budget, exact

COMMANDS = {
    "release": [
        "release",
        "rows.parquet",
        "--public",
        "groups",
        "--group",
        "household",
        "--levels",
        "state",
    ],
    "histogram": [
        "histogram",
        "rows.parquet",
        "--column",
        "household",
        "--bins",
        "4",
        "--bounds",
        "0,8",
    ],
    "degrees": ["degrees", "rows.parquet", "--public", "groups", "--column", "household"],
    "stream": ["stream", "rows.parquet", "--column", "age", "--until", "60"],
    "spatial": ["spatial", "rows.parquet", "--columns", "household,age", "--box", "0:8,0:80"],
}


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = {
        "household": [1, 1, 2, 3, 3, 3, 4],
        "state": ["GA"] * 6 + ["NY"],
        "age": [3, 40, 31, 8, 9, 70, 22],
    }
    pq.write_table(pa.table(rows), "rows.parquet")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_seeded_release_is_marked_everywhere(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*COMMANDS[name], "--epsilon", "1", "--out", "out", "--insecure-seed", "7"]
    assert run(*command) == 0
    assert "NOT PRIVATE" in capsys.readouterr().err
    assert run(*command, *(["--overwrite"] if name != "stream" else []), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["private"] is False
    assert "NOT PRIVATE" in told["statement"]
    privacy = json.loads(Path("out/manifest.json").read_text())["privacy"]
    assert privacy["private"] is False
    assert "NOT PRIVATE" in privacy["statement"]
    loaded = tt.load("out")
    assert not loaded.private
    assert "NOT PRIVATE" in repr(loaded)
    assert "the noise came from secure randomness" in [
        check.name for check in verify_privacy("out").checks if not check.passed
    ]
    assert run("verify", "--privacy", "out") == 1


def test_the_report_says_so_too() -> None:
    assert run(*COMMANDS["release"], "--epsilon", "1", "--out", "out", "--insecure-seed", "7") == 0
    assert run("report", "out") == 0
    page = Path("out/report.html").read_text(encoding="utf-8")
    packed = max(re.findall(r"[A-Za-z0-9+/=]{200,}", page), key=len)
    assert "NOT PRIVATE" in json.loads(gzip.decompress(base64.b64decode(packed)))["watermark"]


def test_the_ledger_refuses_seeds() -> None:
    create_account("ledger.db", "census", Budget("pure", exact(3, "epsilon")))
    counts = tt.read("rows.parquet", group="household", levels=["state"], public="groups")
    with pytest.raises(RequestError, match="insecure seed"):
        tt.release(counts, epsilon=1, insecure_seed=1, ledger="ledger.db", dataset="census")


def test_without_a_seed_noise_is_fresh() -> None:
    counts = tt.read("rows.parquet", group="household", levels=["state"], public="groups")
    runs = [
        tt.release(counts, epsilon=0.01, view="sizes").noisy.levels[0].queries[0].values
        for _ in range(2)
    ]  # type: ignore[union-attr]
    assert (runs[0] != runs[1]).any()
