"""A loss that promises little says so."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import tallytree as tt
from tallytree.cli.app import app
from tallytree.errors import RequestError
from tallytree.ledger.accounts import create_account, read_history
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


@pytest.mark.parametrize("method", ["kd-tree", "dawa", "quadtree", "adaptive"])
def test_a_loss_that_leaves_nothing_to_see_is_refused_unpaid(method: str, tmp_path: Path) -> None:
    """Methods of several rounds learn only on the way how much noise they need."""
    ledger = str(tmp_path / "ledger.db")
    create_account(ledger, "points", Budget("pure", Fraction(1)))
    opened = read_history(ledger, "points")
    what: dict[str, Any] = {"counts": np.arange(4096).reshape(64, 64), "mechanism": method}
    pays: dict[str, Any] = {"ledger": ledger, "dataset": "points", "out": tmp_path / "out"}
    with pytest.raises(RequestError, match="too small a loss"):
        tt.spatial(**what, epsilon="1e-11", **pays)
    assert not list(tmp_path.glob("*out*"))
    assert read_history(ledger, "points") == opened
    assert tt.spatial(**what, epsilon="1e-9", **pays).verify()
