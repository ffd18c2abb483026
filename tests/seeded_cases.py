"""Releases of every kind with every option that changes a number, each with a seed; see
tests/test_seeded_numbers.py.
"""

import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

import tallytree as tt
from tallytree.streams.counter import StreamCounter

Case = tuple[str, Callable[[], Any]]
SEED = 11
LINE_METHODS = ("noisy-first", "structure-first", "noisy-merge", "structure-merge")
# Of Python's generator, random() alone promises the same numbers in every version.
_dice = random.Random(7)
PLACES = [
    ("GA", "Cobb"),
    ("GA", "Fulton"),
    ("GA", "Polk"),
    ("NY", "Kings"),
    ("NY", "Bronx"),
    ("NY", "Erie"),
]
LEVELS: dict[str, Any] = {"group": "household", "levels": ["state", "county"], "root": "US"}
BUDGETS: dict[str, dict[str, Any]] = {
    "pure": {"epsilon": 1},
    "zcdp": {"rho": "1/4", "definition": "zcdp"},
}
DENSE = {  # the totals that each mechanism can keep
    "tree-exact": ("regions", "root"),
    "tree-relaxed": ("regions", "root"),
    "tree-program": ("root",),
    "tree-dp": ("root",),
    "cumulative-exact": ("regions", "root"),
    "cumulative-relaxed": ("regions", "root"),
    "cumulative-dp": ("root",),
    "chain": ("root",),
    "topdown": ("regions", "root"),
}
SOLVED = ("tree-exact", "tree-program", "cumulative-exact")


def read(source: Any, **options: Any) -> Any:
    """Every table of these cases is read here."""
    if (
        "unit" in options and "public" not in options
    ):  # totals cannot be read off rows that go with their unit
        options["groups"] = source.group_by(
            [options["group"], *options.get("levels", ())]
        ).aggregate([])
    elif not options.keys() & {"public", "groups"}:
        options["public"] = "groups"
    return tt.read(source, **options)


def below(n: int) -> int:
    return int(_dice.random() * n)


def _people() -> pa.Table:
    rows = []
    household = 0
    for place, n_households in zip(PLACES, (50, 33, 4, 70, 25, 1)):
        for _ in range(n_households):
            household += 1
            for _ in range(1 + min(int(_dice.expovariate(0.6)), 10)):
                rows.append((household, *place, below(160), below(4)))
    return pa.table(dict(zip(("household", "state", "county", "person", "rooms"), zip(*rows))))


def _small_people() -> pa.Table:
    sizes = {"a": [1, 1, 3], "b": [2, 2, 4]}
    rows = [
        (f"{leaf}{number}", leaf)
        for leaf, own in sizes.items()
        for number, size in enumerate(own)
        for _ in range(size)
    ]
    return pa.table(dict(zip(("household", "leaf"), zip(*rows))))


