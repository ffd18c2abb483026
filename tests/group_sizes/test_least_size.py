"""Groups that exist through their rows are not released as empty ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tallytree as tt
from tallytree.errors import RequestError

SMALL = pd.DataFrame(
    [
        (f"{state}{number}", state, f"{state}{number % 7}")
        for state in "abc"
        for number in range(200)
        for _ in range(1 + number % 3 // 2)
    ],
    columns=["household", "state", "county"],
)
READING: dict[str, Any] = {"group": "household", "levels": ["state", "county"]}
REGISTER = SMALL.drop_duplicates("household")
NOISY: dict[str, Any] = {"epsilon": "0.1", "insecure_seed": 3}


def sizes(made: Any) -> set[int]:
    return set(made.table()["size"].to_pylist())


@pytest.mark.parametrize("public", ["groups", "regions"])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"view": "hybrid"},
        {"view": "cumulative", "max_size": 4},
        {"mechanism": "topdown", "max_size": 4},
    ],
    ids=str,
)
def test_groups_of_rows_are_not_empty(public: str, how: dict[str, Any], tmp_path: Path) -> None:
    if public == "regions" and "mechanism" in how:
        how = {"view": "naive", "max_size": 4}
    made = tt.release(tt.read(SMALL, **READING, public=public), **NOISY, **how)
    assert min(sizes(made)) == 1
    assert made.verify().passed
    folder = made.save(tmp_path / "out")
    assert tt.verify(folder).passed
    assert tt.re_estimate(folder).table().equals(made.table())


def test_registers_rows_with_a_size_and_sums_may_have_empty_groups() -> None:
    listed = tt.read(SMALL, **READING, groups=REGISTER)
    rows = SMALL.assign(size=1)
    sized = tt.read(rows, size="size", levels=["state", "county"], public="groups")
    summed = tt.read(rows, **READING, quantity="size", max_quantity=2, public="groups")
    for counts in (listed, sized, summed):
        assert 0 in sizes(tt.release(counts, **NOISY))
        assert min(sizes(tt.release(counts, min_size=1, **NOISY))) == 1


def test_a_stated_least_size_changes_small_sizes_alone() -> None:
    counts = tt.read(SMALL, **READING, public="groups")
    free, held = (tt.release(counts, min_size=least, **NOISY) for least in (0, 2))
    assert 0 in sizes(free)
    assert held.region("total").at_least(3) == free.region("total").at_least(3)
    assert held.region("total").n_groups == free.region("total").n_groups
    assert min(sizes(held)) == 2
    assert "smaller than 2" in held.manifest["public"]["min_size"]


def test_least_sizes_that_cannot_be() -> None:
    counts = tt.read(SMALL, **READING, public="groups")
    with pytest.raises(RequestError, match="above max_size"):
        tt.release(counts, epsilon=1, min_size=5, max_size=4)
    with pytest.raises(RequestError, match="min_size"):
        tt.release(counts, epsilon=1, min_size=-1)
    classed = tt.read(SMALL, **READING, public="groups", classes=["1", "2+"])
    with pytest.raises(RequestError, match="least size"):
        tt.release(classed, epsilon=1, min_size=1)


def test_intervals_and_predictions_keep_to_it() -> None:
    made = tt.with_intervals(
        tt.release(tt.read(SMALL, **READING, public="groups"), **NOISY), copies=4
    )
    assert min(sizes(made)) == 1
