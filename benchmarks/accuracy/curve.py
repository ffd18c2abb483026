"""Error and time of the default as functions of ε: no step of ε may cost more than the next smaller
one, but for noise.

    TALLYTREE_DATA=folder python -m benchmarks.accuracy.curve [--sets housing businesses "made-up
    zipf"] [--runs 8]

Prints one row per set and ε, then what stands out, and draws the curves.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from benchmarks.accuracy.data import data_sets
from benchmarks.accuracy.runs import RESULTS
from benchmarks.real_data import data_folder
from tallytree import ConfidentialCounts, evaluate, release

SETS = ("housing", "businesses", "made-up zipf")
EPSILONS = tuple(float(f"{epsilon:.3g}") for epsilon in np.geomspace(0.01, 1, 30))
# A step up in error, or a run slower than its neighbours, that noise does not explain.
RISE, SLOWER = 1.25, 3.0


def curve(counts: ConfidentialCounts, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean EMD per ε and level, and the processor seconds of every run per ε."""
    release(counts, epsilon=EPSILONS[0], insecure_seed=0)  # compiles
    errors, seconds = [], []
    for epsilon in EPSILONS:
        found, spent = [], []
        for seed in range(runs):
            begun = time.process_time()
            made = release(counts, epsilon=epsilon, insecure_seed=seed)
            spent.append(time.process_time() - begun)
            found.append([level.emd for level in evaluate(made, counts).levels])
        errors.append(np.mean(found, axis=0))
        seconds.append(spent)
    return np.array(errors), np.array(seconds)


def rises(errors: np.ndarray) -> list[tuple[float, int, float]]:
    """(ε, level, factor) where the error stands above the least one at any smaller ε."""
    least = np.minimum.accumulate(errors, axis=0)
    factor = errors[1:] / np.maximum(least[:-1], 1e-9)
    return [
        (EPSILONS[step + 1], int(level), float(factor[step, level]))
        for step, level in np.argwhere(factor > RISE)
    ]


def slow(seconds: np.ndarray) -> list[tuple[float, float]]:
    """(ε, factor) of runs that took several times the median of the runs at their and the
    neighbouring ε.
    """
    found = []
    for step, spent in enumerate(seconds):
        usual = np.median(seconds[max(step - 2, 0) : step + 3])
        if spent.max() > SLOWER * usual:
            found.append((EPSILONS[step], float(spent.max() / usual)))
    return found


def draw(curves: dict[str, tuple[np.ndarray, np.ndarray]], file: Path) -> None:
    """One panel per set: error against ε, both on log scales, one line per level, and the seconds
    below.
    """
    width, height, left, top = 270, 260, 50, 30

    def line(
        values: np.ndarray, low: float, high: float, x0: float, y0: float, tall: float, colour: str
    ) -> str:
        x = x0 + (width - left - 20) * np.log(np.array(EPSILONS) / EPSILONS[0]) / np.log(
            EPSILONS[-1] / EPSILONS[0]
        )
        y = y0 + tall * (1 - (np.log10(np.maximum(values, 1e-9)) - low) / max(high - low, 1e-9))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y))
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'

    size = f'width="{width * len(curves)}" height="{height + 90}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">'
    ]
    parts.append(f'<rect {size} fill="white"/>')
    for place, (name, (errors, seconds)) in enumerate(curves.items()):
        x0 = place * width + left
        low, high = np.floor(np.log10(errors.min())), np.ceil(np.log10(errors.max()))
        parts.append(f'<text x="{x0}" y="18">{name}: EMD, root dark, leaves light</text>')
        for decade in np.arange(low, high + 1):
            y = top + (height - top) * (1 - (decade - low) / (high - low))
            parts.append(
                f'<line x1="{x0}" x2="{x0 + width - left - 20}" y1="{y:.1f}" y2="{y:.1f}" '
                'stroke="#ddd"/>'
            )
            parts.append(
                f'<text x="{x0 - 4}" y="{y + 4:.1f}" text-anchor="end">{10.0**decade:g}</text>'
            )
        for level in range(errors.shape[1]):
            shade = int(20 + 170 * level / max(errors.shape[1] - 1, 1))
            parts.append(
                line(
                    errors[:, level], low, high, x0, top, height - top, f"rgb({shade},{shade},220)"
                )
            )
        spent = seconds.mean(axis=1)
        parts.append(
            line(
                spent,
                np.log10(spent.min()) - 0.3,
                np.log10(spent.max()) + 0.3,
                x0,
                height + 15,
                40,
                "#b50",
            )
        )
        parts.append(
            f'<text x="{x0}" y="{height + 14}">{spent.min():.2g} to {spent.max():.2g} processor '
            "seconds</text>"
        )
        parts.append(f'<text x="{x0}" y="{height + 80}">ε = {EPSILONS[0]:g}</text>')
        parts.append(
            f'<text x="{x0 + width - left - 20}" y="{height + 80}" '
            f'text-anchor="end">{EPSILONS[-1]:g}</text>'
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.curve", description=__doc__
    )
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--plot", type=Path, default=RESULTS / "curve.svg")
    given = parser.parse_args()
    curves = {}
    for name in given.sets:
        errors, seconds = curves[name] = curve(data_sets(data_folder())[name](), given.runs)
        for epsilon, error, spent in zip(EPSILONS, errors, seconds):
            print(
                f"| {name} | {epsilon:g} | {' / '.join(f'{e:.4g}' for e in error)} | "
                f"{spent.mean():.2f} s |",
                flush=True,
            )
        print(
            f"{name}: errors above a smaller ε's:",
            *(f"ε = {e:g}, level {n}: {f:.2f}" for e, n, f in rises(errors)),
        )
        print(f"{name}: slow runs:", *(f"ε = {e:g}: {f:.1f}" for e, f in slow(seconds)), flush=True)
    draw(curves, given.plot)


if __name__ == "__main__":
    main()
