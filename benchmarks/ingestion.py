"""From person rows in Parquet to exact counts, beside the bare DuckDB query: 300 million rows with ``--full``, 10 otherwise."""

import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import duckdb

import benchmarks
from tallytree import read

LEVELS = ["state", "county", "tract"]
# A household has as many people as its first characters say; 300 people live in 117 households, on average 2.56 each.
ROWS = """
    WITH households AS (
        SELECT household, (hash(household) % 73000)::INTEGER AS tract,
               1 + (hash(household, 1) % 100 > 26)::INT + (hash(household, 2) % 100 > 45)::INT
                 + (hash(household, 3) % 100 > 72)::INT AS people
        FROM range(?) AS t(household)
    )
    SELECT household, lpad((tract // 1404)::VARCHAR, 2, '0') AS state, lpad((tract // 23)::VARCHAR, 5, '0') AS county,
           lpad(tract::VARCHAR, 6, '0') AS tract
    FROM (SELECT household, tract, unnest(range(people)) FROM households)
"""
BARE = """
    SELECT state, county, tract, size, count(*) AS n FROM (
        SELECT min(state) AS state, min(county) AS county, min(tract) AS tract, count(*) AS size FROM '{}' GROUP BY household
    ) GROUP BY ALL
"""
BYTES_PER_ROW = 30


def main() -> dict[str, float]:
    n_households = 117_000_000 if benchmarks.FULL else 3_900_000
    with tempfile.TemporaryDirectory(prefix="tallytree-bench-") as folder:
        if shutil.disk_usage(folder).free < 3 * BYTES_PER_ROW * 2.6 * n_households:
            print("   skipped: too little room in the temporary folder for the rows and for what DuckDB spills")
            return {}
        file = Path(folder) / "people.parquet"
        with duckdb.connect() as engine:
            engine.execute(f"SET temp_directory = '{folder}/spill'")
            n_rows = engine.execute(f"COPY ({ROWS}) TO '{file}' (FORMAT parquet)", [n_households]).fetchall()[0][0]
        bare, ours = float("inf"), float("inf")
        for _ in range(1 if benchmarks.FULL else 3):
            start = time.perf_counter()
            with duckdb.connect() as engine:
                engine.execute(f"SET temp_directory = '{folder}/spill'")
                n_counts = len(engine.sql(BARE.format(file)).to_arrow_table())
            bare = min(bare, time.perf_counter() - start)
            start = time.perf_counter()
            counts = read(str(file), group="household", levels=LEVELS, root="US")
            ours = min(ours, time.perf_counter() - start)
        assert len(counts.leaf_counts.size) == n_counts
    figures = {
        "million rows": n_rows / 1e6,
        "read: seconds": ours,
        "bare DuckDB query: seconds": bare,
        "read / bare query": ours / bare,
        "peak memory in GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "load average": os.getloadavg()[0],
    }
    for name, figure in figures.items():
        print(f"   {name}: {figure:.2f}")
    return figures


if __name__ == "__main__":
    main()
