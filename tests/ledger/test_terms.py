"""What an account fixes: exact labels of disjoint parts, and one unit by its name."""

from fractions import Fraction
from pathlib import Path

import pytest

from tallytree.errors import InputError, RequestError
from tallytree.ledger.accounts import (
    Purpose,
    create_account,
    migrate_account,
    read_history,
    reserve,
)
from tallytree.ledger.chain import Entry, summarise
from tallytree.ledger.checks import check_history
from tallytree.ledger.terms import Parts, Unit, detail_of, parts_of
from tallytree.model.part import Part, part_from
from tallytree.privacy.budget import Budget

ONE = Budget("pure", Fraction(1))
TEN = Budget("pure", Fraction(10))
STATES = Parts("state", ("Georgia", "Ohio", "Texas"))
SPELLINGS = ("Georgia", "georgia", "GA", "Georgia ")


def pay(ledger: str, part: Part | None = None, unit: str | Unit = "entity", key: str = "") -> Entry:
    return reserve(
        ledger, "census", ONE, secure=True, purpose=Purpose(key=key), unit=unit, part=part
    )


def spent(ledger: str) -> Fraction:
    history = read_history(ledger, "census")
    assert check_history(history) == []
    return summarise(history).spent


def test_four_spellings_of_one_part_are_refused_but_for_the_listed_one(ledger: str) -> None:
    create_account(ledger, "census", TEN, parts=STATES)
    pay(ledger, Part("state", "Georgia"))
    for spelling in SPELLINGS[1:]:
        with pytest.raises(RequestError, match=r"no part of the account 'census'.*state="):
            pay(ledger, Part("state", spelling))
    assert spent(ledger) == 1


def test_three_true_parts_are_charged_their_maximum(ledger: str) -> None:
    create_account(ledger, "census", TEN, parts=STATES)
    assert [pay(ledger, Part("state", label)).charge for label in STATES.labels] == [1, 0, 0]
    assert spent(ledger) == 1


def test_parts_of_an_account_without_any_and_of_another_column_are_refused(ledger: str) -> None:
    create_account(ledger, "census", TEN)
    with pytest.raises(
        RequestError,
        match=r"has no parts.*ledger migrate.*where='state=Georgia', which is paid in full",
    ):
        pay(ledger, Part("state", "Georgia"))
    migrate_account(ledger, "census", parts=STATES)
    with pytest.raises(RequestError, match=r"'sex=f' is no part"):
        pay(ledger, Part("sex", "f"))
    assert spent(ledger) == 0


def test_parts_are_fixed_once(ledger: str) -> None:
    create_account(ledger, "census", TEN)
    account = migrate_account(ledger, "census", parts=STATES)
    assert account.parts == STATES
    with pytest.raises(RequestError, match="never change"):
        migrate_account(ledger, "census", parts=Parts("state", ("Georgia", "georgian")))
    assert migrate_account(ledger, "census") == account
    create_account(ledger, "survey", TEN, parts=STATES)
    with pytest.raises(RequestError, match="never change"):
        migrate_account(ledger, "survey", parts=STATES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "01"),
        ("1", "1.0"),
        ("-2", "-2.00"),
        ("100", "1e2"),
        ("0", "-0"),
        ("1", "+1"),
        ("9007199254740993", "9007199254740992.0"),
        ("0.1", "0.10000000000000001"),
        ("true", "1"),
        ("false", "no"),
        ("2025-01-31", "2025-01-31 00:00:00"),
        ("2025-01-31", "20250131"),
        ("2025-01-31T10:00", "2025-01-31"),
        ("2025-04-03", "03/04/2025"),
        ("2025-03-04", "03/04/2025"),
    ],
)
def test_one_value_is_not_two_parts(one: str, other: str) -> None:
    """``1`` of a column of integers and ``01`` of the same one as text are the same rows."""
    for labels in ((one, other), (other, "Ohio", one)):
        with pytest.raises(RequestError, match="same number, date or truth value"):
            Parts("code", labels)


@pytest.mark.parametrize(
    "labels",
    [
        ("1", "10", "100", "1.5", "-1"),
        ("01", "02", "13"),
        ("9007199254740991", "9007199254740990", "0.1", "0.1000000000000001"),
        ("2025-01-31", "2025-02-01", "2025", "202501"),
        ("true", "false"),
        ("y", "n"),
        ("Georgia", "Ohio", "1e", "e1", "1-2", "nan", "inf", "٣"),
    ],
)
def test_other_values_are_parts(labels: tuple[str, ...]) -> None:
    assert Parts("code", labels).labels == labels


