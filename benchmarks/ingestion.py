"""From person rows in Parquet to exact counts with all checks, beside the bare DuckDB query: 300 million rows with ``--full``.

``python -m benchmarks.ingestion 30000000`` measures as many rows, in counties and in tracts, in two orders.
"""

import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb

import benchmarks
from tallytree import read

LEVELS = ["state", "county", "tract"]
# The least that any reader must do: no check, no order, no hierarchy.
BARE = """
    SELECT {levels}, size, count(*) AS n
    FROM (SELECT {levels}, household, count(*) AS size FROM read_parquet('{file}') GROUP BY ALL)
    GROUP BY ALL
"""
# Households of 2 and 3 people in 73,000 tracts, 3,174 counties and 52 states.
PEOPLE = """
    COPY (
        SELECT household, lpad((tract // 1404)::VARCHAR, 2, '0') AS state, lpad((tract // 23)::VARCHAR, 5, '0') AS county,
               lpad(tract::VARCHAR, 6, '0') AS tract
        FROM (
            SELECT person, household, (hash(household) % 73000)::INTEGER AS tract
            FROM (SELECT person, (person * 2) // 5 AS household FROM range({n_rows}) AS people(person))
        )
        {order}
    ) TO '{file}' (FORMAT parquet)
"""
ORDERS = {"households together": "", "people shuffled": "ORDER BY hash(person)"}
BYTES_PER_ROW = 30


def bare(file: Path, levels: Sequence[str]) -> int:
    with duckdb.connect() as engine:
        engine.execute(f"SET temp_directory = '{file.parent}/spill'")
        return len(engine.sql(BARE.format(levels=", ".join(levels), file=file)).to_arrow_table())


def ours(file: Path, levels: Sequence[str]) -> int:
    return len(read(file, group="household", levels=levels, root="US").leaf_counts.size)


def timed(action: Callable[[Path, Sequence[str]], int], file: Path, levels: Sequence[str]) -> tuple[float, int]:
    start = time.perf_counter()
    n_counts = action(file, levels)
    return time.perf_counter() - start, n_counts


def compare(file: Path, levels: Sequence[str], repeats: int) -> tuple[float, float]:
    """Best seconds of the bare query and of reading, taken in turns."""
    runs = [(timed(bare, file, levels), timed(ours, file, levels)) for _ in range(repeats)]
    assert len({n_counts for pair in runs for _, n_counts in pair}) == 1
    bare_seconds, our_seconds = (min(pair[side][0] for pair in runs) for side in (0, 1))
    return bare_seconds, our_seconds


def main(n_rows: int | None = None) -> dict[str, float]:
    n_rows = n_rows or (300_000_000 if benchmarks.FULL else 5_000_000)
    repeats = 1 if n_rows > 100_000_000 else 3
    figures: dict[str, float] = {"million rows": n_rows / 1e6, "load average": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="tallytree-bench-") as folder:
        if shutil.disk_usage(folder).free < 3 * BYTES_PER_ROW * n_rows:
            print("   skipped: too little room in the temporary folder for the rows and for what DuckDB spills")
            return {}
        file = Path(folder) / "people.parquet"
        for order_name, order in ORDERS.items():
            with duckdb.connect() as engine:
                engine.execute(f"SET temp_directory = '{folder}/spill'")
                engine.execute(PEOPLE.format(n_rows=n_rows, order=order, file=file))
            for levels in (LEVELS[:2], LEVELS):
                bare_seconds, our_seconds = compare(file, levels, repeats)
                name = f"{n_rows:,} rows in {levels[-1]} regions, {order_name}"
                figures |= {
                    f"{name}: bare seconds": bare_seconds,
                    f"{name}: read seconds": our_seconds,
                    f"{name}: ratio": our_seconds / bare_seconds,
                }
                print(
                    f"   {name}: read {our_seconds:.2f} s, bare query {bare_seconds:.2f} s, {our_seconds / bare_seconds:.2f}×"
                )
    figures["peak memory in GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"   peak memory {figures['peak memory in GB']:.2f} GB")
    return figures


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
