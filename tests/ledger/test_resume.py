"""What was paid for can be found again and finished; nothing is paid for or measured twice."""

import json
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from tallytree.errors import DuplicateReleaseError, RequestError, VerificationError
from tallytree.ledger.accounts import (
    Purpose,
    check_release,
    complete,
    create_account,
    find_open,
    note_measured,
    read_history,
    reserve,
)
from tallytree.ledger.chain import Entry, summarise
from tallytree.ledger.checks import check_history
from tallytree.privacy.budget import Budget
from tests.ledger.test_accounts import change

ONE = Budget("pure", Fraction(1))


@pytest.fixture
def account(ledger: str) -> str:
    create_account(ledger, "census", Budget("pure", Fraction(3)))
    return ledger


def pay(ledger: str, key: str = "spring") -> Entry:
    return reserve(ledger, "census", ONE, secure=True, purpose=Purpose(key=key))


def test_a_reservation_is_found_until_its_release_is_out(account: str) -> None:
    assert find_open(account, "census", "spring") is None
    paid = pay(account)
    found = find_open(account, "census", "spring")
    assert found is not None
    assert (found.reservation, found.measured_digest) == (paid, "")
    note_measured(account, paid, digest="d1")
    found = find_open(account, "census", "spring")
    assert found is not None
    assert (found.reservation, found.measured_digest) == (paid, "d1")
    assert summarise(read_history(account, "census")).measured == ("spring",)
    complete(account, found.reservation, result_digest="m1")
    assert find_open(account, "census", "spring") is None
    assert summarise(read_history(account, "census")).measured == ()
    assert check_history(read_history(account, "census")) == []


def test_noting_again_changes_nothing_and_other_answers_are_refused(account: str) -> None:
    paid = pay(account)
    assert note_measured(account, paid, digest="d1") == note_measured(account, paid, digest="d1")
    with pytest.raises(RequestError, match="measured already, with other answers"):
        note_measured(account, paid, digest="d2")
    with pytest.raises(RequestError, match="1 to 200 characters"):
        note_measured(account, pay(account, "summer"), digest="")
    complete(account, paid, result_digest="m1")
    assert note_measured(account, paid, digest="d1").digest == "d1"
    assert [entry.kind for entry in read_history(account, "census")] == [
        "create",
        "reserve",
        "measured",
        "reserve",
        "complete",
    ]


def test_nothing_is_measured_after_the_release_or_for_another_reservation(account: str) -> None:
    paid = pay(account)
    complete(account, paid, result_digest="m1")
    with pytest.raises(RequestError, match="complete already"):
        note_measured(account, paid, digest="d1")
    other = pay(account, "summer")
    create_account(account, "survey", ONE)
    with pytest.raises(RequestError, match="nothing to measure"):
        note_measured(account, Entry(**{**vars(other), "dataset": "survey"}), digest="d1")


def test_a_used_key_says_how_far_the_run_came(account: str) -> None:
    paid = pay(account)
    states = []
    for step in (
        lambda: None,
        lambda: note_measured(account, paid, digest="d1"),
        lambda: complete(account, paid, result_digest="m1"),
    ):
        step()
        with pytest.raises(DuplicateReleaseError) as refusal:
            pay(account)
        states.append(
            (refusal.value.state, refusal.value.measured_digest, refusal.value.result_digest)
        )
        assert refusal.value.receipt == paid.receipt()
        assert refusal.value.released is (refusal.value.state == "completed")
    assert states == [("reserved", "", ""), ("measured", "d1", ""), ("completed", "d1", "m1")]
    assert summarise(read_history(account, "census")).spent == 1


def test_an_edited_reservation_is_not_resumed(account: str) -> None:
    note_measured(account, pay(account), digest="d1")
    change(account, "UPDATE tallytree_ledger SET digest = 'd2' WHERE kind = 'measured'")
    with pytest.raises(VerificationError, match="edited"):
        find_open(account, "census", "spring")


def test_a_ledger_vouches_for_a_manifest_once_its_release_was_reported(account: str) -> None:
    paid = pay(account)
    receipt = paid.receipt()
    assert "nothing vouches" in check_release(account, "m1", receipt)[0]
    complete(account, paid, result_digest="m1")
    assert check_release(account, "m1", receipt) == []
    assert "edited" in check_release(account, "m2", receipt)[0]
    assert "no longer says so" in check_release(account, "m1", {**receipt, "charge": "0"})[0]


RACER = """
import json, sys, time
from fractions import Fraction
from tallytree.errors import DuplicateReleaseError, RequestError
from tallytree.privacy.budget import Budget
from tallytree.ledger.accounts import Purpose, find_open, note_measured, reserve

ledger, me, start = sys.argv[1], sys.argv[2], float(sys.argv[3])
time.sleep(max(0, start - time.time()))
won = []
for number in range(25):
    key = f"key-{number}"
    try:
        reserve(ledger, "census", Budget("pure", Fraction(1)), secure=True, purpose=Purpose(key=key))
        paid = True
    except DuplicateReleaseError:
        paid = False
    found = find_open(ledger, "census", key)
    try:
        note_measured(ledger, found.reservation, digest=f"{me}-{number}")
        measured = True
    except RequestError:
        measured = False
    won.append([paid, measured, find_open(ledger, "census", key).measured_digest])
print(json.dumps(won))
"""


def test_of_two_processes_one_pays_and_one_measures_under_each_key(ledger: str) -> None:
    create_account(ledger, "census", Budget("pure", Fraction(25)))
    root = Path(__file__).parents[2]
    start = str(time.time() + 3)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, ledger, name, start],
            cwd=root,
            env={"PYTHONPATH": "src:.", "PATH": "/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "other")
    ]
    results = [json.loads(racer.communicate(timeout=300)[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    for number, (one, other) in enumerate(zip(*results)):
        assert one[0] + other[0] == 1, number  # exactly one paid
        assert one[1] + other[1] == 1, number  # exactly one set of answers is kept
        assert one[2] == other[2] == f"{'one' if one[1] else 'other'}-{number}"
    history = read_history(ledger, "census")
    assert check_history(history) == []
    assert summarise(history).spent == 25
