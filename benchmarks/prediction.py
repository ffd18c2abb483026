"""Predicted against realised error per level, for every mechanism of group sizes, on real data.

    TALLYTREE_DATA=folder python -m benchmarks.prediction [cps flights taxi housing] [--runs 20]
    [--jobs 2] [--limit 60]

The prediction sees one earlier release (epsilon = 1) and simulates; the realised errors are those
of releases of the real data. Finished runs are kept in bench-results/prediction, so that the script
goes on where it was stopped; ``--limit`` leaves out what takes longer than that many seconds per
run.
"""

import argparse
import json
import re
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.real_data import DATA, data_folder
from tallytree import ConfidentialCounts, evaluate, release
from tallytree.errors import TallytreeError
from tallytree.group_sizes.accuracy import data_like
from tallytree.group_sizes.plan.traits import NAMES as MECHANISMS

RESULTS = Path("bench-results") / "prediction"
EPSILON = 1
RUNS = 20
# Seeds of the earlier release and of simulations; realised releases take 0, 1, 2 …
EARLIER_SEED, SIMULATED = 90_000, 50_000
# An earlier release is one that suits its data: taxis are groups of hundreds, for which the hybrid
# view is not made.
EARLIER: dict[str, dict[str, Any]] = {"taxi": {"mechanism": "bottom-up", "view": "cumulative"}}
# What a mechanism needs besides its name.
NEEDS: dict[str, dict[str, Any]] = {
    "tree-relaxed": {"repair": True},
    "tree-exact": {"max_size": 20, "time_limit": 60},
}
# Mechanisms that take only toy instances have no place here: their tests compare them with the
# exact dynamic programs.
TOYS = ("tree-program", "cumulative-exact")


def variants() -> dict[str, dict[str, Any]]:
    """Every mechanism, those with a choice of view once per view."""
    found: dict[str, dict[str, Any]] = {"default": {}}
    for mechanism in MECHANISMS:
        if mechanism in ("matching", "bottom-up"):
            for view in ("hybrid", "cumulative", "sizes"):
                found[f"{mechanism}, {view}"] = {"mechanism": mechanism, "view": view}
        elif mechanism not in TOYS:
            found[mechanism] = {"mechanism": mechanism, **NEEDS.get(mechanism, {})}
    return found


@cache
def counts_of(name: str, folder: Path) -> ConfidentialCounts:
    return DATA[name](folder)


@cache
def assumed_of(name: str, folder: Path) -> ConfidentialCounts:
    """What a planner assumes: the tables of an earlier release."""
    earlier = release(
        counts_of(name, folder),
        epsilon=EPSILON,
        insecure_seed=EARLIER_SEED,
        **EARLIER.get(name, {}),
    )
    return data_like(earlier)


def errors(counts: ConfidentialCounts, seed: int, **options: Any) -> list[float]:
    """EMD per level of one release."""
    made = release(counts, insecure_seed=seed, **options)
    return [level.emd for level in evaluate(made, counts).levels]


def measure(task: tuple[str, str], folder: Path, runs: int, limit: float) -> dict[str, Any]:
    """Runs of one variant on one data set, continuing what was kept."""
    name, variant = task
    options = variants()[variant]
    file = RESULTS / f"{name}--{re.sub('[^a-z]+', '-', variant)}.json"
    kept = (
        json.loads(file.read_text())
        if file.exists()
        else {"predicted": [], "realised": [], "note": ""}
    )
    sources = {"realised": (counts_of, 0), "predicted": (assumed_of, SIMULATED)}
    while not kept["note"] and min(len(kept[kind]) for kind in sources) < runs:
        kind = min(sources, key=lambda key: len(kept[key]))
        data, first_seed = sources[kind]
        begun = time.perf_counter()
        try:
            kept[kind].append(
                errors(data(name, folder), first_seed + len(kept[kind]), epsilon=EPSILON, **options)
            )
        except TallytreeError as error:
            kept["note"] = str(error).split(". ")[0]
        taken = time.perf_counter() - begun
        if len(kept["predicted"]) > 1 and taken > limit:
            kept["note"] = f"stopped: {taken:.0f} s per run"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(kept), encoding="utf-8")
    return kept


def compare(kept: dict[str, Any], runs: int) -> list[dict[str, float]]:
    """Mean predicted and realised error per level, over the first runs of each."""
    n = min(len(kept["predicted"]), len(kept["realised"]), runs)
    means = (
        [[sum(level) / n for level in zip(*kept[kind][:n])] for kind in ("predicted", "realised")]
        if n
        else []
    )
    return (
        [{"predicted": p, "realised": r, "ratio": p / r if r else 1.0} for p, r in zip(*means)]
        if n
        else []
    )


def run(names: list[str], *, runs: int, jobs: int = 1, limit: float = 60) -> dict[str, Any]:
    folder = data_folder()
    if folder is None:
        print("   SKIPPED: TALLYTREE_DATA names no folder of real data.")
        return {}
    tasks = [(name, variant) for name in names for variant in variants()]
    work = partial(measure, folder=folder, runs=runs, limit=limit)
    if jobs > 1:
        with ProcessPoolExecutor(jobs) as pool:
            results = list(pool.map(work, tasks))
    else:
        results = [work(task) for task in tasks]
    figures = {}
    for (name, variant), kept in zip(tasks, results, strict=True):
        rows = compare(kept, runs)
        figures[f"{name}, {variant}"] = {
            "levels": rows,
            "runs": len(kept["realised"][:runs]),
            "note": kept["note"],
        }
        shown = "  ".join(
            f"{row['predicted']:,.4g} / {row['realised']:,.4g} = {row['ratio']:.2f}" for row in rows
        )
        off = (
            "  <- off by more than 15 %"
            if any(abs(row["ratio"] - 1) > 0.15 for row in rows)
            else ""
        )
        print(f"   {name:8} {variant:22} {shown} {kept['note']}{off}", flush=True)
    return figures


def main() -> dict[str, Any]:
    return run(list(DATA), runs=RUNS) if benchmarks.FULL else run(["cps", "flights"], runs=3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(DATA))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60)
    given = parser.parse_args()
    figures = run(given.names, runs=given.runs, jobs=given.jobs, limit=given.limit)
    RESULTS.parent.mkdir(exist_ok=True)
    (RESULTS.parent / "prediction.json").write_text(
        json.dumps(figures, indent=1) + "\n", encoding="utf-8"
    )
