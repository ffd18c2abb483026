"""``neighbours="replace"``: replacing one unit by another costs what was stated, and accounts count
what is spent.
"""

from fractions import Fraction
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.degree_sequences.publish import degrees
from tallytree.errors import BudgetError, RequestError
from tallytree.ledger.accounts import create_account
from tallytree.maps.publish import spatial
from tallytree.privacy.budget import Budget
from tallytree.privacy.guarantee import REPLACED, false_claims
from tallytree.ranges.publish import histogram
from tests.attacks.transcript import listen, loss_between, replay

COUNTS = np.array([3, 0, 2, 5])
KINDS: dict[str, Any] = {
    "histogram": partial(histogram, mechanism="flat"),
    "wavelet": partial(histogram, mechanism="wavelet"),
    "map": lambda counts, **asked: spatial(counts=counts, mechanism="structure-first", **asked),
    "degrees": degrees,
}


def moved(counts: Any, source: int, target: int) -> Any:
    """The same entities, one of them in another bin."""
    return counts - (np.arange(len(counts)) == source) + (np.arange(len(counts)) == target)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("asked", "stated"),
    [({"epsilon": 1}, 1), ({"rho": "1/4", "definition": "zcdp"}, Fraction(1, 4))],
)
def test_replacing_one_unit_costs_at_most_what_is_stated(
    kind: str, asked: dict[str, Any], stated: Fraction
) -> None:
    rng, worst = np.random.default_rng(5), Fraction(0)
    for source, target in permutations(range(4), 2):
        if COUNTS[source]:
            make = partial(KINDS[kind], neighbours="replace", insecure_seed=1, **asked)
            made, script = listen(partial(make, COUNTS), rng)
            _, again = replay(partial(make, moved(COUNTS, source, target)), script)
            privacy = made.manifest["privacy"]
            worst = max(worst, loss_between(script, again, privacy["definition"]))
            assert (
                Fraction(
                    privacy["replacing"]["epsilon" if privacy["definition"] == "pure" else "rho"]
                )
                == stated
            )
    assert 0 < worst <= stated * (1 + Fraction(1, 10**9))
    if kind == "histogram" and "epsilon" in asked:
        assert (
            worst == stated
        )  # all of it is used: another unit in the place of one changes two bins


def test_the_statement_is_about_replacing_and_verifies(tmp_path: Path) -> None:
    made = tt.histogram(COUNTS, epsilon=1, neighbours="replace", entity="person")
    privacy = made.manifest["privacy"]
    assert privacy["statement"].startswith(
        "Replacing any one person by another makes any outcome at most e^1 ≈ 2.72 times"
    )
    assert (privacy["epsilon"], privacy["replacing"], privacy["neighbours"]) == (
        "1/2",
        {"epsilon": "1"},
        REPLACED,
    )
    made.save(tmp_path / "out")
    assert tt.verify(tmp_path / "out")
    assert false_claims(
        {**privacy, "neighbours": "add or remove one unit; everything under fixed stays as it is"}
    )
    under_zcdp = tt.histogram(COUNTS, rho=1, definition="zcdp", neighbours="replace").manifest[
        "privacy"
    ]
    assert (under_zcdp["rho"], under_zcdp["replacing"]) == ("1/4", {"rho": "1"})
    plain = tt.histogram(COUNTS, rho=1, definition="zcdp").manifest["privacy"]
    assert (
        under_zcdp["approximate"] == plain["approximate"]
    )  # of what was stated, for the neighbours it was stated for


def test_an_account_counts_what_is_spent(tmp_path: Path) -> None:
    ledger = f"{tmp_path / 'ledger.db'}"
    create_account(ledger, "people", Budget("pure", Fraction(1)))
    paid = partial(tt.histogram, COUNTS, epsilon=1, ledger=ledger, dataset="people")
    for _ in range(2):  # half of the account each
        paid(neighbours="replace")
    with pytest.raises(BudgetError):
        paid(neighbours="replace")


def test_replacing_is_refused_with_delta() -> None:
    with pytest.raises(RequestError, match="neighbours='replace' goes with epsilon alone"):
        tt.histogram(COUNTS, epsilon=1, delta="1e-9", neighbours="replace")
    with pytest.raises(RequestError, match="Choose one of: add-remove, replace"):
        tt.histogram(COUNTS, epsilon=1, neighbours="swap")
