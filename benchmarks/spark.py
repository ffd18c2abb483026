"""Releases on Spark: memory of the driver as leaves double, and time beside a bare aggregation of
the same table.

Each run is a process of its own with two executors of one core; memory is that of the driver's
Python, at its peak. ``python -m benchmarks.spark households 50000000 3500000`` is a twentieth of a
billion households in 70 million blocks, one row each, with 4 GB for each executor.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import benchmarks
from tallytree.spark.session import spark_session

MASTER, LARGE_MASTER = "local-cluster[2,1,2048]", "local-cluster[2,1,4096]"
SETTINGS = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8"}
# Of shuffles a partition per 3 million households; executors of 4 GB ask for that much.
LARGE_SETTINGS = SETTINGS | {"spark.sql.shuffle.partitions": "16", "spark.executor.memory": "4096m"}
ROWS_PER_GROUP = 3
READING: dict[str, Any] = {
    "group": "household",
    "levels": ["state", "county", "block"],
    "public": "groups",
}


def people(session: Any, n_rows: int, n_leaves: int) -> Any:
    """Rows of households, three persons each on average, in blocks of counties of states."""
    table = session.range(n_rows).selectExpr(f"hash(id) % {n_rows // ROWS_PER_GROUP} as household")
    table = table.selectExpr("household", f"pmod(hash(household), {n_leaves}) as leaf")
    return table.selectExpr(
        "household",
        f"concat('s', leaf div {n_leaves // 50}) as state",
        f"concat('c', leaf div {n_leaves // 1_000}) as county",
        "concat('b', leaf) as block",
    )


# How many regions of each level lie in one of the level above, as in the country of `country.py`.
BELOW = {"block": 37, "block_group": 3, "tract": 23, "county": 60}
LARGE_READING: dict[str, Any] = {
    "size": "size",
    "levels": ["state", *reversed(BELOW)],
    "public": "groups",
}


def households(session: Any, n_households: int, n_blocks: int) -> Any:
    """A row for each household, with its size, in blocks of block groups of tracts of counties of
    states.
    """
    table = session.range(n_households).selectExpr(
        f"pmod(xxhash64(id), {n_blocks}) as leaf", "pmod(xxhash64(id, 1), 1000000) / 1e6 as u"
    )
    labels, regions = [], 1
    for level, n_below in {**BELOW, "state": 1}.items():
        labels.append(f"concat('{level[0]}', leaf div {regions}) as {level}")
        regions *= n_below
    return table.selectExpr(
        *labels, "least(1 + cast(floor(ln(1 - u) / ln(0.6)) as int), 30) as size"
    )


def one_large_release(n_households: int, n_blocks: int) -> dict[str, float]:
    """Seconds to write, aggregate and release a table of households, and peaks of memory of all
    processes.
    """
    import tallytree as tt

    session = spark_session(LARGE_MASTER, LARGE_SETTINGS)
    session.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory(prefix="tallytree-bench-") as folder:
        source, seconds = str(Path(folder) / "households"), []
        seconds.append(
            _seconds(lambda: households(session, n_households, n_blocks).write.parquet(source))
        )
        table = session.read.parquet(source)
        bare = table.groupBy(*LARGE_READING["levels"], "size").count()
        seconds.append(_seconds(lambda: bare.write.format("noop").mode("overwrite").save()))
        start, before = time.perf_counter(), 1e3 * benchmarks.peak_memory()
        counts = tt.read(table, **LARGE_READING)
        seconds.append(time.perf_counter() - start)
        made = counts.release_to(Path(folder) / "out", epsilon=1)
        seconds.append(time.perf_counter() - start)
        assert made is not None
        steps = dict(zip(("written", "bare", "counted", "release"), seconds))
        peaks = {
            "driver MB before": before,
            "driver MB": 1e3 * benchmarks.peak_memory(),
            **_peaks_below(),
        }
        n_bytes = sum(file.stat().st_size for file in (Path(folder) / "out").iterdir())
        sizes = {
            "leaves": counts.hierarchy.n_leaves,
            "rows": made.n_rows,
            "MB on disk": n_bytes / 1e6,
        }
    session.stop()
    return {**{f"{step} seconds": value for step, value in steps.items()}, **peaks, **sizes}


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _peaks_below() -> dict[str, float]:
    """The largest peak of memory of an executor, and of a Python worker, among the processes below
    this one.
    """
    found = [
        (
            (process / "cmdline").read_text(),
            dict(line.split(":", 1) for line in _lines(process / "status")),
        )
        for process in _processes_below()
    ]

    def peak(word: str) -> float:
        return max(
            (int(told["VmHWM"].split()[0]) / 1e3 for command, told in found if word in command),
            default=0,
        )

    return {
        "executor MB": peak("CoarseGrainedExecutorBackend"),
        "worker MB": peak("pyspark.daemon"),
    }


def _cpu_seconds() -> float:
    """CPU time of this process and all below it, those that have ended included where their parents
    waited for them.
    """
    fields = [
        _lines(process / "stat")[0].rpartition(")")[2].split() for process in _processes_below()
    ]
    return sum(int(ticks) for told in fields for ticks in told[11:15]) / os.sysconf("SC_CLK_TCK")


def _processes_below() -> list[Path]:
    """This process and those that it has started, directly or not."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            parents[int(process.name)] = int(
                _lines(process / "stat")[0].rpartition(")")[2].split()[1]
            )

    def is_below(number: int) -> bool:
        return number == os.getpid() or (number in parents and is_below(parents[number]))

    return [Path("/proc") / str(number) for number in parents if is_below(number)]


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


