"""Exports of a release with many rows: CPU time and memory of each format."""

import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import benchmarks
from benchmarks.scale_data import Dials, scale_counts
from tallytree import export, release, with_intervals

# About 1.4 million rows; a cube and a workbook hold fewer.
LARGE = Dials(regions=(1, 52, 3_000, 225_000), groups=9_000_000, largest=500)
SMALL = replace(LARGE, regions=(1, 52, 3_000, 54_000), groups=2_160_000)
FORMATS = {
    "csv": LARGE,
    "parquet": LARGE,
    "frictionless": LARGE,
    "xlsx": SMALL,
    "json-stat": SMALL,
}


def main() -> dict[str, float]:
    figures: dict[str, float] = {}
    made = {}
    for dials in {LARGE, SMALL}:
        dials_here = dials if benchmarks.FULL else dials.fewer_blocks(10)
        published = release(scale_counts(dials_here), epsilon=1, insecure_seed=1)
        made[dials] = with_intervals(published, copies=2)
    with tempfile.TemporaryDirectory() as folder:
        for name, dials in FORMATS.items():
            table, out = made[dials].table(), Path(folder) / name

            def write(out: Path = out, name: str = name, dials: Dials = dials) -> None:
                export(made[dials], out=str(out), format=name, overwrite=True)

            write()
            _, cpu = benchmarks.least_seconds(write, 5)
            tracemalloc.start()
            write()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            figures |= {
                f"{name}: CPU seconds": cpu,
                f"{name}: rows": float(len(table)),
                f"{name}: MB of Python and NumPy at the peak": peak / 1e6,
            }
            print(
                f"   {name}, {len(table):,} rows: {cpu:.2f} s of CPU time, "
                f"{1e6 * cpu / len(table):.2f} µs per row, {peak / 1e6:.0f} MB",
                flush=True,
            )
    return figures


if __name__ == "__main__":
    main()
