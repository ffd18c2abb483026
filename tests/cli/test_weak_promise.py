"""A loss that promises little says so."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import tallytree as tt
from tallytree.cli.app import app
from tallytree.privacy.budget import Budget
from tallytree.privacy.guarantee import weak_promise
from tallytree.releases.report.words import protection


@pytest.mark.parametrize(
    ("loss", "is_weak"),
    [
        (["--epsilon", "10"], False),
        (["--epsilon", "100"], True),
        (["--definition", "zcdp", "--rho", "3"], True),
        (["--definition", "zcdp", "--rho", "1"], False),
    ],
)
def test_a_loss_above_ten_is_explained(loss: list[str], is_weak: bool, tmp_path: Path) -> None:
    data = tmp_path / "rows.csv"
    pd.DataFrame({"household": range(90), "state": ["a", "b", "c"] * 30}).to_csv(data, index=False)
    call = ["release", str(data), "--group", "household", "--levels", "state", "--public", "groups"]
    made = CliRunner().invoke(app, [*call, *loss, "--out", str(tmp_path / "out")])
    assert made.exit_code == 0
    assert ("above 10" in made.stderr) is is_weak


@pytest.mark.parametrize(
    "rho", [Fraction(1, 10**18), Fraction(1, 2), Fraction(3), Fraction(10**12)]
)
def test_any_rho_can_be_judged(rho: Fraction) -> None:
    assert bool(weak_promise(Budget("zcdp", rho))) is (rho > 2)


def test_pages_of_weak_promises_say_so() -> None:
    counts = tt.read(pd.DataFrame({"household": [1, 2, 3]}), group="household", public="groups")
    weak, strong = (tt.release(counts, epsilon=loss).manifest["privacy"] for loss in (100, 1))
    assert "weak" in protection(weak)
    assert "hardly" not in protection(weak)
    assert "hardly" in protection(strong)
