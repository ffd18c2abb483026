"""Wide tables and classes of sizes: inputs, releases, questions and exports speak in classes, and
nothing lies between them.
"""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import InputError, RequestError
from tallytree.kinds.table import KINDS
from tallytree.model.classes import classes_from
from tallytree.privacy.sensitivity import (
    counts_sensitivity,
    cumulative_sensitivity,
    sizes_sensitivity,
)

WIDE = {"n1_4": "1-4", "n5_9": "5-9", "n10plus": "10+"}
FIRMS = pa.table(
    {
        "state": ["GA", "GA", "NY"],
        "zip": ["300", "301", "100"],
        "n1_4": [50, 20, 400],
        "n5_9": [5, 0, 80],
        "n10plus": [2, 1, 30],
    }
)


def firms(**more: Any) -> Any:
    return tt.read(FIRMS, sizes=WIDE, levels=["state", "zip"], public="groups", **more)


@cache
def released() -> Any:
    return tt.with_intervals(tt.release(firms(), epsilon=1, insecure_seed=1), copies=6)


def test_a_wide_table_is_what_its_rows_would_be() -> None:
    rows = [
        (row["state"], row["zip"], low)
        for row in FIRMS.to_pylist()
        for column, low in (("n1_4", 3), ("n5_9", 9), ("n10plus", 77))
        for _ in range(row[column])
    ]
    long = pa.table(
        {"state": [r[0] for r in rows], "zip": [r[1] for r in rows], "staff": [r[2] for r in rows]}
    )
    one = tt.read(
        long, size="staff", levels=["state", "zip"], public="groups", classes=["1-4", "5-9", "10+"]
    )
    wide = firms()
    assert one.public.classes == wide.public.classes == classes_from("1-4,5-9,10+")
    assert one.hierarchy == wide.hierarchy
    for name in ("offsets", "size", "count"):
        np.testing.assert_array_equal(
            getattr(one.leaf_counts, name), getattr(wide.leaf_counts, name)
        )


def test_a_wide_table_of_single_sizes_has_sizes() -> None:
    table = pa.table({"hh1": [3], "hh2": [4]})
    counts = tt.read(table, sizes={"hh1": 1, "hh2": 2}, public="groups")
    assert counts.public.classes is None
    assert counts.leaf_counts.size.tolist() == [1, 2]
    assert counts.leaf_counts.count.tolist() == [3, 4]
    folded = tt.read(table, sizes={"hh1": 1, "hh2": 2}, public="groups", classes="0,1-5,6+")
    assert folded.leaf_counts.size.tolist() == [1]
    assert folded.leaf_counts.count.tolist() == [7]


@pytest.mark.parametrize("epsilon", [0.01, 1])
@pytest.mark.parametrize(
    "how", [{}, {"mechanism": "matching"}, {"view": "sizes"}, {"mechanism": "tree-dp"}]
)
def test_nothing_is_released_between_classes(epsilon: float, how: dict[str, Any]) -> None:
    made = tt.release(firms(), epsilon=epsilon, insecure_seed=2, **how)
    assert set(made.table()["size"].to_pylist()) <= {1, 5, 10}
    assert set(made.table()["class"].to_pylist()) <= {"1-4", "5-9", "10+"}
    assert made.verify()
    assert made.manifest["classes"] == ["1-4", "5-9", "10+"]


@pytest.mark.parametrize("public", ["regions"])
@pytest.mark.parametrize("unit", ["entity", "group"])
def test_private_groups_and_whole_groups_have_classes_too(public: Any, unit: str) -> None:
    counts = tt.read(FIRMS, sizes=WIDE, levels=["state", "zip"], public=public, unit=unit)
    made = tt.release(counts, epsilon=2, insecure_seed=2)
    assert set(made.table()["class"].to_pylist()) <= {"1-4", "5-9", "10+"}
    assert made.verify()


