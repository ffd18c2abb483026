"""From the table to the release: what is declared public × the unit × the kind, every unit of a small table removed.

Neighbours have the declared facts in common; the loss between them, along replayed transcripts, is at most what is stated.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.publish.group_sizes import release
from tallytree.publish.histogram import histogram
from tallytree.publish.spatial import spatial
from tallytree.publish.stream import stream
from tests.attacks.transcript import VisibleDifferenceError, listen, loss_between, replay

Row = tuple[str, str, str, int, int]

ROWS: list[Row] = [
    ("h1", "GA", "a", 3, 2),
    ("h1", "GA", "b", 5, 0),
    ("h2", "GA", "a", 1, 5),
    ("h2", "GA", "c", 3, 3),
    ("h3", "NY", "d", 7, 0),
    ("h3", "NY", "d", 7, 0),
    ("h3", "NY", "d", 2, 1),
    ("h4", "NY", "b", 0, 4),
]
STATES = pa.table({"state": ["GA", "NY", "UT"]})
REGISTER = pa.table({"household": ["h1", "h2", "h3", "h4", "h5"], "state": ["GA", "GA", "NY", "NY", "UT"]})
TOTALS = pa.table({"state": ["GA", "NY", "UT"], "groups": [2, 3, 1]})

# What is said, and whether numbers of groups are then held fixed.
FACTS: dict[str, dict[str, Any]] = {
    "groups": {"public": "groups"},
    "regions": {"public": "regions"},
    "hierarchy": {"hierarchy": STATES},
    "register": {"groups": REGISTER},
    "totals": {"group_totals": TOTALS},
}
# The option, and the column whose values are the units; None: every row is one.
UNITS: dict[str, tuple[dict[str, Any], int | None]] = {
    "entity": ({}, None),
    "person": ({"unit": "person", "contributions": 2}, 2),
    "group": ({"unit": "group"}, 0),
}
MECHANISMS: dict[str, dict[str, Any]] = {
    "default": {},
    "sizes": {"view": "sizes", "max_size": 6},
    "cumulative": {"view": "cumulative", "max_size": 6},
    "hybrid": {"view": "hybrid"},
    "bottom-up": {"mechanism": "bottom-up", "max_size": 6},
}
POSSIBLE = [
    (facts, unit, mechanism)
    for facts, unit, mechanism in product(FACTS, UNITS, MECHANISMS)
    # Whole groups have no public numbers, and one mechanism of their own.
    if unit != "group" or (facts in ("regions", "hierarchy") and mechanism == "default")
]


def table(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(dict(zip(("household", "state", "person", "age", "floor"), map(list, columns), strict=True)))


def neighbours(column: int | None) -> Iterator[list[Row]]:
    """The rows without one unit."""
    if column is None:
        for place in range(len(ROWS)):
            yield ROWS[:place] + ROWS[place + 1 :]
    else:
        for unit in sorted({row[column] for row in ROWS}):
            yield [row for row in ROWS if row[column] != unit]


def fixed(counts: tt.ConfidentialCounts) -> tuple[Any, ...]:
    """What the data are declared to have in common with their neighbours."""
    return counts.hierarchy.fingerprint, counts.n_groups.tolist() if counts.groups_public else None


def compare(run: Callable[[], Any], other_run: Callable[[], Any], seed: int) -> tuple[Fraction, Fraction]:
    """The exact loss along one transcript, and what the manifest states; all that is released is the same for both."""
    made, script = listen(run, np.random.default_rng(seed))
    other, again = replay(other_run, script)
    assert made.manifest == other.manifest
    assert made.table().equals(other.table())
    return loss_between(script, again, "pure"), Fraction(made.manifest["privacy"]["epsilon"])


@pytest.mark.parametrize(("facts", "unit", "mechanism"), POSSIBLE)
def test_no_release_loses_more_than_it_states(facts: str, unit: str, mechanism: str) -> None:
    said, column = UNITS[unit]
    reading = {"group": "household", "levels": ["state"], **FACTS[facts], **said}
    asked = {"epsilon": Fraction(1), "insecure_seed": 1, **MECHANISMS[mechanism]}
    whole = tt.read(table(ROWS), **reading)
    tried: list[Fraction] = []
    for rows in neighbours(column):
        less = tt.read(table(rows), **reading)
        if fixed(less) != fixed(whole):
            assert facts in (
                "groups",
                "regions",
            )  # read off the data and declared public; tables say it for all neighbours
            continue
        loss, stated = compare(partial(release, whole, **asked), partial(release, less, **asked), len(tried))
        assert loss <= stated
        tried.append(loss)
    assert tried
    assert max(tried) > 0


def test_totals_that_are_taken_from_the_data_and_called_private_are_caught() -> None:
    """Households of one person vanish with their person: published as they are, their number gives the person away."""
    reading = {"group": "household", "levels": ["state"], "public": "groups"}
    asked = {"epsilon": 1, "insecure_seed": 1}
    whole, less = tt.read(table(ROWS), **reading), tt.read(table(ROWS[:-1]), **reading)
    assert fixed(whole) != fixed(less)
    with pytest.raises((AssertionError, VisibleDifferenceError)):
        compare(partial(release, whole, **asked), partial(release, less, **asked), 0)


KINDS: dict[str, Callable[[pa.Table, dict[str, Any]], Any]] = {
    "histogram": lambda rows, unit: histogram(
        rows, column="age", bounds=(0, 8), bins=8, epsilon=Fraction(1), insecure_seed=1, **unit
    ),
    "stream": lambda rows, unit: stream(
        rows, column="age", start=0, until=7, horizon=10, epsilon=Fraction(1), insecure_seed=1, **unit
    ),
    "map": lambda rows, unit: spatial(
        rows, columns=["age", "floor"], box=[(0, 8), (0, 8)], resolution=8, epsilon=Fraction(1), insecure_seed=1, **unit
    ),
}


@pytest.mark.parametrize(("kind", "unit"), list(product(KINDS, ("entity", "person"))))
def test_other_kinds_lose_no_more_than_they_state(kind: str, unit: str) -> None:
    said, column = UNITS[unit]
    make = KINDS[kind]
    losses: list[Fraction] = []
    for rows in neighbours(column):
        loss, stated = compare(partial(make, table(ROWS), said), partial(make, table(rows), said), len(losses))
        assert loss <= stated
        losses.append(loss)
    assert max(losses) > 0
