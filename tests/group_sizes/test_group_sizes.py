"""Every release of every mechanism: integers, nonnegative, group totals and tree sums exact."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree import ConfidentialCounts, Release, evaluate, load, release, verify
from tallytree.errors import RequestError
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy
from tests.reference.group_sizes import counts_from_lists, hierarchies_with_sizes, lists_from_counts

VIEWS = ["naive", "sizes", "cumulative", "hybrid"]


def confidential(tree: Hierarchy, sizes: list[list[int]], **facts: object) -> ConfidentialCounts:
    counts = counts_from_lists(sizes)
    return ConfidentialCounts(PublicFacts(tree, **facts), counts, counts.n_groups())


def assert_holds(made: Release, truth: ConfidentialCounts, *, totals: bool = True) -> None:
    made.verify().raise_if_failed()
    lists = lists_from_counts(made.counts)
    tree = made.hierarchy
    for region in range(tree.n_regions):
        children = range(tree.child_starts[region], tree.child_starts[region + 1])
        if len(children):
            assert lists[region] == sorted(size for child in children for size in lists[child])
    if totals:
        assert made.counts.n_groups().tolist() == tree.sum_from_leaves(truth.n_groups).tolist()


@given(hierarchies_with_sizes(), st.data())
def test_every_mechanism_keeps_every_promise(
    case: tuple[Hierarchy, list[list[int]]], data: st.DataObject
) -> None:
    tree, sizes = case
    truth = confidential(tree, sizes)
    made = release(
        truth,
        epsilon=data.draw(st.sampled_from(["1/10", 1, 5])),
        mechanism=data.draw(st.sampled_from(["matching", "bottom-up"])),
        view=data.draw(
            st.lists(st.sampled_from(VIEWS), min_size=tree.n_levels, max_size=tree.n_levels)
        ),
        merge=data.draw(st.sampled_from(["weighted", "average"])),
        max_size=data.draw(st.sampled_from([1, 7, 25, "auto"])),
        norm=data.draw(st.sampled_from([None, 1, 2])),
        insecure_seed=data.draw(st.integers(0, 1000)),
    )
    assert_holds(made, truth)


@given(hierarchies_with_sizes(), st.integers(0, 100), st.sampled_from(VIEWS))
def test_private_group_totals_still_add_up(
    case: tuple[Hierarchy, list[list[int]]], seed: int, view: str
) -> None:
    tree, sizes = case
    truth = confidential(tree, sizes, groups_public=False)
    made = release(truth, epsilon=1, view=view, max_size=25, insecure_seed=seed)
    assert_holds(made, truth, totals=False)
    assert made.manifest["totals"]["source"] == "noisy"


@given(hierarchies_with_sizes())
def test_a_huge_budget_gives_the_truth(case: tuple[Hierarchy, list[list[int]]]) -> None:
    tree, sizes = case
    truth = confidential(tree, sizes)
    for view in VIEWS:
        made = release(truth, epsilon=10_000, view=view, max_size=20, insecure_seed=1)
        assert [level.emd for level in evaluate(made, truth).levels] == [0.0] * tree.n_levels


@given(hierarchies_with_sizes(max_groups=4), st.booleans())
def test_save_load_verify(case: tuple[Hierarchy, list[list[int]]], noisy: bool) -> None:
    import tempfile

    tree, sizes = case
    made = release(confidential(tree, sizes), epsilon=1, insecure_seed=3)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        made.save(out, noisy=noisy)
        again = load(out)
        assert verify(out)
        assert again.table().equals(made.table())
        assert again.hierarchy == made.hierarchy
        assert again.manifest == made.manifest
        assert (out / "noisy.parquet").exists() == noisy


def small() -> ConfidentialCounts:
    from tallytree.model.hierarchy import hierarchy_from_leaves

    tree = hierarchy_from_leaves(
        ["state", "county"], [("GA", "Cobb"), ("GA", "Fulton"), ("NY", "Kings")], root="US"
    )
    return confidential(tree, [[1, 2, 2], [3, 1], [9]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "epsilon is missing"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": "plenty"}, "epsilon"),
        ({"epsilon": 1, "rho": 1}, "rho belongs to"),
        ({"epsilon": 1, "definition": "zcdp"}, "epsilon belongs to"),
        ({"epsilon": 1, "mechanism": "magic"}, "Choose one of: adaptive, matching"),
        ({"epsilon": 1, "view": "nice"}, "Choose one of: naive"),
        ({"epsilon": 1, "view": ["sizes", "sizes"]}, "2 entries for 3 levels"),
        ({"epsilon": 1, "merge": "glue"}, "Choose one of: weighted"),
        ({"epsilon": 1, "budget": [0.5, 0.5]}, "2 shares for 3 levels"),
        ({"epsilon": 1, "budget": [0.5, 0.5, 0.5]}, "add up to 1.5"),
        ({"epsilon": 1, "budget": [0.5, 0.6, -0.1]}, "budget share"),
        ({"epsilon": 1, "budget": "fair"}, "'fair' is not known"),
        ({"epsilon": 1, "max_size": 0}, "at least 1"),
        ({"epsilon": 1, "max_size": "big"}, "or a whole number"),
        ({"epsilon": 1, "norm": 3}, "Choose one of: 1, 2"),
        ({"epsilon": 1, "view": "sizes", "max_size_budget": 0.1}, "goes with the views naive"),
        (
            {"epsilon": 1, "view": "naive", "max_size": 9, "max_size_budget": 0.1},
            "without a public max_size",
        ),
        ({"epsilon": 1, "view": "naive", "max_size_budget": 1}, "leaves nothing of epsilon = 1"),
        (
            {"epsilon": 1, "view": "naive", "max_size_budget": -1},
            "max_size_budget must be greater than 0",
        ),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_clearly(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        release(small(), **options)


def test_a_table_is_to_be_read_first() -> None:
    with pytest.raises(
        RequestError, match=r"got a pyarrow.Table. Read it first.*tallytree\.read\(table"
    ):
        release(pa.table({"household": [1]}), epsilon=1)  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_release_and_marks_it() -> None:
    first, second = (release(small(), epsilon=1, insecure_seed=7) for _ in range(2))
    assert first.table().equals(second.table())
    assert not first.private
    assert "NOT PRIVATE" in repr(first)
    assert "NOT PRIVATE" in first.manifest["privacy"]["statement"]
    assert release(small(), epsilon=1).private


def test_the_manifest_says_where_the_budget_went() -> None:
    made = release(
        small(), epsilon="0.3", view=["sizes", "cumulative", "naive"], budget=["0.2", "0.3", "0.5"]
    )
    privacy = made.manifest["privacy"]
    assert privacy["epsilon"] == "3/10"
    assert [level["sensitivity"]["l1"] for level in privacy["levels"]] == [1, 1, 2]
    parts = [Fraction(part["epsilon"]) for part in privacy["levels"] + privacy["side_queries"]]
    assert sum(parts) == Fraction(3, 10)
    for part in privacy["levels"]:
        assert Fraction(part["scale"]) == part["sensitivity"]["l1"] / Fraction(part["epsilon"])


def test_a_bound_on_sizes_may_cost_an_absolute_amount() -> None:
    """kuo2018 footnote 6 takes 0.0001, whatever the release costs; without it a hundredth of the
    budget.
    """
    for asked, cost in (({"max_size_budget": "0.01"}, "1/100"), ({}, "1/20")):
        made = release(small(), epsilon=5, view="cumulative", insecure_seed=1, **asked)
        (bound,) = made.manifest["privacy"]["side_queries"]
        assert (bound["query"], bound["epsilon"]) == ("largest size", cost)
        levels = made.manifest["privacy"]["levels"]
        assert sum(Fraction(level["epsilon"]) for level in levels) == 5 - Fraction(cost)
        made.verify().raise_if_failed()


def test_confidential_counts_show_nothing() -> None:
    import pickle

    truth = small()
    assert "9" not in repr(truth)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(truth)


def test_region_queries() -> None:
    made = release(small(), epsilon=10_000, insecure_seed=1)
    georgia = made.region("US/GA")
    assert (georgia.n_groups, georgia.n_entities) == (5, 9)
    assert georgia.counts().tolist() == [0, 2, 2, 1]
    assert georgia.cumulative().tolist() == [0, 2, 4, 5]
    assert georgia.sizes().tolist() == [1, 1, 2, 2, 3]
    assert (
        georgia.of_size(2),
        georgia.at_least(2),
        georgia.kth_largest(1),
        georgia.kth_largest(5),
    ) == (2, 3, 3, 1)
    assert (georgia.quantile(0), georgia.quantile(0.5), georgia.quantile(1)) == (1, 2, 3)
    assert georgia.mean() == pytest.approx(1.8)
    with pytest.raises(RequestError, match="k is 6"):
        georgia.kth_largest(6)


def test_verify_notices_tables_that_do_not_add_up() -> None:
    made = release(small(), epsilon=1, insecure_seed=1)
    counts = lists_from_counts(made.counts)
    counts[0][0] += 1
    broken = Release(made.hierarchy, counts_from_lists(counts), made.n_groups, made.manifest)
    failed = [check.name for check in broken.verify().checks if not check.passed]
    assert failed == ["state adds up to US"]
    counts[0].pop()
    broken = Release(made.hierarchy, counts_from_lists(counts), made.n_groups, made.manifest)
    assert "group totals hold" in [
        check.name for check in broken.verify().checks if not check.passed
    ]


def test_noise_is_where_the_manifest_says(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    queries = {
        "hybrid": {"cumulative", "tail"},
        None: {"first look", "blocks", "block ends", "tail"},
    }
    for view, expected in queries.items():
        release(small(), epsilon=1, view=view, insecure_seed=1).save(tmp_path / str(view))
        noisy = pq.read_table(tmp_path / str(view) / "noisy.parquet")
        assert noisy.column_names == ["level", "region", "query", "index", "value"]
        assert set(noisy["query"].to_pylist()) <= expected
        assert np.issubdtype(noisy["value"].to_numpy().dtype, np.integer)
