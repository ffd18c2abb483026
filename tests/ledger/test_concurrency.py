"""Sixty-four processes on one account, killed at random: nothing lost, nothing spent twice, the
chain intact.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from tallytree.ledger.accounts import create_account, read_history
from tallytree.ledger.checks import check_history
from tallytree.privacy.budget import Budget
from tests.ledger import stampede as ledger_stampede

WORKERS = 64
RESERVATIONS = 10_000


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    """A folder in memory where there is one: a killed process loses nothing there either, and
    nothing waits for a disk.
    """
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def stampede(ledger: str, folder: Path, reservations: int) -> None:
    # No amount is above 1/10, so the account is empty only after at least this many reservations.
    total = Fraction(reservations, 10)
    create_account(ledger, ledger_stampede.DATASET, Budget("pure", total))
    command = [
        sys.executable,
        "-m",
        "tests.ledger.stampede",
        ledger,
        str(folder),
        str(WORKERS),
        "0.2",
    ]
    environment = {"PYTHONPATH": "src:.", "PATH": "/usr/bin:/bin"}
    root = Path(__file__).parents[2]
    run = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=3000, check=True
    )
    assert not [path.read_text() for path in folder.glob("failure-*")]
    assert json.loads(run.stdout)["kills"] > reservations / 200

    receipts = [
        json.loads(line)
        for path in folder.glob("worker-*")
        for line in path.read_text().splitlines()
    ]
    repeated = [receipt.pop("repeated") for receipt in receipts]
    history = read_history(ledger, ledger_stampede.DATASET)
    rows = [entry for entry in history if entry.kind == "reserve"]
    # check_history recomputes every hash and sum and finds every receipt again.
    assert check_history(history, receipts) == []
    spent = sum((entry.amount for entry in rows), Fraction(0))
    assert spent == history[-1].spent
    assert total - min(ledger_stampede.AMOUNTS) * WORKERS < spent <= total
    assert len(rows) >= reservations
    # Every acknowledged reservation is there once; at most the ones a process died in have no
    # receipt.
    keys = [receipt["key"] for receipt in receipts]
    assert len(set(keys)) == len(keys)
    assert {entry.key for entry in rows} >= set(keys)
    assert len(rows) - len(keys) <= WORKERS + 1
    # Some died between commit and receipt; asking again under the same key told them so and charged
    # nothing.
    assert any(repeated)


@pytest.mark.proof
def test_stampede_on_a_file(quick_folder: Path) -> None:
    stampede(str(quick_folder / "ledger.db"), quick_folder, RESERVATIONS)


@pytest.mark.proof
def test_stampede_on_a_server(quick_folder: Path, new_database: Callable[[], str]) -> None:
    stampede(new_database(), quick_folder, RESERVATIONS)
