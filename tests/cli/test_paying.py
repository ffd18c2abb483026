"""Every command that releases pays from the ledger, once per key."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallytree.cli import main

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
}


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(
        pa.table({"household": [1, 1, 2, 3, 3, 3, 4], "state": ["GA"] * 6 + ["NY"]}), "rows.parquet"
    )
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_pays_once_and_is_refused_what_is_not_there(
    name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("ledger", "create", "--dataset", "census", "--epsilon", "1.5") == 0
    command = [
        *COMMANDS[name],
        "--epsilon",
        "1",
        "--ledger",
        "ledger.db",
        "--dataset",
        "census",
        "--json",
    ]
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


SPELLINGS = ["Georgia", "georgia", "GA", "Georgia "]
STATES = [*SPELLINGS, "Ohio", "Texas"]


def spent(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run("ledger", "verify", "--dataset", "census") == 0
    assert run("ledger", "status", "--json", "--dataset", "census") == 0
    return str(json.loads(capsys.readouterr().out)["spent"])


@pytest.fixture
def people(place: Path) -> None:
    rows = {"household": list(range(6)) * 2, "state": STATES * 2, "x": [0.5] * 12, "y": [0.5] * 12}
    pq.write_table(pa.table(rows), "rows.parquet")


PAID = ["--epsilon", "1", "--ledger", "ledger.db", "--dataset", "census"]
KINDS = {
    **COMMANDS,
    "stream": ["stream", "rows.parquet", "--column", "household", "--start", "0", "--until", "5"],
    "spatial": [
        "spatial",
        "rows.parquet",
        "--columns",
        "x,y",
        "--box",
        "0:1,0:1",
        "--resolution",
        "4",
    ],
}


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("name", KINDS)
def test_four_spellings_are_never_charged_as_one(
    name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        "ledger",
        "create",
        "--dataset",
        "census",
        "--epsilon",
        "9",
        "--parts",
        "state=Georgia,Ohio,Texas",
    )
    for number, spelling in enumerate(SPELLINGS):
        ended = run(*KINDS[name], *PAID, "--part", f"state={spelling}", "--out", f"out{number}")
        assert ended == (0 if spelling == "Georgia" else 2)
        assert (place / f"out{number}").exists() == (spelling == "Georgia")
    assert spent(capsys) == "1"
    for number, spelling in enumerate(
        SPELLINGS
    ):  # as filters without a part they are charged one by one
        assert (
            run(*KINDS[name], *PAID, "--where", f"state={spelling}", "--out", f"filtered{number}")
            == 0
        )
    assert spent(capsys) == "5"
    for state in ("Ohio", "Texas"):  # three true parts cost as much as the costliest
        assert run(*KINDS[name], *PAID, "--part", f"state={state}", "--out", state) == 0
        manifest = json.loads((place / state / "manifest.json").read_text())
        assert manifest["where"] == {"column": "state", "value": state}
        assert (
            manifest["privacy"]["ledger"]["part_of"],
            manifest["privacy"]["ledger"]["part"],
        ) == ("state", state)
    assert spent(capsys) == "5"
    assert (
        run(
            "ledger", "verify", "--dataset", "census", "--release", "Ohio", "--release", "filtered3"
        )
        == 0
    )


@pytest.mark.usefixtures("people")
def test_a_filtered_release_is_compared_with_the_rows_it_is_about(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        run(*COMMANDS["release"], "--epsilon", "1000", "--where", "state=Ohio", "--out", "out") == 0
    )
    capsys.readouterr()
    assert (
        run(
            "evaluate", "out", "rows.parquet", "--group", "household", "--levels", "state", "--json"
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["levels"][0]["emd"] == 0
    assert run("query", "out", "--json") == 0
    assert json.loads(capsys.readouterr().out)["groups"] == 1


@pytest.mark.usefixtures("people")
def test_a_part_and_a_filter_exclude_each_other_and_a_config_may_hold_either(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        "ledger", "create", "--dataset", "census", "--epsilon", "9", "--parts", "state=Georgia,Ohio"
    )
    assert (
        run(*COMMANDS["release"], *PAID, "--part", "state=Ohio", "--where", "x=0.5", "--out", "out")
        == 2
    )
    assert "leave out --where" in capsys.readouterr().err
    config = 'source = "rows.parquet"\ngroup = "household"\nlevels = "state"\npublic = "groups"\nepsilon = 1\nout = "out"\n'
    (place / "part.toml").write_text(
        config + 'part = "state=Ohio"\nledger = "ledger.db"\ndataset = "census"\n'
    )
    assert run("release", "part.toml") == 0
    assert json.loads((place / "out" / "manifest.json").read_text())["where"]["value"] == "Ohio"
    assert (
        run(*COMMANDS["release"], "--epsilon", "1", "--where", "stat=Ohio", "--out", "other") == 2
    )


def test_tampering_with_a_manifest_is_found_by_the_ledger(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("ledger", "create", "--dataset", "census", "--epsilon", "1")
    assert run(*COMMANDS["release"], *PAID, "--out", "out") == 0
    check = ["ledger", "verify", "--dataset", "census", "--release", "out"]
    assert run(*check) == 0
    path = place / "out" / "manifest.json"
    whole = path.read_bytes()
    for old, new in (
        (b"e^1", b"e^0.01"),
        (b"declared public", b"confidential"),
        (b'"hierarchy_sha256": "', b'"hierarchy_sha256": "0'),
    ):
        assert old in whole
        path.write_bytes(whole.replace(old, new))
        assert run(*check) == 1
    path.write_bytes(whole)
    assert run(*check) == 0


def test_a_release_for_another_key_does_not_replace_one(place: Path) -> None:
    run("ledger", "create", "--dataset", "census", "--epsilon", "3")
    command = [
        *COMMANDS["release"],
        "--epsilon",
        "1",
        "--ledger",
        "ledger.db",
        "--dataset",
        "census",
        "--out",
        "out",
    ]
    assert run(*command, "--idempotency-key", "spring") == 0
    before = (place / "out" / "manifest.json").read_bytes()
    assert run(*command, "--idempotency-key", "summer") == 2
    assert (place / "out" / "manifest.json").read_bytes() == before


def test_intervals_that_cannot_be_made_are_refused_before_anything_is_paid(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("ledger", "create", "--dataset", "census", "--epsilon", "3")
    assert run(*COMMANDS["release"], *PAID, "--intervals", "1", "--out", "one") == 2
    assert "at least 2 copies" in capsys.readouterr().err
    assert spent(capsys) == "0"
    assert not (place / "one").exists()
