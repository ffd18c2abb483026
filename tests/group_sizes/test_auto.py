"""Releases of sizes with quantities: staircases or bins of sizes, chosen after a look."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.group_sizes.plan.plan import plan_release
from tallytree.kinds.verbs import verify_privacy
from tallytree.model.confidential import ConfidentialCounts
from tallytree.options.group_sizes import ReleaseOptions

QUANTITIES: dict[str, Any] = {"even": (4, 7, 6), "heavy": (1, 30, 2000)}
LEVELS: dict[str, Any] = {"group": "firm", "levels": ["state", "county"], "root": "US"}


def firms(n_groups: int = 3000, first: int = 1, end: int = 21) -> pa.Table:
    """Some employees of each firm, with a salary."""
    rng = np.random.default_rng(1)
    county = rng.integers(0, 6, n_groups)
    staff = rng.geometric(0.4, n_groups)
    firm = np.repeat(np.arange(n_groups), staff)
    return pa.table(
        {
            "firm": firm,
            "state": [f"S{c // 3}" for c in county[firm]],
            "county": [f"C{c}" for c in county[firm]],
            "kind": [("shop", "farm")[c % 2] for c in firm],
            "person": np.arange(len(firm)) // 2,
            "salary": rng.integers(first, end, len(firm)),
        }
    )


def read(shape: str, n_groups: int = 3000, **options: Any) -> ConfidentialCounts:
    first, end, bound = QUANTITIES[shape]
    given = {"public": "groups", **LEVELS, "quantity": "salary", "max_quantity": bound, **options}
    return tt.read(firms(n_groups, first, end), **given)


@pytest.mark.parametrize(
    ("shape", "chosen"), [("even", "adaptive"), ("heavy", "size-bins")], ids=str
)
def test_the_default_is_what_is_predicted_to_be_nearer(shape: str, chosen: str) -> None:
    counts = read(shape, 20_000)
    made = tt.release(counts, epsilon=2, insecure_seed=1)
    facts = made.manifest["mechanism"]
    assert facts["name"] == chosen
    assert made.manifest["request"]["mechanism"] == "auto"
    assert facts["chosen"]["because"]
    other = {"adaptive": "size-bins", "size-bins": "adaptive"}[chosen]
    forced = tt.release(counts, epsilon=2, insecure_seed=1, mechanism=other)
    errors = [[one.emd for one in tt.evaluate(r, counts).levels] for r in (made, forced)]
    assert np.log(errors[0]).mean() < np.log(errors[1]).mean()


def test_entities_without_quantities_have_no_look_at_bins() -> None:
    counts = tt.read(firms(200), public="groups", **LEVELS)
    made = tt.release(counts, epsilon=1, insecure_seed=1)
    assert made.manifest["request"]["mechanism"] == "adaptive"
    assert "chosen" not in made.manifest["mechanism"]


KINDS: dict[str, dict[str, Any]] = {
    "public": {},
    "private": {"public": "regions"},
    "attributes": {"by": ["kind=shop,farm"]},
    "units": {"unit": "person", "contributions": 3, "public": "regions"},
    "classes": {"classes": "0-9,10-49,50-99,100+"},
}


LOSSES: dict[str, dict[str, Any]] = {
    "pure": {"epsilon": 2},
    "zcdp": {"rho": "1/2", "definition": "zcdp"},
    "approximate": {"epsilon": 2, "delta": 1e-6},
}
CASES = [
    *((shape, kind, "pure") for shape in QUANTITIES for kind in KINDS),
    ("even", "private", "zcdp"),
    ("heavy", "attributes", "zcdp"),
    ("heavy", "public", "approximate"),
]


@pytest.mark.parametrize(("shape", "kind", "loss"), CASES)
def test_every_release_is_whole_and_verified(
    shape: str, kind: str, loss: str, tmp_path: Path
) -> None:
    options = dict(KINDS[kind])
    if kind == "attributes":
        first, end, _ = QUANTITIES[shape]
        table = firms(first=first, end=end)
        keys = ["firm", "state", "county", "kind"]
        options |= {"groups": table.group_by(keys).aggregate([]), "public": None}
        options = {name: value for name, value in options.items() if value is not None}
        given = {**LEVELS, "quantity": "salary", "max_quantity": QUANTITIES[shape][2]}
        counts = tt.read(table, **given, **options)
    else:
        counts = read(shape, **options)
    made = tt.release(counts, out=tmp_path / "out", **LOSSES[loss])
    assert made.verify()
    verify_privacy(tmp_path / "out").raise_if_failed()
    if counts.public.groups_public:
        assert np.array_equal(made.region("US").n_groups, counts.n_groups.sum())
    again = tt.re_estimate(tmp_path / "out")
    assert again.table().equals(tt.load(tmp_path / "out").table())


@pytest.mark.parametrize("shape", QUANTITIES)
@pytest.mark.parametrize("public", ["groups", "regions"])
def test_intervals_simulate_what_was_chosen(shape: str, public: str) -> None:
    made = tt.release(read(shape, public=public), epsilon=1, insecure_seed=1, intervals=20)
    assert made.region("US/S0").n_groups > 0
    assert "std_error" in made.table().column_names


def test_shares_and_goals_are_those_of_staircases() -> None:
    facts = read("heavy").public
    for options in ({"budget": ["1/4", "1/4", "1/2"]}, {"goal": "leaves"}):
        assert plan_release(ReleaseOptions(epsilon=1, **options), facts).mechanism == "adaptive"
        with pytest.raises(RequestError, match="mechanism='adaptive'"):
            plan_release(ReleaseOptions(epsilon=1, mechanism="auto", **options), facts)


def test_the_look_costs_the_same_whatever_the_quantities() -> None:
    looks = {
        shape: plan_release(ReleaseOptions(epsilon=1), read(shape).public).size_look
        for shape in QUANTITIES
    }
    assert looks["even"] == looks["heavy"]