def measured(n_rows: int, n_leaves: int) -> dict[str, float]:
    """One release in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.spark", str(n_rows), str(n_leaves)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def one_release(n_rows: int, n_leaves: int) -> dict[str, float]:
    """Seconds of a bare aggregation and of a release that executors write and check, and the
    driver's peak of memory.
    """
    import tallytree as tt

    session = spark_session(MASTER, SETTINGS)
    session.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory(prefix="tallytree-bench-") as folder:
        source = str(Path(folder) / "people")
        people(session, n_rows, n_leaves).write.parquet(source)
        table = session.read.parquet(source)
        warm = tt.read(people(session, 3_000, 1_000), **READING)
        warm.release_to(Path(folder) / "warm", epsilon=1)  # compiles the kernels
        start, used = time.perf_counter(), _cpu_seconds()
        sizes = (
            table.groupBy("household", *READING["levels"])
            .count()
            .withColumnRenamed("count", "size")
        )
        sizes.groupBy(*READING["levels"], "size").count().write.format("noop").mode(
            "overwrite"
        ).save()
        bare, bare_cpu = time.perf_counter() - start, _cpu_seconds() - used
        start, used = time.perf_counter(), _cpu_seconds()
        before = 1e3 * benchmarks.peak_memory()
        counts = tt.read(table, **READING)
        counted = time.perf_counter() - start
        counts.release_to(Path(folder) / "out", epsilon=1)  # written by the executors, and checked
        released, released_cpu = time.perf_counter() - start, _cpu_seconds() - used
        memory = 1e3 * benchmarks.peak_memory()
    session.stop()
    seconds = {"bare seconds": bare, "counted seconds": counted, "release seconds": released}
    cpu = {"bare CPU seconds": bare_cpu, "release CPU seconds": released_cpu}
    return {**seconds, **cpu, "driver MB before": before, "driver MB": memory}


def main() -> dict[str, float]:
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        print("   Spark or Java is not installed")
        return {}
    n_rows, n_leaves = (5_000_000, 100_000) if benchmarks.FULL else (500_000, 20_000)
    figures = {}
    for leaves in (n_leaves, 2 * n_leaves):
        found = measured(n_rows, leaves)
        found["release / bare"] = found["release seconds"] / found["bare seconds"]
        figures |= {f"{leaves:,} leaves: {what}": value for what, value in found.items()}
        print(
            f"   {leaves:,} leaves: "
            + ", ".join(f"{what} {value:.1f}" for what, value in found.items()),
            flush=True,
        )
    return figures


if __name__ == "__main__":
    run = one_large_release if sys.argv[1] == "households" else one_release
    print(json.dumps(run(*map(int, sys.argv[-2:]))))