PEOPLE, SMALL = _people(), _small_people()
# Groups of up to thousands of entities, as firms or taxis have, at a few round sizes too.
FIRMS = pa.table(
    {
        "sector": [f"s{number % 3}" for number in range(240)],
        "branch": [f"b{number % 12}" for number in range(240)],
        "employees": [
            50 * below(9) if number % 2 else int(10 ** (3.7 * _dice.random()))
            for number in range(240)
        ],
    }
)
TABLE = pa.table(
    {
        "leaf": [leaf for leaf in "abcd" for _ in range(6)],
        "size": [*range(6)] * 4,
        "n": [below(40) for _ in range(24)],
    }
)
AGES = [_dice.random() * 60 + _dice.random() * 30 for _ in range(500)]
LINE = [below(6) + (60 if 5 <= place < 9 else 0) for place in range(16)]
LONG = [below(4) + (place // 30) * 9 for place in range(190)]
GRID = np.array([[below(9) * (column // 4) for column in range(12)] for _ in range(10)])
POINTS = np.array(
    [[10 * _dice.random() ** 2, 10 - 4 * _dice.random() * _dice.random()] for _ in range(1500)]
)
DEGREES = [min(int(1 / (1.01 - _dice.random())), 40) for _ in range(80)]
FRIENDS = pa.table({"a": [below(15) for _ in range(60)], "b": [15 + below(15) for _ in range(60)]})
TRIPS = pa.table(
    {"x": POINTS[:, 0], "y": POINTS[:, 1], "driver": [below(90) for _ in range(len(POINTS))]}
)
BOX = [(0, 10), (0, 10)]


def of_people(**options: Any) -> Any:
    """Release the households, read in the usual way."""
    return tt.release(read(PEOPLE, **LEVELS), insecure_seed=SEED, **options)


def adaptive() -> Iterator[Case]:
    """Group sizes by the default mechanism."""
    for epsilon in ("1/10", "1", "4"):
        yield f"adaptive, epsilon {epsilon}", lambda epsilon=epsilon: of_people(epsilon=epsilon)
    yield "adaptive, zcdp", lambda: of_people(**BUDGETS["zcdp"])
    yield "adaptive, budget equal", lambda: of_people(epsilon=1, budget="equal")
    yield "adaptive, shares", lambda: of_people(epsilon=1, budget=["1/5", "3/10", "1/2"])
    yield "adaptive, max size", lambda: of_people(epsilon=1, max_size=8)
    yield (
        "adaptive, root alone",
        lambda: tt.release(read(PEOPLE, group="household"), epsilon=1, insecure_seed=SEED),
    )
    yield (
        "adaptive, intervals",
        lambda: tt.with_intervals(of_people(epsilon=1), copies=6, confidence=0.9),
    )
    firms = {"size": "employees", "levels": ["sector", "branch"]}
    for name, budget in BUDGETS.items():
        yield (
            f"adaptive, firms, {name}",
            lambda budget=budget: tt.release(read(FIRMS, **firms), insecure_seed=SEED, **budget),
        )
    for name, options in READ.items():
        yield (
            f"adaptive, {name}",
            lambda options=options: tt.release(
                read(PEOPLE, **LEVELS, **options), epsilon=2, insecure_seed=SEED
            ),
        )
    yield (
        "adaptive, table of groups",
        lambda: tt.release(
            read(
                PEOPLE.slice(0, 300),
                **LEVELS,
                groups=PEOPLE.group_by(["household", "state", "county"]).aggregate([]),
            ),
            epsilon=1,
            insecure_seed=SEED,
        ),
    )
    yield (
        "adaptive, sizes with counts",
        lambda: tt.release(
            read(TABLE, size="size", count="n", levels=["leaf"]), epsilon="1/2", insecure_seed=SEED
        ),
    )
    yield (
        "adaptive, table of regions",
        lambda: tt.release(
            read(
                TABLE,
                size="size",
                count="n",
                levels=["leaf"],
                hierarchy=pa.table({"leaf": [*"abcde"], "half": [*"lllrr"], "name": [*"abcde"]}),
            ),
            epsilon="1/2",
            insecure_seed=SEED,
        ),
    )


READ: dict[str, dict[str, Any]] = {
    "private groups": {"public": "regions"},
    "unit": {"unit": "person", "contributions": 2},
    "unit and private groups": {"unit": "person", "contributions": 2, "public": "regions"},
    "quantity": {"quantity": "rooms", "max_quantity": 3},
    "quantity and unit": {
        "quantity": "rooms",
        "max_quantity": 2,
        "unit": "person",
        "contributions": 3,
    },
}


def matching() -> Iterator[Case]:
    """Group sizes by matching, and bottom-up."""
    for view, merge, name in product(
        ("hybrid", "cumulative", "sizes", "naive"), ("weighted", "average"), BUDGETS
    ):
        options = {
            "mechanism": "matching",
            "view": view,
            "merge": merge,
            "max_size": 12,
            **BUDGETS[name],
        }
        yield f"matching, {view}, {merge}, {name}", lambda options=options: of_people(**options)
    for view, norm in product(("hybrid", "cumulative", "sizes"), (1, 2)):
        options = {"view": view, "norm": norm, "max_size": 12, "epsilon": "1/2"}
        yield f"matching, {view}, norm {norm}", lambda options=options: of_people(**options)
    for view, name in product(("hybrid", "cumulative", "naive"), READ):
        yield (
            f"matching, {view}, {name}",
            lambda view=view, name=name: tt.release(
                read(PEOPLE, **LEVELS, **READ[name]),
                epsilon=3,
                view=view,
                max_size=12,
                insecure_seed=SEED,
            ),
        )
    views = ["sizes", "cumulative", "hybrid"]
    yield (
        "matching, a view per level, shares",
        lambda: of_people(epsilon=1, view=views, budget=["1/5", "3/10", "1/2"], max_size=12),
    )
    for view in ("hybrid", "cumulative"):
        yield (
            f"matching, {view}, max size paid for",
            lambda view=view: of_people(epsilon=2, view=view),
        )
    for view, name in product(("hybrid", "cumulative", "sizes", "naive"), BUDGETS):
        options = {"mechanism": "bottom-up", "view": view, "max_size": 12, **BUDGETS[name]}
        yield f"bottom-up, {view}, {name}", lambda options=options: of_people(**options)


def in_bins() -> Iterator[Case]:
    """Group sizes in bins of sizes, where entities are protected."""
    for name, budget in product(READ, BUDGETS):
        for bound in (12, None):
            yield (
                f"size-bins, {name}, {budget}, bound {bound}",
                lambda name=name, budget=budget, bound=bound: tt.release(
                    read(PEOPLE, **LEVELS, **READ[name]),
                    mechanism="size-bins",
                    max_size=bound,
                    insecure_seed=SEED,
                    **BUDGETS[budget],
                ),
            )


def dense() -> Iterator[Case]:
    """Group sizes by the mechanisms that need dense tables; small ones where a solver is called."""
    for mechanism, offered in DENSE.items():
        solved = mechanism in SOLVED
        table, levels = (
            (SMALL, {"group": "household", "levels": ["leaf"]}) if solved else (PEOPLE, LEVELS)
        )
        options: dict[str, Any] = {
            "mechanism": mechanism,
            "max_size": 5 if solved else 12,
            "repair": True,
        }
        options["insecure_seed"] = SEED

        def made(
            budget: dict[str, Any],
            reading: dict[str, Any],
            options: Any = options,
            source: Any = (table, levels),
        ) -> Any:
            return tt.release(read(source[0], **source[1], **reading), **budget, **options)

        budgets = {"pure": {"epsilon": 2}, "zcdp": {"rho": 2, "definition": "zcdp"}}
        for totals, name in product(offered, budgets):
            budget = {**budgets[name], "totals": totals}
            yield (
                f"{mechanism}, {totals}, {name}",
                lambda made=made, budget=budget: made(budget, {}),
            )
        if solved:
            continue
        shares = {"epsilon": 1, "budget": ["1/5", "3/10", "1/2"]}
        yield f"{mechanism}, shares", lambda made=made, budget=shares: made(budget, {})
        for name, reading in READ.items():
            if mechanism != "chain" or reading.get("public") != "regions":
                yield (
                    f"{mechanism}, {name}",
                    lambda made=made, reading=reading: made({"epsilon": 3}, reading),
                )


def values() -> Iterator[Case]:
    """Tables of values."""
    how: dict[str, Any] = {"value": "employees", "max": 6000, "insecure_seed": SEED}
    places = {"levels": ["sector", "branch"], "intervals": 0}
    for name, budget in BUDGETS.items():
        for step in (1, 50):
            yield (
                f"values, step {step}, {name}",
                lambda budget=budget, step=step: tt.values(
                    FIRMS, step=step, **how, **places, **budget
                ),
            )
    units = {"value": "rooms", "step": "1/2", "min": -1, "max": 4, "intervals": 0}
    yield (
        "values, units, by an attribute",
        lambda: tt.values(
            PEOPLE,
            levels=["state"],
            by={"county": ["Cobb", "Kings"]},
            unit="person",
            contributions=2,
            epsilon=1,
            insecure_seed=SEED,
            **units,
        ),
    )


def histograms() -> Iterator[Case]:
    """Range histograms."""

    def of_line(*, counts: list[int] = LINE, **options: Any) -> Any:
        loss = {} if "rho" in options else {"epsilon": 1}
        return tt.histogram(counts=counts, insecure_seed=SEED, **(loss | options))

    # A workload changes the numbers of these strategies alone. On more than three bins the search
    # for one of low rank ends where the last digits of the processor lead it.
    line_of = {"auto": LINE, "optimised": LINE, "eigen-select": LINE, "low-rank": LINE[:3]}
    for (strategy, line), workload in product(line_of.items(), ("ranges", "prefixes", "identity")):
        options: dict[str, Any] = {"counts": line, "mechanism": strategy, "workload": workload}
        yield f"histogram, {strategy}, {workload}", lambda options=options: of_line(**options)
    for strategy in ("flat", "hierarchical", "wavelet"):
        yield f"histogram, {strategy}", lambda strategy=strategy: of_line(mechanism=strategy)
    for strategy in (*line_of, "flat", "hierarchical", "wavelet"):
        options = {"counts": line_of.get(strategy, LINE), "mechanism": strategy, **BUDGETS["zcdp"]}
        yield f"histogram, {strategy}, zcdp", lambda options=options: of_line(**options)
    for budget, branching in product(("equal", "geometric", "optimal-blocks", "optimal"), (2, 4)):
        options = {"mechanism": "hierarchical", "budget": budget, "branching": branching}
        yield (
            f"histogram, hierarchical, {budget}, branching {branching}",
            lambda options=options: of_line(**options),
        )
    yield (
        "histogram, hierarchical, shares",
        lambda: of_line(mechanism="hierarchical", branching=4, budget=["1/4", "3/4"]),
    )
    for strategy, rule, whole in product(
        ("flat", "hierarchical", "wavelet", "optimised"),
        ("top-down", "least-squares", "subtree", "no"),
        (True, False),
    ):
        if rule != "subtree" or strategy in ("flat", "hierarchical"):
            options = {
                "mechanism": strategy,
                "nonnegative": rule,
                "integers": whole,
                "epsilon": "1/5",
            }
            options |= {
                "hierarchical": {"branching": 4},
                "optimised": {"workload": "prefixes"},
            }.get(strategy, {})
            name = f"histogram, {strategy}, {rule}, {'whole' if whole else 'real'}"
            yield name, lambda options=options: of_line(**options)
    matrix = np.vstack([np.eye(16), np.ones((1, 16)) / 2])
    yield "histogram, a matrix", lambda: of_line(mechanism=matrix)
    yield (
        "histogram, listed ranges",
        lambda: of_line(mechanism="optimised", workload=[(0, 4), (2, 9), (5, 16)]),
    )
    yield "histogram, contributions", lambda: of_line(mechanism="hierarchical", contributions=3)
    for strategy in ("auto", "hierarchical", "wavelet", "optimised", "adaptive"):
        yield (
            f"histogram, 100 bins, {strategy}",
            lambda strategy=strategy: tt.histogram(
                counts=LONG[:100], epsilon=1, mechanism=strategy, insecure_seed=SEED
            ),
        )
    bins: dict[str, dict[str, Any]] = {
        "bins": {"bins": 9, "bounds": (0, 90)},
        "edges": {"edges": [0, 5, 18, 65, 90]},
        "width": {"width": 2.5, "bounds": (0, 90)},
        "clip": {"width": 10, "bounds": (20, 70), "outside": "clip"},
        "drop": {"width": 10, "bounds": (20, 70), "outside": "drop"},
    }
    for name, options in bins.items():
        yield (
            f"histogram, values, {name}",
            lambda options=options: tt.histogram(AGES, epsilon=1, insecure_seed=SEED, **options),
        )
    yield (
        "histogram, categories",
        lambda: tt.histogram(
            [*"abbaacdd"] * 9, categories=[*"abcde"], epsilon=1, insecure_seed=SEED
        ),
    )
    of_table = {"column": "x", "bins": 10, "bounds": (0, 10), "epsilon": 1, "insecure_seed": SEED}
    yield "histogram, column", lambda: tt.histogram(TRIPS, **of_table)
    yield "histogram, unit", lambda: tt.histogram(TRIPS, **of_table, unit="driver", contributions=4)


def grids() -> Iterator[Case]:
    """Maps of ready counts, which were a kind of their own."""

    def of_grid(counts: Any = GRID, **options: Any) -> Any:
        return tt.spatial(counts=counts, insecure_seed=SEED, **options)

    choices: dict[str, dict[str, Any]] = {
        "flat": {"mechanism": "flat"},
        "hierarchical": {"mechanism": "hierarchical"},
        "branching 3": {"mechanism": "hierarchical", "branching": 3},
        "contributions": {"mechanism": "hierarchical", "contributions": 2},
        "real": {"mechanism": "hierarchical", "integers": False},
        "unbiased": {"mechanism": "hierarchical", "integers": False, "nonnegative": "no"},
        "least squares": {"mechanism": "hierarchical", "nonnegative": "least-squares"},
        "edges": {"edges": [np.arange(11) * 2.5, np.arange(13)], "mechanism": "flat"},
    }
    for (choice, options), name in product(choices.items(), BUDGETS):
        yield (
            f"grid, {choice}, {name}",
            lambda options=options, name=name: of_grid(**options, **BUDGETS[name]),
        )
    for method in ("flat", "hierarchical"):
        yield (
            f"grid, three dimensions, {method}",
            lambda method=method: of_grid(GRID.reshape(5, 4, 6), epsilon=1, mechanism=method),
        )


def degrees() -> Iterator[Case]:
    """Sorted counts."""
    for method, graphical, name in product(("isotonic", "sorted", "noisy"), (False, True), BUDGETS):
        if method != "noisy" or not graphical:
            options = {
                "mechanism": method,
                "graphical": graphical,
                "insecure_seed": SEED,
                **BUDGETS[name],
            }
            shown = "graphical" if graphical else "any"
            yield (
                f"degrees, {method}, {shown}, {name}",
                lambda options=options: tt.degrees(DEGREES, **options),
            )
    seeded: dict[str, Any] = {"epsilon": 1, "insecure_seed": SEED}
    yield "degrees, contributions", lambda: tt.degrees(DEGREES, contributions=3, **seeded)
    yield "degrees, edges", lambda: tt.degrees(FRIENDS, edges=("a", "b"), **seeded, public="nodes")
    yield (
        "degrees, graphical edges",
        lambda: tt.degrees(
            FRIENDS,
            edges=("a", "b"),
            graphical=True,
            public="nodes",
            **(seeded | {"epsilon": "1/5"}),
        ),
    )
    yield (
        "degrees, directed edges",
        lambda: tt.degrees(FRIENDS, edges=("a", "b"), directed=True, **seeded, public="nodes"),
    )
    nodes = pa.table({"node": [*range(40)]})
    yield (
        "degrees, edges and nodes",
        lambda: tt.degrees(FRIENDS, edges=("a", "b"), nodes=nodes, **seeded),
    )
    yield (
        "degrees, column",
        lambda: tt.degrees(PEOPLE, column="household", **seeded, public="groups"),
    )
    yield (
        "degrees, unit",
        lambda: tt.degrees(
            read(PEOPLE, group="household", unit="person", contributions=2), **seeded
        ),
    )
    yield (
        "degrees, quantity",
        lambda: tt.degrees(
            read(PEOPLE, group="household", quantity="rooms", max_quantity=3), **seeded
        ),
    )


def maps() -> Iterator[Case]:
    """Maps, and the two methods for lines."""

    def of_points(**options: Any) -> Any:
        return tt.spatial(
            POINTS, **{"box": BOX, "resolution": 32, "epsilon": 1, "insecure_seed": SEED, **options}
        )

    methods = (
        "auto",
        "flat",
        "hierarchical",
        "uniform-grid",
        "adaptive-grid",
        "quadtree",
        "quad-opt",
        "kd-tree",
        "kd-hybrid",
    )
    for method in (*methods, "adaptive-tree", "adaptive", "dawa", "privtree", "ahp"):
        yield f"map, {method}, pure", lambda method=method: of_points(mechanism=method)
        yield (
            f"map, {method}, zcdp",
            lambda method=method: of_points(
                mechanism=method, epsilon=None, rho="1/4", definition="zcdp"
            ),
        )
        yield (
            f"map, {method}, unbiased",
            lambda method=method: of_points(mechanism=method, nonnegative=False, integers=False),
        )
        yield (
            f"map, {method}, real",
            lambda method=method: of_points(mechanism=method, integers=False),
        )
        yield (
            f"map, {method}, contributions",
            lambda method=method: of_points(mechanism=method, contributions=2),
        )
    choices: dict[str, dict[str, Any]] = {
        "fine": {"resolution": 128},
        "sides": {"resolution": (20, 30)},
        "uniform-grid, cells": {"mechanism": "uniform-grid", "cells": 5},
        "uniform-grid, number of points": {"mechanism": "uniform-grid", "n_points": 1500},
        "adaptive-grid, alpha": {"mechanism": "adaptive-grid", "alpha": "1/4"},
        "adaptive-grid, cells": {"mechanism": "adaptive-grid", "cells": 3},
        "quadtree, depth": {"mechanism": "quadtree", "depth": 3},
        "quadtree, prune": {"mechanism": "quadtree", "prune": 20},
        "kd-tree, depth": {"mechanism": "kd-tree", "depth": 4},
        "hierarchical, branching": {"mechanism": "hierarchical", "branching": 4},
        "clip": {"box": [(1, 9), (1, 9)], "outside": "clip"},
        "drop": {"box": [(1, 9), (1, 9)], "outside": "drop"},
    }
    for name, options in choices.items():
        yield f"map, {name}", lambda options=options: of_points(**options)
    for method in ("flat", "kd-tree", "adaptive-tree", "adaptive"):
        yield (
            f"map, three dimensions, {method}",
            lambda method=method: tt.spatial(
                counts=GRID.reshape(5, 4, 6), epsilon=1, mechanism=method, insecure_seed=SEED
            ),
        )
    of_table: dict[str, Any] = {
        "columns": ["x", "y"],
        "box": BOX,
        "resolution": 40,
        "epsilon": 1,
        "insecure_seed": SEED,
    }
    yield "map, table", lambda: tt.spatial(TRIPS, **of_table)
    yield "map, unit", lambda: tt.spatial(TRIPS, unit="driver", contributions=3, **of_table)
    for method, name, whole in product(LINE_METHODS, BUDGETS, (True, False)):
        options = {
            "counts": LINE,
            "box": [(0, 16)],
            "mechanism": method,
            "integers": whole,
            **BUDGETS[name],
        }
        yield (
            f"line, {method}, {name}, {'whole' if whole else 'real'}",
            lambda options=options: tt.spatial(**options, insecure_seed=SEED),
        )


def first_names(answer: Any) -> dict[str, Any]:
    """An answer under the names that its parts had when its numbers were first taken down."""
    return {
        {"std_error": "standard_error", "confidence": "level"}.get(name, name): v
        for name, v in vars(answer).items()
    }


def streams() -> Iterator[Case]:
    """Running counts: every answer of a counter, and releases with a horizon and without one."""
    for name, inference in product(BUDGETS, (True, False)):
        if name == "zcdp" and not inference:
            continue  # it is of trees

        def answers(name: str = name, inference: bool = inference) -> pa.Table:
            counter = StreamCounter(100, inference=inference, insecure_seed=SEED, **BUDGETS[name])
            return pa.Table.from_pylist(
                [first_names(counter.add(arrivals)) for arrivals in LONG[100:190]]
            )

        yield f"stream, {name}, {'with' if inference else 'without'} inference", answers
    for name, horizon in product(BUDGETS, (100, None)):
        options = {"counts": LONG[100:190], "horizon": horizon, **BUDGETS[name]}
        yield (
            f"stream, {name}, {horizon}",
            lambda options=options: tt.stream(**options, insecure_seed=SEED),
        )
    many = {"counts": LONG[100:190], "horizon": 100}
    others: dict[str, dict[str, Any]] = {
        "square-root": {"mechanism": "square-root"},
        "largest": {"objective": "largest"},
        "gap": {"contributions": 3, "min_gap": 30},
    }
    for name, how in others.items():
        options = {**many, **BUDGETS["zcdp"], **how}
        yield (
            f"stream, zcdp, {name}",
            lambda options=options: tt.stream(**options, insecure_seed=SEED),
        )


def tables() -> Iterator[Case]:
    """Rows by region and attributes: every loss, with values in order and without, by a wish."""
    rows = pa.table(
        {
            "state": [PLACES[below(6)][0] for _ in range(400)],
            "sex": [("f", "m")[below(2)] for _ in range(400)],
            "age": [below(40) for _ in range(400)],
        }
    )
    asked: dict[str, Any] = {"levels": ["state"], "insecure_seed": SEED}
    kinds: dict[str, dict[str, Any]] = {
        "sex": {"by": ["sex=f,m"]},
        "sex and age": {"by": ["sex=f,m", "age=0-39"], "closed": ["sex", "age"]},
        "classes of age": {"by": ["sex=f,m", "age=0-9,10-29,30+"], "want": ["state:age"]},
        "nothing": {},
    }
    for (loss, budget), (name, how) in product(BUDGETS.items(), kinds.items()):
        options = {**asked, **how, **budget}
        yield f"table by {name}, {loss}", lambda options=options: tt.table(rows, **options)


FAMILIES = (
    adaptive,
    matching,
    in_bins,
    dense,
    values,
    histograms,
    grids,
    degrees,
    maps,
    streams,
    tables,
)
