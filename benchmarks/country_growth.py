"""How the whole story of a country, from Parquet to a verified folder, grows with its regions:
exponents and a plot.

``python -m benchmarks --full country_growth`` takes countries of 10,000 to 8,100,000 blocks, each
in a process of its own.
"""

from pathlib import Path

import benchmarks
from benchmarks.country import measured
from benchmarks.growth import COSTS, Point, exponent, plot
from benchmarks.scale_data import Dials

PLOT = Path("bench-results/country_growth.svg")


def main() -> dict[str, float]:
    points: list[Point] = []
    for factor in (810, 100, 10, 1) if benchmarks.FULL else (810, 300, 100):
        found = measured(["smaller", str(factor)])
        n_blocks = (Dials().smaller(factor) if factor > 1 else Dials()).regions[-1]
        points.append(
            (n_blocks, found["CPU seconds"], 1_000 * found["peak memory in GB"], found["total"])
        )
        cost = ", ".join(
            f"{value:,.1f} {unit}" for value, unit in zip(points[-1][1:], ("CPU s", "MB", "s"))
        )
        print(f"   {n_blocks:,} blocks: {cost}", flush=True)
    PLOT.parent.mkdir(exist_ok=True)
    PLOT.write_text(plot({"regions, from Parquet to a verified folder": points}), encoding="utf-8")
    powers = {
        f"exponent of {what}": exponent(points, which) for which, what in enumerate(COSTS, start=1)
    }
    print("   " + ", ".join(f"{what} {power:.2f}" for what, power in powers.items()))
    costs = {
        f"{size:,.0f} blocks: {what}": value
        for size, *each in points
        for what, value in zip(COSTS, each)
    }
    return costs | powers
