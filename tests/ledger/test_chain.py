"""A history can be checked by anyone from its export alone, and no edit goes unnoticed."""

import csv
import hashlib
import io
import json
from dataclasses import fields, replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import InputError, RequestError
from tallytree.ledger.chain import (
    COLUMNS,
    Entry,
    cost_on_account,
    entry_from_row,
    history_as_csv,
    history_as_json,
    history_from_json,
)
from tallytree.ledger.checks import check_history
from tallytree.ledger.terms import Parts, detail_of


def make_history() -> list[Entry]:
    opening = Entry(
        "census",
        0,
        "create",
        "2030-01-01T00:00:00.000+00:00",
        "zcdp",
        "entity",
        Fraction(2),
        Fraction(0),
        Fraction(0),
    )
    steps = [
        {"kind": "terms", "detail": detail_of(Parts("state", ("GA", "TX")))},
        {
            "kind": "reserve",
            "amount": Fraction(1, 2),
            "charge": Fraction(1, 2),
            "key": "a",
            "digest": "d1",
        },
        {
            "kind": "reserve",
            "amount": Fraction(1),
            "charge": Fraction(1, 2),
            "key": "b",
            "definition": "pure",
        },
        {"kind": "measured", "key": "a", "digest": "d3"},
        {"kind": "complete", "key": "a", "digest": "d2"},
        {
            "kind": "reserve",
            "amount": Fraction(1, 4),
            "charge": Fraction(1, 4),
            "key": "c",
            "part_of": "state",
            "part": "GA",
        },
        {
            "kind": "reserve",
            "amount": Fraction(1, 4),
            "charge": Fraction(0),
            "key": "d",
            "part_of": "state",
            "part": "TX",
        },
        {"kind": "close", "purpose": "ends, “here”"},
    ]
    history = [replace(opening, hash=opening.seal())]
    for step in steps:
        last = history[-1]
        row = replace(
            opening,
            position=last.position + 1,
            amount=Fraction(0),
            spent=last.spent,
            previous_hash=last.hash,
        )
        row = replace(row, **step)  # type: ignore[arg-type]
        row = replace(row, spent=last.spent + row.charge)
        history.append(replace(row, hash=row.seal()))
    return history


HISTORY = make_history()


def edited(value: object) -> object:
    match value:
        case Fraction():
            return value + 1
        case int():
            return value + 1
        case None:
            return "x"
        case _:
            return f"{value}x"


def test_the_history_of_these_tests_holds_together() -> None:
    assert check_history(HISTORY) == []


@pytest.mark.parametrize(
    "name", [field.name for field in fields(Entry) if field.name not in ("kind", "definition")]
)
@pytest.mark.parametrize("position", range(len(HISTORY)))
def test_every_edit_of_every_field_is_noticed(position: int, name: str) -> None:
    row = HISTORY[position]
    changed = [
        *HISTORY[:position],
        replace(row, **{name: edited(getattr(row, name))}),
        *HISTORY[position + 1 :],
    ]
    assert check_history(changed)


@pytest.mark.parametrize("position", range(len(HISTORY)))
def test_an_edited_row_with_a_new_hash_breaks_the_row_after_it(position: int) -> None:
    forged = replace(HISTORY[position], purpose="nothing to see")
    forged = replace(forged, hash=forged.seal())
    changed = [*HISTORY[:position], forged, *HISTORY[position + 1 :]]
    if position == len(HISTORY) - 1:
        assert check_history(changed) == []  # only a receipt from outside can show this one
    else:
        assert any("does not follow" in failure for failure in check_history(changed))


@given(st.permutations(range(len(HISTORY))), st.integers(1, len(HISTORY)))
def test_removed_and_shuffled_rows_are_noticed(order: list[int], kept: int) -> None:
    chosen = order[:kept]
    holds = check_history([HISTORY[position] for position in chosen]) == []
    # A beginning of a history is a history; receipts notice the missing end.
    assert holds == (chosen == list(range(kept)))


def test_receipts_notice_a_missing_end() -> None:
    receipt = HISTORY[7].receipt()
    assert (receipt["part_of"], receipt["part"]) == ("state", "TX")
    assert check_history(HISTORY, [receipt]) == []
    assert check_history(HISTORY[:7], [receipt])
    assert check_history(HISTORY, [{**receipt, "amount": "1/5"}])


