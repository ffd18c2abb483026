"""A whole country on one machine: 8.1 million blocks and 117 million households, read from Parquet,
released, verified, written, verified again.

``make bench`` takes a tenth and a hundredth of the blocks, ``make bench-full`` all of them and a
tenth. Each run is a process of its own, and so is the one that makes the data, so that the peak of
memory is that of the release.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.scale_data import LEVEL_NAMES, Dials, scale_counts
from tallytree import read, release, verify
from tallytree.group_sizes.plan.memory import cells_per_level, predicted_bytes
from tallytree.group_sizes.plan.plan import plan_release
from tallytree.model.facts import PublicFacts
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.papers.housing import housing_counts


def measured(arguments: list[str]) -> dict[str, float]:
    """Run one measurement of this file in a fresh process."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.country",
        *arguments,
        *benchmarks.default_options().values(),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def timed(steps: dict[str, Callable[[], object]]) -> dict[str, float]:
    figures = {}
    start_of_work = time.process_time()
    for name, step in steps.items():
        start = time.perf_counter()
        step()
        figures[name] = time.perf_counter() - start
    figures["total"] = sum(figures.values())
    figures["CPU seconds"] = (
        time.process_time() - start_of_work
    )  # what other programs do not change
    figures["peak memory in GB"] = benchmarks.peak_memory()
    figures["load average"] = os.getloadavg()[0]
    return figures


def dials(factor: int) -> Dials:
    """The country with so many times fewer households and blocks, one block at least for each block
    group.
    """
    return Dials() if factor == 1 else Dials().fewer_blocks(factor)


def blocks(factor: int) -> dict[str, float]:
    """The default mechanism on the country with ``factor`` times fewer blocks and households."""
    return whole_story(["--fewer", str(factor)])


def smaller(factor: int) -> dict[str, float]:
    """The same on a country with ``factor`` times fewer regions of all levels below the states."""
    return whole_story(["--smaller", str(factor)])


def whole_story(size: list[str]) -> dict[str, float]:
    """Read, release, verify, write and verify again a country of some size, as
    ``benchmarks.scale_data`` takes it.
    """
    options = benchmarks.default_options()
    release(scale_counts(Dials().smaller(8_100)), epsilon=1, **options)  # compiles the kernels
    made: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="tallytree-bench-") as folder:
        command = [sys.executable, "-m", "benchmarks.scale_data", folder, *size]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        out, source = Path(folder) / "out", Path(folder) / "counts.parquet"
        shape: dict[str, Any] = {
            "levels": LEVEL_NAMES[1:],
            "size": "size",
            "count": "count",
            "public": "groups",
        }
        steps: dict[str, Callable[[], object]] = {
            "read": lambda: made.append(read(source, **shape, root=LEVEL_NAMES[0])),
            "release": lambda: made.append(release(made.pop(), epsilon=1, **options)),
            "verify": lambda: made[0].verify().raise_if_failed(),
            "write": lambda: made[0].save(out),
            "verify from disk": lambda: verify(out).raise_if_failed(),
        }
        figures = timed(steps)
        figures["GB on disk"] = sum(file.stat().st_size for file in out.iterdir()) / 1e9
    return figures


def cumulative(max_size: int) -> dict[str, float]:
    """kuo2018's own setting for the whole country: 52 states, 3,144 counties, ``cumulative`` at all
    levels.
    """
    counts = housing_counts(117_000_000)
    options = {"mechanism": "matching", "view": "cumulative"}
    release(housing_counts(20_000), epsilon=1, **options, max_size=100)  # compiles the kernels
    facts = PublicFacts(counts.hierarchy, groups_public=True, max_quantity=1)
    plan = plan_release(ReleaseOptions(epsilon=1, **options, max_size=max_size), facts)
    cells = cells_per_level(plan, facts, counts.hierarchy.sum_from_leaves(counts.n_groups))
    figures = timed({"release": lambda: release(counts, epsilon=1, **options, max_size=max_size)})
    return {**figures, "predicted memory in GB": predicted_bytes(plan, cells) / 1e9}


def main() -> dict[str, float]:
    larger, smaller = (1, 10) if benchmarks.FULL else (10, 100)
    max_size = 100_000 if benchmarks.FULL else 10_000
    results = {
        f"1/{factor} of the blocks": measured(["blocks", str(factor)])
        for factor in (larger, smaller)
    }
    results[f"cumulative, K = {max_size:,}"] = measured(["cumulative", str(max_size)])
    figures = {
        f"{name}: {what}": value for name, facts in results.items() for what, value in facts.items()
    }
    fewer = dials(larger).regions[-1] / dials(smaller).regions[-1]
    first, second = list(results.values())[:2]
    for what in ("total", "CPU seconds"):
        figures[f"{what} at {fewer:.1f} times fewer blocks / {what}"] = second[what] / first[what]
    for name, facts in results.items():
        print(
            f"   {name}: " + ", ".join(f"{what} {value:.1f}" for what, value in facts.items()),
            flush=True,
        )
    time_share, work_share = (
        second["total"] / first["total"],
        second["CPU seconds"] / first["CPU seconds"],
    )
    print(
        f"   {fewer:.1f} times fewer blocks take {time_share:.3f} of the time, {work_share:.3f} of "
        "the CPU seconds"
    )
    return figures


if __name__ == "__main__":
    benchmarks.MECHANISM = next(iter(sys.argv[3:]), None)
    what = {"blocks": blocks, "smaller": smaller, "cumulative": cumulative}
    print(json.dumps(what[sys.argv[1]](int(sys.argv[2]))))
