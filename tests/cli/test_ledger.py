"""``tallytree ledger`` as a user meets it."""

import csv
import hashlib
import io
import json
from pathlib import Path

import pytest

from tallytree.cli import main
from tallytree.ledger.accounts import Purpose, complete, find_reservation, reserve
from tallytree.ledger.chain import history_from_json
from tallytree.privacy.budget import Budget, exact


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["ledger", *arguments])
    return int(end.value.code or 0)


def pay(amount: str, key: str = "", dataset: str = "census") -> dict[str, str | int]:
    purpose = Purpose(key=key, summary="[bold]households[/bold] by size")
    return reserve(
        "ledger.db", dataset, Budget("pure", exact(amount, "epsilon")), secure=True, purpose=purpose
    ).receipt()


def test_the_life_of_an_account(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("create", "--dataset", "census", "--epsilon", "3", "--json") == 0
    created = json.loads(capsys.readouterr().out)
    assert created["total"] == created["remaining"] == "3"
    pay("1/3", key="first")
    assert run("status", "--dataset", "census", "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["spent"], status["remaining"], status["unfinished"]) == ("1/3", "8/3", ["first"])
    assert status["remaining_decimal"] == 2.666666666
    assert run("status", "--json") == 0
    assert [account["dataset"] for account in json.loads(capsys.readouterr().out)["accounts"]] == [
        "census"
    ]
    assert run("close", "--dataset", "census", "--reason", "done", "--json") == 0
    assert json.loads(capsys.readouterr().out)["closed"] is True
    assert run("status") == 0
    assert "closed" in capsys.readouterr().out


def test_history_in_three_forms(capsys: pytest.CaptureFixture[str]) -> None:
    run("create", "--dataset", "census", "--epsilon", "3")
    pay("0.1", key="first")
    capsys.readouterr()
    assert run("history", "--dataset", "census") == 0
    shown = capsys.readouterr().out
    assert "first" in shown
    assert "[bold]households[/bold]" in shown
    assert "ε = 0.1" in shown
    assert run("history", "--dataset", "census", "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["kind"] for row in rows] == ["create", "reserve"]
    assert run("history", "--dataset", "census", "--json") == 0
    assert json.loads(capsys.readouterr().out)["entries"][1]["amount"] == "1/10"


def test_verify_an_account_an_export_and_the_receipts_of_releases(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("create", "--dataset", "census", "--rho", "3")
    receipt = pay("1")
    (place / "out").mkdir()
    manifest = json.dumps({"privacy": {"ledger": receipt}})
    (place / "out" / "manifest.json").write_text(manifest)
    assert run("verify", "--dataset", "census", "--release", "out") == 1
    assert "nothing vouches for this manifest" in capsys.readouterr().err
    paid = find_reservation("ledger.db", receipt)
    complete("ledger.db", paid, result_digest=hashlib.sha256(manifest.encode()).hexdigest())
    assert run("verify", "--dataset", "census", "--release", "out") == 0
    capsys.readouterr()
    run("history", "--dataset", "census", "--json")
    exported = capsys.readouterr().out
    (place / "history.json").write_text(exported)
    assert run("verify", "--history", "history.json", "--release", "out", "--json") == 0
    head = history_from_json(exported)[-1].hash
    told = {"ok": True, "rows": 3, "head": head, "failures": []}
    assert json.loads(capsys.readouterr().out) == told
    (place / "history.json").write_text(exported.replace('"amount": "1"', '"amount": "2"'))
    assert run("verify", "--history", "history.json") == 1
    assert "row 1: its contents do not match its hash" in capsys.readouterr().err
    (place / "out" / "manifest.json").write_text(manifest + "\n")
    assert run("verify", "--dataset", "census", "--release", "out") == 1
    assert "the manifest is not the one that was reported" in capsys.readouterr().err
    (place / "out" / "manifest.json").write_text(
        json.dumps({"privacy": {"ledger": {**receipt, "hash": "0"}}})
    )
    assert run("verify", "--dataset", "census", "--release", "out") == 1
    for damaged in (
        "{}",
        "[" * 100_000,
        '{"privacy": {"ledger": {"position": [1]}}}',
        '{"privacy": {"ledger": 3}}',
    ):
        (place / "out" / "manifest.json").write_text(damaged)
        assert run("verify", "--dataset", "census", "--release", "out") == 2


def test_parts_are_fixed_with_the_account_or_later(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = {"column": "state", "labels": ["New York", "Ohio"], "units_in_one_part": False}
    assert (
        run(
            "create",
            "--dataset",
            "a",
            "--epsilon",
            "3",
            "--parts",
            "state=New York, Ohio",
            "--json",
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["parts"] == parts
    assert run("create", "--dataset", "b", "--epsilon", "3", "--json") == 0
    assert json.loads(capsys.readouterr().out)["parts"] is None
    (place / "states").write_text("New York\nOhio\n")
    command = [
        "migrate",
        "--dataset",
        "b",
        "--unit",
        "person",
        "--parts",
        "state=@states",
        "--units-in-one-part",
    ]
    assert run(*command, "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["unit"], status["parts"]) == ("person", {**parts, "units_in_one_part": True})
    assert run(*command) == 2
    assert "has its parts already; they never change" in capsys.readouterr().err
    assert run("verify", "--dataset", "b") == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "--dataset", "census"],
        ["create", "--dataset", "census", "--epsilon", "1", "--rho", "1"],
        ["create", "--dataset", "census", "--epsilon", "-1"],
        ["create", "--dataset", "census", "--epsilon", "x"],
        ["create", "--dataset", " ", "--epsilon", "1"],
        ["status"],
        ["status", "--ledger", "mysql://host/db"],
        ["history", "--dataset", "census"],
        ["close", "--dataset", "census"],
        ["verify"],
        ["create", "--dataset", "census", "--epsilon", "1", "--parts", "state"],
        ["create", "--dataset", "census", "--epsilon", "1", "--parts", "state=Ohio,ohio"],
        ["create", "--dataset", "census", "--epsilon", "1", "--parts", "state=@missing"],
        ["create", "--dataset", "census", "--epsilon", "1", "--units-in-one-part"],
        ["migrate", "--dataset", "census", "--parts", "state=Ohio"],
        ["verify", "--history", "missing.json"],
    ],
)
def test_wrong_requests_end_with_2_and_leave_nothing(
    arguments: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert list(place.iterdir()) == []
    assert capsys.readouterr().out == ""


def test_the_ledger_can_be_named_once_for_all(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setenv("TALLYTREE_LEDGER", "sqlite:///team.db")
    assert run("create", "--dataset", "census", "--epsilon", "1") == 0
    assert [path.name for path in place.iterdir()] == ["team.db"]


def test_a_head_that_was_noted_elsewhere_finds_a_ledger_that_was_put_back(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("create", "--dataset", "census", "--epsilon", "3") == 0
    earlier = (place / "ledger.db").read_bytes()
    pay("1", key="first")
    capsys.readouterr()
    assert run("verify", "--dataset", "census", "--json") == 0
    head = json.loads(capsys.readouterr().out)["head"]
    pay("1", key="second")
    assert run("verify", "--dataset", "census", "--head", head) == 0
    (place / "ledger.db").write_bytes(earlier)
    pay("1", key="third")
    assert run("verify", "--dataset", "census") == 0
    assert run("verify", "--dataset", "census", "--head", head) == 1
    assert "put back to an earlier state" in capsys.readouterr().err
