"""Releases pay before they measure."""

import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import BudgetError, DuplicateReleaseError, RequestError
from tallytree.model.part import Part
from tallytree.privacy.budget import Budget
from tallytree.privacy.ledger import close_account, create_account, migrate_account, read_history
from tallytree.privacy.ledger_chain import summarise
from tallytree.privacy.ledger_checks import check_history
from tallytree.privacy.ledger_terms import Parts
from tallytree.publish import group_sizes
from tallytree.publish.degrees import degrees
from tallytree.publish.histogram import histogram
from tallytree.publish.payment import Payment, publish_once, report_release

PEOPLE = pa.table({"household": [1, 1, 2, 3, 3, 3, 4], "state": ["GA"] * 6 + ["NY"]})
COUNTS = tt.read(PEOPLE, group="household", levels=["state"])


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    address = str(tmp_path / "ledger.db")
    create_account(address, "census", Budget("pure", Fraction(2)))
    return address


def test_a_release_carries_its_receipt(ledger: str, tmp_path: Path) -> None:
    release = tt.release(COUNTS, epsilon=1, ledger=ledger, dataset="census")
    history = read_history(ledger, "census")
    receipt = release.manifest["privacy"]["ledger"]
    assert receipt == history[1].receipt()
    assert check_history(history, [receipt]) == []
    assert history[1].purpose.startswith("group-sizes: Adding or removing any one row")
    release.save(tmp_path / "out")
    report_release(Payment(ledger, "census"), tmp_path / "out")
    assert summarise(read_history(ledger, "census")).unfinished == ()


def test_the_ledger_keeps_what_a_release_is_made_of(ledger: str) -> None:
    release = tt.release(
        COUNTS, epsilon=1, mechanism="adaptive", budget=["0.25", "0.75"], ledger=ledger, dataset="census"
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
    assert Fraction(levels["loss"]) == sum(Fraction(part["loss"]) for part in rest) == Fraction(97, 100)


def test_histograms_pay_too(ledger: str) -> None:
    made = histogram([1, 2, 3], bins=[0, 2, 4], epsilon=1, ledger=ledger, dataset="census")
    assert made.manifest["privacy"]["ledger"]["amount"] == "1"
    with pytest.raises(RequestError, match="counts losses per 'entity', this release protects 'person'"):
        histogram([1, 2], bins=[0, 2, 4], epsilon=1, contributions=2, entity="person", ledger=ledger, dataset="census")


def test_degrees_pay_too(ledger: str) -> None:
    made = degrees([3, 1, 4], epsilon=1, ledger=ledger, dataset="census")
    assert made.manifest["privacy"]["ledger"]["amount"] == "1"
    with pytest.raises(BudgetError, match="ε = 1 left"):
        degrees([3, 1, 4], epsilon="3/2", ledger=ledger, dataset="census")


def test_nothing_is_measured_without_payment(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("measured without payment")

    monkeypatch.setattr(group_sizes, "measure_all", never)
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

    def make() -> tt.Release:
        release = tt.release(COUNTS, epsilon=1, ledger=payment)
        release.save(tmp_path / "out")
        return release

    assert publish_once(payment, tmp_path / "out", make, overwrite=False) is not None
    assert publish_once(payment, tmp_path / "out", make, overwrite=False) is None
    with pytest.raises(DuplicateReleaseError, match="use that release"):
        publish_once(payment, tmp_path / "elsewhere", make, overwrite=False)
    with pytest.raises(RequestError, match="belongs to another release"):
        tt.release(COUNTS, epsilon=1, view="sizes", ledger=payment)
    assert summarise(read_history(ledger, "census")).spent == 1


def test_parts_of_the_data_compose_in_parallel(ledger: str) -> None:
    migrate_account(ledger, "census", parts=Parts("state", ("GA", "NY")))
    for state in ("GA", "NY"):
        tt.release(COUNTS, epsilon=2, ledger=Payment(ledger, "census", part=Part("state", state)))
    assert summarise(read_history(ledger, "census")).spent == 2


def test_zcdp_releases_pay_from_an_account_of_rho(ledger: str) -> None:
    create_account(ledger, "survey", Budget("zcdp", Fraction(1)))
    tt.release(COUNTS, rho="1/4", definition="zcdp", ledger=ledger, dataset="survey")
    tt.release(COUNTS, epsilon=1, ledger=ledger, dataset="survey")
    assert summarise(read_history(ledger, "survey")).spent == Fraction(3, 4)


def test_a_payment_does_not_show_the_ledgers_password() -> None:
    assert "secret" not in repr(Payment("postgresql://me:secret@host/db", "census"))