@pytest.mark.parametrize("again", ["georgia", "Georgia ", " GEORGIA", "Géorgia", "Geor gia"])
def test_labels_that_some_database_takes_for_equal_are_refused(again: str) -> None:
    with pytest.raises(RequestError, match="case, spaces or accents"):
        Parts("state", ("Ohio", "Georgia", again))


def test_units_of_several_rows_need_the_owners_word_that_they_lie_in_one_part(ledger: str) -> None:
    create_account(ledger, "census", TEN, unit="person", parts=STATES)
    with pytest.raises(RequestError, match="rows of one person may lie in several parts"):
        pay(ledger, Part("state", "Ohio"), unit="person")
    pay(
        ledger, Part("state", "Ohio"), unit=Unit(entity="person")
    )  # one row each: wherever it lies, it lies there alone
    assert pay(ledger, unit="person").charge == 1
    create_account(
        ledger,
        "survey",
        TEN,
        unit="person",
        parts=Parts("state", ("Ohio",), units_in_one_part=True),
    )
    reserve(ledger, "survey", ONE, secure=True, unit="person", part=Part("state", "Ohio"))
    assert spent(ledger) == 2


def test_an_edge_that_may_be_listed_twice_may_lie_in_two_parts(ledger: str) -> None:
    create_account(ledger, "census", TEN, parts=STATES)
    with pytest.raises(RequestError, match="rows of one edge may lie in several parts"):
        pay(ledger, Part("state", "Ohio"), unit=Unit(entity="edge", one_row=False))
    assert pay(ledger, unit=Unit(entity="edge", one_row=False)).charge == 1


@pytest.mark.parametrize(
    ("account", "unit", "accepted"),
    [
        ("entity", Unit(), True),
        ("entity", Unit(entity="row"), True),
        ("entity", Unit(entity="person"), True),
        ("entity", Unit(column="person", one_row=False), False),
        ("person", Unit(entity="person"), True),
        ("person", Unit(column="person", entity="visit", one_row=False), True),
        ("person", Unit(entity="household"), False),
        ("person", Unit(), False),
        ("person", Unit(column="person_id", one_row=False), False),
        ("group", Unit(group="household"), True),
        ("group", Unit(column="group"), False),
        ("entity", Unit(entity="person", contributions=2), False),
        ("row", Unit(), True),
    ],
)
def test_units_are_matched_by_name(
    tmp_path: Path, account: str, unit: Unit, accepted: bool
) -> None:
    ledger = str(tmp_path / "ledger.db")
    create_account(ledger, "census", TEN, unit=account)
    if accepted:
        assert pay(ledger, unit=unit).charge == 1
    else:
        with pytest.raises(
            RequestError, match=r"do not add up.*k·ε there \(ρ: k²·ρ\).*contributions=k"
        ):
            pay(ledger, unit=unit)
    assert spent(ledger) == int(accepted)


def test_the_first_name_for_a_row_stays(ledger: str) -> None:
    create_account(ledger, "census", TEN)
    pay(ledger)
    pay(ledger, unit=Unit(entity="person"))
    pay(ledger)
    pay(ledger, unit=Unit(entity="person"))
    for other in ("household", "trip"):
        with pytest.raises(
            RequestError, match=f"counts losses per 'person', this release protects '{other}'"
        ):
            pay(ledger, unit=Unit(entity=other))
    with pytest.raises(RequestError, match="counts losses per 'person' already"):
        migrate_account(ledger, "census", unit="household")
    assert migrate_account(ledger, "census", unit="person").unit == "person"
    with pytest.raises(RequestError, match="say entity='person' if each row is one person"):
        pay(ledger)
    pay(ledger, unit="person")
    assert spent(ledger) == 5


def test_parts_survive_being_written() -> None:
    parts = Parts("état", ("Genève", "a,b=c", " x"), units_in_one_part=True)
    assert parts_of(detail_of(parts)) == parts
    assert parts_of(detail_of(None)) is None
    with pytest.raises(InputError, match="damaged"):
        parts_of('{"parts": {"column": "state", "labels": "GA", "units_in_one_part": false}}')


@pytest.mark.parametrize(
    "text", ["", "Georgia", "state=", "=Georgia", ("state", ""), ("state", 3), 3]
)
def test_half_a_part_is_refused(text: object) -> None:
    with pytest.raises(RequestError, match="COLUMN=VALUE"):
        part_from(text)


def test_a_label_may_hold_an_equals_sign() -> None:
    assert part_from("size=a=b") == Part("size", "a=b") == part_from(("size", "a=b"))