def test_a_release_in_classes_comes_back_and_is_estimated_again(tmp_path: Path) -> None:
    made = released()
    made.save(tmp_path / "out")
    again = tt.load(tmp_path / "out")
    assert again.classes == made.classes
    assert again.table().equals(made.table())
    assert tt.verify(tmp_path / "out")
    estimated = tt.release(firms(), epsilon=1, insecure_seed=1)
    estimated.save(tmp_path / "whole")
    assert tt.re_estimate(tmp_path / "whole").table().equals(estimated.table())


def test_questions_go_by_whole_classes() -> None:
    region = released().region("total/NY")
    assert region.between(1, 9) == region.between(1, 4) + region.between(5, 9)
    assert region.at_least(5) == region.n_groups - region.between(1, 4)
    assert region.quantile(1.0) == 10
    assert region.names() == ["1-4", "5-9", "10+"]
    for ask in (
        lambda: region.of_size(5),
        lambda: region.at_least(6),
        lambda: region.between(1, 5),
        lambda: region.between(10, 12),
    ):
        with pytest.raises(
            RequestError, match=r"released in classes, which do not end at .*: 1-4, 5-9, 10"
        ):
            ask()
    for ask in (region.mean, lambda: region.n_entities):
        with pytest.raises(RequestError, match="in classes, so there is no"):
            ask()


def test_answers_name_classes_and_have_intervals() -> None:
    reply = tt.ask(
        released(), region="total/NY", quantile=0.99, between=(5, 9), total=True, copies=4
    )
    told = {row[0]: row[1:] for row in reply.rows}
    assert told["quantile 0.99"][0] == "10+"
    assert {told["quantile 0.99"][2], told["quantile 0.99"][3]} <= {"1-4", "5-9", "10+"}
    value, error, low, high = told["groups of size 5 to 9"]
    assert error > 0
    assert low <= value <= high
    assert "entities" not in told
    assert [row[0] for row in tt.ask(released(), region="total/NY").rows] == ["1-4", "5-9", "10+"]
    assert [row[0] for row in tt.ask(released(), region="total/NY", copies=4).rows] == [
        "1-4",
        "5-9",
        "10+",
    ]
    single = tt.read(
        FIRMS,
        sizes={"n1_4": "1", "n5_9": "2-9", "n10plus": "10+"},
        levels=["state"],
        public="groups",
    )
    made = tt.release(single, epsilon=1, insecure_seed=1)
    assert tt.ask(made, size=1, copies=4).rows[0][1] == made.region("total").of_size(1)


def test_exports_report_and_plan_speak_in_classes(tmp_path: Path) -> None:
    made = released()
    sheet = KINDS["group-sizes"].verb("sheet")(made)
    assert sheet.codes["size"].labels == ["1-4", "5-9", "10+"]
    assert sheet.table["class"].to_pylist() == made.table()["class"].to_pylist()
    from tallytree.group_sizes.report import group_sizes_payload

    page = group_sizes_payload(made)
    assert page["words"]["bin"] == ["1-4", "5-9", "10+"]
    assert {size for run in page["regions"]["runs"] for size in run[::2]} <= {0, 1, 2}
    assert any(
        "3 classes, chosen without the data: 1-4, 5-9, 10+" in line for line in page["public"]
    )
    prediction = tt.plan(made, epsilon=1, runs=2)
    assert [level.regions for level in prediction.levels] == [1, 2, 3]
    assert all(level.distinct_sizes <= 3 for level in prediction.levels)


def test_errors_are_taken_against_the_same_classes() -> None:
    made = released()
    assert tt.evaluate(made, firms()).levels[0].emd >= 0
    other = tt.read(
        FIRMS, sizes={"n1_4": 1, "n5_9": 5, "n10plus": 10}, levels=["state", "zip"], public="groups"
    )
    with pytest.raises(RequestError, match="same classes"):
        tt.evaluate(made, other)


