"""How often 95 % intervals hold the truth, over seeded releases of real data, per level and
setting.

    TALLYTREE_DATA=folder python -m benchmarks.coverage [cps flights …] [--setting k=3 …]
    [--releases 100] [--copies 40]
        [--jobs 2]

Settings are what scales the noise: how many entities of one unit count (k), how much each may add
to a size (z), private numbers of groups, whole groups protected; also other definitions and
mechanisms. Looked at are all released counts, those with a standard error of 2 or more apart, and
of every region counts that were released as 0, bands and answers. No interval may leave public
facts. Finished releases are kept in bench-results/coverage, so that the script goes on where it was
stopped.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import benchmarks
from benchmarks.real_data import DATA, data_folder
from tallytree import ConfidentialCounts, release
from tallytree.group_sizes.intervals.answers import answer
from tallytree.group_sizes.intervals.bands import count_band, cumulative_band
from tallytree.group_sizes.intervals.copies import Copies, copy_release, public_bounds
from tallytree.group_sizes.intervals.intervals import count_intervals
from tallytree.group_sizes.intervals.zero_cells import REACHES, first_sizes, places_of
from tallytree.group_sizes.release import questions as asked
from tallytree.group_sizes.release.region import RegionCounts
from tallytree.group_sizes.release.release import CountIntervals
from tallytree.kernels import jit
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import counts_at
from tallytree.model.unit import Unit

RESULTS = Path("bench-results") / "coverage"
RELEASES, COPIES = 100, 40
SURE = 2  # a standard error from here on is large beside whole numbers
BLOCK = 10  # releases kept at a time

QUESTIONS = {
    "groups": asked.GROUPS,
    "entities": asked.ENTITIES,
    "mean": asked.MEAN,
    "median": asked.quantile(0.5),
    "quantile 0.9": asked.quantile(0.9),
    "largest": asked.kth_largest(1),
    "10th largest": asked.kth_largest(10),
    "at least 5": asked.groups_of_at_least(5),
}


@dataclass(frozen=True)
class Setting:
    """What is changed about the data's description, and the options of the release."""

    facts: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=lambda: {"epsilon": 1})


def _unit(contributions: int) -> dict[str, Any]:
    return {"unit": Unit("row", "person", contributions)}


def _whole_groups(epsilon: str) -> Setting:
    facts = {"groups_public": False, "unit": Unit(group="household"), "least_size": 1}
    return Setting(facts, {"epsilon": epsilon})


SETTINGS = {
    "k=1": Setting(),
    "k=3": Setting(_unit(3)),
    "k=10": Setting(_unit(10)),
    "z=10": Setting({"max_quantity": 10}),
    "private groups": Setting({"groups_public": False}),
    "unit=group": _whole_groups("1"),
    "unit=group, ε=0.1": _whole_groups("0.1"),
    "k=3, zCDP": Setting(_unit(3), {"definition": "zcdp", "rho": "1/2"}),
    "k=3, private groups, matching": Setting(
        {**_unit(3), "groups_public": False}, {"epsilon": 1, "mechanism": "matching"}
    ),
}


@dataclass(frozen=True, eq=False)
class Remembered(Copies):
    """Copies that are asked several things about one region, which they add up once."""

    last: dict[Any, Any] = field(default_factory=dict)

    def region(self, path: str | Sequence[str], where: Sequence[str] = ()) -> Any:
        asked = (path,) if isinstance(path, str) else tuple(path), tuple(where)
        if asked not in self.last:
            self.last.clear()
            self.last[asked] = super().region(path, where)
        return self.last[asked]


@cache
def counts_of(name: str, folder: Path) -> ConfidentialCounts:
    return DATA[name](folder)


def tally(truth: ConfidentialCounts, setting: Setting, seed: int, copies: int) -> Counter[str]:
    """Of one release: how many intervals and bands there are, how many hold the truth, and how many
    leave public facts.
    """
    truth = truth.with_public(**setting.facts)
    made = release(truth, insecure_seed=seed, **setting.options)
    simulated = copy_release(made, copies=copies, seed=1_000 * seed)
    copied = Remembered(simulated.release, simulated.truths, simulated.copies)
    found = count_intervals(copied)
    tree, bounds = made.hierarchy, public_bounds(made)
    region = made.counts.region_of_run()
    true = counts_at(truth.counts_on_levels, region, made.counts.size)
    held = (found.low <= true) & (true <= found.high)
    level, wide = tree.level_of[region], found.std_error >= SURE
    tallied: Counter[str] = Counter(
        {"outside": int((found.high > bounds.most_groups[region]).sum())}
    )
    for depth, level_name in enumerate(tree.level_names):

        def add(what: str, n: int, n_held: int, of_level: str = level_name) -> None:
            tallied[f"{of_level}, {what}|n"] += n
            tallied[f"{of_level}, {what}|held"] += n_held

        for what, cells in (("counts", level == depth), ("counts, wide", (level == depth) & wide)):
            add(what, int(cells.sum()), int(held[cells].sum()))
        for number in range(tree.level_slice(depth).start, tree.level_slice(depth).stop):
            add("zeros", *zeros_held(copied, truth, found, number))
            for what, holds in held_in_region(copied, truth, number, tallied):
                add(what, 1, holds)
    return tallied


