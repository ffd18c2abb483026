"""A ledger that was put back to an earlier state is noticed by the next payment, through the releases
beside it.
"""

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

import tallytree as tt
from tallytree.errors import BudgetError
from tallytree.ledger.accounts import create_account, list_accounts
from tallytree.privacy.budget import Budget


def degrees(place: Path, ledger: Path, name: str) -> tt.DegreeSequence:
    return tt.degrees([3, 1, 4], epsilon=1, ledger=str(ledger), dataset="census", out=place / name)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    place = tmp_path / "ledger.db"
    create_account(str(place), "census", Budget("pure", Fraction(2)))
    return place


def test_a_ledger_that_was_put_back_pays_for_nothing_more(ledger: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    shutil.copy(ledger, backup)
    degrees(tmp_path, ledger, "first")
    degrees(tmp_path, ledger, "second")
    shutil.copy(backup, ledger)
    for _ in range(2):
        with pytest.raises(BudgetError, match=r"put back to an earlier state.*nothing was paid"):
            degrees(tmp_path, ledger, "third")
        assert not (tmp_path / "third").exists()
    assert [account.spent for account in list_accounts(str(ledger))] == [0]


def test_rows_that_came_instead_of_others_are_noticed(ledger: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    shutil.copy(ledger, backup)
    degrees(tmp_path / "here", ledger, "first")
    shutil.copy(backup, ledger)
    degrees(tmp_path / "elsewhere", ledger, "first")  # whose neighbours remember nothing
    with pytest.raises(BudgetError, match="put back"):
        degrees(tmp_path / "here", ledger, "second")


def test_an_account_of_the_same_name_in_another_ledger_is_another(
    ledger: Path, tmp_path: Path
) -> None:
    degrees(tmp_path, ledger, "first")
    other = tmp_path / "other.db"
    create_account(str(other), "census", Budget("pure", Fraction(2)), note="of another office")
    assert degrees(tmp_path, other, "second").verify()