def test_the_commands_take_wide_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(FIRMS, tmp_path / "firms.parquet")
    sizes = ",".join(f"{column}={size}" for column, size in WIDE.items())
    words = [
        "release",
        str(tmp_path / "firms.parquet"),
        "--sizes",
        sizes,
        "--levels",
        "state,zip",
        "--public",
        "groups",
    ]
    for more, code in (
        (["--out", str(tmp_path / "out"), "--epsilon", "1", "--insecure-seed", "1"], 0),
    ):
        with pytest.raises(SystemExit) as end:
            main([*words, *more])
        assert end.value.code == code
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(
            [
                "query",
                str(tmp_path / "out"),
                "--between",
                "5",
                "9",
                "--share",
                "--region",
                "total/GA",
                "--json",
            ]
        )
    assert end.value.code == 0
    found = json.loads(capsys.readouterr().out)
    counts = tt.load(tmp_path / "out").region("total/GA")
    assert found["share of groups of size 5 to 9"] == counts.between(5, 9) / counts.n_groups


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"sizes": {"n1_4": "1-4", "n5_9": "6-9"}}, "without gaps"),
        ({"sizes": {"n1_4": "one"}}, "is written 5, 5-9 or 10"),
        ({"sizes": {"n1_4": 1, "n5_9": 1}}, "names a size twice"),
        ({"sizes": {}}, "it is empty"),
        ({"sizes": WIDE, "group": "firm"}, "Leave out group="),
        ({"sizes": WIDE, "classes": "1-9,10+"}, "says the classes already"),
        ({"sizes": {"n1_4": 1}, "classes": ["9-5", "10+"]}, "ends before it begins"),
        ({"sizes": {"n1_4": 1}, "classes": "1+"}, "at least two"),
    ],
)
def test_what_makes_no_classes_is_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        tt.read(FIRMS, levels=["state", "zip"], public="groups", **how)


def test_bad_numbers_of_a_wide_table_are_refused_without_showing_them() -> None:
    table = FIRMS.set_column(2, "n1_4", pa.array([50, -7, 3]))
    with pytest.raises(InputError, match="negative values") as refused:
        tt.read(table, sizes=WIDE, levels=["state", "zip"], public="groups")
    assert "7" not in str(refused.value)


def test_empty_groups_need_a_class_of_their_own() -> None:
    totals = pa.table({"state": ["GA", "NY"], "groups": [100, 600]})
    table = pa.table({"state": ["GA", "NY"], "staff": [3, 4]})
    common = {"size": "staff", "levels": ["state"], "group_totals": totals}
    with pytest.raises(RequestError, match="Add a class for size 0"):
        tt.read(table, classes="1-4,5+", **common)  # type: ignore[call-overload]
    counts = tt.read(table, classes="0,1-4,5+", **common)  # type: ignore[call-overload]
    assert counts.leaf_counts.count.tolist() == [99, 1, 599, 1]


def test_numbers_of_classes_change_no_more_than_sizes() -> None:
    """Brute force over all groups of up to two and one entity more: the sensitivities of sizes hold
    for classes.
    """
    classes = classes_from("1-2,3,4-6,7+")
    longest = 9
    for sizes in itertools.product(range(longest), repeat=2):
        for grown in range(2):
            more = list(sizes)
            more[grown] += 1
            one, other = (np.sort(classes.number(np.array(groups))) for groups in (sizes, more))
            tables = [np.bincount(numbers, minlength=4) for numbers in (one, other)]
            change = np.abs(tables[1] - tables[0])
            assert change.sum() <= counts_sensitivity().l1
            curves = [np.cumsum(table) for table in tables]
            assert np.abs(curves[1] - curves[0]).sum() <= cumulative_sensitivity().l1
            assert np.abs(other - one).sum() <= sizes_sensitivity().l1
    # A group that comes with its first entity counts as 0 before: above every number that it then
    # has, no more groups lie.
    assert classes.number(np.array([0, 1])).tolist() == [0, 0]
    # And the tests above can fail: classes that left out sizes would jump.
    assert np.diff(classes.number(np.arange(12))).max() == 1