def zeros_held(
    copied: Copies, truth: ConfidentialCounts, found: CountIntervals, region: int
) -> tuple[int, int]:
    """Counts that a region has 0 released of, up to four places beyond its largest, and how many
    are within their ends.
    """
    counts, true = copied.release.counts.region(region), truth.counts_on_levels.region(region)
    last = places_of(counts.size).max(initial=0) + max(REACHES)
    sizes = np.setdiff1d(np.arange(first_sizes(last)[-1]).astype(np.int64), counts.size)
    high = found.zeros.of(counts, int(truth.hierarchy.level_of[region]), sizes)[0]
    return len(sizes), int((counts_at(true, np.zeros_like(sizes), sizes) <= high).sum())


def held_in_region(
    copied: Copies, truth: ConfidentialCounts, region: int, tallied: Counter[str]
) -> Iterator[tuple[str, bool]]:
    """Whether the bands and answers of a region hold; those that leave public facts are counted."""
    path, table = str(truth.hierarchy.paths[region]), truth.counts_on_levels.region(region)
    true = RegionCounts(path, table.size, table.count)
    bounds = public_bounds(copied.release)
    most = int(bounds.most_groups[region])
    for name, band, exact in (
        ("band of counts", count_band(copied, path), true.counts()),
        ("band of curve", cumulative_band(copied, path), true.cumulative()),
    ):
        _, low, high = band
        tallied["outside"] += int(high.max() > most) + int(low.min() < 0)
        yield name, within(low, exact, high, steady=name == "band of curve")
    for name, question in QUESTIONS.items():
        if name == "10th largest" and min(true.n_groups, copied.release.region(path).n_groups) < 10:
            continue
        found = answer(copied, path, question)
        ceiling = most if question.about == "groups" else bounds.max_size
        tallied["outside"] += int(found.low < 0) + int(
            question.about != "entities" and found.high > ceiling
        )
        yield name, bool(found.low <= question.ask(true) <= found.high)


def within(low: Any, exact: IntArray, high: Any, *, steady: bool) -> bool:
    """Whether a band holds all numbers, beyond its end and the largest true size too."""
    length = max(len(low), len(exact))
    low, high = (np.pad(end, (0, length - len(end)), mode="edge") for end in (low, high))
    exact = np.pad(exact, (0, length - len(exact)), mode="edge" if steady else "constant")
    return bool(((low <= exact) & (exact <= high)).all())


def block(first: int, name: str, setting: str, folder: Path, copies: int) -> Counter[str]:
    """Several releases, kept together in one file."""
    # Thousands of small releases: processes share the cores, threads within one would only wait for
    # each other.
    jit.n_workers = lambda: 1  # type: ignore[assignment]
    file = RESULTS / f"{name}--{setting}--{copies}--{first:04d}.json".replace(" ", "_")
    if not file.exists():
        sums: Counter[str] = Counter()
        for seed in range(first, first + BLOCK):
            sums.update(tally(counts_of(name, folder), SETTINGS[setting], seed, copies))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(sums), encoding="utf-8")
    return Counter(json.loads(file.read_text()))


def run(
    names: list[str], *, settings: list[str], releases: int, copies: int, jobs: int = 1
) -> dict[str, float]:
    folder = data_folder()
    if folder is None:
        print("   SKIPPED: TALLYTREE_DATA names no folder of real data.")
        return {}
    figures = {}
    for name, setting in ((name, setting) for setting in settings for name in names):
        work = partial(block, name=name, setting=setting, folder=folder, copies=copies)
        starts = range(0, releases, BLOCK)
        if jobs > 1:
            with ProcessPoolExecutor(jobs) as pool:
                parts = list(pool.map(work, starts))
        else:
            parts = [work(first) for first in starts]
        sums = sum(parts, Counter[str]())
        print(
            f"   {name}, {setting}: {releases} releases, {sums['outside']} intervals outside "
            "public facts",
            flush=True,
        )
        figures[f"{name}, {setting}, outside"] = float(sums["outside"])
        for key in (key.removesuffix("|n") for key in parts[0] if key.endswith("|n")):
            n = sums[f"{key}|n"]
            if n:
                share = sums[f"{key}|held"] / n
                figures[f"{name}, {setting}, {key}"] = share
                low = "  <- below 92 %" if share < 0.92 else ""
                high = "  <- above 98 %" if key.endswith("wide") and share > 0.98 else ""
                print(f"      {key:32} {n:9,} {share:7.2%}{low}{high}", flush=True)
    return figures


def main() -> dict[str, float]:
    if benchmarks.FULL:
        return run(["cps", "flights"], settings=list(SETTINGS), releases=RELEASES, copies=COPIES)
    return run(["cps"], settings=["k=3", "private groups"], releases=BLOCK, copies=COPIES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=["cps"])
    parser.add_argument(
        "--setting", dest="settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS)
    )
    parser.add_argument("--releases", type=int, default=RELEASES)
    parser.add_argument("--copies", type=int, default=COPIES)
    parser.add_argument("--jobs", type=int, default=1)
    given = vars(parser.parse_args())
    run(given.pop("names"), **given)
