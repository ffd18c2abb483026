"""Functions of Python keep what they pay for: killed between payment and return, a release is
finished by the same call, and neither paid nor drawn twice.
"""

import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.errors import PaidNotFinishedError
from tallytree.ledger.accounts import check_release, create_account, list_accounts, read_history
from tallytree.ledger.checks import check_history
from tallytree.privacy.budget import Budget
from tallytree.privacy.journal import _read
from tallytree.storage.folder import MANIFEST, lasting_digest
from tallytree.storage.work import ANSWERS, work_folder
from tests.fuzz.small import MADE

ROOT = Path(__file__).parents[2]
KINDS = ("group-sizes", "values", "histogram", "degrees", "map", "stream")
STEPS = ("after reserve", "after first-answer", "before note", "after note", "before move", "after move")  # fmt: skip


def kill(step: str, kind: str, out: Path, ledger: str) -> None:
    """Run the call in a process of its own, which the step kills."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.releases.library_driver", step, kind, str(out), ledger],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def kept_answers(out: Path) -> list[int]:
    """What is kept beside the folder, in the order in which it was drawn."""
    files = sorted((work_folder(out) / ANSWERS).glob("*.answer"))
    return np.concatenate([np.zeros(0, np.int64), *(_read(file)[1] for file in files)]).tolist()


CASES = [
    ("histogram", "after first-answer"),
    *(
        pytest.param(kind, step, marks=pytest.mark.proof)
        for kind, step in (
            *((kind, "after first-answer") for kind in KINDS if kind != "histogram"),
            *(("group-sizes", step) for step in STEPS if step != "after first-answer"),
        )
    ),
]


@pytest.mark.parametrize(("kind", "step"), CASES)
def test_a_killed_call_is_finished_by_the_same_call(kind: str, step: str, tmp_path: Path) -> None:
    ledger, out = str(tmp_path / "ledger.db"), tmp_path / "out"
    budget = MADE[kind](insecure_seed=1).manifest["privacy"]
    definition, total = budget["definition"], Fraction(budget.get("epsilon") or budget["rho"])
    unit = budget["unit"]["name"]
    create_account(ledger, "census", Budget(definition, total), unit=unit)
    kill(step, kind, out, ledger)
    assert list_accounts(ledger)[0].spent == total
    before = kept_answers(out)
    assert bool(before) == (step != "after reserve")
    paid = {"ledger": ledger, "dataset": "census", "idempotency_key": "monday"}
    if step in ("before note", "after note", "before move"):
        with pytest.raises(PaidNotFinishedError, match=r"read on 20.* tallytree resume"):
            MADE[kind](out=out, **paid)
        tt.resume(out)
    else:
        MADE[kind](out=out, **paid)
    noisy = {
        value
        for file in out.glob("noisy*.parquet")
        for value in pq.read_table(file)["value"].to_pylist()
    }
    assert set(before) <= noisy
    (account,) = list_accounts(ledger)
    assert (account.spent, account.unfinished) == (total, ())
    assert not check_history(read_history(ledger, "census"))
    written = (out / MANIFEST).read_bytes()
    receipt = tt.load(out).manifest["privacy"]["ledger"]
    assert not check_release(ledger, lasting_digest(written), receipt)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.db", "out"]