def test_sums_are_checked_even_where_every_hash_was_made_anew() -> None:
    def rewrite(position: int = 2, **change: object) -> list[str]:
        history: list[Entry] = []
        for row in HISTORY:
            if row.position == position:
                row = replace(row, **change)  # type: ignore[arg-type]
            row = replace(row, previous_hash=history[-1].hash if history else row.previous_hash)
            history.append(replace(row, hash=row.seal()))
        return check_history(history)

    assert rewrite() == []
    assert any("add up" in failure for failure in rewrite(charge=Fraction(1, 3)))
    assert any("more is reserved" in failure for failure in rewrite(amount=Fraction(5)))
    assert any("completes no reservation" in failure for failure in rewrite(key="z"))
    assert any("under a used key" in failure for failure in rewrite(key="b"))
    assert any("privacy unit" in failure for failure in rewrite(4, unit="person"))
    assert any("measures for no" in failure for failure in rewrite(4, key="z"))
    assert any("measured" in failure for failure in rewrite(5, kind="measured"))
    assert any("does not have" in failure for failure in rewrite(6, part="Georgia"))
    assert any(
        "fixed before" in failure for failure in rewrite(5, kind="terms", detail=HISTORY[1].detail)
    )
    assert any("cannot be read" in failure for failure in rewrite(1, detail='{"parts": 3}'))
    assert any(
        "its format is unknown" in failure for failure in rewrite(4, format="tallytree-ledger-9")
    )


def test_one_account_holds_one_name_for_its_row() -> None:
    def named(first: str, second: str) -> list[str]:
        history: list[Entry] = []
        for row in HISTORY:
            unit = {2: first, 3: second}.get(row.position, row.unit)
            row = replace(
                row, unit=unit, previous_hash=history[-1].hash if history else row.previous_hash
            )
            history.append(replace(row, hash=row.seal()))
        return check_history(history)

    assert named("person", "person") == named("entity", "person") == named("person", "entity") == []
    assert named("person", "household") == ["row 3: it belongs to another account or privacy unit"]


def test_an_outsider_can_check_an_export_in_a_few_lines() -> None:
    """The recipe of the documentation: nothing of tallytree is used."""
    exported = json.loads(history_as_json(HISTORY))
    previous = "0" * 64
    for row in exported["entries"]:
        sealed = row.pop("hash")
        text = json.dumps(list(row.values()), separators=(",", ":"))
        assert row["previous_hash"] == previous
        assert hashlib.sha256(text.encode()).hexdigest() == sealed
        previous = sealed
    assert sum(Fraction(row["charge"]) for row in exported["entries"]) == Fraction(
        exported["entries"][-1]["spent"]
    )


def test_exports_hold_everything() -> None:
    assert history_from_json(history_as_json(HISTORY)) == HISTORY
    rows = list(csv.DictReader(io.StringIO(history_as_csv(HISTORY))))
    for row in rows:
        row.update({name: row[name] or None for name in ("key", "part_of", "part")})
    assert [entry_from_row(row) for row in rows] == HISTORY


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "other", "entries": []}', '{"format": "tallytree-ledger-1"}'],
)
def test_other_files_are_not_taken_for_a_history(text: str) -> None:
    with pytest.raises(InputError, match="not an exported ledger history"):
        history_from_json(text)


def test_a_row_that_cannot_be_read_is_one_message() -> None:
    with pytest.raises(InputError, match="cannot be read"):
        entry_from_row({**HISTORY[0].as_row(), "amount": "1/0"})


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("value", [None, b"x", 1.5, True, [], {}, "1e999999999", "9" * 5000, "½"])
def test_anything_may_stand_in_a_row_and_is_one_message(name: str, value: object) -> None:
    row = {**HISTORY[6].as_row(), name: value}
    try:
        found = entry_from_row(row)
    except InputError:
        return
    assert isinstance(value, str) or (value is None and name in ("key", "part_of", "part"))
    assert check_history([*HISTORY[:6], found, *HISTORY[7:]])


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"format": "tallytree-ledger-1", "entries": [3, null]}']
)
def test_a_history_that_is_none_is_one_message(text: str) -> None:
    with pytest.raises(InputError):
        history_from_json(text)


def test_an_empty_history_does_not_hold() -> None:
    assert check_history([]) == ["the account has no rows"]


def test_definitions_convert_one_way() -> None:
    assert cost_on_account("pure", Fraction(2), "zcdp") == 2
    assert cost_on_account("zcdp", Fraction(2), "zcdp") == 2
    with pytest.raises(RequestError, match="zCDP"):
        cost_on_account("zcdp", Fraction(2), "pure")
