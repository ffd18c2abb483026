"""Small folders of every kind of release and of what a kind may hold: what the fuzzers damage and
forge.
"""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import tallytree as tt
from tallytree.ranges import strategies
from tallytree.strategies.hats import HatLevel, Hats
from tallytree.strategies.strategies import HatStrategy

PEOPLE = pa.table(
    {
        "household": [1, 1, 2, 3, 3, 3, 4, 5, 5],
        "state": ["GA"] * 6 + ["NY"] * 3,
        "tenure": ["rent", "rent", "own", "own", "own", "own", "rent", "own", "own"],
        "miles": [2, 1, 3, 1, 1, 2, 3, 1, 2],
        "sex": ["f", "m", "f", "f", "m", "m", "m", "f", "f"],
    }
)
Made = Callable[..., Any]


def sizes(options: dict[str, Any], how: dict[str, Any]) -> Any:
    read = {"group": "household", "levels": ["state"], "public": "groups"} | options
    return tt.release(tt.read(PEOPLE, **read), **({"epsilon": 1} | how))


def by_hats(counts: Any, **how: Any) -> Any:
    """What more bins get, for few."""
    hats = HatStrategy(
        "optimised", Hats(len(counts), (HatLevel(5, 18_000), HatLevel(2, 17_000)), 4)
    )
    with patch.object(strategies, "_optimised", return_value=hats):
        return tt.histogram(counts, mechanism="optimised", **how)


KINDS_MADE: dict[str, Made] = {
    "group-sizes": lambda **how: sizes({}, how),
    "values": lambda **how: tt.values(
        PEOPLE,
        value="miles",
        **({"step": "1/2", "max": 4, "levels": ["state"], "epsilon": 1, "intervals": 4} | how),
    ),
    "table": lambda **how: tt.table(
        PEOPLE, levels=["state"], by={"sex": ["f", "m"], "miles": ["1-3"]}, epsilon=1, **how
    ),
    "histogram": lambda **how: tt.histogram(
        [1, 2, 3, 5, 8], bins=8, bounds=(0, 16), epsilon=1, **how
    ),
    "degrees": lambda **how: tt.degrees([3, 1, 4, 1, 5], epsilon=0.5, **how),
    "map": lambda **how: tt.spatial(counts=[[1, 2], [3, 4]], epsilon=1, **how),
    "stream": lambda **how: tt.stream(counts=[3, 0, 5, 2], horizon=8, epsilon=1, **how),
}
"""One of each kind."""

MORE_MADE: dict[str, Made] = {
    "group-sizes by an attribute": lambda **how: sizes({"by": ["tenure"], "public": "cells"}, how),
    "group-sizes by an attribute of whole groups": lambda **how: sizes(
        {"by": {"tenure": ["rent", "own"]}, "unit": "group", "public": "regions"},
        {"max_size": 8} | how,
    ),
    "group-sizes with people by class": lambda **how: sizes({"people": {"sex": ["f", "m"]}}, how),
    "group-sizes in classes": lambda **how: sizes({"classes": "1,2-3,4+"}, how),
    "group-sizes with private totals": lambda **how: sizes({"public": "regions"}, how),
    "group-sizes of whole groups": lambda **how: sizes(
        {"unit": "group", "public": "regions"}, {"max_size": 8} | how
    ),
    "group-sizes by quantity, zcdp": lambda **how: sizes(
        {"quantity": "miles", "max_quantity": 4},
        {"epsilon": None, "rho": 1, "definition": "zcdp"} | how,
    ),
    "group-sizes by matching": lambda **how: sizes({}, {"mechanism": "matching"} | how),
    "values by an attribute, zcdp": lambda **how: tt.values(
        PEOPLE,
        value="miles",
        step=1,
        min=-1,
        max=3,
        levels=["state"],
        by={"sex": ["f", "m"]},
        unit="household",
        contributions=2,
        rho=1,
        definition="zcdp",
        intervals=0,
        **how,
    ),
    "histogram of categories": lambda **how: tt.histogram(
        list("abca"), categories=["a", "b", "c"], epsilon=1, **how
    ),
    "histogram by a matrix": lambda **how: tt.histogram(
        [1, 2, 3, 5], bins=4, bounds=(0, 8), mechanism="optimised", epsilon=1, **how
    ),
    "histogram by hats": lambda **how: by_hats(
        np.array([1, 2, 3, 5, 0, 0, 1, 4, 0]), epsilon=1, **how
    ),
    "histogram of boxes": lambda **how: tt.histogram(
        [1, 2, 3, 5, 8], bins=8, bounds=(0, 16), mechanism="adaptive", epsilon=1, **how
    ),
    "degrees of a graph": lambda **how: tt.degrees(
        pa.table({"a": [1, 1, 2], "b": [2, 3, 3]}),
        edges=("a", "b"),
        public="nodes",
        rho=1,
        definition="zcdp",
        **how,
    ),
    "degrees of private groups": lambda **how: tt.degrees(
        PEOPLE, column="household", public="none", epsilon=1, **how
    ),
    "map of two columns": lambda **how: tt.spatial(
        counts=[[1, 2, 3], [3, 4, 0]],
        edges=[[0, 1, 4], [0, 2, 4, 9]],
        columns=["age", "shift"],
        epsilon=1,
        **how,
    ),
    "map, pruned": lambda **how: tt.spatial(
        counts=[[9, 2, 0, 0], [3, 4, 0, 0], [0, 0, 0, 1], [0, 0, 1, 7]],
        mechanism="quadtree",
        prune=2,
        epsilon=1,
        **how,
    ),
    "map of clusters": lambda **how: tt.spatial(
        counts=[[9, 0, 8], [0, 9, 0]], mechanism="ahp", epsilon=1, **how
    ),
    "stream in time, zcdp": lambda **how: tt.stream(
        counts=[3, 0, 5, 2],
        rho="1/2",
        definition="zcdp",
        horizon=8,
        start="2025-01-06",
        every="week",
        **how,
    ),
}
"""What else a kind may hold: attributes, classes, private totals, quantities, strategies of their own, pruned cells."""

MADE = KINDS_MADE | MORE_MADE
