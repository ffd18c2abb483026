"""A dry run reads no sizes, and no totals that are not public; it writes nothing, pays nothing, and
says what is doubtful.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.group_sizes.preview import ASSUMED_GROUPS, preview
from tallytree.ingest.outside import read_outside
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.options.reading import ReadOptions

LEAVES = [("GA", "Cobb", 30), ("GA", "Fulton", 5), ("NY", "Kings", 60)]


def households(sizes: int = 1) -> pa.Table:
    rows = [
        (s, c, f"{c}{i}")
        for s, c, n in LEAVES
        for i in range(n)
        for _ in range(1 + (sizes * i) % 4)
    ]
    return pa.table(
        {
            name: [row[place] for row in rows]
            for place, name in enumerate(("state", "county", "household"))
        }
    )


READ = {"group": "household", "levels": ("state", "county")}


def test_a_preview_does_not_depend_on_sizes() -> None:
    """Two tables with the same regions and groups and other sizes look the same from outside."""
    data, how = ReadOptions(**READ, public="groups"), ReleaseOptions(epsilon=1)  # type: ignore[arg-type]
    one, other = (
        preview(households(sizes), data, how, shape="households", runs=2) for sizes in (0, 3)
    )
    assert one.outside.n_groups is not None
    assert one.outside.n_groups.tolist() == [30, 5, 60]
    for facts in (one.to_json(), other.to_json()):
        facts.pop("seconds"), facts.pop("peak_bytes")
    assert {**one.to_json(), "seconds": 0, "peak_bytes": 0} == {
        **other.to_json(),
        "seconds": 0,
        "peak_bytes": 0,
    }


def test_what_takes_too_long_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    data, how = ReadOptions(**READ, public="groups"), ReleaseOptions(epsilon=1)  # type: ignore[arg-type]
    monkeypatch.setattr("tallytree.group_sizes.preview.MOST_TRIAL_SECONDS", 0.5)
    seen = preview(households(), data, how, shape="households", runs=2)
    assert seen.prediction is None
    assert seen.to_json()["prediction"] is None
    assert seen.cost.cpu_seconds > 0.5


def test_private_totals_are_not_read() -> None:
    outside = read_outside(households(), ReadOptions(**READ, public="regions"))  # type: ignore[arg-type]
    assert outside.n_groups is None
    assert outside.hierarchy.n_leaves == 3
    seen = preview(
        households(),
        ReadOptions(**READ, public="regions"),  # type: ignore[arg-type]
        ReleaseOptions(epsilon=1),
        shape="poisson:3",
        runs=1,
    )
    assert any(f"{ASSUMED_GROUPS:,} groups" in text for text in seen.assumptions)


@pytest.mark.parametrize(
    ("table", "how"),
    [
        (households(), READ),
        (pa.table({"county": ["a", "a", "b"], "size": [3, 1, 4]}), {"size": "size", "levels": ["county"]}),
        (pa.table({"county": ["a", "b"], "size": [3, 1], "n": [7, 9]}), {"size": "size", "count": "n", "levels": ["county"]}),
        (pa.table({"county": ["a", "b"], "h1": [3, 1], "h2": [7, 9]}), {"sizes": {"h1": 1, "h2": "2+"}, "levels": ["county"]}),
        (pa.table({"size": [3, 1, 4]}), {"size": "size"}),
    ],
)  # fmt: skip
def test_public_totals_are_those_of_reading(table: Any, how: dict[str, Any]) -> None:
    outside = read_outside(table, ReadOptions(**how, public="groups"))
    counts = tt.read(table, **how, public="groups")
    assert outside.n_groups is not None
    np.testing.assert_array_equal(outside.n_groups, counts.n_groups)
    assert outside.hierarchy == counts.hierarchy


def test_the_command_writes_nothing_and_pays_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(households(), tmp_path / "people.parquet")
    ledger = tmp_path / "ledger.db"
    with pytest.raises(SystemExit):
        main(
            [
                "ledger",
                "create",
                "homes",
                "--ledger",
                str(ledger),
                "--epsilon",
                "1",
                "--unit",
                "row",
            ]
        )
    capsys.readouterr()
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    words = [
        "release",
        str(tmp_path / "people.parquet"),
        "--group",
        "household",
        "--levels",
        "state,county",
    ]
    more = [
        "--public",
        "groups",
        "--epsilon",
        "1",
        "--ledger",
        str(ledger),
        "--dataset",
        "homes",
        "--dry-run",
        "--json",
    ]
    with pytest.raises(SystemExit) as end:
        main([*words, *more, "--out", str(tmp_path / "out")])
    assert end.value.code == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    facts = json.loads(capsys.readouterr().out)
    assert [level["regions"] for level in facts["levels"]] == [1, 2, 3]
    assert [level["emd"] > 0 for level in facts["prediction"]["levels"]] == [True] * 3
    assert facts["peak_bytes"] > 0
    assert all(facts["cost"][name] > 0 for name in ("cpu_seconds", "memory_bytes", "disk_bytes"))


def test_what_public_facts_make_doubtful_is_said() -> None:
    how = ReleaseOptions(epsilon=1)
    wrong = ReadOptions(group="household", levels=("county", "state"), public="groups")
    seen = preview(households(), wrong, how, shape="households", runs=1)
    assert any("wrong order" in doubt for doubt in seen.doubts)
    alone = ReadOptions(group="household", levels=("state", "household_name"), public="groups")
    table = households().append_column("household_name", households()["household"])
    assert any(
        "more than one group" in doubt
        for doubt in preview(table, alone, how, shape="households", runs=1).doubts
    )
    rows = [(f"s{i % 5}", f"z{i}") for i in range(40)] + [("s0", "z1")]
    zips = pa.table(
        {"state": [r[0] for r in rows], "zip": [r[1] for r in rows], "size": [2] * len(rows)}
    )
    twice = ReadOptions(size="size", levels=("state", "zip"), public="groups")
    assert any(
        "'z1'" in doubt for doubt in preview(zips, twice, how, shape="households", runs=1).doubts
    )
    groups = pa.table({"firm": ["a", "b"], "staff": ["7", "8"], "state": ["GA", "NY"]})
    ids = ReadOptions(group="firm", size="staff", levels=("state",), groups=groups)
    data = pa.table({"firm": ["a", "b"], "staff": [7, 8], "state": ["GA", "NY"]})
    assert any(
        "named as the size" in doubt
        for doubt in preview(data, ids, how, shape="households", runs=1).doubts
    )
    right = ReadOptions(**READ, public="groups")  # type: ignore[arg-type]
    assert preview(households(), right, how, shape="households", runs=1).doubts == ()
