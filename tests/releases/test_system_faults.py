"""Faults below Python: in the writes of Arrow and SQLite, a kill at a call of the system, no power;
runs that want one folder.

A part of what ``python -m benchmarks.faults --full`` and ``python -m benchmarks.keeping --full``
do, in a process of its own: it forks, and so must have no threads.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CODE = """
import json, tempfile
from pathlib import Path
from benchmarks import faults, forked, keeping, traced

forked.import_everything()
with tempfile.TemporaryDirectory() as home:
    found = {"runs to one folder": keeping.stampede(Path(home), "ledger.db")}
if traced.can_watch():
    found["full"] = faults.hit_changes("histogram", "full once", replacing=False, every=110, first=55)
    found["killed"] = faults.hit_changes("histogram", "killed", replacing=True, every=110, first=70)
    found["power"] = faults.cut_power("histogram", replacing=True, names=False, every=18)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    if not hasattr(os, "fork"):
        pytest.skip("processes do not fork here")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    ended = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )
    return dict(json.loads(ended.stdout.splitlines()[-1]))


def test_of_twenty_runs_to_one_folder_one_pays(found: dict[str, Any]) -> None:
    runs = found["runs to one folder"]["20 runs"]
    assert runs["exit codes"] == {"0": 1, "2": 19}
    assert (runs["reserved"], runs["measured"], runs["complete"]) == (1, 1, 1)
    assert runs["release is whole and the ledger vouches for it"]


def test_twelve_runs_that_overwrite_leave_what_the_ledger_knows(found: dict[str, Any]) -> None:
    runs = found["runs to one folder"]["12 runs with --overwrite"]
    assert set(runs["exit codes"]) <= {"0", "2"}
    assert runs["reserved"] == runs["measured"] == runs["complete"] == runs["exit codes"]["0"] >= 1
    assert runs["release is whole and the ledger vouches for it"]


@pytest.mark.parametrize("fault", ["full", "killed", "power"])
def test_every_payment_ends_in_one_release_after_a_fault_below_python(
    fault: str, found: dict[str, Any]
) -> None:
    if fault not in found:
        pytest.skip("processes cannot be watched here")
    assert not found[fault]["wrong"]
    assert found[fault]["then"]["finished"] >= 2
