"""From the table to the release: what is declared public × the unit × the kind, every unit of a
small table removed.

Neighbours have the declared facts in common; the loss between them, along replayed transcripts, is
at most what is stated.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.degree_sequences.publish import degrees
from tallytree.group_sizes.publish import release
from tallytree.maps.publish import spatial
from tallytree.ranges.publish import histogram
from tallytree.streams.publish import stream
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
REGISTER = pa.table(
    {"household": ["h1", "h2", "h3", "h4", "h5"], "state": ["GA", "GA", "NY", "NY", "UT"]}
)
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
    # The promise would cover nobody: tests/attacks/test_covered.py.
    if (facts, unit) != ("groups", "person")
    # Whole groups have no public numbers, and one mechanism of their own.
    and (unit != "group" or (facts in ("regions", "hierarchy") and mechanism == "default"))
]


# Choices of the exponential mechanism are compared in floating point.
NEARLY_ONE = 1 + Fraction(1, 10**9)
PURE: dict[str, Any] = {"epsilon": Fraction(1)}
DEFINITIONS: dict[str, dict[str, Any]] = {
    "pure": PURE,
    "zCDP": {"definition": "zcdp", "rho": Fraction(1, 4)},
    "(ε, δ)": {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)},
}
# Where public tables name the regions, a table may lose its last row.
FACTS_OF_EMPTY = {
    f"groups by size, {facts}, {unit}": (facts, unit)
    for facts, unit in product(("hierarchy", "register", "totals"), UNITS)
    if unit != "group" or facts == "hierarchy"
}


def table(rows: list[Row]) -> pa.Table:
    text, whole = pa.string(), pa.int64()
    kinds = {"household": text, "state": text, "person": text, "age": whole, "floor": whole}
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return pa.table(
        {
            name: pa.array(column, kind)
            for (name, kind), column in zip(kinds.items(), columns, strict=True)
        }
    )


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
    return (
        counts.hierarchy.fingerprint,
        counts.n_groups.tolist() if counts.public.groups_public else None,
    )


def losses(run: Callable[[], Any], others: list[Callable[[], Any]], seed: int) -> list[Fraction]:
    """The exact loss along one transcript between a run and others, each in units of what the
    manifest states.

    All that is released is the same for all of them.
    """
    made, script = listen(run, np.random.default_rng(seed))
    privacy = made.manifest["privacy"]
    # A stated (ε, δ) is met by a mechanism of this ρ: tests/privacy/test_profiles.py.
    pure = privacy["definition"] == "pure"
    stated = Fraction(privacy["epsilon" if pure else "rho"])
    found = []
    for other_run in others:
        other, again = replay(other_run, script)
        assert made.manifest == other.manifest
        assert made.table().equals(other.table())
        found.append(loss_between(script, again, "pure" if pure else "zcdp") / stated)
    return found


@cache
def read_rows(
    rows: tuple[Row, ...], facts: str, unit: str, quantity: str | None
) -> tt.ConfidentialCounts:
    adds = {} if quantity is None else {"quantity": quantity, "max_quantity": 4}
    return tt.read(
        table(list(rows)),
        group="household",
        levels=["state"],
        **FACTS[facts],
        **UNITS[unit][0],
        **adds,
    )


def largest_loss(facts: str, unit: str, quantity: str | None, asked: dict[str, Any]) -> Fraction:
    """Over all neighbours that have the declared facts in common, in units of what is stated."""
    whole = read_rows(tuple(ROWS), facts, unit, quantity)
    tables = [read_rows(tuple(rows), facts, unit, quantity) for rows in neighbours(UNITS[unit][1])]
    alike = [less for less in tables if fixed(less) == fixed(whole)]
    # What is read off the data and declared public may differ; tables say it for all neighbours.
    assert len(alike) == len(tables) or facts in ("groups", "regions")
    runs = [partial(release, less, insecure_seed=1, **asked) for less in alike]
    return max(losses(partial(release, whole, insecure_seed=1, **asked), runs, len(facts)))


@pytest.mark.parametrize(("facts", "unit", "mechanism"), POSSIBLE)
def test_no_release_loses_more_than_it_states(facts: str, unit: str, mechanism: str) -> None:
    assert 0 < largest_loss(facts, unit, None, {**PURE, **MECHANISMS[mechanism]}) <= 1


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("quantity", [None, "age"])
@pytest.mark.parametrize(("facts", "unit"), sorted({(facts, unit) for facts, unit, _ in POSSIBLE}))
def test_no_definition_or_quantity_loses_more_than_is_stated(
    facts: str, unit: str, quantity: str | None, definition: str
) -> None:
    if quantity is None and definition == "pure":
        return  # the test above
    assert 0 < largest_loss(facts, unit, quantity, DEFINITIONS[definition]) <= 1


def test_totals_that_are_taken_from_the_data_and_called_private_are_caught() -> None:
    """Households of one person vanish with their person: published as they are, their number gives
    the person away.
    """
    reading = {"group": "household", "levels": ["state"], "public": "groups"}
    asked = {"epsilon": 1, "insecure_seed": 1}
    whole, less = tt.read(table(ROWS), **reading), tt.read(table(ROWS[:-1]), **reading)
    assert fixed(whole) != fixed(less)
    with pytest.raises((AssertionError, VisibleDifferenceError)):
        losses(partial(release, whole, **asked), [partial(release, less, **asked)], 0)


BOX = {"columns": ["age", "floor"], "box": [(0, 8), (0, 8)], "resolution": 8}
NODES = pa.table({"household": ["GA", "NY", "a", "b", "c", "d", "e"]})
KINDS: dict[str, Callable[[pa.Table, dict[str, Any]], Any]] = {
    "histogram": lambda rows, asked: histogram(rows, column="age", bounds=(0, 8), bins=8, **asked),
    "stream": lambda rows, asked: stream(rows, column="age", start=0, until=7, horizon=10, **asked),
    "map": lambda rows, asked: spatial(rows, **BOX, **asked),
    "kd-tree": lambda rows, asked: spatial(rows, mechanism="kd-tree", **BOX, **asked),
    "structure-first": lambda rows, asked: spatial(
        rows, columns=["age"], box=[(0, 8)], resolution=8, mechanism="structure-first", **asked
    ),
    "structure-merge": lambda rows, asked: spatial(
        rows, columns=["age"], box=[(0, 8)], resolution=8, mechanism="structure-merge", **asked
    ),
    "degrees of groups": lambda rows, asked: degrees_of_states(rows, **asked),
}


def degrees_of_states(
    rows: pa.Table, unit: str = "entity", contributions: int | None = None, **asked: Any
) -> Any:
    counts = tt.read(rows, group="state", unit=unit, contributions=contributions, groups=STATES)
    return degrees(counts, **asked)


def of_kind(kind: str, unit: str, definition: str) -> tuple[Callable[[list[Row]], Any], int | None]:
    said, column = UNITS[unit]
    return lambda rows: KINDS[kind](
        table(rows), {**DEFINITIONS[definition], "insecure_seed": 1, **said}
    ), column


@pytest.mark.parametrize(
    ("kind", "unit", "definition"),
    [
        (kind, unit, definition)
        for kind, unit, definition in product(KINDS, ("entity", "person"), DEFINITIONS)
        # Choices by the exponential mechanism have a pure loss or a ρ: a stated (ε, δ) is refused.
        if not (
            definition == "(ε, δ)" and kind in ("kd-tree", "structure-first", "structure-merge")
        )
    ],
)
def test_other_kinds_lose_no_more_than_they_state(kind: str, unit: str, definition: str) -> None:
    make, column = of_kind(kind, unit, definition)
    tables = list(neighbours(column))
    assert (
        0
        < max(losses(partial(make, ROWS), [partial(make, rows) for rows in tables], 1))
        <= NEARLY_ONE
    )


EDGES: list[Row] = [
    ("GA", "", "a", 0, 0),
    ("GA", "", "b", 0, 0),
    ("b", "", "c", 0, 0),
    ("NY", "", "d", 0, 0),
]


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("directed", [False, True])
def test_one_edge_of_a_graph(directed: bool, definition: str) -> None:
    asked = {**DEFINITIONS[definition], "insecure_seed": 1, "nodes": NODES, "directed": directed}

    def make(rows: list[Row]) -> Any:
        return degrees(table(rows), edges=("household", "person"), **asked)

    less = [partial(make, EDGES[:place] + EDGES[place + 1 :]) for place in range(len(EDGES))]
    assert 0 < max(losses(partial(make, EDGES), less, 1)) <= 1


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize(
    "kind", [*(kind for kind in KINDS if kind != "degrees of groups"), "graph", *FACTS_OF_EMPTY]
)  # fmt: skip
def test_a_table_that_becomes_empty_is_released_like_any_other(kind: str, definition: str) -> None:
    if definition == "(ε, δ)" and kind in ("kd-tree", "structure-first", "structure-merge"):
        return
    asked = {**DEFINITIONS[definition], "insecure_seed": 1}

    def make(rows: list[Row]) -> Any:
        if kind in KINDS:
            return KINDS[kind](table(rows), asked)
        if kind == "graph":
            return degrees(table(rows), edges=("state", "person"), nodes=NODES, **asked)
        return release(read_rows(tuple(rows), *FACTS_OF_EMPTY[kind], None), **asked)

    assert 0 < losses(partial(make, ROWS[:1]), [partial(make, [])], 1)[0] <= NEARLY_ONE
