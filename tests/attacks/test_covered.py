"""Whom a promise covers: one that would cover nobody is refused, and who is left out is said in the
statement.
"""

from typing import Any

import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.ingest.read import read
from tallytree.options.reading import ReadOptions

TRIPS = pa.table(
    {
        "customer": ["a", "a", "b", "c", "d"],
        "shop": ["s", "s", "s", "t", "t"],
        "state": ["GA", "GA", "GA", "NY", "NY"],
        "kind": ["x", "x", "x", "y", "y"],
    }
)
REGISTER = pa.table({"shop": ["s", "t", "u"], "state": ["GA", "NY", "NY"], "kind": ["x", "y", "y"]})
TOTALS = pa.table({"state": ["GA", "NY"], "groups": [4, 4]})
STATES = pa.table({"state": ["GA", "NY", "UT"]})
OF_CUSTOMER = {"unit": "customer", "contributions": 2, "levels": ["state"]}
BY = {"by": ["kind"], "public": "cells"}


@pytest.mark.parametrize(
    "asked",
    [
        OF_CUSTOMER | {"group": "customer", "public": "groups"},
        OF_CUSTOMER | {"group": "customer", **BY},
        OF_CUSTOMER | {"group": "shop", "public": "groups"},
        OF_CUSTOMER | {"group": "shop", **BY},
        OF_CUSTOMER | {"group": "customer", "public": "groups", "hierarchy": STATES},
    ],
)
def test_totals_read_off_rows_that_a_unit_may_take_away_are_refused(asked: dict[str, Any]) -> None:
    """Removing a customer removed the group, and the exact number of customers came out."""
    with pytest.raises(RequestError, match=r'public="regions".*groups='):
        read(TRIPS, **asked)


@pytest.mark.parametrize("column", ["state", "kind"])
def test_a_unit_that_is_a_region_or_a_value_is_refused(column: str) -> None:
    asked: dict[str, Any] = {
        "group": "shop",
        "levels": [column],
        "unit": column,
        "contributions": 9,
    }
    with pytest.raises(RequestError, match="hierarchy="):
        read(TRIPS, public="regions", **asked)


def test_whole_groups_are_offered_where_the_unit_is_the_group() -> None:
    with pytest.raises(RequestError, match="unit='group'"):
        read(TRIPS, group="customer", public="groups", **OF_CUSTOMER)


def test_degrees_refuse_them_too() -> None:
    with pytest.raises(RequestError, match='public="none"'):
        tt.degrees(
            TRIPS, column="customer", unit="customer", contributions=2, public="groups", epsilon=1
        )


ALLOWED: dict[str, tuple[dict[str, Any], str]] = {
    "a row, groups read off": (
        {"group": "shop", "levels": ["state"], "public": "groups", "entity": "trip"},
        " Not covered: any one trip alone in a shop or a region.",
    ),
    "a row, cells read off": (
        {"group": "shop", "levels": ["state"], **BY},
        " Not covered: any one row alone in a shop or a region.",
    ),
    "a row, groups read off, regions public": (
        {"group": "shop", "levels": ["state"], "public": "groups", "hierarchy": STATES},
        " Not covered: any one row alone in a shop.",
    ),
    "a row, regions read off": (
        {"group": "shop", "levels": ["state"], "public": "regions"},
        " Not covered: any one row alone in a region.",
    ),
    "a customer, regions read off": (
        OF_CUSTOMER | {"group": "shop", "public": "regions"},
        " Not covered: any one customer alone in a region.",
    ),
    "a group, regions read off": (
        {"group": "shop", "levels": ["state"], "unit": "group", "public": "regions"},
        " Not covered: any one shop alone in a region.",
    ),
    "a row, no regions": ({"group": "shop", "public": "regions"}, ""),
    "a row, hierarchy": ({"group": "shop", "levels": ["state"], "hierarchy": STATES}, ""),
    "a customer, register": (OF_CUSTOMER | {"group": "shop", "groups": REGISTER}, ""),
    "a customer, totals": (OF_CUSTOMER | {"group": "shop", "group_totals": TOTALS}, ""),
    "a row, register": ({"group": "shop", "levels": ["state"], "groups": REGISTER}, ""),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_the_statement_says_who_is_not_covered(case: str, tmp_path: Any) -> None:
    asked, words = ALLOWED[case]
    tt.release(read(TRIPS, **asked), epsilon=1).save(tmp_path / "out")
    made = tt.load(tmp_path / "out")
    statement = made.manifest["privacy"]["statement"]
    assert statement.partition(" Not covered")[1:] == (
        (" Not covered", words[12:]) if words else ("", "")
    )
    assert made.verify().passed


def test_rows_that_are_groups_stay_without_their_entities() -> None:
    shops = pa.table({"state": ["GA", "NY"], "size": [1, 2]})
    counts = read(shops, ReadOptions(size="size", levels=["state"], public="groups"))
    assert tt.release(counts, epsilon=1, insecure_seed=1).manifest["privacy"]["alone"] == ""
