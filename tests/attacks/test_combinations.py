"""Options in combinations that nobody chose: units × what is public × quantities × attributes ×
people × classes × parts × definitions × mechanisms.

Each case reads a random table and releases it; then units are removed one at a time, as long as the
declared facts stay as they are, and the exact loss along the transcript is compared with what is
stated. What a combination refuses, it refuses as a request, before anything is asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import TallytreeError
from tallytree.group_sizes.publish import release
from tests.attacks.transcript import Asked, listen, loss_between, replay
from tests.fuzz.watching import TIMES, at_most, seeded

COLUMNS = ("household", "state", "county", "tenure", "rooms", "sex", "person", "miles", "zone")
STATES, TENURES, ROOMS = ("GA", "NY", "UT"), ("own", "rent", "boat"), ("1", "2")
HIERARCHY = pa.table(
    {
        "county": [f"{state}{number}" for state in STATES for number in range(2)],
        "state": [state for state in STATES for _ in range(2)],
    }
)
NEARLY_ONE = 1 + Fraction(1, 10**9)  # choices by score are compared in floating point
Rows = list[tuple[Any, ...]]


def households(dice: random.Random) -> Rows:
    """Members of some households; a person may have rows in several."""
    rows: Rows = []
    for household in range(dice.randrange(2, 9)):
        state, number = dice.choice(STATES), dice.randrange(2)
        place = (f"h{household}", state, f"{state}{number}")
        kind = (dice.choice(TENURES), dice.choice(ROOMS))
        for _ in range(dice.choice((1, 1, 2, 3, 6))):
            zone = dice.choice("xy")
            person = f"p{dice.randrange(6)}"
            rows.append((*place, *kind, dice.choice("fm"), person, dice.randrange(5), zone))
    return rows


def table(rows: Rows) -> pa.Table:
    types = [pa.int64() if name == "miles" else pa.string() for name in COLUMNS]
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    return pa.table(
        {name: pa.array(values, kind) for name, values, kind in zip(COLUMNS, columns, types)}
    )


def register(rows: Rows) -> pa.Table:
    """All households with their attributes, and two without anybody."""
    listed = {row[:5] for row in rows}
    listed |= {("h90", "UT", "UT1", "own", "2"), ("h91", "GA", "GA0", "boat", "1")}
    return pa.Table.from_pylist([dict(zip(COLUMNS, row)) for row in sorted(listed)])


def totals(by: list[str], dice: random.Random) -> pa.Table:
    """More groups than there are, in every cell of every county."""
    cells = product(STATES, range(2), *(TENURES if name == "tenure" else ROOMS for name in by))
    return pa.Table.from_pylist(
        [
            {"state": state, "county": f"{state}{number}", "groups": dice.randrange(9, 12)}
            | dict(zip(by, values))
            for state, number, *values in cells
        ]
    )


def reading(rows: Rows, dice: random.Random) -> dict[str, Any]:
    """How the rows are read; most of what it asks for goes together."""
    by: list[str] = dice.choice(([], ["tenure"], ["tenure", "rooms"]))
    unit = dice.choice(("entity", "person", "group"))
    people, classes = dice.choice(((True, False), (False, True), (False, False)))
    listed = {name: list(TENURES[:2] if name == "tenure" else ROOMS) for name in by}
    asked: dict[str, Any] = {"group": "household", "levels": ["state", "county"]}
    ways: list[dict[str, Any]] = [{"hierarchy": HIERARCHY}, {"public": "regions"}]
    if unit != "group":
        ways += [{"groups": register(rows)}, {"group_totals": totals(by, dice)}]
    if unit == "entity":
        ways += [{"public": "cells" if by else "groups"}]
    asked |= dice.choice(ways)
    if "hierarchy" in asked:
        asked["levels"] = ["county"]
    private = asked.get("public") == "regions" or "hierarchy" in asked
    if by and unit != "group" and private:
        by = []  # what a group is can be private where the whole group is protected alone
    if by:
        asked |= {"by": listed if unit == "group" or dice.random() < 0.3 else by}
    if unit != "entity":
        asked |= {"unit": unit}
    if unit == "person" or (unit == "group" and people):
        asked |= {"contributions": dice.randrange(2, 5)}
    if people:
        asked |= {"people": {"sex": ["f"] if dice.random() < 0.5 else ["f", "m"]}}
        if by and dice.random() < 0.5:
            asked |= {"people_by": by[:1]}
    elif dice.random() < 0.3:
        asked |= {"quantity": "miles", "max_quantity": dice.randrange(1, 4)}
    if classes:
        asked |= {"classes": dice.choice(["0-1,2-3,4+", "0,1-2,3-4", "0-1,2+", "1,2+", "2-4,5+"])}
    if dice.random() < 0.25:
        asked |= {"where": f"zone={dice.choice('xy')}"}
    if by and dice.random() < 0.1:
        asked |= {"closed": by[-1:]}
    return asked


def releasing(asked: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """How it is released; most of what it asks for goes together."""
    options: dict[str, Any] = dice.choice(
        [
            {"epsilon": 1},
            {"rho": "1/4", "definition": "zcdp"},
            {"epsilon": 1, "delta": "1e-6"},
            {"epsilon": "1/1000"},
            {"epsilon": 30},
        ]
    )
    plain = not asked.keys() & {"by", "people", "classes"} and asked.get("unit") != "group"
    if plain or dice.random() < 0.03:
        options = options | dice.choice(
            [{}, {"mechanism": "matching"}, {"mechanism": "bottom-up"}, {"mechanism": "tree-dp"},
             {"mechanism": "chain"}, {"view": "sizes"}, {"view": "cumulative"}, {"view": "naive"},
             {"view": ["sizes", "hybrid", "cumulative"]}, {"mechanism": "cumulative-dp"}]
        )  # fmt: skip
    if "classes" not in asked and dice.random() < 0.4:
        options |= {"max_size": dice.choice((3, 6, "auto"))}
    if "delta" not in options and dice.random() < 0.2:
        options |= {"neighbours": "replace"}
    if dice.random() < 0.3:
        options |= dice.choice(
            [{"budget": "equal"}, {"budget": ["1/5", "3/10", "1/2"]}, {"goal": "leaves"},
             {"goal": "no-level-behind"}, {"min_size": 2}, {"totals": "root"}]
        )  # fmt: skip
    if "people" in asked and dice.random() < 0.3:
        options |= {"people_share": "1/3"}
    if "tenure" in asked.get("by", ()) and dice.random() < 0.3:
        options |= {"want": ["county:tenure"]}
    return options


def without_a_unit(rows: Rows, unit: str) -> list[Rows]:
    """The rows without any one unit."""
    if unit == "entity":
        return [rows[:place] + rows[place + 1 :] for place in range(len(rows))]
    column = COLUMNS.index("household" if unit == "group" else unit)
    names = sorted({row[column] for row in rows})
    return [[row for row in rows if row[column] != name] for name in names]


def fixed(counts: Any) -> tuple[Any, ...]:
    """What the data are declared to have in common with their neighbours."""
    public = counts.public
    return (
        counts.hierarchy.fingerprint,
        counts.n_groups.tolist() if public.groups_public else None,
        repr(public),
    )


def stated(made: Any, definition: str) -> Fraction:
    privacy = made.manifest["privacy"]
    return Fraction(privacy["epsilon" if definition == "pure" else "rho"])


def losses(whole: Any, others: list[Any], options: dict[str, Any], seed: int) -> list[Fraction]:
    """The exact loss between counts and their neighbours, in units of what is stated."""
    run: Callable[[Any], Any] = lambda counts: release(counts, insecure_seed=1, **options)  # noqa: E731
    made, script = listen(partial(run, whole), np.random.default_rng(seed))
    definition = made.manifest["privacy"]["definition"]
    found = []
    for counts in others:
        other, again = replay(partial(run, counts), script)
        assert made.manifest == other.manifest
        names = made.attributes.names
        assert made.table(by=names).equals(other.table(by=names))
        found.append(_loss(script, again, definition) / stated(made, definition))
    return found


def _loss(script: list[Asked], again: list[Asked], definition: str) -> Fraction:
    return loss_between(script, again, "pure" if definition == "pure" else "zcdp")


def tried(dice: random.Random) -> tuple[str, Any]:
    """One random case: what became of it, and the largest loss or the refusal."""
    rows = households(dice)
    asked = reading(rows, dice)
    options = releasing(asked, dice)
    try:
        whole = tt.read(table(rows), **asked)
        others = []
        for less in without_a_unit(rows, asked.get("unit", "entity")):
            try:
                counts = tt.read(table(less), **asked)
            except TallytreeError:
                assert asked.get("public") in ("groups", "cells", "regions"), (asked, less)
                continue  # a region or a value is gone that the rows alone declared
            if fixed(counts) == fixed(whole):
                others.append(counts)
            else:
                assert asked.get("public") in ("groups", "cells", "regions"), asked
        if not others:
            return "alone", None
        return "released", max(losses(whole, others, options, dice.randrange(10**6)))
    except TallytreeError as error:
        return "refused", str(error)


@pytest.mark.proof
@pytest.mark.filterwarnings("ignore")
def test_no_combination_loses_more_than_it_states() -> None:
    dice, ended = seeded(31), dict.fromkeys(("released", "refused", "alone"), 0)
    for number in range(12 * TIMES):
        with at_most(120):
            state, what = tried(dice)
        ended[state] += 1
        assert state != "released" or what <= NEARLY_ONE, (number, what)
        assert state != "refused" or "\n" not in what, (number, what)
    assert ended["released"]
