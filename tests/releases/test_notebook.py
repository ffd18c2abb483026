"""Every public object shows itself shortly, in plain words, with labels escaped and nothing
confidential.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.group_sizes.accuracy import predict
from tallytree.group_sizes.intervals.copies import copy_release

EVIL = "<script>alert('x')</script>"
MOST_CHARACTERS = 250


@pytest.fixture(scope="module")
def counts() -> tt.ConfidentialCounts:
    people = pa.table(
        {"household": [f"h{number}" for number in range(77) for _ in range(1 + number % 40)]},
    )
    state = [
        EVIL if number < 76 else "Ohio" for number in range(77) for _ in range(1 + number % 40)
    ]
    return tt.read(
        people.append_column("state", pa.array(state)),
        group="household",
        levels=["state"],
        root="US",
        public="groups",
    )


@pytest.fixture(scope="module")
def objects(counts: tt.ConfidentialCounts) -> dict[str, Any]:
    release = tt.release(counts, epsilon=100, insecure_seed=1)
    values = np.arange(300) % 50
    histogram = tt.histogram(
        values, bins=50, bounds=(0, 50), mechanism="flat", epsilon=1, insecure_seed=1
    )
    by_name = tt.histogram(
        [EVIL, "b"], categories=[EVIL, "b"], mechanism="flat", epsilon=1, insecure_seed=1
    )
    points = np.random.default_rng(1).random((500, 2))
    city = tt.spatial(
        points, columns=[EVIL, "y"], box=[(0, 1), (0, 1)], resolution=64, epsilon=1, insecure_seed=1
    )
    copies = copy_release(release, copies=2)
    return {
        "Hierarchy": counts.hierarchy,
        "ConfidentialCounts": counts,
        "Release": release,
        "RegionCounts": release.region(str(release.hierarchy.paths[1])),
        "Verification": release.verify(),
        "Evaluation": tt.evaluate(release, counts),
        "Prediction": predict(counts, epsilon=1, runs=1),
        "Copies": copies,
        "CountIntervals": tt.with_intervals(release, copies=2).intervals,
        "RangeHistogram": histogram,
        "histogram of categories": by_name,
        "Answers": histogram.bin_answers(),
        "Answer": histogram.range(0, 10),
        "DegreeSequence": tt.degrees(list(range(50)), epsilon=1, insecure_seed=1),
        "SpatialRelease": city,
        "StreamRelease": tt.stream(counts=list(range(50)), epsilon=1, insecure_seed=1),
        "StreamCounter": tt.StreamCounter(None, epsilon=1, insecure_seed=1),
        "MapAnswers": city.ranges([[(0, 0.5), (0, 0.5)]] * 30),
    }


NO_HTML = {"Copies", "CountIntervals", "Answer", "StreamCounter"}
NAMES = [
    "Hierarchy", "ConfidentialCounts", "Release", "RegionCounts", "Verification", "Evaluation", "Prediction", "Copies",
    "CountIntervals", "RangeHistogram", "histogram of categories", "Answers", "Answer", "DegreeSequence",
    "SpatialRelease", "MapAnswers", "StreamRelease", "StreamCounter",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_repr_is_one_short_line(objects: dict[str, Any], name: str) -> None:
    shown = repr(objects[name])
    assert "\n" not in shown
    assert len(shown) <= MOST_CHARACTERS
    assert shown.startswith(type(objects[name]).__name__ + "(")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NO_HTML])
def test_html_is_a_short_table_with_escaped_labels(objects: dict[str, Any], name: str) -> None:
    shown = objects[name]._repr_html_()
    assert shown.count("<tr>") <= 21
    assert "<script" not in shown
    assert shown.startswith("<div><p>")
    assert shown.endswith("</div>")


@pytest.mark.parametrize("name", ["RegionCounts", "histogram of categories", "SpatialRelease"])
def test_labels_are_there(objects: dict[str, Any], name: str) -> None:
    assert "&lt;script" in objects[name]._repr_html_()


def test_rows_beyond_the_first_are_counted(objects: dict[str, Any]) -> None:
    assert "… and 30 more rows" in objects["RangeHistogram"]._repr_html_()
    assert "… and 10 more rows" in objects["MapAnswers"]._repr_html_()


def test_insecure_releases_say_so(objects: dict[str, Any]) -> None:
    for name in ("Release", "RangeHistogram", "DegreeSequence", "SpatialRelease", "StreamRelease"):
        assert "NOT PRIVATE" in objects[name]._repr_html_()
        assert "NOT PRIVATE" in repr(objects[name])


def test_confidential_counts_show_no_value(counts: tt.ConfidentialCounts) -> None:
    assert "77" not in repr(counts) + counts._repr_html_()
    assert "76" not in repr(counts) + counts._repr_html_()


def test_a_failed_check_is_named() -> None:
    from tallytree.releases.checks import Check, Verification

    failed = Verification((Check("children add up", True), Check("totals hold", False, EVIL)))
    assert repr(failed) == "Verification(2 checks, FAILED: totals hold)"
    assert "&lt;script" in failed._repr_html_()
