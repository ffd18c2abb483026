"""``tallytree spatial`` as a user meets it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.test_commands import tallytree

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    points = RNG.normal((2, 3), 0.5, size=(3000, 2)).clip(0, 9)
    pq.write_table(pa.table({"lon": points[:, 0], "lat": points[:, 1]}), folder / "trips.parquet")
    bad = np.append(points[:, 0], np.nan)
    pq.write_table(
        pa.table({"lon": bad, "lat": np.append(points[:, 1], 1.0)}), folder / "bad.parquet"
    )
    done = run(folder, "--out", "map", "--picture", "map.png", "--json")
    assert done.returncode == 0, done.stderr
    return folder


def run(folder, *options, source="trips.parquet", box="0:10,0:10", columns="lon,lat"):
    fixed = ["--columns", columns, f"--box={box}", "--epsilon", "1", "--resolution", "64"]
    return tallytree("spatial", source, *fixed, *options, cwd=folder)


def test_a_map_is_released_with_a_picture_verified_and_queried(place):
    assert (place / "map.png").read_bytes().startswith(b"\x89PNG")
    for options in ((), ("--privacy",)):
        checked = tallytree("verify", "map", *options, cwd=place)
        assert checked.returncode == 0, checked.stderr
    asked = tallytree(
        "query", "map", "--range", "1:3,2:4", "--range", "0:10,0:10", "--json", cwd=place
    )
    assert asked.returncode == 0, asked.stderr
    found = json.loads(asked.stdout)
    middle, everything = found["answers"]
    # The noise is fresh in every run: it goes beyond 15 standard errors less than once in 10**8
    # runs.
    for answer, truth in ((middle, 2738), (everything, 3000)):
        assert 0 < answer["std_error"] < 40
        assert abs(answer["estimate"] - truth) <= 15 * answer["std_error"]
    assert "evenly spread" in found["note"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"box": "0:1,0:1", "extra": ("--outside", "error")}, "lie outside"),
        ({"box": "0:10,4:4"}, "no area"),
        ({"box": "wide"}, "LOW:HIGH"),
        ({"columns": "lon"}, "2 sides for 1 columns"),
        ({"source": "bad.parquet"}, "missing"),
        ({"extra": ("--mechanism", "adaptive-grid", "--alpha", "1.5")}, "alpha"),
    ],
)
def test_bad_requests_end_with_one_sentence_and_leave_nothing(place, options, says):
    extra = options.pop("extra", ())
    done = run(place, "--out", "none", *extra, **options)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / "none").exists()


def test_questions_that_a_map_cannot_answer_are_refused(place):
    assert tallytree("query", "map", "--range", "5:20,0:1", cwd=place).returncode == 2
    assert tallytree("query", "map", "--mean", "--size", "3", cwd=place).returncode == 2


def test_a_map_is_paid_from_a_ledger(place):
    created = tallytree(
        "ledger",
        "create",
        "--dataset",
        "trips",
        "--epsilon",
        "1",
        "--ledger",
        "ledger.db",
        cwd=place,
    )
    assert created.returncode == 0, created.stderr
    paid = run(place, "--out", "paid", "--ledger", "ledger.db", "--dataset", "trips")
    assert paid.returncode == 0, paid.stderr
    assert (
        run(place, "--out", "unpaid", "--ledger", "ledger.db", "--dataset", "trips").returncode == 3
    )
    assert not (place / "unpaid").exists()


def test_the_owner_compares_a_map_with_the_points(place):
    done = tallytree("evaluate", "map", "trips.parquet", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "not private" in found["warning"]
    whole, large = found["classes"][:2]
    assert whole["mean_count"] == 3000
    assert 0 < large["mean_error"] < 100
    shown = tallytree("evaluate", "map", "trips.parquet", cwd=place)
    assert "NOT PRIVATE" in shown.stderr + shown.stdout
    assert "small boxes" in shown.stdout
    for options, says in (
        (("--group", "lon"), "holds a map; --group do not go with it"),
        (("--outside", "never"), "clip"),
    ):
        refused = tallytree("evaluate", "map", "trips.parquet", *options, cwd=place)
        assert refused.returncode == 2
        assert says in refused.stderr


def test_errors_are_planned_from_an_earlier_map(place):
    done = tallytree(
        "plan", "--like", "map", "--epsilon", "0.1", "--runs", "1", "--json", cwd=place
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["predictions"]
    assert [one["name"] for one in found] == [
        "auto",
        "adaptive-grid",
        "uniform-grid",
        "quad-opt",
        "flat",
    ]
    assert all(one["classes"][1]["mean_error"] > 0 for one in found)
    shown = tallytree(
        "plan",
        "--like",
        "map",
        "--epsilon",
        "1",
        "--mechanism",
        "kd-tree",
        "--runs",
        "1",
        cwd=place,
    )
    assert "kd-tree" in shown.stdout
    assert "No confidential data" in shown.stderr + shown.stdout
    assert tallytree("plan", "--like", "map", "--target", "x: emd<=1", cwd=place).returncode == 2
    assert (
        tallytree(
            "plan", "--like", "map", "--epsilon", "1", "--mechanism", "none", cwd=place
        ).returncode
        == 2
    )
