"""Releases pay before they measure."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.degree_sequences.publish import degrees
from tallytree.errors import (
    BudgetError,
    DuplicateReleaseError,
    NothingRecordedError,
    PaidNotFinishedError,
    RequestError,
)
from tallytree.group_sizes import publish as group_sizes
from tallytree.group_sizes.release.release import load_release
from tallytree.ledger.accounts import close_account, create_account, migrate_account, read_history
from tallytree.ledger.chain import summarise
from tallytree.ledger.checks import check_history
from tallytree.ledger.payment import Payment, report_release
from tallytree.ledger.terms import Parts
from tallytree.maps.publish import spatial
from tallytree.model.part import Part
from tallytree.privacy.budget import Budget
from tallytree.ranges.publish import histogram
from tallytree.releases import keeping

PEOPLE = pa.table({"household": [1, 1, 2, 3, 3, 3, 4], "state": ["GA"] * 6 + ["NY"]})
COUNTS = tt.read(PEOPLE, group="household", levels=["state"], public="groups")


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    address = str(tmp_path / "ledger.db")
    create_account(address, "census", Budget("pure", Fraction(2)))
    return address


def test_a_release_carries_its_receipt(ledger: str, tmp_path: Path) -> None:
    release = tt.release(COUNTS, epsilon=1, ledger=ledger, dataset="census")
    history = read_history(ledger, "census")
    receipt = release.manifest["privacy"]["ledger"]
    assert receipt == history[1].receipt() | {"account": history[0].hash}
    assert check_history(history, [receipt]) == []
    assert history[1].purpose.startswith("group-sizes: Adding or removing any one row")
    release.save(tmp_path / "out")
    report_release(Payment(ledger, "census"), tmp_path / "out")
    assert summarise(read_history(ledger, "census")).unfinished == ()


def test_the_ledger_keeps_what_a_release_is_made_of(ledger: str) -> None:
    release = tt.release(
        COUNTS,
        epsilon=1,
        mechanism="adaptive",
        budget=["0.25", "0.75"],
        ledger=ledger,
        dataset="census",
    )
    detail = json.loads(read_history(ledger, "census")[1].detail)
    assert detail == release.manifest["privacy"]["composition"]


def test_a_split_planned_after_payment_stands_in_the_ledger_as_one_sum(ledger: str) -> None:
    release = tt.release(COUNTS, epsilon=1, mechanism="adaptive", ledger=ledger, dataset="census")
    look, levels = json.loads(read_history(ledger, "census")[1].detail)["parts"]
    first, *rest = release.manifest["privacy"]["composition"]["parts"]
    assert look == first
    assert levels["level"] is None
    assert levels["query"] == "staircase, split over the levels after the first look"
    assert (
        Fraction(levels["loss"])
        == sum(Fraction(part["loss"]) for part in rest)
        == Fraction(97, 100)
    )


def test_histograms_pay_too(ledger: str) -> None:
    made = histogram([1, 2, 3], bins=[0, 2, 4], epsilon=1, ledger=ledger, dataset="census")
    assert made.manifest["privacy"]["ledger"]["amount"] == "1"
    with pytest.raises(
        RequestError, match="counts losses per 'entity', this release protects 'person'"
    ):
        histogram(
            [1, 2],
            bins=[0, 2, 4],
            epsilon=1,
            contributions=2,
            entity="person",
            ledger=ledger,
            dataset="census",
        )


def test_degrees_pay_too(ledger: str) -> None:
    made = degrees([3, 1, 4], epsilon=1, ledger=ledger, dataset="census")
    assert made.manifest["privacy"]["ledger"]["amount"] == "1"
    with pytest.raises(BudgetError, match="ε = 1 left"):
        degrees([3, 1, 4], epsilon="3/2", ledger=ledger, dataset="census")


def test_nothing_is_measured_without_payment(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("measured without payment")

    monkeypatch.setattr("tallytree.group_sizes.measure.adaptive.measure_in_turns", never)
    monkeypatch.setattr(group_sizes.KeyStream, "from_system", never)
    with pytest.raises(BudgetError, match="has ε = 2 left of 2; the release asks for ε = 3"):
        tt.release(COUNTS, epsilon=3, ledger=ledger, dataset="census")
    with pytest.raises(RequestError, match="insecure seed is not private"):
        tt.release(COUNTS, epsilon=1, insecure_seed=1, ledger=ledger, dataset="census")
    with pytest.raises(RequestError, match="zCDP implies no pure guarantee"):
        tt.release(COUNTS, rho=1, definition="zcdp", ledger=ledger, dataset="census")
    with pytest.raises(RequestError, match="go together"):
        tt.release(COUNTS, epsilon=1, ledger=ledger)
    with pytest.raises(RequestError, match="leave dataset out"):
        tt.release(COUNTS, epsilon=1, ledger=Payment(ledger, "census"), dataset="census")
    close_account(ledger, "census")
    with pytest.raises(BudgetError, match="closed"):
        tt.release(COUNTS, epsilon=1, ledger=ledger, dataset="census")
    assert summarise(read_history(ledger, "census")).spent == 0


def test_a_key_releases_once(ledger: str, tmp_path: Path) -> None:
    payment = Payment(ledger, "census", key="2030")

    first = tt.release(COUNTS, epsilon=1, ledger=payment, out=tmp_path / "out")
    again = tt.release(COUNTS, epsilon=1, ledger=payment, out=tmp_path / "out")
    assert again.table().equals(first.table())
    with pytest.raises(DuplicateReleaseError, match="use that release"):
        tt.release(COUNTS, epsilon=1, ledger=payment, out=tmp_path / "elsewhere")
    assert [entry.name for entry in tmp_path.iterdir() if "elsewhere" in entry.name] == []
    with pytest.raises(RequestError, match="belongs to another release"):
        tt.release(COUNTS, epsilon=1, view="sizes", ledger=payment)
    assert summarise(read_history(ledger, "census")).spent == 1


STATES = Parts("state", ("GA", "NY", "TX"))


def spent(ledger: str) -> Fraction:
    history = read_history(ledger, "census")
    assert check_history(history) == []
    return summarise(history).spent


def test_three_true_parts_cost_their_maximum_and_are_named(ledger: str) -> None:
    migrate_account(ledger, "census", parts=STATES)
    regions = pa.table({"state": list(STATES.labels)})
    for state in STATES.labels:  # Texas has no rows, and is a part like any other
        counts = tt.read(
            PEOPLE, group="household", levels=["state"], hierarchy=regions, where=f"state={state}"
        )
        made = tt.release(
            counts, epsilon=2, ledger=Payment(ledger, "census", part=Part("state", state))
        )
        assert made.manifest["where"] == {"column": "state", "value": state}
        receipt = made.manifest["privacy"]["ledger"]
        assert (receipt["part_of"], receipt["part"]) == ("state", state)
    assert spent(ledger) == 2


def test_rows_that_were_filtered_without_a_part_pay_in_full(ledger: str) -> None:
    migrate_account(ledger, "census", parts=STATES)
    for state in ("GA", "NY"):
        counts = tt.read(
            PEOPLE, group="household", levels=["state"], where=f"state={state}", public="groups"
        )
        made = tt.release(counts, epsilon=1, ledger=ledger, dataset="census")
        assert made.manifest["where"]["value"] == state
        assert "part" not in made.manifest["privacy"]["ledger"]
    assert spent(ledger) == 2


@pytest.mark.parametrize("where", [None, "state=NY", "state=GA ", "household=1"])
def test_a_part_is_refused_to_data_that_were_not_read_as_that_part(
    ledger: str, where: str | None
) -> None:
    migrate_account(ledger, "census", parts=STATES)
    people = PEOPLE.append_column("again", PEOPLE["state"])
    people = pa.concat_tables(
        [people, people.slice(0, 1).set_column(1, "state", pa.array(["GA "]))]
    )
    counts = tt.read(people, group="household", levels=["again"], where=where, public="groups")
    with pytest.raises(RequestError, match="The payment is for the part 'state=GA', but"):
        tt.release(counts, epsilon=1, ledger=Payment(ledger, "census", part=Part("state", "GA")))
    assert spent(ledger) == 0


@pytest.mark.parametrize("spelling", ["georgia", "GA", "Georgia "])
def test_other_spellings_of_a_part_are_refused_before_paying(ledger: str, spelling: str) -> None:
    migrate_account(ledger, "census", parts=Parts("state", ("Georgia", "Ohio")))
    people = pa.table({"household": [1, 2], "state": ["Georgia", spelling]})
    for label in ("Georgia", spelling):
        counts = tt.read(people, group="household", where=f"state={label}", public="groups")
        payment = Payment(ledger, "census", part=Part("state", label))
        if label == "Georgia":
            tt.release(counts, epsilon=1, ledger=payment)
        else:
            with pytest.raises(RequestError, match="is no part of the account"):
                tt.release(counts, epsilon=1, ledger=payment)
    assert spent(ledger) == 1


def test_every_kind_of_release_pays_for_parts(ledger: str) -> None:
    migrate_account(ledger, "census", parts=STATES)
    rows = PEOPLE.append_column("x", pa.array([0.5] * 7)).append_column("y", pa.array([0.5] * 7))
    for state in STATES.labels:
        paid = {"epsilon": "1/3", "ledger": Payment(ledger, "census", part=Part("state", state))}
        where = f"state={state}"
        made = [
            histogram(rows, column="household", edges=[0, 2, 5], where=where, **paid),
            spatial(
                rows, columns=["x", "y"], box=[(0, 1), (0, 1)], resolution=4, where=where, **paid
            ),
        ]
        if state != "TX":
            made.append(degrees(rows, column="household", where=where, **paid, public="groups"))
        assert all(one.manifest["where"] == {"column": "state", "value": state} for one in made)
    assert spent(ledger) == 1
    for call in (
        lambda: histogram([1, 2], edges=[0, 2, 5], epsilon=1, where="state=GA"),
        lambda: degrees([1, 2], epsilon=1, where="state=GA"),
    ):
        with pytest.raises(RequestError, match="goes with a table"):
            call()


def test_edges_of_a_part_need_the_owners_word_that_each_lies_in_one(ledger: str) -> None:
    # The same edge is listed in both parts, and counts in both.
    edges = pa.table({"a": [1, 1, 2], "b": [2, 2, 3], "state": ["GA", "NY", "NY"]})
    migrate_account(ledger, "census", parts=STATES)
    create_account(
        ledger, "graph", Budget("pure", Fraction(1)), parts=Parts("state", ("GA", "NY"), True)
    )
    payment = Payment(ledger, "census", part=Part("state", "GA"))
    with pytest.raises(RequestError, match="rows of one edge may lie in several parts"):
        degrees(
            edges, edges=("a", "b"), where="state=GA", epsilon=1, ledger=payment, public="nodes"
        )
    degrees(
        edges,
        edges=("a", "b"),
        where="state=GA",
        epsilon=1,
        ledger=replace(payment, dataset="graph"),
        public="nodes",
    )


def test_a_unit_column_needs_the_owners_word_too(ledger: str) -> None:
    rows = PEOPLE.append_column("person", pa.array([1, 2, 3, 4, 5, 6, 1]))
    for name, one_part in (("persons", False), ("whole persons", True)):
        parts = Parts("state", ("GA", "NY"), one_part)
        create_account(ledger, name, Budget("pure", Fraction(1)), unit="person", parts=parts)
    for name in ("persons", "whole persons"):
        counts = tt.read(
            rows,
            group="household",
            unit="person",
            contributions=1,
            where="state=GA",
            public="regions",
        )
        payment = Payment(ledger, name, part=Part("state", "GA"))
        if name == "persons":
            with pytest.raises(RequestError, match="rows of one person may lie in several parts"):
                tt.release(counts, epsilon=1, ledger=payment)
        else:
            tt.release(counts, epsilon=1, ledger=payment)


def test_persons_and_then_households_are_refused(ledger: str) -> None:
    create_account(ledger, "people", Budget("pure", Fraction(9)), unit="person")
    for account in ("census", "people"):
        persons = tt.read(PEOPLE, group="household", entity="person", public="groups")
        tt.release(persons, epsilon=1, ledger=ledger, dataset=account)
        households = tt.read(PEOPLE, group="state", entity="household", public="groups")
        with pytest.raises(
            RequestError, match=r"per 'person', this release protects 'household'.*k·ε there"
        ):
            tt.release(households, epsilon=1, ledger=ledger, dataset=account)
    rows = tt.read(
        PEOPLE.append_column("person", PEOPLE["household"]),
        group="household",
        unit="person",
        contributions=2,
        public="regions",
    )
    tt.release(rows, epsilon=1, ledger=ledger, dataset="people")
    with pytest.raises(RequestError, match="say entity='person'"):
        tt.release(COUNTS, epsilon=1, ledger=ledger, dataset="people")
    tt.release(COUNTS, epsilon=1, ledger=ledger, dataset="census")


def test_zcdp_releases_pay_from_an_account_of_rho(ledger: str) -> None:
    create_account(ledger, "survey", Budget("zcdp", Fraction(1)))
    tt.release(COUNTS, rho="1/4", definition="zcdp", ledger=ledger, dataset="survey")
    tt.release(COUNTS, epsilon=1, ledger=ledger, dataset="survey")
    assert summarise(read_history(ledger, "survey")).spent == Fraction(3, 4)


def test_a_payment_does_not_show_the_ledgers_password() -> None:
    assert "secret" not in repr(Payment("postgresql://me:secret@host/db", "census"))


def test_a_ledger_of_a_newer_version_leaves_nothing_unfinished(ledger: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("INSERT INTO tallytree_ledger_version VALUES (99)")
    with pytest.raises(NothingRecordedError, match="a newer tallytree wrote"):
        tt.release(COUNTS, epsilon=1, ledger=ledger, dataset="census", out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_a_ledger_that_takes_no_rows_leaves_nothing_unfinished(
    ledger: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(
        "sqlite3.connect", lambda name, **how: connect(name.replace("mode=rw", "mode=ro"), **how)
    )
    with pytest.raises(NothingRecordedError, match="readonly"):
        tt.release(COUNTS, epsilon=1, ledger=ledger, dataset="census", out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_a_run_that_may_have_paid_stays_unfinished_while_the_ledger_cannot_be_used(
    ledger: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = {"epsilon": 1, "ledger": ledger, "dataset": "census", "out": tmp_path / "out"}
    with monkeypatch.context() as patch:
        patch.setattr(keeping, "reserve_for", dying_after(keeping.reserve_for))
        with pytest.raises(PaidNotFinishedError, match="may be paid for already"):
            tt.release(COUNTS, **how)
    shutil.move(ledger, tmp_path / "elsewhere")
    Path(ledger).write_bytes(b"no ledger")
    with pytest.raises(PaidNotFinishedError, match="may be paid for already"):
        tt.release(COUNTS, **how)
    shutil.move(tmp_path / "elsewhere", ledger)
    tt.release(COUNTS, **how)
    assert summarise(read_history(ledger, "census")).spent == 1


def dying_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def dies(*arguments: Any) -> Any:
        function(*arguments)
        raise MemoryError("no more")

    return dies


def test_a_maker_that_does_not_pay_is_refused(ledger: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="did not pay"):
        keeping.release_to(
            keeping.Target(tmp_path / "out"),
            lambda _: tt.release(COUNTS, epsilon=1),
            load_release,
            Payment(ledger, "census"),
        )
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]
