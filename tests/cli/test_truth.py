"""The owner names the confidential data by the request that released them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallytree.cli import main

READ = ["--group", "household", "--levels", "state"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, two requests and their releases."""
    monkeypatch.chdir(tmp_path)
    people = pa.table(
        {"household": [1, 1, 2, 3, 4], "state": ["GA", "GA", "GA", "NY", "NY"], "age": range(5)}
    )
    pq.write_table(people, "people.parquet")
    (tmp_path / "request.toml").write_text(
        'source = "people.parquet"\npublic = "groups"\ngroup = "household"\nlevels = "state"\n'
        'epsilon = 1\nengine = "local"\nout = "out"\n'
    )
    (tmp_path / "ages.toml").write_text(
        'source = "people.parquet"\ncolumn = "age"\nedges = [0, 2, 5]\nepsilon = 1\nout = "ages"\n'
    )
    run("release", "request.toml")
    run("histogram", "ages.toml")
    return tmp_path


def run(*words: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == code


def test_evaluate_takes_the_request_of_any_kind(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for words in (["people.parquet", *READ], ["request.toml"]):
        capsys.readouterr()
        run("evaluate", "out", *words, "--json")
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert [level["regions"] for level in found[0]["levels"]] == [1, 2]
    run("evaluate", "ages", "ages.toml", "--range", "0:2", "--json")
    by_request = json.loads(capsys.readouterr().out)
    run("evaluate", "ages", "people.parquet", "--column", "age", "--range", "0:2", "--json")
    assert by_request == json.loads(capsys.readouterr().out)


def test_a_flag_wins_over_the_request(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("evaluate", "out", "request.toml", "--group", "nobody", code=2)
    assert "nobody" in capsys.readouterr().err


def test_a_report_shows_the_errors_of_the_request(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("report", "out", "--truth", "request.toml", "--out", "mine.html")
    assert "CONFIDENTIAL" in (place / "mine.html").read_text(encoding="utf-8").upper()
    run("report", "out", "--truth", "people.parquet", "--out", "other.html", code=2)
    assert "CONFIG.toml" in capsys.readouterr().err
    run("report", "out", "--truth", "ages.toml", "--out", "other.html", code=2)
    assert "unknown option: column" in capsys.readouterr().err
    assert not (place / "other.html").exists()
