"""A new mechanism is one file of its own, a name among the options and an entry in a table: every
verb then has it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import tallytree as tt
from tallytree.papers.fioretto2021.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]


def run(*commands: list[str]) -> str:
    """What the command line prints in a process that has the toy."""
    program = [sys.executable, "-m", "tests.group_sizes.toy_mechanism", json.dumps(commands)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_new_mechanism_is_released_checked_and_estimated_again(tmp_path: Path) -> None:
    assert "toy" not in MECHANISMS  # here nothing has added it
    people, out, again = (str(tmp_path / name) for name in ("people.parquet", "out", "again"))
    table = pa.table({"household": [1, 1, 2, 3, 3, 3, 4], "state": ["GA"] * 6 + ["NY"]})
    pq.write_table(table, people)
    data = [people, "--group", "household", "--levels", "state", "--public", "groups"]
    how = ["--epsilon", "1", "--mechanism", "toy", "--max-size", "5", "--out", out]
    printed = run(
        ["release", *data, *how],
        ["verify", out],
        ["re-estimate", out, "--out", again],
        ["report", out],
        ["release", "--help-all"],
    )
    release = tt.load(out)
    assert release.manifest["mechanism"]["name"] == "toy"
    assert tt.load(again).table().equals(release.table())
    assert release.region("total").at_least(0) == 4
    assert "toy" in printed
