"""Attributes with a complete list of values have no value "other"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tallytree as tt
from tallytree.errors import InputError, RequestError

ROWS = pd.DataFrame(
    {
        "household": [number // 2 for number in range(40)],
        "state": ["a" if number < 20 else "b" for number in range(40)],
        "tenure": [["owned", "rented"][number // 2 % 2] for number in range(40)],
    }
)
READING: dict[str, Any] = {"group": "household", "levels": ["state"]}
LISTED: dict[str, Any] = {"by": "tenure=owned,rented", "closed": "tenure"}
REGISTER = ROWS.drop_duplicates("household")
TOTALS = REGISTER.groupby(["state", "tenure"], as_index=False).size()
PUBLIC: dict[str, dict[str, Any]] = {
    "cells": {"public": "cells"},
    "whole groups": {"public": "regions", "unit": "group"},
    "register": {"groups": REGISTER},
    "totals": {"group_totals": TOTALS.rename(columns={"size": "groups"})},
}


@pytest.mark.parametrize("way", PUBLIC)
def test_no_value_other(way: str, tmp_path: Path) -> None:
    counts = tt.read(ROWS, **READING, **LISTED, **PUBLIC[way])
    assert counts.public.attributes.values == (("owned", "rented"),)
    made = tt.release(counts, epsilon=3, insecure_seed=1)
    folder = made.save(tmp_path / "out")
    assert tt.verify(folder).passed
    assert set(tt.load(folder).table(by="tenure")["tenure"].to_pylist()) <= {"owned", "rented"}
    tt.evaluate(made, counts)
    open_list = tt.read(ROWS, **READING, by="tenure=owned,rented", **PUBLIC[way])
    assert open_list.public.attributes.values == (("owned", "rented", "other"),)


@pytest.mark.parametrize("way", PUBLIC)
@pytest.mark.parametrize("value", ["Zq7secret", None])
def test_values_that_are_not_listed_are_refused_and_not_shown(way: str, value: Any) -> None:
    rows = ROWS.assign(tenure=ROWS.tenure.where(ROWS.household != 3, value))
    given = dict(PUBLIC[way])
    if way == "register":
        given["groups"] = rows.drop_duplicates("household")
    with pytest.raises(InputError) as refused:
        tt.read(rows, **READING, **LISTED, **given)
    assert "Zq7secret" not in str(refused.value)


def test_closed_names_attributes() -> None:
    with pytest.raises(RequestError, match="no attribute"):
        tt.read(ROWS, **READING, by="tenure=owned,rented", closed="state", public="cells")
