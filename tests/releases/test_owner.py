"""What the owner is told about values outside bounds: on the console, once it is paid for, and
nowhere else.
"""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import BudgetError, RequestError
from tallytree.group_sizes.publish import _release_elsewhere
from tallytree.ledger.accounts import create_account
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.privacy.budget import Budget
from tallytree.releases.keeping import NOTHING_KEPT
from tallytree.releases.progress import silent

# Household 3 has 4 people; "a" has 3 rows and "b" 2; quantities 9 and 50 are above 5.
PEOPLE = pa.table(
    {
        "household": [1, 1, 2, 3, 3, 3, 3],
        "who": ["a", "a", "a", "b", "b", "c", "d"],
        "state": ["x", "x", "x", "y", "y", "y", "y"],
        "quantity": [1, 9, 2, 50, 3, 1, 1],
        "day": [0, 1, 2, 3, 4, 5, 6],
        "colour": ["red", "red", "blue", "pink", "mauve", "red", "red"],
    }
)
HOUSEHOLDS = PEOPLE.select(["household", "state"]).group_by(["household", "state"]).aggregate([])
WHO: dict[str, Any] = {"unit": "who", "contributions": 1}
TOTALS = (
    HOUSEHOLDS.group_by("state")
    .aggregate([("household", "count")])
    .rename_columns(["state", "groups"])
)
WHO_OF_TOTALS: dict[str, Any] = WHO | {"group_totals": TOTALS}
UNITS = "3 rows beyond the 1 that count of one who, left out"


def groups(**how: Any) -> Any:
    public = {} if "groups" in how or "group_totals" in how else {"public": "groups"}
    return tt.read(PEOPLE, group="household", levels=["state"], **public | how)


def lowered(**how: Any) -> Any:
    return groups(quantity="quantity", max_quantity=5, **how)


POINTS = np.array([[0.0, 0.0], [1.0, 1.0], [9.0, 9.0]])
KINDS: dict[str, tuple[Callable[..., Any], str]] = {
    "nothing": (lambda **k: tt.release(groups(), **k), "no value lay outside the bounds"),
    "contributions": (lambda **k: tt.release(groups(**WHO_OF_TOTALS), **k), UNITS),
    "private groups": (lambda **k: tt.release(groups(**WHO | {"public": "regions"}), **k), UNITS),
    "whole groups": (
        lambda **k: tt.release(
            groups(
                public="regions", unit="group", contributions=3, people={"colour": ["red", "blue"]}
            ),
            **k,
        ),
        "1 rows beyond the 3 that count of one household, left out",
    ),
    "quantities": (lambda **k: tt.release(lowered(), **k), "2 quantities above 5, lowered to it"),
    "a table of groups": (
        lambda **k: tt.release(lowered(groups=HOUSEHOLDS), **k),
        "2 quantities above 5",
    ),
    "max_size": (
        lambda **k: tt.release(groups(), max_size=3, **k),
        "1 groups larger than 3, taken for that size",
    ),
    "classes": (
        lambda **k: tt.release(groups(classes="2-2,3-3"), **k),
        "2 groups with sizes outside the classes",
    ),
    "histogram": (
        lambda **k: tt.histogram(
            PEOPLE, column="quantity", mechanism="flat", width=1, bounds=(0, 8), **k
        ),
        "2 values outside all bins or the box, counted in the nearest",
    ),
    "dropped": (
        lambda **k: tt.histogram(
            [1, 2, 99], mechanism="flat", width=1, bounds=(0, 4), outside="drop", **k
        ),
        "1 values outside all bins or the box, left out",
    ),
    "categories": (
        lambda **k: tt.histogram(
            PEOPLE, column="colour", mechanism="flat", categories=["red", "blue"], **k
        ),
        "2 values that are none of the categories, left out",
    ),
    "units of a histogram": (
        lambda **k: tt.histogram(
            PEOPLE, column="day", mechanism="flat", width=1, bounds=(0, 9), **WHO, **k
        ),
        UNITS,
    ),
    "map": (
        lambda **k: tt.spatial(POINTS, box=((0, 1), (0, 1)), resolution=2, **k),
        "1 values outside all bins or the box",
    ),
    "map of a table": (
        lambda **k: tt.spatial(
            PEOPLE, columns=["quantity", "day"], box=((0, 9), (0, 5)), resolution=2, **k
        ),
        "2 values outside all bins or the box",
    ),
    "degrees": (lambda **k: tt.degrees(groups(**WHO_OF_TOTALS), **k), UNITS),
    "stream": (
        lambda **k: tt.stream(PEOPLE, column="day", start=1, until=6, horizon=9, **k),
        "1 entities before the first step, left out",
    ),
    "units of a stream": (
        lambda **k: tt.stream(PEOPLE, column="day", start=0, until=6, horizon=9, **WHO, **k),
        UNITS,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_owner_who_asks_is_told_on_the_console_alone(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make, told = KINDS[kind]
    silent = make(epsilon=1, insecure_seed=1)
    assert capfd.readouterr().err == ""
    made = make(epsilon=1, insecure_seed=1, tell_owner=True)
    shown = capfd.readouterr()
    assert told in shown.err
    assert shown.err.startswith("CONFIDENTIAL, for the owner alone")
    assert shown.out == ""
    # The release is the one that is made without asking, in all its files.
    assert made.manifest == silent.manifest
    for name, release in (("asked", made), ("silent", silent)):
        release.save(tmp_path / name)
    for file in sorted((tmp_path / "silent").iterdir()):
        assert (tmp_path / "asked" / file.name).read_bytes() == file.read_bytes()


def test_nothing_is_told_before_it_is_paid(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ledger = str(tmp_path / "ledger.db")
    create_account(ledger, "people", Budget("pure", Fraction(1)), unit="who")
    paid = {"ledger": ledger, "dataset": "people", "idempotency_key": "first"}
    with pytest.raises(BudgetError):
        tt.release(groups(**WHO_OF_TOTALS), epsilon=2, tell_owner=True, **paid)
    assert capfd.readouterr().err == ""
    tt.release(groups(**WHO_OF_TOTALS), epsilon=1, tell_owner=True, **paid)
    assert UNITS in capfd.readouterr().err


def test_a_console_that_is_closed_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = (tmp_path / "console").open("w")
    closed.close()
    monkeypatch.setattr("sys.stderr", closed)
    assert tt.release(groups(**WHO_OF_TOTALS), epsilon=1, tell_owner=True).verify().passed


def test_counts_on_a_cluster_are_not_counted_again() -> None:
    options = ReleaseOptions(epsilon=1, tell_owner=True)
    nothing: Any = object()
    with pytest.raises(RequestError, match="Spark"):
        _release_elsewhere(nothing, options, nothing, {}, NOTHING_KEPT, silent)
