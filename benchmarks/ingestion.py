"""From person rows in Parquet to exact counts with all checks, beside the bare DuckDB query: 300
million rows with ``--full``.

``python -m benchmarks.ingestion 30`` takes a thirtieth of them. The rows lie region by region as in
a census file, and once more in no order at all. Each measurement is a process of its own, so that
its peak memory is its own.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

import benchmarks
from benchmarks.scale_data import LEVEL_NAMES, Dials, scale_counts, write_people
from tallytree import read

# The least that any reader must do: no check, no order, no hierarchy.
BARE = """
    SELECT {levels}, size, count(*) AS n
    FROM (SELECT {levels}, household, count(*) AS size FROM read_parquet('{file}') GROUP BY ALL)
    GROUP BY ALL
"""
SHUFFLE = "COPY (FROM '{file}' ORDER BY hash(household, random())) TO '{to}' (FORMAT parquet, COMPRESSION zstd)"
LEAVES = ("county", "tract", "block")


def bare(file: Path, levels: Sequence[str]) -> int:
    with duckdb.connect() as engine:
        engine.execute(f"SET temp_directory = '{file.parent}/spill'")
        names = ", ".join(f'"{level}"' for level in levels)
        return len(engine.sql(BARE.format(levels=names, file=file)).to_arrow_table())


def ours(file: Path, levels: Sequence[str]) -> int:
    return len(
        read(file, group="household", levels=levels, root="US", public="groups").leaf_counts.size
    )


def one(side: str, file: str, leaf: str) -> dict[str, float]:
    """One measurement, after a small one that loads the libraries."""
    action: Callable[[Path, Sequence[str]], int] = {"bare": bare, "ours": ours}[side]
    read(pa.table({"g": [1], "r": ["a"]}), group="g", levels=["r"], public="groups")
    start, start_of_work = time.perf_counter(), time.process_time()
    n_counts = action(Path(file), LEVEL_NAMES[1 : LEVEL_NAMES.index(leaf) + 1])
    seconds, work = time.perf_counter() - start, time.process_time() - start_of_work
    return {
        "counts": n_counts,
        "seconds": seconds,
        "CPU seconds": work,
        "GB": benchmarks.peak_memory(),
    }


def measured(side: str, file: Path, leaf: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.ingestion", side, str(file), leaf]
    return dict(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))


def compare(file: Path, leaf: str, repeats: int) -> dict[str, float]:
    """Best seconds and largest memory of the bare query and of reading, taken in turns."""
    runs = [(measured("bare", file, leaf), measured("ours", file, leaf)) for _ in range(repeats)]
    assert len({side["counts"] for pair in runs for side in pair}) == 1
    figures = {}
    for name, sides in zip(("bare", "read"), zip(*runs)):
        figures |= {
            f"{name} {what}": min(side[what] for side in sides)
            for what in ("seconds", "CPU seconds")
        }
        figures[f"{name} peak memory in GB"] = max(side["GB"] for side in sides)
    figures["ratio"] = figures["read seconds"] / figures["bare seconds"]
    # What remains of the comparison where other programs are running.
    figures["ratio of CPU seconds"] = figures["read CPU seconds"] / figures["bare CPU seconds"]
    return figures


def write_rows(folder: Path, fewer: int, *, shuffled: bool) -> tuple[Path, int]:
    """The people of the country, or of so many times fewer blocks; the file and its number of rows."""
    file, moved = folder / "people.parquet", folder / "shuffled.parquet"
    n_rows = write_people(
        scale_counts(Dials() if fewer == 1 else Dials().fewer_blocks(fewer)), file
    )
    if shuffled:
        with duckdb.connect() as engine:
            engine.execute(f"SET temp_directory = '{folder}/spill'")
            engine.execute(SHUFFLE.format(file=file, to=moved))
    return (moved if shuffled else file), n_rows


def main(fewer: int | None = None) -> dict[str, float]:
    fewer = fewer or (1 if benchmarks.FULL else 60)
    figures: dict[str, float] = {"load average": os.getloadavg()[0]}
    # A tenth at most is shuffled: sorting all rows would take longer than everything else.
    for order, times_fewer in (("region by region", fewer), ("shuffled", max(fewer, 10))):
        with tempfile.TemporaryDirectory(prefix="tallytree-bench-") as folder:
            file, n_rows = write_rows(Path(folder), times_fewer, shuffled=order == "shuffled")
            for leaf in LEAVES:
                found = compare(file, leaf, repeats=1 if times_fewer == 1 else 3)
                name = f"{n_rows:,} rows {order}, {leaf} leaves"
                figures |= {f"{name}: {what}": value for what, value in found.items()}
                print(
                    f"   {name}: "
                    + ", ".join(f"{what} {value:.2f}" for what, value in found.items()),
                    flush=True,
                )
    return figures


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(one(*sys.argv[1:])))
    else:
        main(*map(int, sys.argv[1:]))
