"""Tables and a plot from the kept runs."""

from pathlib import Path

import numpy as np
import pyarrow.dataset as ds

from benchmarks.accuracy.runs import METHODS, RESULTS

BASELINES = ("kuo2018", "bottom-up")
TIGHT_BASELINES = ("kuo2018, tight bound", "bottom-up, tight bound")


def means() -> dict[tuple[str, str, str], tuple[np.ndarray, np.ndarray, int]]:
    """Mean EMD per level, its standard error and the number of runs, by (data, method, ε)."""
    table = ds.dataset(sorted(map(str, RESULTS.rglob("*.parquet"))), format="parquet").to_table().to_pylist()
    runs: dict[tuple[str, str, str], dict[int, dict[int, float]]] = {}
    for row in table:
        key = row["data"], row["method"], row["epsilon"]
        runs.setdefault(key, {}).setdefault(row["seed"], {})[row["level"]] = row["emd"]
        runs.setdefault((row["data"], "omniscient", row["epsilon"]), {}).setdefault(row["seed"], {})[row["level"]] = (
            row["omniscient"]
        )
    found = {}
    for key, by_seed in runs.items():
        errors = np.array([[levels[level] for level in sorted(levels)] for levels in by_seed.values()])
        n_runs = len(errors)
        found[key] = errors.mean(axis=0), errors.std(axis=0) / max(n_runs - 1, 1) ** 0.5, n_runs
    return found


def markdown() -> str:
    """One row per data set and ε, one column per method: EMD per level, root first."""
    found = means()
    methods = [*(method for method in METHODS if any(key[1] == method for key in found)), "omniscient"]
    lines = ["| data | ε | " + " | ".join(methods) + " |", "| --- " * (len(methods) + 2) + "|"]
    for data, epsilon in sorted({(key[0], key[2]) for key in found}, key=lambda key: (key[0], -float(key[1]))):
        cells = [found.get((data, method, epsilon)) for method in methods]
        texts = ["–" if cell is None else " / ".join(f"{error:.4g}" for error in cell[0]) for cell in cells]
        lines.append(f"| {data} | {epsilon} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def summary(baselines: tuple[str, str] = BASELINES) -> str:
    """How the default compares with two baselines, cell by cell (data set, level, ε)."""
    found = means()
    halves, behind, cells = 0, [], 0
    for (data, method, epsilon), (errors, spread, _) in found.items():
        if method != "default" or not all((data, baseline, epsilon) in found for baseline in baselines):
            continue
        kuo2018, bottom_up = (found[data, baseline, epsilon][0] for baseline in baselines)
        best = np.minimum(kuo2018, bottom_up)
        cells += len(errors)
        halves += int((errors <= kuo2018 / 2).sum())
        behind += [
            f"{data}, ε = {epsilon}, level {level}: {errors[level] / best[level]:.2f} (± {spread[level] / best[level]:.2f})"
            for level in np.flatnonzero(errors > 1.05 * best)
        ]
    return "\n".join(
        [
            f"{halves} of {cells} cells at or below half of {baselines[0]}.",
            f"{len(behind)} more than 5 % above the better baseline:",
            *behind,
        ]
    )


def plot(file: Path) -> None:
    """Error of the default relative to the better baseline with a tight bound: a dot per level, a row per data set and ε."""
    found = means()
    rows = []
    for (data, method, epsilon), (errors, _, _) in sorted(found.items()):
        if method == "default" and all((data, baseline, epsilon) in found for baseline in TIGHT_BASELINES):
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
        '<text x="10" y="16">Error of the default, relative to the better tight baseline; root dark, leaves light</text>',
    ]
    for tick in (0.01, 0.1, 0.5, 1, 10):
        parts.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="28" y2="{height - 16}" stroke="#ccc"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{height - 4}" text-anchor="middle">{tick:g}</text>')
    for place, (label, ratios) in enumerate(rows):
        y = 38 + step * place
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{label}</text>')
        for level, ratio in enumerate(ratios):
            shade = int(20 + 170 * level / max(len(ratios) - 1, 1))
            parts.append(f'<circle cx="{x(ratio):.1f}" cy="{y}" r="5" fill="rgb({shade},{shade},220)"/>')
    file.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
