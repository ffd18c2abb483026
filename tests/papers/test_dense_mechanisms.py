"""Mechanisms of fioretto2021 through the front door: promises kept, totals as stated, refusals
before anything is spent.
"""

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree import ConfidentialCounts, load, release, verify
from tallytree.errors import MissingExtraError, RequestError
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tallytree.papers.fioretto2021.mechanisms import MECHANISMS
from tests.group_sizes.test_group_sizes import assert_holds, confidential
from tests.reference.group_sizes import hierarchies_with_sizes

# Whole groups, which size-bins protects, have tests of their own.
DENSE = list(MECHANISMS)
WITHOUT_SOLVER = [name for name in DENSE if not MECHANISMS[name].traits.solver]
SMALL = hierarchy_from_leaves(["leaf"], [("a",), ("b",)])


def small(**facts: Any) -> ConfidentialCounts:
    return confidential(SMALL, [[0, 1, 1, 3], [2, 2, 4]], **facts)


@given(hierarchies_with_sizes(), st.data())
def test_every_mechanism_keeps_its_promises(
    case: tuple[Hierarchy, list[list[int]]], data: st.DataObject
) -> None:
    tree, sizes = case
    mechanism = data.draw(st.sampled_from(WITHOUT_SOLVER))
    totals = data.draw(st.sampled_from(MECHANISMS[mechanism].traits.totals))
    truth = confidential(tree, sizes)
    made = release(
        truth,
        epsilon=data.draw(st.sampled_from(["1/10000000", "1/10", 1, 5])),
        mechanism=mechanism,
        totals=totals,
        repair=True,
        max_size=data.draw(st.sampled_from([1, 7, 25])),
        insecure_seed=data.draw(st.integers(0, 1000)),
    )
    assert_holds(made, truth, totals=totals == "regions")
    assert made.counts.n_groups()[0] == sum(map(len, sizes))
    assert made.manifest["totals"]["kept"] == ("every region" if totals == "regions" else "root")


@pytest.mark.parametrize("mechanism", DENSE)
@pytest.mark.parametrize("totals", ["regions", "root"])
def test_small_instances_of_all_mechanisms(mechanism: str, totals: str, tmp_path: Path) -> None:
    if totals not in MECHANISMS[mechanism].traits.totals:
        with pytest.raises(RequestError, match=f"mechanism '{mechanism}' keeps"):
            release(small(), epsilon=1, mechanism=mechanism, totals=totals, max_size=5, repair=True)
        return
    made = release(
        small(),
        epsilon=2,
        mechanism=mechanism,
        totals=totals,
        max_size=5,
        repair=True,
        budget=["1/4", "3/4"],
        insecure_seed=1,
    )
    assert_holds(made, small(), totals=totals == "regions")
    made.save(tmp_path / "out")
    assert verify(tmp_path / "out").passed
    assert load(tmp_path / "out").counts.count.tolist() == made.counts.count.tolist()
    if MECHANISMS[mechanism].traits.solver:
        assert made.manifest["mechanism"]["fit"]["optimal"] is True


@pytest.mark.parametrize("mechanism", WITHOUT_SOLVER)
def test_a_huge_budget_returns_the_truth(mechanism: str) -> None:
    made = release(
        small(), epsilon=10_000, mechanism=mechanism, max_size=5, repair=True, insecure_seed=0
    )
    np.testing.assert_array_equal(made.counts.dense(5), small().counts_on_levels.dense(5))


@pytest.mark.parametrize("mechanism", [name for name in WITHOUT_SOLVER if name != "chain"])
def test_private_group_totals_still_add_up(mechanism: str) -> None:
    made = release(
        small(groups_public=False),
        epsilon=1,
        mechanism=mechanism,
        max_size=5,
        repair=True,
        insecure_seed=3,
    )
    assert_holds(made, small(), totals=False)
    assert made.manifest["totals"]["source"] == "noisy"


def test_without_public_totals_a_root_release_gives_no_other_total_away() -> None:
    made = release(small(), epsilon="1/10", mechanism="tree-dp", max_size=5, insecure_seed=4)
    np.testing.assert_array_equal(made.n_groups, made.counts.n_groups())
    assert made.n_groups.tolist() != small().hierarchy.sum_from_leaves(small().n_groups).tolist()


def test_the_chain_pays_for_every_region_of_a_level() -> None:
    made = release(small(), epsilon=1, mechanism="chain", max_size=5, insecure_seed=0)
    root, leaves = made.manifest["privacy"]["levels"]
    assert (root["sensitivity"]["l1"], leaves["sensitivity"]["l1"]) == (1, 2)
    assert (root["scale"], leaves["scale"]) == ("2", "4")
    assert leaves["composition"] == "all regions of the level together"


def test_quantities_raise_the_noise_of_cumulative_counts() -> None:
    made = release(
        small(max_quantity=3), epsilon=1, mechanism="cumulative-dp", max_size=5, insecure_seed=0
    )
    assert [level["sensitivity"]["l1"] for level in made.manifest["privacy"]["levels"]] == [3, 3]


def test_unrepaired_relaxation_is_refused_and_repaired_one_says_what_was_wrong() -> None:
    with pytest.raises(RequestError, match="repair=True"):
        release(small(), epsilon=1, mechanism="tree-relaxed", max_size=5)
    made = release(
        small(), epsilon=1, mechanism="tree-relaxed", max_size=5, repair=True, insecure_seed=0
    )
    assert made.manifest["mechanism"]["fit"]["violations before repair"] >= 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mechanism": "tree-dp", "view": "sizes"}, "measures the naive view"),
        ({"mechanism": "tree-dp", "totals": "some"}, "totals 'some' is not known"),
        ({"mechanism": "matching", "totals": "root"}, "keeps the totals of every region"),
        ({"mechanism": "tree-exact", "max_size": "auto"}, "needs max_size"),
        ({"mechanism": "tree-exact", "max_size": 20_000}, "would solve for 60,003 cells"),
        ({"mechanism": "tree-program", "max_size": 90, "epsilon": "1/100"}, "would solve about"),
        ({"mechanism": "cumulative-exact", "max_size": 400}, "at most 1,000"),
        ({"mechanism": "cumulative-exact", "epsilon": "1/100000"}, "calls a solver"),
        ({"mechanism": "tree-dp", "max_size": 10**8}, "at most 200,000,000"),
        ({"mechanism": "tree-exact", "time_limit": 0}, "time_limit is 0"),
    ],
)
def test_requests_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        release(small(), **{"epsilon": 1, "max_size": 5, **options})


def test_the_chain_is_refused_where_groups_are_private() -> None:
    with pytest.raises(RequestError, match="needs public group totals"):
        release(small(groups_public=False), epsilon=1, mechanism="chain", max_size=5)


def test_a_missing_solver_is_named_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without_highs(name: str, *rest: Any, **named: Any) -> Any:
        if name == "highspy":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_highs)
    monkeypatch.setattr("tallytree.group_sizes.measure.views.measure_views", None)
    with pytest.raises(MissingExtraError, match=r"tallytree\[solvers\]"):
        release(small(), epsilon=1, mechanism="tree-exact", max_size=5)


def test_a_solver_out_of_time_still_gives_a_valid_release() -> None:
    for mechanism in ("tree-exact", "cumulative-exact", "tree-program"):
        made = release(
            small(), epsilon=1, mechanism=mechanism, max_size=5, time_limit=1e-9, insecure_seed=0
        )
        assert_holds(made, small(), totals=mechanism != "tree-program")
        assert made.manifest["mechanism"]["fit"]["optimal"] is False
