"""Tables and a plot from the kept runs."""

from pathlib import Path

import numpy as np
import pyarrow.dataset as ds

from benchmarks.accuracy.runs import METHODS, RESULTS

BASELINES = ("kuo2018", "bottom-up")
TIGHT_BASELINES = ("kuo2018, tight bound", "bottom-up, tight bound")


# Mean EMD per level, its standard error, the number of runs.
Found = tuple[np.ndarray, np.ndarray, int]


def means() -> dict[tuple[str, str, str], Found]:
    """Mean EMD per level, its standard error and the number of runs, by (data, method, ε)."""
    table = (
        ds.dataset(sorted(map(str, RESULTS.rglob("*.parquet"))), format="parquet")
        .to_table()
        .to_pylist()
    )
    runs: dict[tuple[str, str, str], dict[int, dict[int, float]]] = {}
    for row in table:
        key = row["data"], row["method"], row["epsilon"]
        runs.setdefault(key, {}).setdefault(row["seed"], {})[row["level"]] = row["emd"]
        runs.setdefault((row["data"], "omniscient", row["epsilon"]), {}).setdefault(
            row["seed"], {}
        )[row["level"]] = row["omniscient"]
    found = {}
    for key, by_seed in runs.items():
        errors = np.array(
            [[levels[level] for level in sorted(levels)] for levels in by_seed.values()]
        )
        n_runs = len(errors)
        found[key] = errors.mean(axis=0), errors.std(axis=0) / max(n_runs - 1, 1) ** 0.5, n_runs
    return found


def markdown() -> str:
    """One row per data set and ε, one column per method: EMD per level, root first."""
    found = means()
    methods = [
        *(method for method in METHODS if any(key[1] == method for key in found)),
        "omniscient",
    ]
    lines = ["| data | ε | " + " | ".join(methods) + " |", "| --- " * (len(methods) + 2) + "|"]
    for data, epsilon in sorted(
        {(key[0], key[2]) for key in found}, key=lambda key: (key[0], -float(key[1]))
    ):
        cells = [found.get((data, method, epsilon)) for method in methods]
        texts = [
            "–" if cell is None else " / ".join(f"{error:.4g}" for error in cell[0])
            for cell in cells
        ]
        lines.append(f"| {data} | {epsilon} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def summary(method: str = "default", baselines: tuple[str, ...] = BASELINES) -> str:
    """How a method compares with the best of some baselines, ε by ε, over all cells (data set and
    level).
    """
    found = means()
    lines = []
    for epsilon in sorted({key[2] for key in found}, key=float, reverse=True):
        cells = [
            cell
            for data in sorted({key[0] for key in found})
            if all((data, name, epsilon) in found for name in (method, *baselines))
            for cell in _ratios(
                data,
                found[data, method, epsilon],
                [found[data, name, epsilon] for name in baselines],
            )
        ]
        if cells:
            ratios, halves = np.array([cell[1] for cell in cells]), sum(cell[3] for cell in cells)
            # An error of 0 is as good as a thousandth of the baseline's.
            mean = np.exp(np.log(np.maximum(ratios, 1e-3)).mean())
            behind = [
                f"  {name}: {ratio:.2f} (± {spread:.2f})"
                for name, ratio, spread, _ in cells
                if ratio > 1.05
            ]
            lines += [
                f"{method}, ε = {epsilon}, beside the best of {' and '.join(baselines)}: "
                f"{len(cells)} cells, geometric mean"
                f" {mean:.3f}, {100 * halves / len(cells):.1f} % at or below half of "
                f"{baselines[0]},"
                f" {100 * len(behind) / len(cells):.1f} % more than 5 % behind:",
                *behind,
            ]
    return "\n".join(lines)


def _ratios(data: str, own: Found, others: list[Found]) -> list[tuple[str, float, float, bool]]:
    """Per level: name, error relative to the best other's, its standard error, whether it is half
    the first's.
    """
    cells = []
    for level, (error, spread) in enumerate(zip(own[0], own[1])):
        best = min(others, key=lambda other: other[0][level])
        least, its_spread = max(best[0][level], 1e-9), best[1][level]
        ratio = error / least
        unsure = np.hypot(spread, ratio * its_spread) / least
        cells.append((f"{data}, level {level}", ratio, unsure, error <= others[0][0][level] / 2))
    return cells


def plot(file: Path) -> None:
    """Error of the default relative to the better baseline with a tight bound: a dot per level, a
    row per data set and ε.
    """
    found = means()
    rows = []
    for (data, method, epsilon), (errors, _, _) in sorted(found.items()):
        if method == "default" and all(
            (data, baseline, epsilon) in found for baseline in TIGHT_BASELINES
        ):
            best = np.minimum(*(found[data, baseline, epsilon][0] for baseline in TIGHT_BASELINES))
            rows.append((f"{data}, ε = {epsilon}", errors / best))
    left, width, step = 230, 420, 20
    height = 50 + step * len(rows)

    def x(ratio: float) -> float:
        return left + width * (np.log10(np.clip(ratio, 0.01, 10)) + 2) / 3

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 20}" height="{height}"',
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{left + width + 20}" height="{height}" fill="white"/>',
        '<text x="10" y="16">Error of the default, relative to the better tight baseline; root '
        "dark, leaves light</text>",
    ]
    for tick in (0.01, 0.1, 0.5, 1, 10):
        parts.append(
            f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="28" y2="{height - 16}" '
            'stroke="#ccc"/>'
        )
        parts.append(
            f'<text x="{x(tick):.1f}" y="{height - 4}" text-anchor="middle">{tick:g}</text>'
        )
    for place, (label, ratios) in enumerate(rows):
        y = 38 + step * place
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{label}</text>')
        for level, ratio in enumerate(ratios):
            shade = int(20 + 170 * level / max(len(ratios) - 1, 1))
            parts.append(
                f'<circle cx="{x(ratio):.1f}" cy="{y}" r="5" fill="rgb({shade},{shade},220)"/>'
            )
    file.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
