"""Columns, attributes, values and levels of any name, through every verb: what is released can be read,
asked and passed on, and what cannot is refused before anything is paid.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tallytree as tt
from tallytree.errors import TallytreeError
from tallytree.kinds.showing import report_html
from tests.fuzz.watching import SECRET, TIMES, at_most, complaint, seeded, shown_by

NAMES = [
    "index", "value", "query", "size", "count", "level", "region", "class", "std_error", "low", "high",
    "groups", "label", "parent", "total", "other",
    "all", "a", "A", "a ", "a, b", "a=b", "a/b", "%2F", "é", "e\u0301", "\u202e",
    "select", 'q"uote', "it's", "-", "--", "=cmd", "0", "1e5", "null", "None", "__DATA__", "<b>", "\\", "a.b", "g", "l0",
    "t0", "k0", "n", "u", "c", "problem", "listed", "kept", "Size", "REGION", " ", "\t", "x" * 300,
]  # fmt: skip

OF_TABLES = NAMES[:16]
"""Names of columns that tables of releases have, which no attribute may have too."""


def case(dice: random.Random) -> tuple[pd.DataFrame, dict[str, Any], dict[str, Any]]:
    """Rows with confidential names of groups, how to read them, and how to release them."""
    group, upper, lower = dice.sample(NAMES, 3)
    by = dice.choice([name for name in NAMES if name not in (group, upper, lower, *OF_TABLES)])
    labels = dice.sample(NAMES, 3)
    values = dice.sample(NAMES, 2)
    rows = pd.DataFrame(
        {
            group: [f"{SECRET}{number // 2}" for number in range(24)],
            upper: [labels[0] if number < 12 else labels[1] for number in range(24)],
            lower: [labels[number // 8] for number in range(24)],
            by: [values[number // 2 % 2] for number in range(24)],
        }
    )
    reading: dict[str, Any] = {"group": group, "levels": [upper, lower][: dice.choice((1, 2))]}
    options: dict[str, Any] = {"epsilon": 3, "insecure_seed": dice.randrange(9)}
    match dice.randrange(4):
        case 0:
            reading |= {"public": "groups"}
        case 1:
            reading |= {"public": "cells", "by": {by: values}}
        case 2:
            reading |= {"public": "regions", "unit": "group", "by": {by: values}}
        case _:
            reading |= {"public": "groups", "root": dice.choice(NAMES)}
            options |= {"max_size": 2}
    return rows, reading, options


def use(folder: Path, dice: random.Random) -> None:
    """Every verb that reads a folder; an export whose format cannot hold a name may refuse it."""
    made = tt.load(folder)
    path = str(dice.choice(list(made.hierarchy.paths)))
    assert tt.verify(folder).passed
    tt.ask(made, region=path)
    made.table(by=made.attributes.names)
    made.plot(region=path)
    tt.re_estimate(folder)
    for form in dice.sample(["csv", "json-stat", "sdmx-csv", "parquet", "xlsx", "frictionless"], 2):
        wrong = complaint(
            lambda form=form: tt.export(
                made, format=form, out=str(folder.parent / form), overwrite=True
            )
        )
        assert wrong is None, wrong
    wrong = complaint(lambda: tt.microdata(made, out=folder.parent / "groups", overwrite=True))
    assert wrong is None, wrong
    wrong = complaint(lambda: report_html(made))
    assert wrong is None, wrong


@pytest.mark.filterwarnings("ignore")
def test_any_name_passes_every_verb_or_is_refused_unpaid(tmp_path: Path) -> None:
    dice, found, released = seeded(23), {}, 0
    for number in range(12 * TIMES):
        rows, reading, options = case(dice)
        folder = tmp_path / f"out{number}"
        with at_most(60):
            try:
                counts = tt.read(rows, **reading)
                assert SECRET not in repr(counts)
                tt.release(counts, **options).save(folder)
            except TallytreeError as error:
                if SECRET in shown_by(error) or "\n" in str(error) or folder.exists():
                    found.setdefault(str(error)[-200:], f"{number}: {reading}\n{error}")
                continue
            released += 1
            try:
                use(folder, dice)
            except Exception as error:
                found.setdefault(str(error)[-200:], f"{number}: {reading} {options}\n{error!r}")
    assert released
    assert not found, f"{len(found)} kinds:\n\n" + "\n\n".join(found.values())
