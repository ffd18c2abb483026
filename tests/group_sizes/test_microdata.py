"""Synthetic groups and entities: tabulated by a second program they are the released tables, row by
row.
"""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import RequestError
from tallytree.group_sizes import microdata as made_of
from tallytree.group_sizes.microdata import deal_classes
from tests.group_sizes.test_people import BARE, BY_CELLS, READ, TABLE, WHOLE

LEVELS = ["state", "county"]


def released(kind: str) -> Any:
    """One release of each kind of table."""
    if kind == "sizes alone":
        return tt.release(
            tt.read(TABLE, public="groups", **READ | {"people": ()}), epsilon=1, insecure_seed=2
        )
    if kind == "classes of sizes":
        counts = tt.read(
            TABLE, public="groups", classes=["1-2", "3-4", "5+"], **READ | {"people": ()}
        )
        return tt.release(counts, epsilon=1, insecure_seed=2)
    return tt.release(
        {"bare": BARE, "cells": BY_CELLS, "group": WHOLE}[kind], epsilon=1, insecure_seed=2
    )


def tabulated(file: Path, names: list[str], counted: list[str]) -> set[tuple[Any, ...]]:
    """Rows of a synthetic file counted by DuckDB: every level, every subset of ``names``, null for
    all values.
    """
    places = [
        ("0, 'US'", "()"),
        ("1, 'US/' || state", "(state)"),
        ("2, 'US/' || state || '/' || county", "(state, county)"),
    ]
    found: set[tuple[Any, ...]] = set()
    for head, sets in places:
        levels = sets.strip("()")
        cube = f"CUBE ({', '.join(names)})" if names else ""
        fixed = [*([levels] if levels else []), *counted]
        by = ", ".join([*fixed, *([cube] if cube else [])])
        columns = ", ".join([head, *names, *counted, "count(*)"])
        query = f"SELECT {columns} FROM '{file}'" + (f" GROUP BY {by}" if by else "")
        found |= set(duckdb.sql(query).fetchall())
    return {row for row in found if row[-1] > 0}


@pytest.mark.parametrize("kind", ["sizes alone", "classes of sizes", "bare", "cells", "group"])
def test_tables_of_the_files_are_those_of_the_release(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_of, "ROWS_PER_PIECE", 300)  # several pieces
    made = released(kind)
    folder = made.save(tmp_path / "out")
    files = tt.microdata(folder, out=tmp_path / "micro")
    names = list(made.attributes.names)
    sized = ["size"] if made.classes is None else ["size", "class"]
    listed = ", ".join(["level", "region", *names, *sized, "count"])
    counts = duckdb.sql(f"SELECT {listed} FROM '{folder}/counts.parquet'").fetchall()
    assert tabulated(files / "synthetic_groups.parquet", names, sized) == set(counts)
    if made.people is None:
        assert not (files / "synthetic_entities.parquet").exists()
        return
    classes = ["age", "sex"]
    by = ", ".join(["level", "region", *names, *classes, "count"])
    people = duckdb.sql(f"SELECT {by} FROM '{folder}/people.parquet'").fetchall()
    assert tabulated(files / "synthetic_entities.parquet", [*names, *classes], []) == set(people)
    sizes = duckdb.sql(
        f"""SELECT g.size, count(e.group) FROM '{files}/synthetic_groups.parquet' g
        LEFT JOIN '{files}/synthetic_entities.parquet' e USING ("group") GROUP BY g.group, g.size"""
    ).fetchall()
    assert all(size == members for size, members in sizes)
    assert len(sizes) == made.region("US").n_groups


def test_the_files_say_that_they_are_synthetic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(released("bare").save(tmp_path / "out"))
    out = tmp_path / "micro"
    with pytest.raises(SystemExit) as ended:
        main(["microdata", folder, "--out", str(out)])
    assert ended.value.code == 0
    assert "synthetic" in capsys.readouterr().err
    facts = json.loads((out / "microdata.json").read_text())
    assert facts["synthetic"] is True
    assert "spread evenly" in facts["rule"]
    assert facts["rows"]["synthetic_entities.parquet"] == tt.load(folder).region("US").n_entities
    for name in facts["rows"]:
        assert b"Synthetic" in pq.read_schema(out / name).metadata[b"tallytree"]
    again = tt.read(
        str(out / "synthetic_groups.parquet"),
        group="group",
        size="size",
        levels=LEVELS,
        root="US",
        public="groups",
    )
    assert again.leaf_counts.n_groups().tolist() == BARE.n_groups.tolist()


def test_nothing_is_written_over_a_release_or_for_another_kind(tmp_path: Path) -> None:
    folder = released("bare").save(tmp_path / "out")
    with pytest.raises(RequestError, match="is a release"):
        tt.microdata(folder, out=folder / "micro")
    tt.microdata(folder, out=tmp_path / "micro")
    with pytest.raises(RequestError, match="exists already"):
        tt.microdata(folder, out=tmp_path / "micro")
    histogram = tt.histogram([1, 2, 3], bins=4, bounds=(0, 4), epsilon=1)
    with pytest.raises(RequestError, match="no 'microdata'"):
        tt.microdata(histogram, out=tmp_path / "other")


def test_a_level_called_like_a_column_of_the_files_is_told_from_it(tmp_path: Path) -> None:
    counts = tt.read(
        TABLE.rename_columns({"county": "size", "state": "group"}),
        public="groups",
        **READ | {"levels": ["group", "size"]},
    )
    out = tt.microdata(tt.release(counts, epsilon=1), out=tmp_path / "out")
    names = pq.read_schema(out / "synthetic_groups.parquet").names
    assert names == ["group", "region", "group_", "size_", "size"]


def test_classes_are_spread_evenly() -> None:
    """Against the rule carried out one entity at a time; every stretch of a row has about the row's
    mix.
    """
    rng = np.random.default_rng(1)
    table = rng.integers(0, 30, (4, 3))
    row = rng.permutation(np.repeat(np.arange(4), table.sum(axis=1)))
    found = deal_classes(row, table)
    for number in range(4):
        queue = sorted(
            ((k + 0.5) / n, place) for place, n in enumerate(table[number]) for k in range(n)
        )
        assert found[row == number].tolist() == [place for _, place in queue]
