"""``histogram`` and ``degrees`` as a user meets them: a real process, real files, exit codes."""

import json
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tallytree.cli import main
from tests.cli.test_commands import tallytree as in_a_process

AGES = pa.table({"age": np.random.default_rng(1).integers(0, 100, 2000), "sex": ["f", "m"] * 1000})
FRIENDS = pa.table({"from": [1, 1, 2, 3, 4], "to": [2, 3, 3, 4, 1]})


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def tallytree(capsys, monkeypatch):
    """Run the command line in this process, which spares the start of another."""

    def run(*arguments, cwd):
        monkeypatch.chdir(cwd)
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        return Done(int(end.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    pq.write_table(AGES, folder / "ages.parquet")
    pacsv.write_csv(AGES, folder / "ages.csv")
    pacsv.write_csv(FRIENDS, folder / "friends.csv")
    return folder


def released(tallytree, place, *options, source="ages.parquet", out="out"):
    return tallytree("histogram", source, "--out", out, *options, cwd=place)


def test_release_verify_and_query(place, tallytree):
    done = released(
        tallytree,
        place,
        "--column",
        "age",
        "--width",
        5,
        "--bounds",
        "0,100",
        "--epsilon",
        "1",
        "--json",
        out="ages",
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["bins"], facts["private"]) == (20, True)
    total = facts["total"]
    assert total["low"] <= total["estimate"] <= total["high"]
    # The noise is fresh in every run: it goes beyond 15 standard errors less than once in 10**9
    # runs.
    assert abs(total["estimate"] - 2000) <= 15 * total["std_error"] < 200
    assert tallytree("verify", "ages", cwd=place).returncode == 0
    asked = tallytree(
        "query",
        "ages",
        "--range",
        "20:65",
        "--range",
        "0:5",
        "--quantile",
        "0.5",
        "--json",
        cwd=place,
    )
    answers = json.loads(asked.stdout)["answers"]
    assert [answer["question"] for answer in answers] == [
        "20:65 count",
        "0:5 count",
        "quantile 0.5",
    ]
    assert answers[0]["low"] <= answers[0]["estimate"] <= answers[0]["high"]
    assert json.loads(tallytree("query", "ages", "--json", cwd=place).stdout)["bins"][0]["low"] == 0
    shown = tallytree("query", "ages", "--range", "20:65", cwd=place)
    assert "20:65 count" in shown.stdout


def test_categories_and_shares_from_csv(place, tallytree):
    done = released(
        tallytree,
        place,
        "--column",
        "sex",
        "--categories",
        "f,m",
        "--epsilon",
        "0.5",
        "--mechanism",
        "flat",
        source="ages.csv",
        out="sex",
    )
    assert done.returncode == 0, done.stderr
    assert "Adding or removing any one row" in done.stderr
    asked = tallytree("query", "sex", "--range", "f:f", "--quantile", "0.5", cwd=place)
    assert asked.returncode == 0, asked.stderr
    done = released(
        tallytree,
        place,
        *[
            "--column",
            "age",
            "--edges",
            ",".join(map(str, range(0, 101, 4))),
            "--epsilon",
            "1",
            "--mechanism",
            "hierarchical",
        ],
        *[
            "--branching",
            "5",
            "--budget",
            "1/4,3/4",
            "--real",
            "--nonnegative",
            "no",
            "--overwrite",
        ],
        out="shares",
    )
    assert done.returncode == 0, done.stderr


BAD = {
    "outside": ["--column", "age", "--edges", "0,50", "--outside", "error", "--epsilon", "1"],
    "order of edges": ["--column", "age", "--edges", "50,0", "--epsilon", "1"],
    "text as edges": ["--column", "age", "--edges", "a,b", "--epsilon", "1"],
    "no bins": ["--column", "age", "--epsilon", "1"],
    "no column": ["--column", "size", "--edges", "0,100", "--epsilon", "1"],
    "zero budget": ["--column", "age", "--edges", "0,100", "--epsilon", "0"],
    "no budget": ["--column", "age", "--edges", "0,100"],
    "branching": [
        "--column",
        "age",
        "--edges",
        "0,100",
        "--epsilon",
        "1",
        "--mechanism",
        "hierarchical",
        "--branching",
        "1",
    ],
    "mechanism": ["--column", "age", "--edges", "0,100", "--epsilon", "1", "--mechanism", "best"],
    "workload": ["--column", "age", "--edges", "0,100", "--epsilon", "1", "--workload", "0:500"],
    "unknown workload": [
        "--column",
        "age",
        "--edges",
        "0,100",
        "--epsilon",
        "1",
        "--workload",
        "all",
    ],
    "dataset without ledger": [
        "--column",
        "age",
        "--edges",
        "0,100",
        "--epsilon",
        "1",
        "--dataset",
        "ages",
    ],
    "numbers in text": ["--column", "sex", "--edges", "0,100", "--epsilon", "1"],
}


@pytest.mark.parametrize("case", BAD)
def test_bad_requests_end_with_2_and_write_nothing(place, case, tallytree):
    done = released(tallytree, place, *BAD[case], out="bad")
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("tallytree: ")
    assert "Traceback" not in done.stderr
    assert not (place / "bad").exists()


def test_degrees_from_edges_columns_and_sizes(place, tallytree):
    done = tallytree(
        *[
            "degrees",
            "friends.csv",
            "--public",
            "nodes",
            "--edges",
            "from,to",
            "--graphical",
            "--epsilon",
            "2",
            "--out",
            "friends",
            "--json",
        ],
        cwd=place,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["groups"] == 4
    assert tallytree("verify", "friends", cwd=place).returncode == 0
    asked = tallytree(
        "query", "friends", "--at-least", "0", "--size", "1", "--largest", "1", "--json", cwd=place
    )
    assert json.loads(asked.stdout)["nodes of at least 0"] == 4
    assert tallytree("query", "friends", cwd=place).returncode == 0
    by_column = tallytree(
        "degrees",
        "friends.csv",
        "--column",
        "from",
        "--public",
        "groups",
        "--epsilon",
        "1",
        "--out",
        "column",
        cwd=place,
    )
    assert by_column.returncode == 0, by_column.stderr
    by_size = tallytree(
        "degrees",
        "friends.csv",
        "--size",
        "to",
        "--public",
        "groups",
        "--epsilon",
        "1",
        "--out",
        "size",
        cwd=place,
    )
    assert by_size.returncode == 0, by_size.stderr


def test_questions_that_do_not_fit_end_with_2(place, tallytree):
    released(
        tallytree,
        place,
        "--column",
        "age",
        "--edges",
        "0,50,100",
        "--epsilon",
        "1",
        "--mechanism",
        "flat",
        out="two",
    )
    for options in (
        ["--mean"],
        ["--size", "3"],
        ["--range", "0:51"],
        ["--range", "50:0"],
        ["--range", "0"],
        ["--quantile", "2"],
    ):
        asked = tallytree("query", "two", *options, cwd=place)
        assert asked.returncode == 2, options
    assert (
        tallytree("degrees", "friends.csv", "--epsilon", "1", "--out", "none", cwd=place).returncode
        == 2
    )
    assert (
        tallytree(
            "histogram", "ages.csv", "--column", "age", "--out", "two", "--epsilon", "1", cwd=place
        ).returncode
        == 2
    )


def test_in_a_process_of_its_own(place):
    done = in_a_process(
        "histogram", "ages.csv", "--column", "age", "--edges", "0,50", "--outside", "error", "--epsilon", "1", "--out", "x",
        cwd=place,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tallytree: Some values of ages.csv lie outside the bins")


@pytest.mark.parametrize(
    ("public", "said"),
    [("groups", "Assumed public: how many groups there are; "), ("none", "Note: ")],
)
def test_a_confidential_number_of_nodes_is_never_called_public(place, tallytree, public, said):
    asked = ("--size", "to", "--public", public, "--epsilon", "1", "--out", public)
    done = tallytree("degrees", "friends.csv", *asked, cwd=place)
    assert done.returncode == 0
    told = (done.stdout + done.stderr).replace("\n", " ")
    assert said in told
    assert ("Assumed public" in told) == (public == "groups")
