"""Every value of every manifest, edited by somebody who makes its checksum fit.

What follows from the rest is found by verifying alone; for what is told and believed a ledger
vouches.
"""

import copy
import json
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli.ledger import _receipt_of
from tallytree.errors import InputError, TallytreeError
from tallytree.ledger.accounts import create_account, read_history
from tallytree.ledger.chain import Entry
from tallytree.ledger.checks import check_manifest
from tallytree.ledger.payment import Payment
from tallytree.privacy.budget import Budget
from tests.forging import forge
from tests.fuzz.damage import Route, place_of, routes
from tests.fuzz.small import KINDS_MADE, MADE

# Told and believed: nothing else in a folder says it. Words about the data, what the data were read
# with, versions.
TOLD = {
    ("versions",), ("public", "hierarchy"), ("public", "group_totals"), ("public", "least_size"), ("public", "outside"),
    ("public", "note"), ("public", "rows"), ("privacy", "unit", "in_one_row"), ("mechanism", "reason"), ("mechanism", "fit"),
    ("uniformity",), ("box",), ("public", "box"), ("mechanism", "prune"), ("mechanism", "depth"), ("mechanism", "graphical"),
    ("mechanism", "inference"), ("mechanism", "branching"), ("published", "nonnegative"), ("public", "people", "classes"),
    ("public", "regions"),
}  # fmt: skip
# Of whole groups also what single rows would be called, and how much one would add.
TOLD_OF_GROUPS = {("privacy", "unit", "entity"), ("public", "max_quantity")}
# Every value of every kind, edited in several ways: TALLYTREE_FUZZ=2 pytest
# tests/releases/test_edited_values.py
THOROUGH = int(os.environ.get("TALLYTREE_FUZZ", "1")) > 1


def edits(value: Any) -> list[Any]:
    """Other values that a forger might like better."""
    match value:
        case bool():
            return [not value, None]
        case int():
            return [value + 1, 0 if value else 7]
        case float():
            return [value * 1.5 + 1]
        case None:
            return ["x", 1]
        case str() if value[:1].isdigit():
            return ["1/7", value + "1"]
        case str():
            return [value + " indeed", ""] if value else ["indeed"]
        case _:
            return [[1], {"a": 1}]


def values(manifest: dict[str, Any]) -> list[Route]:
    """The ways to all values that hold no others, but for the checksum."""

    def holds_others(way: Route) -> bool:
        value = place_of(manifest, way)[way[-1]]
        return isinstance(value, dict | list) and bool(value)

    return [way for way in routes(manifest) if way != ("sha256",) and not holds_others(way)]


def edited(manifest: dict[str, Any], n_ways: int) -> Iterator[tuple[Route, dict[str, Any]]]:
    for way in values(manifest):
        for value in edits(place_of(manifest, way)[way[-1]])[:n_ways]:
            changed = copy.deepcopy(manifest)
            place_of(changed, way)[way[-1]] = value
            yield way, changed


def is_told(name: str, way: Route) -> bool:
    told = TOLD | TOLD_OF_GROUPS if "whole groups" in name else TOLD
    if "hats" in name and (way == ("mechanism", "crowding") or way[-1] == "spacing"):
        return True  # among nine bins another one may round to the same hats
    if way[0] == "box" and name == "map of two columns":
        return False  # it follows from the table of edges
    if name == "table" and way[0] == "attributes" and way[-1] == "ordered":
        return True
    return any(way[: len(some)] == some for some in told)


def is_empty(folder: Path, manifest: dict[str, Any], way: Route) -> bool:
    """Whether a way leads to the name of a value of an attribute of a table that no row has."""
    if manifest["kind"] != "table" or way[0] != "attributes" or "values" not in way:
        return False
    attribute = manifest["attributes"][way[1]]
    counted = pq.read_table(folder / "counts.parquet")[attribute["name"]].to_pylist()
    return attribute["values"][way[-1]] not in counted


def passes(folder: Path) -> bool:
    try:
        return bool(tt.verify(folder))
    except TallytreeError:
        return False


def vouched(history: list[Entry], folder: Path) -> bool:
    """Whether a ledger knows a folder, as ``ledger verify --release`` finds."""
    try:
        return not check_manifest(history, *_receipt_of(folder))
    except InputError:
        return False


@pytest.mark.parametrize("name", MADE if THOROUGH else KINDS_MADE)
def test_what_follows_from_the_rest_cannot_be_edited(name: str, tmp_path: Path) -> None:
    folder = Path(MADE[name]().save(tmp_path / "out"))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    passed, n_edits = set(), 0
    for way, changed in edited(manifest, 2 if THOROUGH else 1):
        if is_told(name, way) or is_empty(folder, manifest, way):
            continue
        forge(folder, changed)
        n_edits += 1
        if passes(folder):
            passed.add(".".join(map(str, way)))
    forge(folder, manifest)
    assert passes(folder)
    assert not passed
    assert n_edits > 30


@pytest.mark.parametrize("name", MADE)
def test_no_value_can_be_edited_where_a_ledger_vouches(name: str, tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    unit = "group" if "whole groups" in name else "entity"
    if name == "values by an attribute, zcdp":
        unit = "household"
    create_account(
        ledger,
        "census",
        Budget("zcdp" if "zcdp" in name or "graph" in name else "pure", Fraction(9)),
        unit=unit,
    )
    payment = Payment(ledger, "census")
    folder = tmp_path / "out"
    MADE[name](ledger=payment, out=folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    history = list(read_history(ledger, "census"))
    assert vouched(history, folder)
    # A stream goes on after it was paid for: for what then grows no ledger can vouch, but verifying
    # finds all but versions.
    growing = manifest.get("grows", ())
    for way, changed in edited(manifest, 1):
        if way[0] in growing and way[0] != "versions":
            forge(folder, changed)
            assert not passes(folder), way
        elif way[0] not in growing:
            forge(folder, changed)
            assert not vouched(history, folder), way
