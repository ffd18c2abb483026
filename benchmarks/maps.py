"""Maps: the error of ``auto`` beside every named method, on made-up maps and on those of DPBench,
at several scales.

``python -m benchmarks.maps`` prints, per kind of data, how often ``auto`` is near the best named
one of a cell (data, scale, ε) and the geometric mean of its ratio. Made-up maps in ``HELD_OUT``
were not looked at while the method's constants were chosen. DPBench's maps are taken from the
folder that TALLYTREE_DATA names.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import benchmarks
from tallytree import spatial

SIDE = 256
N_BOXES = 2000
METHODS = (
    "flat",
    "hierarchical",
    "uniform-grid",
    "adaptive-grid",
    "quadtree",
    "quad-opt",
    "kd-hybrid",
    "adaptive-tree",
)

Points = Callable[[np.random.Generator, int], np.ndarray]


def even(rng: np.random.Generator, n: int) -> np.ndarray:
    """Evenly spread."""
    return rng.random((n, 2))


def towns(rng: np.random.Generator, n: int) -> np.ndarray:
    """Twelve towns of different size and density."""
    centre, width = rng.random((12, 2)), rng.uniform(0.01, 0.1, 12)
    town = rng.choice(12, n, p=rng.dirichlet(np.ones(12)))
    return centre[town] + width[town, None] * rng.normal(size=(n, 2))


def roads(rng: np.random.Generator, n: int) -> np.ndarray:
    """Thirty straight roads."""
    begin, end = rng.random((30, 2)), rng.random((30, 2))
    road, along = rng.choice(30, n, p=rng.dirichlet(np.ones(30))), rng.random((n, 1))
    return begin[road] * (1 - along) + end[road] * along + 0.003 * rng.normal(size=(n, 2))


def scattered(rng: np.random.Generator, n: int) -> np.ndarray:
    """Cells in random order whose counts follow Zipf's law."""
    weight = 1 / np.arange(1, SIDE**2 + 1) ** 1.1
    cell = rng.permutation(SIDE**2)[rng.choice(SIDE**2, n, p=weight / weight.sum())]
    return (np.stack([cell // SIDE, cell % SIDE], axis=1) + 0.5) / SIDE


def coast(rng: np.random.Generator, n: int) -> np.ndarray:
    """Even land up to a winding coast."""
    x, y = rng.random(4 * n), rng.random(4 * n)
    return np.stack([x, y], axis=1)[y < 0.5 + 0.2 * np.sin(6 * x) + 0.05 * np.sin(23 * x)][:n]


def blocks(rng: np.random.Generator, n: int) -> np.ndarray:
    """City blocks of different density with empty streets between them."""
    weight = rng.gamma(0.3, size=256)
    block = rng.choice(256, n, p=weight / weight.sum())
    return (np.stack([block // 16, block % 16], axis=1) + 0.1 + 0.8 * rng.random((n, 2))) / 16


def slope(rng: np.random.Generator, n: int) -> np.ndarray:
    """A density that changes slowly."""
    return np.stack([np.sqrt(rng.random(n)), rng.beta(2, 5, n)], axis=1)


def rings(rng: np.random.Generator, n: int) -> np.ndarray:
    """Three rings around one centre."""
    radius, angle = (
        rng.choice([0.12, 0.25, 0.42], n) + 0.01 * rng.normal(size=n),
        rng.random(n) * 2 * np.pi,
    )
    return 0.5 + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def villages(rng: np.random.Generator, n: int) -> np.ndarray:
    """Four hundred small villages."""
    village = rng.choice(400, n, p=rng.dirichlet(np.full(400, 0.5)))
    return rng.random((400, 2))[village] + 0.004 * rng.normal(size=(n, 2))


def valley(rng: np.random.Generator, n: int) -> np.ndarray:
    """A wide band across the map over thin even land."""
    x = rng.random(n)
    return np.stack(
        [
            x,
            np.where(rng.random(n) < 0.2, rng.random(n), 0.8 * x + 0.1 + 0.05 * rng.normal(size=n)),
        ],
        axis=1,
    )


def chessboard(rng: np.random.Generator, n: int) -> np.ndarray:
    """Even points on the black fields of a chessboard."""
    field = rng.integers(0, 32, n)
    row, place = field // 4, field % 4
    return (np.stack([row, 2 * place + row % 2], axis=1) + rng.random((n, 2))) / 8


def corner(rng: np.random.Generator, n: int) -> np.ndarray:
    """Half of the points in a corner, the others even."""
    return rng.random((n, 2)) * np.where(rng.random((n, 1)) < 0.5, 0.03, 1.0)


def lakes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Even land with eight round lakes."""
    points, centre, radius = rng.random((4 * n, 2)), rng.random((8, 2)), rng.uniform(0.05, 0.2, 8)
    away = ((points[:, None, :] - centre) ** 2).sum(axis=2) > radius**2
    return points[away.all(axis=1)][:n]


LOOKED_AT: tuple[Points, ...] = (even, towns, roads, scattered, coast, blocks, slope)
HELD_OUT: tuple[Points, ...] = (rings, villages, valley, chessboard, corner, lakes)


def counted(points: np.ndarray) -> np.ndarray:
    """Points of the unit square on the grid."""
    cell = (np.clip(points, 0, 1 - 1e-9) * SIDE).astype(np.int64)
    return np.bincount(cell[:, 0] * SIDE + cell[:, 1], minlength=SIDE**2).reshape(SIDE, SIDE)


def maps_at(scale: int) -> Iterator[tuple[str, str, np.ndarray]]:
    """Kind of data, name and grid of every map with about ``scale`` points."""
    for kind, shapes in (("made up, looked at", LOOKED_AT), ("made up, held out", HELD_OUT)):
        for shape in shapes:
            yield kind, shape.__name__, counted(shape(np.random.default_rng(7), scale))
    folder = os.environ.get("TALLYTREE_DATA")
    if folder:
        with np.load(Path(folder) / "dpbench_2d" / "dpbench_2d.npz") as grids:
            for name in grids.files:
                shares = grids[name].ravel() / grids[name].sum()
                drawn = np.random.default_rng(7).multinomial(scale, shares)
                yield "DPBench", name, drawn.reshape(SIDE, SIDE)


def error(grid: np.ndarray, method: str, epsilon: float, runs: int) -> float:
    """Mean absolute error of random boxes."""
    rng = np.random.default_rng(11)
    ends = np.sort(rng.integers(0, SIDE + 1, (N_BOXES, 2, 2)), axis=2)
    ends[:, :, 1] += ends[:, :, 0] == ends[:, :, 1]
    ends -= ends[:, :, 1:] > SIDE
    truth = answers(grid, ends)
    box = [(0, SIDE), (0, SIDE)]
    made = (
        spatial(counts=grid, box=box, epsilon=epsilon, mechanism=method, insecure_seed=run)
        for run in range(runs)
    )
    return float(
        np.mean([np.abs(answers(one.surface.density, ends) - truth).mean() for one in made])
    )


def answers(density: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Sums over boxes of cells."""
    sums = np.zeros((SIDE + 1, SIDE + 1))
    sums[1:, 1:] = density.cumsum(axis=0).cumsum(axis=1)
    (a, b), (c, d) = ends[:, 0].T, ends[:, 1].T
    return sums[b, d] - sums[a, d] - sums[b, c] + sums[a, c]


def main() -> dict[str, object]:
    scales, runs = ((1_000, 10_000, 100_000, 1_000_000), 3) if benchmarks.FULL else ((10_000,), 1)
    found: dict[str, list[tuple[str, int, float, float, str]]] = {}
    for scale in scales:
        for kind, name, grid in maps_at(scale):
            for epsilon in (0.1, 1.0):
                named = {method: error(grid, method, epsilon, runs) for method in METHODS}
                best = min(named, key=lambda method: named[method])
                ratio = error(grid, "auto", epsilon, runs) / named[best]
                found.setdefault(kind, []).append((name, scale, epsilon, ratio, best))
                print(
                    f"   {kind}: {name}, {scale:,} points, ε = {epsilon:g}: {ratio:.2f} × {best}",
                    flush=True,
                )
    for kind, cells in found.items():
        ratios = np.array([cell[3] for cell in cells])
        print(
            f"{kind}: {len(cells)} cells, geometric mean {np.exp(np.log(ratios).mean()):.2f}, "
            f"largest {ratios.max():.2f}, "
            f"within 10 % of the best {np.mean(ratios <= 1.1):.0%}, above 1.3 × "
            f"{np.mean(ratios > 1.3):.0%}"
        )
    return {"cells": found}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all scales, three runs")
    benchmarks.FULL = parser.parse_args().full
    main()
