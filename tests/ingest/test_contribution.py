"""At most k rows of each unit count, whatever the order of the rows and whichever engine holds
them.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import InputError, RequestError
from tallytree.ingest.values import read_points, read_values
from tallytree.model.confidential import ConfidentialCounts
from tallytree.privacy.sensitivity import (
    Sensitivity,
    counts_sensitivity,
    cumulative_sensitivity,
    group_totals_sensitivity,
    sizes_sensitivity,
)
from tests.ingest.formats import SOME_FORMATS, in_format
from tests.reference.reading import bounded, counts_as_dict, sizes_of_groups

TRIPS = [
    {"taxi": taxi, "city": "A" if taxi < 4 else "B", "driver": driver, "miles": miles}
    for taxi, driver, miles in [
        (1, "ann", 3), (1, "ann", 3), (2, "ann", 9), (5, "ann", 1), (2, "bob", 2), (3, "bob", 4), (4, "cat", 7), (4, "cat", 1),
        (5, "dan", 0), (1, "dan", 2), (6, "dan", 2), (6, "dan", 5), (3, "eve", 1),
    ]
]  # fmt: skip
OF_DRIVER: dict[str, Any] = {"group": "taxi", "levels": ["city"], "unit": "driver"}
READ: dict[str, Any] = OF_DRIVER | {
    "group_totals": pa.table({"city": ["A", "B"], "groups": [3, 3]})
}


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: [row[name] for row in rows] for name in TRIPS[0]})


@pytest.mark.parametrize("contributions", [1, 2, 3, 99])
@pytest.mark.parametrize("form", SOME_FORMATS)
def test_every_engine_counts_the_same_rows(form: str, contributions: int, tmp_path: Path) -> None:
    source, options = in_format(as_table(TRIPS), form, tmp_path)
    counts = tt.read(source, **READ, contributions=contributions, **options)
    # The size 1 of an entity is part of its identity; it is the same for all, so it changes no
    # order but the digest.
    marked = bounded(
        [dict(row, one=1) for row in TRIPS], "driver", ["taxi", "city", "one"], contributions
    )
    wanted = sizes_of_groups(
        [dict(row, quantity=int(kept)) for row, kept in marked], "taxi", ["city"]
    )
    assert counts_as_dict(counts) == wanted
    assert (counts.public.unit.column, counts.public.unit.contributions) == (
        "driver",
        contributions,
    )


def test_the_order_of_rows_does_not_matter() -> None:
    wanted = counts_as_dict(tt.read(as_table(TRIPS), **READ, contributions=2))
    dice = random.Random(3)
    for _ in range(5):
        shuffled = dice.sample(TRIPS, len(TRIPS))
        assert counts_as_dict(tt.read(as_table(shuffled), **READ, contributions=2)) == wanted


def test_a_bound_above_every_unit_changes_nothing() -> None:
    plain = tt.read(as_table(TRIPS), group="taxi", levels=["city"], public="groups")
    assert counts_as_dict(tt.read(as_table(TRIPS), **READ, contributions=4)) == counts_as_dict(
        plain
    )


def test_public_groups_stay_when_their_rows_are_left_out_and_private_ones_go() -> None:
    rows = [{"taxi": taxi, "city": "A", "driver": "ann", "miles": 1} for taxi in (1, 2, 3)]
    totals = pa.table({"city": ["A"], "groups": [3]})
    public = tt.read(as_table(rows), **OF_DRIVER, group_totals=totals, contributions=1)
    private = tt.read(as_table(rows), **OF_DRIVER, public="regions", contributions=1)
    assert counts_as_dict(public) == {("A",): Counter({0: 2, 1: 1})}
    assert counts_as_dict(private) == {("A",): Counter({1: 1})}
    assert (public.n_groups.tolist(), private.n_groups.tolist()) == ([3], [1])


def test_a_table_of_groups_and_quantities_go_with_units(tmp_path: Path) -> None:
    groups = pa.table({"taxi": [1, 2, 3, 4, 5, 6, 7], "city": ["A", "A", "A", "B", "B", "B", "B"]})
    options: dict[str, Any] = {
        **OF_DRIVER,
        "quantity": "miles",
        "max_quantity": 5,
        "groups": groups,
        "contributions": 2,
    }
    counts = tt.read(as_table(TRIPS), **options)
    lowered = [dict(row, quantity=min(row["miles"], 5)) for row in TRIPS]
    marked = bounded(lowered, "driver", ["taxi", "city", "quantity"], 2)
    counted = [dict(row, quantity=row["quantity"] * kept) for row, kept in marked]
    assert counts_as_dict(counts) == sizes_of_groups(counted, "taxi", ["city"], groups.to_pylist())
    # Without regions of their own, and from another engine, rows get them from the groups.
    source, place = in_format(as_table(TRIPS).drop_columns("city"), "ibis sqlite", tmp_path)
    elsewhere = tt.read(source, **options, **place)
    marked = bounded(lowered, "driver", ["taxi", "quantity"], 2)
    counted = [dict(row, quantity=row["quantity"] * kept) for row, kept in marked]
    assert counts_as_dict(elsewhere) == sizes_of_groups(
        counted, "taxi", ["city"], groups.to_pylist()
    )


def test_the_group_itself_may_be_the_unit() -> None:
    counts = tt.read(
        as_table(TRIPS),
        group="taxi",
        levels=["city"],
        unit="taxi",
        contributions=2,
        public="regions",
    )
    assert counts.leaf_counts.size.max() == 2


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"unit": "driver"}, "needs contributions="),
        ({"contributions": 3}, "goes with unit="),
        ({"unit": "driver", "contributions": 0}, "whole number"),
        ({"unit": "driver", "contributions": 1.5}, "whole number"),
        ({"unit": "driver", "contributions": True}, "whole number"),
        ({"unit": ""}, "unit= is"),
        ({"unit": "driver", "contributions": 1, "size": "miles"}, "its units are unknown"),
    ],
)
def test_requests_that_make_no_sense(options: dict[str, Any], word: str) -> None:
    with pytest.raises(RequestError, match=word):
        tt.read(as_table(TRIPS), group="taxi", levels=["city"], **options, public="groups")


def test_rows_without_a_unit_are_refused_and_a_missing_column_is_named() -> None:
    table = as_table(TRIPS).set_column(2, "driver", pa.array([None] + ["ann"] * (len(TRIPS) - 1)))
    with pytest.raises(
        InputError, match=r"'driver' of .* has missing values; every row needs a protected unit"
    ):
        tt.read(table, **READ, contributions=2)
    with pytest.raises(InputError, match="no column 'pilot'"):
        tt.read(
            table, group="taxi", levels=["city"], unit="pilot", contributions=2, public="regions"
        )


def test_the_statement_and_the_noise_are_for_the_unit() -> None:
    counts = tt.read(as_table(TRIPS), **READ, contributions=3, entity="trip")
    release = tt.release(counts, epsilon=1, view="cumulative", max_size=5)
    privacy = release.manifest["privacy"]
    assert privacy["statement"].startswith(
        "Adding or removing all rows of any one driver (of which at most 3 are counted)"
    )
    assert {level["sensitivity"]["l1"] for level in privacy["levels"]} == {3}
    assert (privacy["unit"]["column"], privacy["unit"]["contributions"]) == ("driver", 3)


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_histograms_and_maps_bound_units_too(form: str, tmp_path: Path) -> None:
    source, options = in_format(as_table(TRIPS), form, tmp_path)
    read = read_values(
        source, "miles", edges=list(range(11)), unit="driver", contributions=2, **options
    )
    counts = read.settle("error")
    assert counts.sum() == sum(min(2, n) for n in Counter(row["driver"] for row in TRIPS).values())
    source, options = in_format(as_table(TRIPS[::-1]), form, tmp_path / "again")
    again = read_values(
        source, "miles", edges=list(range(11)), unit="driver", contributions=2, **options
    )
    assert (again.settle("error") == counts).all()
    source, options = in_format(as_table(TRIPS), form, tmp_path / "points")
    points = read_points(
        source,
        ["taxi", "miles"],
        [(0, 10), (0, 10)],
        [2, 2],
        unit="driver",
        contributions=1,
        **options,
    )
    assert points.settle("error").sum() == 5


def test_values_of_one_unit_are_drawn_by_their_digest() -> None:
    table = pa.table({"who": ["a"] * 9, "what": list("pqrstuvwx")})
    read = read_values(table, "what", categories=list("pqrstuvwx"), unit="who", contributions=4)
    marked = bounded(table.to_pylist(), "who", ["what"], 4)
    assert read.settle("error").tolist() == [
        int(kept) for _, kept in sorted(((row["what"], kept) for row, kept in marked))
    ]


def test_releases_of_every_kind_name_the_unit() -> None:
    table = as_table(TRIPS)
    made = [
        tt.histogram(
            table, column="miles", bins=5, bounds=(0, 10), unit="driver", contributions=2, epsilon=1
        ),
        tt.histogram(table, column="city", categories=["A", "B"], unit="driver", epsilon=1),
        tt.spatial(
            table,
            columns=["taxi", "miles"],
            box=[(0, 9), (0, 9)],
            unit="driver",
            contributions=2,
            epsilon=1,
        ),
        tt.degrees(tt.read(table, **READ, contributions=2), epsilon=1),
    ]
    for release, k in zip(made, (2, 1, 2, 2), strict=True):
        privacy = release.manifest["privacy"]
        assert privacy["statement"].startswith(
            f"Adding or removing all rows of any one driver (of which at most {k} are counted) "
            "makes"
        )
        assert (privacy["unit"]["column"], privacy["unit"]["contributions"]) == ("driver", k)


UNIT_REFUSED: dict[str, Any] = {
    "histogram of values": lambda: tt.histogram(
        [1, 2], bins=2, bounds=(0, 3), unit="driver", epsilon=1
    ),
    "map of arrays": lambda: tt.spatial(
        np.ones((3, 2)), box=[(0, 2), (0, 2)], unit="driver", epsilon=1
    ),
    "map of counts": lambda: tt.spatial(
        counts=np.ones((3, 2), dtype=int), unit="driver", epsilon=1
    ),
    "degrees of edges": lambda: tt.degrees(
        as_table(TRIPS), edges=("taxi", "miles"), unit="driver", epsilon=1, public="nodes"
    ),
    "with a count": lambda: read_values(
        as_table(TRIPS), "taxi", edges=[0, 9], count="miles", unit="driver", contributions=1
    ),
}


@pytest.mark.parametrize("name", UNIT_REFUSED)
def test_a_unit_needs_rows_that_are_entities(name: str) -> None:
    with pytest.raises(RequestError, match="unit="):
        UNIT_REFUSED[name]()


def test_values_without_a_unit_are_refused() -> None:
    table = pa.table({"x": [1, 2], "who": ["a", None]})
    with pytest.raises(InputError, match="every row needs a protected unit"):
        read_values(table, "x", edges=[0, 9], unit="who", contributions=1)


# Removing a unit changes no query by more than the stated sensitivity: by brute force, through the
# real reader.
QUERIES = {
    "naive": (counts_sensitivity, lambda counts: counts.leaf_counts.dense(60).ravel()),
    "cumulative": (cumulative_sensitivity, lambda counts: more_than(counts)),
    "sizes": (sizes_sensitivity, lambda counts: all_sizes(counts)),
    "groups": (group_totals_sensitivity, lambda counts: counts.n_groups),
}


def more_than(counts: ConfidentialCounts) -> Any:
    """Groups of more than 0, 1, 2 … entities in each leaf, which is how cumulative counts are
    measured.
    """
    return (counts.n_groups[:, None] - counts.leaf_counts.cumulative(60)).ravel()


def all_sizes(counts: ConfidentialCounts) -> Any:
    """The sorted sizes of each leaf; for private groups the largest forty, filled up with zeros."""
    rows = []
    for leaf in range(counts.hierarchy.n_leaves):
        own = counts.leaf_counts.region(leaf)
        sizes = np.repeat(own.size, own.count)
        rows.append(np.concatenate([np.zeros(40 - len(sizes), dtype=np.int64), sizes]))
    return np.concatenate(rows)


def random_trips(dice: random.Random) -> list[dict[str, Any]]:
    cities = {taxi: dice.choice("AB") for taxi in range(5)}
    trips = [
        (dice.randrange(5), dice.choice("uvwx"), dice.randrange(4))
        for _ in range(dice.randrange(4, 14))
    ]
    return [
        {"taxi": taxi, "city": cities[taxi], "driver": driver, "miles": miles}
        for taxi, driver, miles in trips
    ]


def neighbours(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for driver in sorted({row["driver"] for row in rows}):
        rest = [row for row in rows if row["driver"] != driver]
        if rest:
            yield rest


@pytest.mark.slow
@pytest.mark.parametrize("quantity", [False, True])
@pytest.mark.parametrize("private", [False, True])
def test_removing_one_unit_stays_within_the_sensitivity(private: bool, quantity: bool) -> None:
    dice = random.Random(11)
    largest: dict[tuple[str, int], tuple[int, int]] = {}
    options: dict[str, Any] = OF_DRIVER | ({"public": "regions"} if private else {})
    bounds: dict[str, int] = {}
    if quantity:
        bounds = {"max_quantity": 2}
        options |= {"quantity": "miles", **bounds}
    regions = pa.table({"city": ["A", "B"], "name": ["A", "B"]})
    for _ in range(3):
        rows = random_trips(dice)
        # Public groups are there before and after, in a table of their own.
        if not private:
            taxis = {row["taxi"]: row["city"] for row in rows}
            options["groups"] = pa.table({"taxi": list(taxis), "city": list(taxis.values())})
        for k in (1, 2):
            whole = tt.read(as_table(rows), hierarchy=regions, contributions=k, **options)
            for rest in neighbours(rows):
                less = tt.read(as_table(rest), hierarchy=regions, contributions=k, **options)
                for name, (_, answer) in QUERIES.items():
                    change = np.abs(answer(whole) - answer(less))
                    seen = largest.get((name, k), (0, 0))
                    largest[name, k] = (
                        max(seen[0], int(change.sum())),
                        max(seen[1], int((change**2).sum())),
                    )
    for (name, k), (l1, l2_squared) in largest.items():
        stated: Sensitivity = QUERIES[name][0](
            contributions=k, **(bounds if name in ("cumulative", "sizes") else {})
        )
        if name == "groups" and not private:
            assert l1 == 0
            continue
        assert l1 <= stated.l1, (name, k)
        assert l2_squared <= stated.l2_squared, (name, k)
        if name == "sizes":
            assert l1 == stated.l1, (
                "the databases never reach the bound; the test shows less than it should"
            )
