"""How time, CPU time and memory grow with groups, regions, sizes (K) and levels: fitted exponents,
and a plot for the docs.
"""

import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import benchmarks
from benchmarks.scale_data import Dials, scale_counts
from tallytree import ConfidentialCounts, release

PLOT = Path("bench-results/growth.svg")
BASE = Dials(regions=(1, 52, 800, 20_000), groups=2_000_000, quarters_per_million=200, outliers=5)
Point = tuple[float, float, float, float]
COSTS = ("CPU time", "memory", "time")


def by_groups(factor: int) -> tuple[float, ConfidentialCounts, dict[str, Any]]:
    n_groups = 4_000_000 * factor
    return (
        n_groups,
        scale_counts(replace(BASE, groups=n_groups, quarters_per_million=200 // factor)),
        benchmarks.default_options(),
    )


def by_regions(factor: int) -> tuple[float, ConfidentialCounts, dict[str, Any]]:
    regions = (1, 52, 800, 10_000 * factor)
    return (
        regions[-1],
        scale_counts(replace(BASE, regions=regions, groups=100 * regions[-1])),
        benchmarks.default_options(),
    )


def by_sizes(factor: int) -> tuple[float, ConfidentialCounts, dict[str, Any]]:
    small = Dials(regions=(1, 52, 800), groups=1_000_000, outliers=5)
    return (
        1_000 * factor,
        scale_counts(small),
        {"mechanism": "matching", "view": "cumulative", "max_size": 1_000 * factor},
    )


def by_levels(factor: int) -> tuple[float, ConfidentialCounts, dict[str, Any]]:
    n_levels = {1: 2, 2: 3, 4: 4, 8: 5}[factor]
    regions = (*(1, 20, 400, 4_000)[: n_levels - 1], 40_000)
    return n_levels, scale_counts(replace(BASE, regions=regions)), benchmarks.default_options()


DIMENSIONS: dict[str, Callable[[int], tuple[float, ConfidentialCounts, dict[str, Any]]]] = {
    "groups, at equal distinct sizes": by_groups,
    "regions": by_regions,
    "sizes (K of cumulative)": by_sizes,
    "levels": by_levels,
}


def measure(counts: ConfidentialCounts, options: dict[str, Any]) -> tuple[float, float, float]:
    """CPU seconds, the peak of memory in MB beside the counts themselves, and seconds."""
    _ = counts.counts_on_levels
    repeats = 5 if benchmarks.FULL else 3
    seconds, cpu_seconds = benchmarks.least_seconds(
        lambda: release(counts, epsilon=1, **options), repeats
    )
    tracemalloc.start()
    release(counts, epsilon=1, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return cpu_seconds, peak / 1e6, seconds


def exponent(points: list[Point], which: int) -> float:
    """Slope of log(cost) against log(size)."""
    table = np.log(np.array(points))
    return float(np.polyfit(table[:, 0], table[:, which], 1)[0])


def main() -> dict[str, float]:
    figures: dict[str, float] = {"load average": os.getloadavg()[0]}
    curves: dict[str, list[Point]] = {}
    for name, make in DIMENSIONS.items():
        points = []
        for factor in (1, 2, 4, 8):
            size, counts, options = make(factor)
            if factor == 1:
                release(counts, epsilon=1, **options)  # compiles the kernels
            points.append((size, *measure(counts, options)))
        curves[name] = points
        figures |= {
            f"{name}: exponent of CPU time": exponent(points, 1),
            f"{name}: exponent of memory": exponent(points, 2),
            f"{name}: exponent of time": exponent(points, 3),
        }
        costs = "; ".join(
            f"{size:,.0f}: {cpu:.2f} CPU s, {megabytes:.0f} MB"
            for size, cpu, megabytes, _ in points
        )
        powers = ", ".join(
            f"{what}^{exponent(points, which):.2f}" for which, what in enumerate(COSTS, start=1)
        )
        print(f"   {name}: {powers} ({costs})", flush=True)
    PLOT.parent.mkdir(exist_ok=True)
    PLOT.write_text(plot(curves), encoding="utf-8")
    return figures


WIDTH, HEIGHT, MARGIN = 330, 250, 46
COLOURS = ("#1f6f8b", "#c0562f")


def plot(curves: dict[str, list[Point]]) -> str:
    """One panel per dimension, both axes logarithmic: CPU time and memory over the smallest, dashes
    where cost = size.
    """
    panels = [
        f'<g transform="translate({WIDTH * (place % 2)},{HEIGHT * (place // 2)})">{panel(name, points)}</g>'
        for place, (name, points) in enumerate(curves.items())
    ]
    width, height = WIDTH * min(2, len(panels)), HEIGHT * -(-len(panels) // 2)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    style = 'font-family="sans-serif" font-size="11"'
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{ground}{"".join(panels)}</svg>\n'
    )


def panel(name: str, points: list[Point]) -> str:
    smallest, largest = points[0][0], points[-1][0]
    top = max(
        largest / smallest,
        *(p[1] / points[0][1] for p in points),
        *(p[2] / points[0][2] for p in points),
    )
    bottom = min(1.0, *(p[which] / points[0][which] for p in points for which in (1, 2)))

    def place(size: float, cost: float) -> str:
        x = MARGIN + (WIDTH - 2 * MARGIN) * np.log(size / smallest) / np.log(largest / smallest)
        y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * np.log(cost / bottom) / np.log(top / bottom)
        return f"{x:.1f},{y:.1f}"

    def line(costs: list[tuple[float, float]], style: str) -> str:
        return (
            f'<polyline fill="none" {style} points="{" ".join(place(*cost) for cost in costs)}"/>'
        )

    parts = [
        f'<text x="{MARGIN}" y="22" font-weight="bold">{name}</text>',
        line([(smallest, bottom), (largest, bottom)], 'stroke="#888888"'),
        line([(smallest, bottom), (smallest, top)], 'stroke="#888888"'),
        line(
            [(smallest, 1), (largest, largest / smallest)],
            'stroke="#888888" stroke-dasharray="4 4"',
        ),
    ]
    for which, (what, colour) in enumerate(zip(COSTS, COLOURS), start=1):
        costs = [(p[0], p[which] / points[0][which]) for p in points]
        parts.append(line(costs, f'stroke="{colour}" stroke-width="2"'))
        label = f"{what}: size to the power {exponent(points, which):.2f}"
        parts.append(f'<text x="{MARGIN + 8}" y="{26 + 15 * which}" fill="{colour}">{label}</text>')
    for size, anchor in ((smallest, "start"), (largest, "end")):
        x = place(size, bottom).split(",")[0]
        parts.append(
            f'<text x="{x}" y="{HEIGHT - MARGIN + 16}" text-anchor="{anchor}">{size:,.0f}</text>'
        )
    return "".join(parts)


if __name__ == "__main__":
    main()
