"""The protocol of DPBench (Hay, Machanavajjhala, Miklau, Chen, Zhang 2016): shapes × scales ×
domain sizes, all methods, their regret.

A data set gives a shape; so many rows are drawn from it anew (``scale``) on a domain whose
neighbouring cells are put together. Lines are asked for all prefixes, maps for 2,000 random boxes.
The error is the root mean square over the queries, over the scale; DPBench prints that divided by
the root of the number of queries. The regret of a method in a cell is its error over that of the
best one. DPBench's figures have no numbers beside them, so no column of the paper is filled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from zlib import crc32

import numpy as np

from tallytree.boxes.answers import MapSurface
from tallytree.boxes.measure import measure_map
from tallytree.errors import StorageError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.box_tree import box_sums, prefix_sums
from tallytree.model.confidential import Confidential
from tallytree.model.confidential_grid import ConfidentialGrid, PublicGrid
from tallytree.options.histogram import HistogramOptions
from tallytree.options.maps import MethodOptions
from tallytree.papers.cells import Cell
from tallytree.papers.dpbench.made_up import made_up_lines, made_up_maps
from tallytree.papers.slides.reproduce import published_map
from tallytree.privacy.budget import Budget
from tallytree.privacy.randomness import KeyStream
from tallytree.ranges.publish import histogram
from tallytree.releases.progress import Progress, silent

EPSILONS = ("0.1", "1")
SCALES, QUICK_SCALES = (10**3, 10**4, 10**5, 10**6, 10**7), (10**3, 10**5)
BINS, QUICK_BINS = (256, 4096), (256,)
SIDES, QUICK_SIDES = (128, 256), (32,)
N_BOXES = 2000
# Strategies of histograms, which do not look at the data; and methods of maps, for one column and
# for two.
STRATEGIES = ("flat", "hierarchical", "wavelet")
LINE_METHODS = (
    "adaptive",
    "noisy-first",
    "noisy-merge",
    "structure-merge",
    "dawa",
    "privtree",
    "ahp",
)
MAP_METHODS = (
    "flat", "hierarchical", "uniform-grid", "adaptive-grid", "quad-opt", "kd-tree", "adaptive-tree", "dawa", "privtree", "ahp",
)  # fmt: skip
# Methods whose boxes and noise are fixed beforehand.
INDEPENDENT = ("flat", "hierarchical", "wavelet", "quad-opt")
SEEDS = "insecure seeds, others for every run, shape, domain, scale and epsilon"
CUTS = "1 run instead of 5, scales 10^3 and 10^5 of five, 256 bins and 32 x 32 cells of two sizes each, every sixth data set"
UNIT = "root mean squared error / N"


@dataclass(frozen=True, eq=False, repr=False)
class Sample(Confidential):
    """Rows drawn from a shape, with the queries that are asked and their true answers."""

    name: str
    grid: ConfidentialGrid
    scale: int
    low: IntArray
    high: IntArray
    counts: IntArray

    def error(self, cells: FloatArray) -> float:
        """Root mean squared error of the queries, over the scale, where cells hold these counts."""
        answers = box_sums(prefix_sums(cells), self.low, self.high)
        return float(np.sqrt(((answers - self.counts) ** 2).mean()) / self.scale)


def reproduce(
    *, data: Path | None = None, quick: bool = False, progress: Progress = silent
) -> list[Cell]:
    """All cells. ``data`` holds ``dpbench_1d`` and ``dpbench_2d``; without it made-up shapes stand
    in.
    """
    scales, runs = (QUICK_SCALES, 1) if quick else (SCALES, 5)
    lines, maps = shapes(data, 1, quick=quick), shapes(data, 2, quick=quick)
    work = [
        (name, shape, n) for name, shape in lines.items() for n in (QUICK_BINS if quick else BINS)
    ]
    work += [
        (name, shape, n) for name, shape in maps.items() for n in (QUICK_SIDES if quick else SIDES)
    ]
    cells: list[Cell] = []
    for number, (name, shape, n) in enumerate(work):
        progress(number, len(work), f"{name}, {domain_name((n,) * shape.ndim)}")
        for scale in scales:
            sample = sample_of(name, shape, n, scale)
            cells += [cell for epsilon in EPSILONS for cell in sample_cells(sample, epsilon, runs)]
    return cells + regret_cells(cells)


def shapes(data: Path | None, dimensions: int, *, quick: bool) -> dict[str, FloatArray]:
    """Shapes by name: every sixth of the folder's where it is to be quick."""
    step = 6 if quick else 1
    if data is None:
        return dict(list(made_up_lines() if dimensions == 1 else made_up_maps())[::step])
    file = data / f"dpbench_{dimensions}d" / f"dpbench_{dimensions}d.npz"
    if not file.is_file():
        raise StorageError(
            f"{file} is missing. Point --data at the folder that holds the data sets, or leave it "
            "out."
        )
    with np.load(file) as arrays:
        return {name: arrays[name].astype(np.float64) for name in list(arrays)[::step]}


def domain_name(domain: Sequence[int]) -> str:
    """256 bins, or 128 x 128 cells."""
    return f"{domain[0]} bins" if len(domain) == 1 else f"{' x '.join(map(str, domain))} cells"


