"""Sizes and counts beyond every limit: they saturate, they are paid for once, and the release is
like any other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.degree_sequences import measure as sorted_counts
from tallytree.group_sizes.plan import thresholds
from tallytree.group_sizes.plan.memory import cells_per_level
from tallytree.group_sizes.plan.plan import plan_release
from tallytree.ingest.read import read
from tallytree.ingest.values import read_points, read_values
from tallytree.model.limits import LARGEST_NUMBER, MOST_ENTITIES, MOST_GROUPS, saturated
from tallytree.options.group_sizes import ReleaseOptions

LARGE = (2**31 - 1, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1)


def sizes(large: int) -> pa.Table:
    return pa.table({"state": ["a", "a", "b"], "size": [1, large, 3]})


def counted(large: int) -> pa.Table:
    return pa.table(
        {"state": ["a", "a", "b", "b"], "size": [1, 2, 3, 3], "n": [5, large, large, large]}
    )


def quantities(large: int) -> pa.Table:
    return pa.table(
        {
            "firm": [1, 1, 1, 2, 3],
            "state": ["a", "a", "a", "a", "b"],
            "sold": [large, large, large, 1, 2],
        }
    )


def test_sums_saturate_and_never_wrap_around() -> None:
    for large in LARGE:
        kept = read(sizes(large), size="size", levels=["state"], public="groups")
        assert kept.leaf_counts.size.tolist() == [1, min(large, LARGEST_NUMBER), 3]
        bound = 2**31
        kept = read(
            quantities(large),
            group="firm",
            levels=["state"],
            quantity="sold",
            max_quantity=bound,
            public="groups",
        )
        assert kept.leaf_counts.size.tolist() == [1, 3 * min(large, bound), 2]
        found = read_values(counted(large), "size", edges=[0, 2.5, 4], count="n").counts
        assert found.tolist() == [min(5 + large, MOST_ENTITIES), min(2 * large, MOST_ENTITIES)]
        points = counted(large).append_column("y", pa.array([0.5] * 4))
        cells = read_points(points, ["size", "y"], [(0, 4), (0, 1)], [2, 1], count="n").counts
        assert cells.tolist() == [[5], [MOST_ENTITIES if large >= MOST_ENTITIES else 3 * large]]
    for kind in (
        pa.int8(),
        pa.int32(),
        pa.uint8(),
        pa.uint64(),
        pa.float32(),
        pa.decimal128(5, 2),
        pa.decimal128(38, 0),
    ):
        assert read(
            pa.table({"s": pa.array([1, 7], kind)}), size="s", public="groups"
        ).leaf_counts.size.tolist() == [
            1,
            7,
        ]
    wide = pa.table(
        {
            "s": pa.array([1, 10**30], pa.decimal128(38, 0)),
            "u": pa.array([1, 2**64 - 1], pa.uint64()),
        }
    )
    for column in ("s", "u"):
        assert read(wide, size=column, public="groups").leaf_counts.size.tolist() == [
            1,
            LARGEST_NUMBER,
        ]
    floats = pa.table({"size": [1.0, 1e300, float("inf")], "text": ["1", "1e99", "inf"]})
    for column in ("size", "text"):
        assert read(floats, size=column, public="groups").leaf_counts.size.tolist() == [
            1,
            LARGEST_NUMBER,
        ]


def test_cells_together_stay_exact() -> None:
    many = saturated(np.full(2**14, 2**62))
    assert many.sum() <= 2**52
    assert saturated(np.full(2, 2**62)).tolist() == [MOST_ENTITIES] * 2


def read_large(how: str, large: int, **public: Any) -> Any:
    match how:
        case "sizes":
            return read(sizes(large), size="size", levels=["state"], **public)
        case "counts":  # more groups are refused when they are read
            fewer = min(large, (MOST_GROUPS - 5) // 3)
            return read(counted(fewer), size="size", count="n", levels=["state"], **public)
        case _:
            return read(
                quantities(large),
                group="firm",
                levels=["state"],
                quantity="sold",
                max_quantity=1000,
                **public,
            )


MECHANISMS: dict[str, dict[str, Any]] = {
    "adaptive": {},
    "matching": {"mechanism": "matching"},
    "cumulative": {"view": "cumulative", "max_size": 9},
    "bottom-up": {"mechanism": "bottom-up"},
    "topdown": {"mechanism": "topdown", "max_size": 9},
    "tree-dp": {"mechanism": "tree-dp", "max_size": 9},
}
CASES: dict[str, Callable[[int], Any]] = {
    "histogram": lambda large: tt.histogram(counts=[1, large, 3, large], epsilon=1, insecure_seed=1),
    "histogram, wavelet": lambda large: tt.histogram(
        counts=[1, large, 3, large], epsilon=1, mechanism="wavelet", insecure_seed=1
    ),
    "histogram, adaptive": lambda large: tt.histogram(
        counts=[1, large, 3, large], epsilon=1, mechanism="adaptive", insecure_seed=1
    ),
    "histogram, column": lambda large: tt.histogram(
        counted(large), column="size", count="n", edges=[0, 2, 4], epsilon=1, insecure_seed=1
    ),
    "histogram, values": lambda large: tt.histogram([1, 2, large], edges=[0, 2, 4], epsilon=1, insecure_seed=1),
    "degrees": lambda large: tt.degrees([1, 2, large, large], epsilon=1, insecure_seed=1),
    "degrees, sizes": lambda large: tt.degrees(
        sizes(large), size="size", public="groups", epsilon=1, insecure_seed=1
    ),
    "whole groups, sizes": lambda large: tt.release(
        read_large("sizes", large, unit="group", public="regions"), epsilon=1, insecure_seed=1
    ),
    "whole groups, counts": lambda large: tt.release(
        read_large("counts", large, unit="group", public="regions"), epsilon=1, insecure_seed=1
    ),
}  # fmt: skip
for method in ("auto", "uniform-grid", "adaptive-grid", "quadtree", "kd-tree", "kd-hybrid"):
    CASES[f"map, {method}"] = lambda large, method=method: tt.spatial(  # type: ignore[misc]
        counts=np.array([[1, large, 3, large], [0, large, 1, 2]]).repeat(2, 0),
        epsilon=1,
        mechanism=method,
        insecure_seed=1,
    )
for method in ("noisy-first", "structure-first", "noisy-merge", "structure-merge"):
    CASES[f"line, {method}"] = lambda large, method=method: tt.spatial(  # type: ignore[misc]
        counts=np.array([1, large, 3, large]), epsilon=1, mechanism=method, insecure_seed=1
    )
for name, options in MECHANISMS.items():
    for how in ("sizes", "counts", "quantities"):
        for public in ("groups", "regions"):
            CASES[f"{name}, {how}, public {public}"] = (
                lambda large, options=options, how=how, public=public: tt.release(  # type: ignore[misc]
                    read_large(how, large, public=public), epsilon=1, insecure_seed=1, **options
                )
            )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("large", [2**31, 2**63 - 1])
def test_nothing_fails_once_it_is_paid_for(case: str, large: int) -> None:
    assert CASES[case](large).verify().passed


@pytest.mark.parametrize("public", ["groups", "regions"])
def test_lists_of_large_groups_are_no_longer_than_promised(
    public: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All groups lie above every threshold; 2,000 sizes of 2^32 - 1 groups each once asked for 60
    TiB after payment.
    """
    monkeypatch.setattr(thresholds, "MOST_LISTED", 1000)
    sizes = np.arange(1000, 1300)
    table = pa.table({"state": ["a", "b", "c"] * 100, "size": sizes, "n": np.full(300, 10**6)})
    counts = read(table, size="size", count="n", levels=["state"], public=public)
    made = tt.release(counts, epsilon=1, mechanism="matching", view="hybrid", insecure_seed=1)
    assert made.verify().passed
    assert made.noisy is not None
    assert all(0 < len(level["tail"].values) <= 1000 for level in made.noisy.levels)
    options = ReleaseOptions(epsilon=1, mechanism="matching", view="hybrid")
    plan, facts = plan_release(options, counts.public), counts.public
    cells = cells_per_level(plan, facts, made.n_groups)
    assert all(
        len(level["tail"].values) <= most
        for level, most in zip(made.noisy.levels, cells, strict=True)
    )


def test_the_largest_counts_are_sorted_where_their_number_is_private(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sorted_counts, "MOST_SORTED", 1000)
    table = pa.table({"firm": np.arange(1500), "size": np.arange(1500)})
    made = tt.degrees(table, size="size", public="none", epsilon=10**6, insecure_seed=1)
    assert made.degrees.tolist() == list(range(500, 1500))
    few = pa.table({"size": [5, 7]})
    monkeypatch.setattr(sorted_counts, "MOST_SORTED", 1)
    with pytest.raises(tt.errors.InputError, match="at most 1 groups"):
        tt.degrees(few, size="size", public="groups", epsilon=1, insecure_seed=1)
