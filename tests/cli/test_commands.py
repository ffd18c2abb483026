"""The command line as a user meets it: a real process, real files, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import tallytree as package
from tallytree.cli.sources import read_data
from tallytree.errors import RequestError
from tallytree.options.reading import EngineOptions, ReadOptions

PEOPLE = pa.table(
    {
        "household": [1, 1, 2, 3, 3, 3, 4, 5, 5],
        "state": ["GA", "GA", "GA", "GA", "GA", "GA", "NY", "NY", "NY"],
        "county": ["Cobb", "Cobb", "Cobb", "Fulton", "Fulton", "Fulton", "Kings", "Kings", "Kings"],
    }
)
READ = ["--public", "groups", "--group", "household", "--levels", "state,county"]


def tallytree(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tallytree", *map(str, arguments)]
    source = str(
        Path(package.__file__).parents[1]
    )  # so that a checkout that is not installed is tested too
    environment = {**os.environ, "PYTHONPATH": source, "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    pq.write_table(PEOPLE, folder / "people.parquet")
    pacsv.write_csv(PEOPLE, folder / "people.csv")
    (folder / "broken.parquet").write_bytes((folder / "people.parquet").read_bytes()[:-60])
    done = tallytree(
        "release", "people.parquet", *READ, "--epsilon", "1", "--out", "out", "--json", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["mechanism"]
    return folder


def test_verify_and_query(place: Path) -> None:
    verified = tallytree("verify", "out", "--json", cwd=place)
    assert verified.returncode == 0, verified.stderr
    assert json.loads(verified.stdout)["passed"] is True
    asked = tallytree(
        "query", "out", "--region", "total/GA", "--at-least", "0", "--json", cwd=place
    )
    assert json.loads(asked.stdout)["groups of at least 0"] == 3
    asked = ("--size", "9", "--largest", "1", "--mean", "--total", "--copies", "3")
    found = json.loads(tallytree("query", "out", *asked, "--json", cwd=place).stdout)
    assert found["groups"] == 5
    assert found["intervals"]["groups"] == {"value": 5, "std_error": 0, "low": 5, "high": 5}
    assert set(found["intervals"]) == {
        "groups of size 9", "size of group 1 from the largest", "mean size", "groups", "entities"
    }  # fmt: skip
    assert (
        0
        <= found["intervals"]["groups of size 9"]["low"]
        <= found["intervals"]["groups of size 9"]["high"]
        <= 5
    )
    counts = json.loads(tallytree("query", "out", "--copies", "3", "--json", cwd=place).stdout)
    assert counts["columns"][2:] == [
        "std_error",
        "low",
        "high",
        "low of all at once",
        "high of all at once",
    ]
    assert all(
        0 <= low <= high <= 5 for row in counts["counts"] for low, high in (row[3:5], row[5:7])
    )
    shown = tallytree("query", "out", cwd=place)
    assert shown.stdout.startswith("size\tcount\n")


def test_evaluate_is_marked_as_not_private(place: Path) -> None:
    done = tallytree("evaluate", "out", "people.csv", *READ, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "NOT PRIVATE" in done.stderr
    levels = json.loads(
        tallytree("evaluate", "out", "people.parquet", *READ, "--json", cwd=place).stdout
    )["levels"]
    assert [level["regions"] for level in levels] == [1, 2, 3]


def test_release_from_a_config_file(place: Path) -> None:
    (place / "release.toml").write_text(
        'source = "people.parquet"\ngroup = "household"\npublic = "groups"\nlevels = ["state", '
        '"county"]\nepsilon = 0.5\n'
        'view = ["sizes", "cumulative", "hybrid"]\nbudget = [0.2, 0.3, 0.5]\nmax-size = 10\nout = '
        '"from-config"\n'
    )
    done = tallytree("release", "release.toml", cwd=place)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((place / "from-config" / "manifest.json").read_text())
    assert manifest["mechanism"]["views"] == ["sizes", "cumulative", "hybrid"]
    assert manifest["privacy"]["epsilon"] == "1/2"


def test_a_changed_byte_is_named(place: Path) -> None:
    assert (
        tallytree(
            "release", "people.parquet", *READ, "--epsilon", "1", "--out", "edited", cwd=place
        ).returncode
        == 0
    )
    file = place / "edited" / "counts.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    done = tallytree("verify", "edited", cwd=place)
    assert done.returncode == 1
    assert "counts.parquet was changed" in done.stderr


BAD = {
    "missing column": (
        ["people.parquet", "--public", "groups", "--group", "house", "--levels", "state"],
        "house",
    ),
    "no such file": (["nobody.parquet", *READ], "nobody.parquet"),
    "truncated": (["broken.parquet", *READ], "broken.parquet"),
    "epsilon zero": (["people.parquet", *READ, "--epsilon", "0"], "epsilon"),
    "epsilon text": (["people.parquet", *READ, "--epsilon", "lots"], "epsilon"),
    "shares": (["people.parquet", *READ, "--budget", "0.5,0.5,0.5"], "add up"),
    "share zero": (["people.parquet", *READ, "--budget", "0.5,0.6,nan"], "share"),
    "K": (["people.parquet", *READ, "--max-size", "0"], "max_size"),
    "mechanism": (["people.parquet", *READ, "--mechanism", "magic"], "Choose one of"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_end_with_2_and_write_nothing(place: Path, name: str) -> None:
    arguments, word = BAD[name]
    epsilon = [] if "--epsilon" in arguments else ["--epsilon", "1"]
    done = tallytree("release", *arguments, *epsilon, "--out", "never", cwd=place)
    assert done.returncode == 2, done.stderr
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (place / "never").exists()


def test_an_existing_folder_is_kept(place: Path) -> None:
    before = (place / "out" / "manifest.json").read_text()
    done = tallytree(
        "release", "people.parquet", *READ, "--epsilon", "1", "--out", "out", cwd=place
    )
    assert done.returncode == 2
    assert "already exists" in done.stderr
    assert (place / "out" / "manifest.json").read_text() == before


def test_demo(tmp_path: Path) -> None:
    done = tallytree("demo", "--out", "demo", "--households", "20000", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "every check passed" in done.stderr
    assert tallytree("verify", "demo/release", cwd=tmp_path).returncode == 0


def test_engines_are_known_and_a_master_needs_spark() -> None:
    with pytest.raises(RequestError, match="Choose one of: local, spark"):
        EngineOptions.told({"engine": "dask"})
    with pytest.raises(RequestError, match="goes with --engine spark"):
        read_data(
            "people.parquet", ReadOptions(group="household"), EngineOptions(master="local[2]")
        )


def test_levels_in_the_wrong_order_are_noticed(place: Path) -> None:
    ask = ["--public", "groups", "--group", "household", "--epsilon", "1", "--levels"]
    right = tallytree("release", "people.csv", *ask, "state,county", "--out", "right", cwd=place)
    wrong = tallytree("release", "people.csv", *ask, "county,state", "--out", "wrong", cwd=place)
    meant = tallytree(
        "release", "people.csv", *ask, "county,state", "--out", "wrong", "--sure", cwd=place
    )
    assert "largest regions to the smallest" not in right.stderr
    assert "the losses of all releases from the same data add up" in right.stderr
    assert wrong.returncode == 2
    assert "Levels 'county' and 'state' stand in the wrong order" in wrong.stderr
    assert meant.returncode == 0
    assert "most county regions hold a single state" in meant.stderr


def test_what_is_not_public_is_said_in_a_sentence(place: Path) -> None:
    ask = [
        "--public",
        "regions",
        "--group",
        "household",
        "--levels",
        "state,county",
        "--epsilon",
        "1",
    ]
    done = tallytree("release", "people.csv", *ask, "--out", "private", cwd=place)
    assert "Note: the numbers of groups are not public; estimated from noisy totals." in done.stderr