def sample_of(name: str, shape: FloatArray, n: int, scale: int) -> Sample:
    """``scale`` rows drawn from a shape on n cells per dimension, and the queries; the same in
    every run.
    """
    rng = np.random.default_rng(scale + n)
    coarse = shape
    for axis in range(shape.ndim):
        coarse = np.add.reduceat(coarse, np.arange(n) * shape.shape[axis] // n, axis=axis)
    counts = rng.multinomial(scale, coarse.ravel() / coarse.sum()).reshape(coarse.shape)
    if counts.ndim == 1:
        low, high = np.zeros((n, 1), dtype=np.int64), np.arange(1, n + 1)[:, None]
    else:
        ends = np.sort(rng.integers(0, n + 1, size=(4 * N_BOXES, 2, 2)), axis=2)
        ends = ends[np.all(ends[:, :, 0] < ends[:, :, 1], axis=1)][:N_BOXES]
        low, high = ends[:, :, 0], ends[:, :, 1]
    box, columns = tuple((0.0, float(n)) for _ in counts.shape), ("x", "y")[: counts.ndim]
    grid = ConfidentialGrid(counts, PublicGrid(box, columns, counts.shape))
    return Sample(name, grid, scale, low, high, box_sums(grid.sums, low, high))


def histogram_cells(sample: Sample, strategy: str, epsilon: str, seed: int) -> FloatArray:
    """One run of a strategy of histograms: its published counts. ``auto`` is told what will be
    asked, as DAWA is in DPBench.
    """
    options = HistogramOptions(
        mechanism=strategy,  # type: ignore[arg-type]
        epsilon=epsilon,
        insecure_seed=seed,
        workload="prefixes" if strategy == "auto" else "ranges",
    )
    return histogram(None, options, counts=sample.grid.counts).counts.astype(np.float64)


def method_cells(sample: Sample, method: str, epsilon: str, seed: int) -> FloatArray:
    """One run of a method of maps: its published counts, spread over cells."""
    budget, stream = Budget("pure", Fraction(epsilon)), KeyStream.from_insecure_seed(seed)
    noisy = measure_map(sample.grid, budget, MethodOptions(mechanism=method), stream)  # type: ignore[arg-type]
    return MapSurface(published_map(noisy)).density


def runners(dimensions: int) -> Mapping[str, Callable[[Sample, str, str, int], FloatArray]]:
    """All methods, and how each is run."""
    if dimensions > 1:
        return dict.fromkeys(("auto", *MAP_METHODS), method_cells)
    return dict.fromkeys(("auto", *STRATEGIES), histogram_cells) | dict.fromkeys(
        LINE_METHODS, method_cells
    )


def sample_errors(sample: Sample, epsilon: str, runs: int) -> dict[str, list[float]]:
    """The error of every run of every method."""
    # Every sample has noise of its own: with the same seeds everywhere chance would favour the same
    # methods in all of them.
    first_seed = crc32(f"{sample.name}, {_table(sample, epsilon)}".encode())
    return {
        method: [
            sample.error(run(sample, method, epsilon, first_seed + number))
            for number in range(runs)
        ]
        for method, run in runners(sample.grid.counts.ndim).items()
    }


def sample_cells(sample: Sample, epsilon: str, runs: int) -> list[Cell]:
    """The mean error of every method."""
    return [
        Cell(_table(sample, epsilon), sample.name, method, None, float(np.mean(errors)), UNIT)
        for method, errors in sample_errors(sample, epsilon, runs).items()
    ]


def _table(sample: Sample, epsilon: str) -> str:
    return f"{domain_name(sample.grid.public.shape)}, epsilon {epsilon}, scale {sample.scale}"


def regret_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Geometric means over shapes of each method's regret, by scale; and how ``auto`` stands."""
    errors: dict[tuple[str, str], dict[str, float]] = {}
    for cell in cells:
        errors.setdefault((cell.table, cell.row), {})[cell.column] = cell.ours or math.inf
    regrets: dict[str, dict[str, dict[str, list[float]]]] = {}
    for (table, _), by_method in errors.items():
        setting, scale = table.split(", scale ")
        best = min(by_method.values())
        for method, error in by_method.items():
            regrets.setdefault(setting, {}).setdefault(method, {}).setdefault(scale, []).append(
                error / best
            )
    found = [
        Cell(
            f"Figure: regret, {setting}",
            method,
            f"scale = {scale}",
            None,
            _geometric(ratios),
            "error over the best",
        )
        for setting, by_method in regrets.items()
        for method, by_scale in by_method.items()
        for scale, ratios in by_scale.items()
    ]
    return found + summary_cells(errors)


def summary_cells(errors: Mapping[tuple[str, str], Mapping[str, float]]) -> list[Cell]:
    """``auto`` and ``adaptive`` against the best of the others, against ``dawa`` and against what
    does not look at the data.
    """
    found = []
    for kind, ours in (("bins", "auto"), ("bins", "adaptive"), ("cells", "auto")):
        rows = [by_method for (table, _), by_method in errors.items() if f" {kind}," in table]
        others = [
            [error for method, error in row.items() if method not in ("auto", "adaptive")]
            for row in rows
        ]
        best = [row[ours] / min(other) for row, other in zip(rows, others)]
        table = f"Summary, {ours}, {'lines' if kind == 'bins' else 'maps'}"
        fixed = [
            row[ours] / min(row[method] for method in INDEPENDENT if method in row) for row in rows
        ]
        found += [
            Cell(
                table,
                "over the best other method",
                "geometric mean",
                None,
                _geometric(best),
                "ratio",
            ),
            Cell(table, "over the best other method", "worst", None, max(best), "ratio"),
            Cell(
                table,
                "within 10 % of it",
                "all",
                None,
                float(np.mean(np.array(best) <= 1.1)),
                "share of cells",
            ),
            Cell(
                table,
                "over dawa",
                "geometric mean",
                None,
                _geometric([r[ours] / r["dawa"] for r in rows]),
                "ratio",
            ),
            Cell(
                table,
                "over the best that does not look",
                "geometric mean",
                None,
                _geometric(fixed),
                "ratio",
            ),
        ]
    return found


def _geometric(ratios: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-12)))))
