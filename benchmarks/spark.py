"""Releases on Spark: memory of the driver as leaves double, and time beside a bare aggregation of the same table.

Each run is a process of its own with two executors of one core; memory is that of the driver's Python, at its peak.
"""

import importlib.util
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import benchmarks
from tallytree.distributed.session import spark_session

MASTER = "local-cluster[2,1,2048]"
SETTINGS = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8"}
ROWS_PER_GROUP = 3
READING: dict[str, Any] = {"group": "household", "levels": ["state", "county", "block"], "public": "groups"}


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


def measured(n_rows: int, n_leaves: int) -> dict[str, float]:
    """One release in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.spark", str(n_rows), str(n_leaves)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def one_release(n_rows: int, n_leaves: int) -> dict[str, float]:
    """Seconds of a bare aggregation and of a release that executors write and check, and the driver's peak of memory."""
    import tallytree as tt

    session = spark_session(MASTER, SETTINGS)
    session.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory(prefix="tallytree-bench-") as folder:
        source = str(Path(folder) / "people")
        people(session, n_rows, n_leaves).write.parquet(source)
        table = session.read.parquet(source)
        warm = tt.read(people(session, 3_000, 1_000), **READING)
        warm.release_to(Path(folder) / "warm", epsilon=1)  # compiles the kernels
        start = time.perf_counter()
        sizes = table.groupBy("household", *READING["levels"]).count().withColumnRenamed("count", "size")
        sizes.groupBy(*READING["levels"], "size").count().write.format("noop").mode("overwrite").save()
        bare = time.perf_counter() - start
        start = time.perf_counter()
        before = _peak_memory()
        counts = tt.read(table, **READING)
        counted = time.perf_counter() - start
        counts.release_to(Path(folder) / "out", epsilon=1)  # written by the executors, and checked
        released = time.perf_counter() - start
        memory = _peak_memory()
    session.stop()
    seconds = {"bare seconds": bare, "counted seconds": counted, "release seconds": released}
    return {**seconds, "driver MB before": before, "driver MB": memory}


def _peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


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
        print(f"   {leaves:,} leaves: " + ", ".join(f"{what} {value:.1f}" for what, value in found.items()), flush=True)
    return figures


if __name__ == "__main__":
    print(json.dumps(one_release(int(sys.argv[1]), int(sys.argv[2]))))
