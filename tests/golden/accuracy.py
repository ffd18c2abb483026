"""Errors of seeded releases on small made-up data of different shape, kept in accuracy.json, and
their splits, in splits.json.

    python -m tests.golden.accuracy

writes them anew, for changes that are meant to move them; the same commit says why.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.accuracy.data import Dials, made_up

import tallytree as tt

FILE = Path(__file__).with_name("accuracy.json")
SPLITS = Path(__file__).with_name("splits.json")
EPSILONS = ("1", "0.1")
RUNS = 5
# What a set shows is in its name; each has a planned split, and those of BY_HAND one with nothing
# between root and leaves too.
SETS = {
    "geometric": Dials(fan_outs=(5, 8), groups=6_000),
    "power tail": Dials(fan_outs=(4, 10), groups=5_000, shape="power", tail=1.5),
    "gaps": Dials(fan_outs=(5, 6), groups=8_000, mean=12.0, gap=5),
    "top-coded": Dials(
        fan_outs=(4, 60),
        groups=40_000,
        mean=1.0,
        shape="poisson",
        largest=5,
        uneven=0.3,
        regional=0.3,
    ),
    "large groups": Dials(fan_outs=(3, 4), groups=800, mean=300.0, unlike=1.0),
    "empty leaves": Dials(fan_outs=(3, 6, 40), groups=2_500, mean=1.8, uneven=2.5, regional=0.3),
    "deep": Dials(fan_outs=(2, 3, 3, 4), groups=10_000),
    "heaps": Dials(fan_outs=(4, 8), groups=8_000, mean=12.0, heaps=0.5),
    "few regions": Dials(fan_outs=(10,), groups=3_000, uneven=0.1),
}
BY_HAND = ("top-coded", "empty leaves", "power tail", "deep")
GOALS = ("balanced", "leaves", "top")


def cases() -> list[str]:
    """Names of all cases: a set, how its budget is split, and ε."""
    planned = [f"{name}, planned, {epsilon}" for name in SETS for epsilon in EPSILONS]
    return planned + [
        f"{name}, root and leaves, {epsilon}" for name in BY_HAND for epsilon in EPSILONS
    ]


def errors(case: str) -> list[float]:
    """Mean earth mover's distance per level over a few seeded runs."""
    name, split, epsilon = case.split(", ")
    counts = made_up(SETS[name])
    options: dict[str, Any] = {"epsilon": epsilon, "mechanism": "adaptive"}
    if split != "planned":
        options["budget"] = ["0.3", *["0"] * (counts.hierarchy.n_levels - 2), "0.7"]
    found = [
        [
            level.emd
            for level in tt.evaluate(
                tt.release(counts, insecure_seed=seed, **options), counts
            ).levels
        ]
        for seed in range(RUNS)
    ]
    return [float(f"{mean:.4g}") for mean in np.mean(found, axis=0)]


def split_cases() -> list[str]:
    """Names of all planned splits: a set, the goal, and ε."""
    return [f"{name}, {goal}, {epsilon}" for name in SETS for goal in GOALS for epsilon in EPSILONS]


def split(case: str) -> list[float]:
    """Share of each level in the first seeded run."""
    name, goal, epsilon = case.split(", ")
    released = tt.release(
        made_up(SETS[name]), epsilon=epsilon, goal=goal, mechanism="adaptive", insecure_seed=0
    )
    return [float(Fraction(level["share"])) for level in released.manifest["privacy"]["levels"]]


def _write(file: Path, figures: dict[str, list[float]]) -> None:
    lines = [f"  {json.dumps(case)}: {json.dumps(found)}" for case, found in figures.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    _write(FILE, {case: errors(case) for case in cases()})
    _write(SPLITS, {case: split(case) for case in split_cases()})
