"""How often 95 % intervals hold the truth, over seeded releases of real data: per level, small and large counts apart.

    TALLYTREE_DATA=folder python -m benchmarks.coverage [cps flights taxi housing] [--releases 200] [--copies 40] [--jobs 2]
        [--mechanism NAME] [--view NAME]

Also how often a band holds a region's whole cumulative curve. Finished releases are kept in bench-results/coverage, so that the
script goes on where it was stopped.
"""

import argparse
import json
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import benchmarks
from benchmarks.real_data import DATA, data_folder
from tallytree import ConfidentialCounts, release
from tallytree.model.count_of_counts import counts_at
from tallytree.publish.intervals import Copies, copy_release, count_intervals, cumulative_band

RESULTS = Path("bench-results") / "coverage"
RELEASES, COPIES, EPSILON = 200, 40, 1
LARGE = 30  # a released count from here on is large
BANDS = 20  # regions per level whose bands are looked at
BLOCK = 10  # releases kept at a time


@cache
def counts_of(name: str, folder: Path) -> ConfidentialCounts:
    return DATA[name](folder)


def tally(name: str, folder: Path, seed: int, copies: int, options: dict[str, Any]) -> Counter[str]:
    """Of one release: how many intervals and bands there are, and how many hold the truth, per class."""
    truth = counts_of(name, folder)
    made = release(truth, epsilon=EPSILON, insecure_seed=seed, **options)
    copied = copy_release(made, copies=copies, seed=1_000_000 + 1_000 * seed)
    found = count_intervals(copied)
    region = made.counts.region_of_run()
    true = counts_at(truth.counts_on_levels, region, made.counts.size)
    held = (found.low <= true) & (true <= found.high)
    level = made.hierarchy.level_of[region]
    large = made.counts.count >= LARGE
    tallied: Counter[str] = Counter()
    for depth, level_name in enumerate(made.hierarchy.level_names):
        for word, cells in (("small", ~large), ("large", large)):
            here = cells & (level == depth)
            tallied[f"{level_name}, {word} counts|n"] += int(here.sum())
            tallied[f"{level_name}, {word} counts|held"] += int(held[here].sum())
        regions = np.arange(made.hierarchy.n_regions)[made.hierarchy.level_slice(depth)][:BANDS]
        tallied[f"{level_name}, bands|n"] += len(regions)
        tallied[f"{level_name}, bands|held"] += sum(band_holds(copied, truth, int(r)) for r in regions)
    return tallied


def band_holds(copied: Copies, truth: ConfidentialCounts, region: int) -> bool:
    """Whether the band of a region holds its whole true curve, beyond the largest released size too."""
    curve, low, high = cumulative_band(copied, truth.hierarchy.paths[region])
    table = truth.counts_on_levels.region(region)
    length = max(len(curve), int(table.size.max(initial=0)) + 1)
    true = np.zeros(length, dtype=np.int64)
    true[table.size] = table.count
    low, high = (np.pad(end, (0, length - len(end)), mode="edge") for end in (low, high))
    true = np.cumsum(true)
    return bool(((low <= true) & (true <= high)).all())


def block(first: int, name: str, folder: Path, copies: int, options: dict[str, Any]) -> Counter[str]:
    """Several releases, kept together in one file."""
    kind = "-".join([str(value) for value in options.values()] or ["default"])
    file = RESULTS / f"{name}--{kind}--{copies}--{first:04d}.json"
    if not file.exists():
        sums: Counter[str] = Counter()
        for seed in range(first, first + BLOCK):
            sums.update(tally(name, folder, seed, copies, options))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(sums), encoding="utf-8")
    return Counter(json.loads(file.read_text()))


def run(names: list[str], *, releases: int, copies: int, jobs: int = 1, **options: Any) -> dict[str, float]:
    folder = data_folder()
    if folder is None:
        print("   SKIPPED: TALLYTREE_DATA names no folder of real data.")
        return {}
    figures = {}
    for name in names:
        work = partial(block, name=name, folder=folder, copies=copies, options=options)
        starts = range(0, releases, BLOCK)
        if jobs > 1:
            with ProcessPoolExecutor(jobs) as pool:
                parts = list(pool.map(work, starts))
        else:
            parts = [work(first) for first in starts]
        sums = sum(parts, Counter[str]())
        for key in (key.removesuffix("|n") for key in parts[0] if key.endswith("|n")):
            n = sums[f"{key}|n"]
            if n:
                share = sums[f"{key}|held"] / n
                figures[f"{name}, {key}"] = share
                off = "  <- outside 92 to 98 %" if "bands" not in key and not 0.92 <= share <= 0.98 else ""
                print(f"   {name:8} {key:32} {n:9,} {share:7.2%}{off}", flush=True)
    return figures


def main() -> dict[str, float]:
    if benchmarks.FULL:
        return run(list(DATA), releases=RELEASES, copies=COPIES)
    return run(["cps", "flights"], releases=BLOCK, copies=COPIES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(DATA))
    parser.add_argument("--releases", type=int, default=RELEASES)
    parser.add_argument("--copies", type=int, default=COPIES)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--mechanism")
    parser.add_argument("--view")
    given = vars(parser.parse_args())
    chosen = {key: value for key in ("mechanism", "view") if (value := given.pop(key)) is not None}
    run(given.pop("names"), **given, **chosen)
