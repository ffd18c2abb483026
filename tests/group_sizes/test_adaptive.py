from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.kinds.verbs import verify_privacy
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.unit import Unit
from tallytree.releases.opening import open_folder
from tallytree.releases.privacy_checks import recomputed_loss


def counts(leaves: list[list[int]], **options: Any) -> ConfidentialCounts:
    """Leaves in pairs under states, with groups of the given sizes."""
    labels = [(f"s{leaf // 2:03}", f"c{leaf:04}") for leaf in range(len(leaves))]
    region = np.repeat(np.arange(len(leaves)), [len(sizes) for sizes in leaves])
    size = np.array([size for sizes in leaves for size in sizes], dtype=np.int64)
    table = counts_from_runs(region, size, np.ones_like(size), len(leaves))
    return ConfidentialCounts(
        PublicFacts(hierarchy_from_leaves(["state", "county"], labels), **options),
        table,
        table.n_groups(),
    )


def households(n_leaves: int, rng: np.random.Generator) -> ConfidentialCounts:
    """Geometric sizes, some counties larger than others, a few outliers."""
    leaves = [
        rng.geometric(rng.uniform(0.3, 0.5), int(rng.integers(50, 2000))).tolist()
        for _ in range(n_leaves)
    ]
    for leaf in range(0, n_leaves, 7):
        leaves[leaf].append(int(rng.integers(100, 5000)))
    return counts(leaves)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 60), max_size=8), min_size=1, max_size=5),
    st.sampled_from(["0.01", "1", "50", "100000"]),
    st.integers(0, 1000),
)
def test_every_release_holds_what_it_promises(
    leaves: list[list[int]], epsilon: str, seed: int
) -> None:
    released = tt.release(counts(leaves), epsilon=epsilon, insecure_seed=seed)
    assert released.manifest["mechanism"]["name"] == "adaptive"
    assert released.verify().passed


@pytest.mark.parametrize(
    "options",
    [
        {"budget": "equal"},
        {"budget": ["0", "0.25", "0.75"]},
        {"budget": ["0", "0", "1"]},
        {"definition": "zcdp", "rho": "0.5", "epsilon": None},
    ],
)
def test_other_budgets_hold_too(options: dict[str, Any], tmp_path: Path) -> None:
    data = households(20, np.random.default_rng(0))
    released = tt.release(data, **{"epsilon": 1, "insecure_seed": 1, **options})
    assert released.verify().passed
    released.save(tmp_path / "out")
    checks = verify_privacy(tmp_path / "out").checks
    assert [check.name for check in checks if not check.passed] == [
        "the noise came from secure randomness"
    ]


@pytest.mark.parametrize(
    "kind", [{"groups_public": False}, {"max_quantity": 3}, {"unit": Unit("row", "person", 2)}]
)
def test_other_neighbours_hold_too(kind: dict[str, Any]) -> None:
    leaves = [[1, 2, 2, 5], [3], [7, 1, 1], [40]]
    assert tt.release(counts(leaves, **kind), epsilon=2, insecure_seed=3).verify().passed


def test_the_manifest_tells_the_split_and_costs_the_whole_budget(tmp_path: Path) -> None:
    released = tt.release(households(30, np.random.default_rng(0)), epsilon="0.5", insecure_seed=1)
    privacy = released.manifest["privacy"]
    assert released.manifest["mechanism"]["split"].startswith("planned")
    assert sum(Fraction(level["share"]) for level in privacy["levels"]) == 1
    look = next(query for query in privacy["side_queries"] if query["query"] == "first look")
    assert Fraction(look["epsilon"]) == Fraction(3, 200)
    released.save(tmp_path / "out")
    assert recomputed_loss(open_folder(tmp_path / "out")).total == Fraction(1, 2)


def test_the_same_seed_gives_the_same_release() -> None:
    data = households(10, np.random.default_rng(0))
    one, two = (tt.release(data, epsilon=1, insecure_seed=5) for _ in range(2))
    assert one.table().equals(two.table())


def test_a_huge_budget_gives_the_truth() -> None:
    data = households(12, np.random.default_rng(2))
    errors = tt.evaluate(tt.release(data, epsilon=10_000, insecure_seed=1), data)
    assert [level.emd for level in errors.levels] == [0, 0, 0]


def test_it_beats_matching_and_bottom_up_on_household_like_data() -> None:
    data = households(300, np.random.default_rng(4))

    def mean_errors(**options: Any) -> np.ndarray:
        runs = [
            tt.evaluate(tt.release(data, epsilon="0.2", insecure_seed=seed, **options), data)
            for seed in range(4)
        ]
        return np.mean([[level.emd for level in run.levels] for run in runs], axis=0)

    ours = mean_errors()
    cumulative = mean_errors(mechanism="matching", view="cumulative", max_size=10_000)
    bottom_up = mean_errors(mechanism="bottom-up", view="cumulative", max_size=10_000)
    assert (ours < 0.6 * cumulative).all()
    assert (ours < 0.8 * bottom_up).all()


def test_requests_that_make_no_sense_are_refused() -> None:
    data = counts([[1], [2]])
    with pytest.raises(RequestError, match="last level"):
        tt.release(data, epsilon=1, budget=["0.5", "0.5", "0"])
    with pytest.raises(RequestError, match="staircase"):
        tt.release(data, epsilon=1, mechanism="adaptive", view="hybrid")
    with pytest.raises(RequestError, match="auto"):
        tt.release(data, epsilon=1, budget="best")
