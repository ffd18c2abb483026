"""Spark with two executor processes: equal to local from the same key, whatever happens to an
executor.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.errors import StorageError
from tallytree.kinds.verbs import clean
from tests.spark.spark_driver import MASTER, people

pytest.importorskip(
    "pyspark", reason="the Spark engine is not installed: pip install 'tallytree[spark]'"
)
pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(
        shutil.which("java") is None,
        reason="Spark needs Java 17 or later, and there is no java here",
    ),
]


# No variable of the user's helps Spark to find the interpreter or the package.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYSPARK", "SPARK", "PYTHON"))
}


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("spark")
    command = [
        sys.executable,
        "-W",
        "ignore",
        str(Path(__file__).with_name("spark_driver.py")),
        str(folder),
    ]
    done = subprocess.run(
        command,
        env=ENVIRONMENT,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "release",
    [
        "adaptive",
        "matching",
        "bottom-up",
        "unit",
        "private",
        "attributes",
        "whole groups",
        "classes",
        "totals",
    ],
)
def test_files_are_equal_byte_for_byte(facts: dict[str, Any], release: str) -> None:
    """The default, two other mechanisms, one with rows of which at most two per owner count, the
    default where numbers of groups are confidential; and what is counted on the executors and
    estimated by the driver, people among it.
    """
    local, spark = facts["digests"][release]
    more = (
        {"people.parquet", "cells.parquet"} if release in ("attributes", "whole groups") else set()
    )
    assert (
        set(local) == {"counts.parquet", "manifest.json", "noisy.parquet", "regions.parquet"} | more
    )
    assert spark == local


def test_a_killed_executor_changes_nothing(facts: dict[str, Any]) -> None:
    assert facts["executors"] == 2
    assert facts["killed"] == 3
    assert facts["same after a kill"] == {"matching": True, "adaptive": True}


def test_tasks_that_fail_twice_change_nothing(facts: dict[str, Any]) -> None:
    assert facts["same after failures"]


def test_executors_write_the_same_part_files_whatever_happens_to_them(
    facts: dict[str, Any],
) -> None:
    """With an executor killed while leaves are measured, and with tasks that fail twice."""
    undisturbed, *others = facts["parts"]
    assert {
        "counts-00000.parquet",
        "counts-00001.parquet",
        "noisy-00001.parquet",
        "manifest.json",
    } < set(undisturbed)
    assert others == [undisturbed, undisturbed]


def test_part_files_hold_the_tables_of_one_machine(facts: dict[str, Any]) -> None:
    assert facts["parts equal local"]
    assert facts["parts verify"]


def test_a_request_to_stop_while_executors_write_leaves_nothing_that_loads(tmp_path: Path) -> None:
    """SIGTERM as soon as there is the first part; what was paid for is kept, and can be dropped."""
    place, settings = tmp_path / "place", tmp_path / "settings"
    for folder in (place, settings):
        folder.mkdir()
    pq.write_table(people(), place / "people.parquet")
    (settings / "spark-defaults.conf").write_text(
        "spark.ui.enabled false\nspark.sql.shuffle.partitions 2\n"
    )
    out, work = place / "out", place / ".out.tallytree"
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tallytree.cli import program; program()"
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        program,
        str(Path(__file__).parents[2] / "src"),
        "release",
    ]
    command += [
        "people.parquet",
        "--group",
        "household",
        "--levels",
        "state,county",
        "--public",
        "groups",
    ]
    command += ["--epsilon", "1", "--engine", "spark", "--master", MASTER, "--out", "out"]
    environment = {**ENVIRONMENT, "SPARK_CONF_DIR": str(settings)}
    with subprocess.Popen(
        command, env=environment, cwd=place, stderr=subprocess.PIPE, text=True
    ) as run:
        while run.poll() is None and not any(work.glob("parts-*/noisy-*.parquet")):
            time.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        _, said = run.communicate(timeout=300)
    assert run.returncode not in (0, -signal.SIGTERM)
    assert "is paid for and not finished" in " ".join(said.split())
    with pytest.raises(StorageError):
        tt.load(out)
    assert clean(out)["state"] in ("paid", "measured")
    assert [left.name for left in place.iterdir()] == ["people.parquet"]


def test_the_ledger_is_charged_once(facts: dict[str, Any]) -> None:
    assert [entry for entry in facts["ledger"] if entry[0] == "reserve"] == [["reserve", "1"]]


def test_no_exact_count_by_size_reaches_the_driver(facts: dict[str, Any]) -> None:
    assert facts["collected"]
    assert all("size" not in columns for columns in facts["collected"])
    assert "values hidden" in facts["repr"]


def test_leaves_whose_hashes_agree_are_told_apart_by_their_labels(facts: dict[str, Any]) -> None:
    assert facts["same by labels"]


def test_confidential_numbers_of_groups_stay_on_the_executors(facts: dict[str, Any]) -> None:
    """Where they are public they are summed up per leaf and fetched; else names of regions and
    answers alone are.
    """
    assert ["leaf", "sum(n)"] in facts["collected"]
    assert facts["collected privately"]
    assert ["leaf", "sum(n)"] not in facts["collected privately"]


def test_exact_counts_leave_the_caches_of_the_executors(facts: dict[str, Any]) -> None:
    """They stay from reading to the end of a release, and no longer, also where either is refused."""
    assert facts["cached"].pop("read") > 0
    assert facts["cached"] == {"released": 0, "refused release": 0, "refused table": 0}


def test_other_kinds_publish_the_same_from_spark_tables(facts: dict[str, Any]) -> None:
    """Contributions are bounded there too, and values outside treated alike."""
    assert facts["kinds"] == dict.fromkeys(
        ["histogram", "categories", "map", "table", "degrees", "graph"], True
    )


def test_of_other_kinds_no_more_counts_reach_the_driver_than_the_grid_has(
    facts: dict[str, Any],
) -> None:
    """A number of rows per bin, inside and outside it, of thousands of values that all differ."""
    assert facts["fetched"]["histogram"] <= 2 * 5 + 1
    assert facts["fetched"]["categories"] <= 2 + 2
    assert facts["fetched"]["map"] <= 2 * 16 * 16 + 1
    assert facts["fetched"]["table"] <= 6 * 3 * 3
