"""Classes of entities: counted with the sizes of their groups, from lists that are public, whatever
the rows hold.
"""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import InputError, RequestError

# Household, state, tenure, age and sex of each person.
ROWS = [
    (1, "GA", "own", "child", "f"),
    (1, "GA", "own", "adult", "m"),
    (1, "GA", "own", "adult", None),
    (2, "GA", "rent", "old", "f"),
    (3, "NY", "own", "adult", "x"),
    (3, "NY", "own", "child", "m"),
]
TABLE = pa.table(dict(zip(("hh", "state", "tenure", "age", "sex"), map(list, zip(*ROWS)))))
AGES, SEXES = ["child", "adult"], ["f", "m"]
READ: dict[str, Any] = {"group": "hh", "levels": ["state"], "people": {"age": AGES, "sex": SEXES}}


def by_hand(rows: list[Any]) -> Counter[tuple[str, str, str, str]]:
    """Entities per state, tenure and class; what is on no list is "other"."""
    found: Counter[tuple[str, str, str, str]] = Counter()
    for _, state, tenure, age, sex in rows:
        found[state, tenure, age if age in AGES else "other", sex if sex in SEXES else "other"] += 1
    return found


def as_counter(counts: Any) -> Counter[tuple[str, str, str, str]]:
    states = counts.hierarchy.labels[counts.hierarchy.level_slice(1)]
    found: Counter[tuple[str, str, str, str]] = Counter()
    for row, column in np.argwhere(counts.entity_counts):
        state, cell = divmod(int(row), counts.public.attributes.n_cells)
        key = (
            states[state],
            *counts.public.attributes.labels_of(cell),
            *counts.public.people.classes.labels_of(int(column)),
        )
        found[key] = int(counts.entity_counts[row, column])
    return found


def test_entities_are_counted_by_class_in_every_cell() -> None:
    counts = tt.read(TABLE, by=["tenure"], public="cells", **READ)
    assert as_counter(counts) == by_hand(ROWS)
    assert counts.public.people.classes.values == (("child", "adult", "other"), ("f", "m", "other"))
    listed = ["age=child,adult", "sex=f,m"]
    assert as_counter(
        tt.read(TABLE, by=["tenure"], public="cells", **READ | {"people": listed})
    ) == by_hand(ROWS)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_of_a_whole_group_so_many_entities_count(order: slice) -> None:
    """At most two per household, sizes and classes alike, whatever the order of the rows."""
    rows = ROWS[order]
    table = pa.table(dict(zip(TABLE.column_names, map(list, zip(*rows)))))
    counts = tt.read(table, unit="group", contributions=2, public="regions", **READ)
    assert counts.leaf_counts.n_entities().tolist() == [3, 2]
    assert counts.entity_counts is not None
    assert counts.entity_counts.sum(axis=1).tolist() == [3, 2]
    assert "(of which at most 2 are counted)" in counts.public.unit.words
    again = tt.read(TABLE, unit="group", contributions=2, public="regions", **READ)
    assert np.array_equal(counts.entity_counts, again.entity_counts)


def test_units_with_several_rows_and_a_public_table_of_groups() -> None:
    """Rows beyond a person's bound count neither in a size nor in a class; listed groups without
    rows have no people.
    """
    people = TABLE.append_column("person", pa.array([7, 7, 7, 8, 9, 9]))
    groups = pa.table({"hh": [1, 2, 3, 4], "state": ["GA", "GA", "NY", "NY"]})
    counts = tt.read(people, groups=groups, unit="person", contributions=1, **READ)
    assert counts.leaf_counts.n_entities().tolist() == [2, 1]
    assert counts.entity_counts is not None
    assert counts.entity_counts.sum(axis=1).tolist() == [2, 1]
    with pytest.raises(InputError, match="in the table of entities itself"):
        tt.read(people.drop_columns(["state"]), groups=groups, **READ)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"people": ["age"]}, "needs the public values of 'age'"),
        ({"people": ["state=a,b"]}, "given twice"),
        ({"by": ["tenure"], "public": "cells", "people": ["tenure=a,b"]}, "cannot be a class"),
        ({"people_by": ["tenure"]}, "no attribute of groups"),
        (
            {"by": ["tenure"], "public": "cells", "people": (), "people_by": ["tenure"]},
            "goes with people=",
        ),
        ({"classes": ["1-2", "3+"]}, "do not say how many entities"),
        (
            {"quantity": "hh", "max_quantity": 3, "group": "state", "levels": ()},
            "must be one entity",
        ),
        ({"size": "hh", "group": None}, "top-coded"),
        ({"unit": "group", "public": "regions"}, "needs contributions="),
        ({"unit": "group", "public": "regions", "contributions": 1}, "at least 2"),
    ],
)
def test_what_does_not_say_who_is_in_a_group_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(RequestError, match=says):
        tt.read(TABLE, **{"public": "groups", **READ, **options})
