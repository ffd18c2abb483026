"""A crash at every step: afterwards a whole release or none, and the ledger at or above the truth."""

import json
import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.kinds.verbs import verify_privacy
from tallytree.ledger.accounts import read_history
from tallytree.ledger.chain import summarise
from tallytree.ledger.checks import check_history
from tallytree.privacy.journal import _read

ROOT = Path(__file__).parents[2]
SECRET = "household-of-the-president"
PEOPLE = pa.table(
    {
        "household": [SECRET, SECRET, "b", "c", "c", "c", "d", "e", "e"],
        "state": ["GA", "GA", "GA", "GA", "GA", "GA", "NY", "NY", "NY"],
    }
)
RELEASE = [
    "release",
    "people.parquet",
    "--public",
    "groups",
    "--group",
    "household",
    "--levels",
    "state",
    "--epsilon",
    "1",
    "--out",
    "out",
]
PAID = ["--ledger", "ledger.db", "--dataset", "census", "--json", "--idempotency-key"]

# Step of the crash: was budget reserved, may noise have been drawn, is the release there?
CRASHES = {
    "before reserve": (False, False, False),
    "after reserve": (True, False, False),
    "before look": (True, False, False),
    "after half-measure": (True, True, False),
    "after measure": (True, True, False),
    "before note": (True, True, False),
    "after note": (True, True, False),
    "before write": (True, True, False),
    "after half-write": (True, True, False),
    "before move": (True, True, False),
    "after move": (True, True, True),
    "after write": (True, True, True),
    "before report": (True, True, True),
    "after report": (True, True, True),
}


MEASURED = ("after measure", "before note", "after note", "before write", "before move")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


@pytest.mark.proof
@pytest.mark.parametrize("step", CRASHES)
def test_a_crash_loses_budget_never_privacy(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reserved, drawn, released = CRASHES[step]
    monkeypatch.chdir(tmp_path)
    pq.write_table(PEOPLE, "people.parquet")
    (tmp_path / "temp").mkdir()
    assert run("ledger", "create", "--dataset", "census", "--epsilon", "2") == 0

    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "TMPDIR": str(tmp_path / "temp"),
    }
    command = [sys.executable, "-m", "tests.releases.crash_driver", step, *RELEASE, *PAID, "monday"]
    crashed = subprocess.run(
        command, env=environment, capture_output=True, timeout=300, check=False
    )
    assert crashed.returncode == -signal.SIGKILL, crashed.stderr

    assert Path("out").exists() == released
    history = read_history("ledger.db", "census")
    assert check_history(history) == []
    assert summarise(history).spent == (1 if reserved else 0) >= (1 if drawn else 0)
    assert_nothing_raw_is_left(tmp_path)
    if released:
        # Until the next run reports it, the ledger has no digest that vouches for its manifest.
        assert_whole_and_paid(reported=summarise(history).unfinished == ())

    before = kept_answers()
    capsys.readouterr()
    again = run(*RELEASE, *PAID, "monday")
    told = capsys.readouterr()
    if step in MEASURED:
        # Nothing is read any more: what was measured is finished, and that is another command.
        assert again == 4
        assert "from data that were read on 20" in told.err
        assert run("resume", "out") == 0
    else:
        # The repeated run finishes the release with the answers that are kept, and neither pays nor
        # draws them again.
        assert again == 0, told.err
        assert json.loads(told.out)["already_released"] is released
    assert summarise(read_history("ledger.db", "census")).unfinished == ()
    assert summarise(read_history("ledger.db", "census")).spent == 1
    assert_whole_and_paid()
    assert not list(tmp_path.glob(".out*"))
    noisy = set(pq.read_table("out/noisy.parquet")["value"].to_pylist())
    assert all(set(answers) <= noisy for answers in before)

    # A new key pays anew and gets through, once: then the account is empty.
    assert run(*RELEASE, "--overwrite", *PAID, "tuesday") == 0
    assert_whole_and_paid()
    before = Path("out", "manifest.json").read_bytes()
    assert run(*RELEASE, "--overwrite", *PAID, "wednesday") == 3
    refused = capsys.readouterr().err
    assert "ε = 0 left of 2" in refused
    assert "asks for ε = 1" in refused
    assert Path("out", "manifest.json").read_bytes() == before
    assert summarise(read_history("ledger.db", "census")).spent == 2


def kept_answers() -> list[list[int]]:
    """The noisy answers that a run has left, file by file."""
    folder = Path(".out.tallytree", "answers")
    return (
        [_read(file)[1].tolist() for file in sorted(folder.glob("*.answer"))]
        if folder.exists()
        else []
    )


def assert_whole_and_paid(*, reported: bool = True) -> None:
    assert tt.verify("out")
    assert verify_privacy("out")
    receipt = json.loads(Path("out", "manifest.json").read_text())["privacy"]["ledger"]
    assert Fraction(receipt["amount"]) == 1
    assert run("ledger", "verify", "--dataset", "census", "--release", "out") == (
        0 if reported else 1
    )


def assert_nothing_raw_is_left(folder: Path) -> None:
    """What a killed run leaves is the ledger, the input, and what is kept of the release: noisy
    answers and tables.
    """
    known = {
        "people.parquet",
        "ledger.db",
        "ledger.db-journal",
        "counts.parquet",
        "regions.parquet",
        "noisy.parquet",
    }
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "people.parquet":
            own = known | {"manifest.json", "note.json", "lock", "reading"}
            assert path.name in own or path.suffix in (".answer", ".part"), path
            assert SECRET.encode() not in path.read_bytes()
