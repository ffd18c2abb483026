"""Run methods on data sets and keep the errors; what is kept is not run again."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.accuracy.data import data_sets
from tallytree import ConfidentialCounts, evaluate, release
from tallytree.errors import TallytreeError
from tallytree.group_sizes.plan.error_formulas import omniscient_error

RESULTS = Path("bench-results") / "accuracy"
EPSILONS = ("0.1", "0.5", "1", "4")
# The public bound on sizes that the baselines need: one for all data, and one that follows the
# data's largest size. Nobody knows a tight bound without looking; a careful office comes near it.
MAX_SIZE = 10_000
TIGHT = "tight"
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "no level behind": {"goal": "no-level-behind"},
    "default, equal split": {"mechanism": "adaptive", "budget": "equal"},
    "kuo2018": {"mechanism": "matching", "view": "cumulative", "norm": 1, "max_size": MAX_SIZE},
    "bottom-up": {"mechanism": "bottom-up", "view": "cumulative", "norm": 1, "max_size": MAX_SIZE},
    "kuo2018, tight bound": {
        "mechanism": "matching",
        "view": "cumulative",
        "norm": 1,
        "max_size": TIGHT,
    },
    "bottom-up, tight bound": {
        "mechanism": "bottom-up",
        "view": "cumulative",
        "norm": 1,
        "max_size": TIGHT,
    },
    "hybrid": {"mechanism": "matching", "view": "hybrid"},
    "cumulative-dp": {"mechanism": "cumulative-dp", "max_size": MAX_SIZE},
    "topdown": {"mechanism": "topdown", "max_size": MAX_SIZE},
}

Job = tuple[str, str, str, int]


@cache
def _counts(name: str, folder: Path | None) -> ConfidentialCounts:
    return data_sets(folder)[name]()


def file_of(job: Job) -> Path:
    """Where a run is kept."""
    name, method, epsilon, seed = (str(part).replace(" ", "_").replace(",", "") for part in job)
    return RESULTS / name / method / f"{epsilon}-{seed}.parquet"


def run(job: Job, folder: Path | None) -> str:
    """One release, evaluated; the errors per level go into a file."""
    name, method, epsilon, seed = job
    counts = _counts(name, folder)
    begun = time.perf_counter()
    try:
        made = release(counts, epsilon=epsilon, insecure_seed=seed, **_options(method, counts))
    except TallytreeError as error:
        return f"{name}, {method}: {error}"
    seconds = time.perf_counter() - begun
    levels = evaluate(made, counts).levels
    shares = [level["share"] for level in made.manifest["privacy"]["levels"]]
    rows = [
        {
            "data": name, "method": method, "epsilon": epsilon, "seed": seed, "level": level.level, "regions": level.regions,
            "emd": level.emd, "l1": level.l1, "share": str(share), "seconds": seconds,
            "omniscient": omniscient_error(level.distinct_sizes, float(epsilon) / len(levels)),
        }
        for level, share in zip(levels, shares)
    ]  # fmt: skip
    file = file_of(job)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    pq.write_table(pa.Table.from_pylist(rows), part)
    part.rename(file)
    return f"{name}, {method}, epsilon {epsilon}, seed {seed}: {' / '.join(f'{level.emd:.4g}' for level in levels)}"


def tight_bound(largest: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50 … from the largest size on."""
    return next(first * 10**n for n in range(19) for first in (1, 2, 5) if first * 10**n >= largest)


def _options(method: str, counts: ConfidentialCounts) -> dict[str, Any]:
    """How a method is asked for."""
    options = METHODS[method]
    if options.get("max_size") == TIGHT:
        options = options | {"max_size": tight_bound(int(counts.leaf_counts.size.max()))}
    return options


def run_all(
    folder: Path | None,
    names: Sequence[str],
    methods: Iterable[str],
    epsilons: Sequence[str],
    runs: int,
    workers: int,
) -> None:
    """Run whatever is not yet kept, a data set at a time, on several processes."""
    jobs = [
        (name, method, epsilon, seed)
        for name in names
        for method in methods
        for epsilon in epsilons
        for seed in range(runs)
        if not file_of((name, method, epsilon, seed)).exists()
    ]
    with ProcessPoolExecutor(workers) as pool:
        for done, line in enumerate(pool.map(partial(run, folder=folder), jobs), 1):
            print(f"[{done}/{len(jobs)}] {line}", flush=True)
