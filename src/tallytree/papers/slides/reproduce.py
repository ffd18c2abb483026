"""The second half of the slides, "Lacking Suitable Partitioning", measured: they print no figures,
so all cells are ours; their formulas are in :mod:`tallytree.papers.slides.formulas`.

Maps: error of random boxes over the data sets of DPBench, |answer − truth| / N on average. Every
method is evaluated twice from the same noisy counts: as the slides have it, by least squares alone,
and as we publish it, nonnegative too. ``auto`` is always as published. The ablations also make
every method nonnegative the way ``adaptive-tree`` is. Lines: mean squared error per bin of merged
bins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from tallytree.boxes.answers import MapSurface
from tallytree.boxes.draft import combine_measurements
from tallytree.boxes.estimates import MapEstimates, estimate_map
from tallytree.boxes.kernels.trees import fewest_boxes
from tallytree.boxes.measure import NoisyMap, measure_map
from tallytree.boxes.methods import NAMES, method_named
from tallytree.errors import StorageError
from tallytree.ingest.grids import bin_points
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.box_tree import box_sums
from tallytree.model.confidential import Confidential
from tallytree.model.confidential_grid import ConfidentialGrid, PublicGrid
from tallytree.model.frame import Frame
from tallytree.options.maps import MethodOptions
from tallytree.papers.cells import Cell, mean_of_runs, ratio_of_means
from tallytree.papers.slides.formulas import formula_cells
from tallytree.privacy.budget import Budget
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.progress import Progress, silent

EPSILONS = ("0.01", "0.1", "1")
NAMED = (
    "flat", "hierarchical", "uniform-grid", "adaptive-grid", "quadtree", "quad-opt", "kd-tree", "kd-hybrid",
)  # fmt: skip
CUTS = "2 runs instead of 20, four maps instead of all ten"
N_BOXES = 2000
# The exact program behind structure-first takes cubic time: all four ways to merge bins are
# compared on fewer bins.
N_BINS, FEWER_BINS = 4096, 1024
PRUNE = 32.0
UNIT = "mean |error| / N"
ABLATION_SETS = ("STROKE", "TWITTER", "SF-CABS-S", "GOWALLA")


@dataclass(frozen=True, eq=False, repr=False)
class Truth(Confidential):
    """A data set with its random boxes and their true counts."""

    name: str
    grid: ConfidentialGrid
    low: IntArray
    high: IntArray
    counts: IntArray

    def error(self, answers: FloatArray) -> float:
        """Mean scaled error of answers to the boxes."""
        return float(np.abs(answers - self.counts).mean() / max(1, int(self.grid.counts.sum())))


def reproduce(
    *, data: Path | None = None, quick: bool = False, progress: Progress = silent
) -> list[Cell]:
    """All cells. ``data`` holds ``dpbench_2d`` and ``dpbench_1d``; without it synthetic sets stand
    in.
    """
    runs = 2 if quick else 20
    truths = [truth_of(name, counts) for name, counts in maps(data, quick=quick).items()]
    lines_of_data = lines(data)
    total = len(EPSILONS) * len(truths) + 2
    cells: list[Cell] = []
    for number, epsilon in enumerate(EPSILONS):
        for place, truth in enumerate(truths):
            progress(number * len(truths) + place, total, f"{truth.name}, epsilon {epsilon}")
            cells += map_cells(truth, epsilon, runs)
    progress(total - 2, total, "ablations")
    chosen = [truth for truth in truths if truth.name in ABLATION_SETS] or truths[:1]
    cells += [
        cell
        for truth in chosen
        for epsilon in EPSILONS
        for cell in ablation_cells(truth, epsilon, runs)
    ]
    progress(total - 1, total, "merged bins")
    for name, counts in lines_of_data.items():
        cells += [cell for epsilon in EPSILONS for cell in line_cells(name, counts, epsilon, runs)]
    merging = [name for name in NAMES if method_named(name).one_column]
    for name, counts in lines(data, FEWER_BINS).items():
        cells += [
            cell
            for epsilon in EPSILONS
            for cell in line_cells(
                name,
                counts,
                epsilon,
                runs,
                methods=merging,
            )
        ]
    return cells + summary_cells(cells) + formula_cells(lines_of_data, runs)


def maps(data: Path | None, *, quick: bool) -> dict[str, IntArray]:
    """Two-dimensional data sets by name."""
    if data is None:
        return {"two towns (synthetic)": two_towns()}
    file = data / "dpbench_2d" / "dpbench_2d.npz"
    if not file.is_file():
        raise StorageError(
            f"{file} is missing. Point --data at the folder that holds the data sets, or leave it "
            "out."
        )
    with np.load(file) as arrays:
        names = [name for name in arrays if not quick or name in ABLATION_SETS]
        return {name: arrays[name].astype(np.int64) for name in names}


def two_towns() -> IntArray:
    """A made-up map: two towns and scattered points."""
    rng = np.random.default_rng(1)
    towns = [
        rng.normal(centre, spread, size=(n, 2))
        for centre, spread, n in [(80, 6, 20_000), (170, 15, 15_000)]
    ]
    points = np.concatenate([*towns, rng.uniform(0, 256, size=(5000, 2))])
    return bin_points(list(points.clip(0, 256).T), Frame(((0.0, 256.0),) * 2, (256, 256))).settle(
        "error"
    )


def lines(data: Path | None, n_bins: int = N_BINS) -> dict[str, IntArray]:
    """One-dimensional data sets: two made of steps, and two real ones where there is data."""
    rng = np.random.default_rng(3)
    edges = np.concatenate(
        [[0], np.sort(rng.choice(np.arange(1, n_bins), 24, replace=False)), [n_bins]]
    )
    found = {
        f"25 steps up to {top:,} (synthetic)": np.repeat(
            rng.integers(0, top, size=25), np.diff(edges)
        )
        for top in (2000, 200)
    }
    if data is not None:
        with np.load(data / "dpbench_1d" / "dpbench_1d.npz") as arrays:
            found |= {
                name: arrays[name].astype(np.int64).reshape(n_bins, -1).sum(axis=1)
                for name in ("HEPTH", "SEARCHLOGS")
            }
    return found


def truth_of(name: str, counts: IntArray) -> Truth:
    """The data set with boxes whose ends are drawn evenly from the grid lines."""
    rng = np.random.default_rng(1)
    ends = [np.sort(rng.integers(0, n + 1, size=(4 * N_BOXES, 2)), axis=1) for n in counts.shape]
    fits = np.all([pair[:, 0] < pair[:, 1] for pair in ends], axis=0)
    low, high = (np.stack([pair[fits, end][:N_BOXES] for pair in ends], axis=1) for end in (0, 1))
    box, columns = tuple((0.0, float(n)) for n in counts.shape), ("x", "y")[: counts.ndim]
    grid = ConfidentialGrid(counts, PublicGrid(box, columns, counts.shape))
    return Truth(name, grid, low, high, box_sums(grid.sums, low, high))


def measured(truth: Truth, options: MethodOptions, epsilon: str, seed: int) -> NoisyMap:
    """One run of a method."""
    return measure_map(
        truth.grid, Budget("pure", Fraction(epsilon)), options, KeyStream.from_insecure_seed(seed)
    )


def published_map(noisy: NoisyMap) -> MapEstimates:
    """The map as it is published: nonnegative and whole, in the way of its method."""
    values, variances = combine_measurements(noisy.tree.n_nodes, list(noisy.measurements))
    method = method_named(noisy.method)
    cells = None
    if method.clusters is not None:
        cells = method.clusters.cells(noisy.tree, noisy.measurements, nonnegative=True)
    return estimate_map(
        noisy.tree,
        values,
        variances,
        leaves=noisy.leaves,
        sparse=method.sparse,
        smoothed=method.smoothed,
        clustered=cells,
    )


def box_error(
    truth: Truth,
    noisy: NoisyMap,
    *,
    nonnegative: bool,
    prune: float | None = None,
    sparse: bool | None = None,
) -> float:
    """Error after constrained inference; ``sparse`` where that is not left to the method."""
    values, variances = combine_measurements(noisy.tree.n_nodes, list(noisy.measurements))
    estimates = estimate_map(
        noisy.tree,
        values,
        variances,
        leaves=noisy.leaves,
        prune=prune,
        nonnegative=nonnegative,
        integers=nonnegative,
        sparse=method_named(noisy.method).sparse if sparse is None else sparse,
        smoothed=sparse is None and method_named(noisy.method).smoothed,
    )
    return truth.error(
        MapSurface(estimates).answer(truth.low.astype(float), truth.high.astype(float))
    )


def map_cells(truth: Truth, epsilon: str, runs: int) -> list[Cell]:
    """All named methods and ``auto`` on one data set, and ``auto`` over the best of them."""
    cells, found = [], {}
    rules = {"least squares": False, "nonnegative": True}
    for method in NAMED:
        options = MethodOptions(mechanism=method)  # type: ignore[arg-type]
        noisy = [measured(truth, options, epsilon, seed) for seed in range(runs)]
        for rule, nonnegative in rules.items():
            errors = [box_error(truth, one, nonnegative=nonnegative) for one in noisy]
            found[method, rule] = errors
            cells.append(mean_cell(f"Boxes, epsilon {epsilon}, {rule}", truth.name, method, errors))
    automatic = [
        box_error(truth, measured(truth, MethodOptions(), epsilon, seed), nonnegative=True)
        for seed in range(runs)
    ]
    for rule in rules:
        table = f"Boxes, epsilon {epsilon}, {rule}"
        cells.append(mean_cell(table, truth.name, "auto", automatic))
    best = min(found.values(), key=sum)
    ratio, spread = ratio_of_means(automatic, best)
    table, column = "auto over the best named method", f"epsilon {epsilon}"
    cells.append(Cell(table, truth.name, column, None, ratio, "ratio", spread))
    return cells


def mean_cell(table: str, row: str, column: str, values: Sequence[float], unit: str = UNIT) -> Cell:
    """A mean of runs with its spread; the slides print nothing."""
    mean, spread = mean_of_runs(values)
    return Cell(table, row, column, None, mean, unit, spread)


def ablation_cells(truth: Truth, epsilon: str, runs: int) -> list[Cell]:
    """Budgets, medians, inference and pruning, each on and off."""

    def without_inference(noisy: NoisyMap) -> float:
        values, variances = combine_measurements(noisy.tree.n_nodes, list(noisy.measurements))
        low, high = truth.low.astype(float), truth.high.astype(float)
        return truth.error(fewest_boxes(noisy.tree, values, variances, low, high)[0])

    ways: Mapping[str, Callable[[NoisyMap], float]] = {
        "no inference": without_inference,
        "least squares": lambda noisy: box_error(truth, noisy, nonnegative=False),
        f"pruned at {PRUNE:g}": lambda noisy: box_error(
            truth, noisy, nonnegative=False, prune=PRUNE
        ),
        "nonnegative": lambda noisy: box_error(truth, noisy, nonnegative=True, sparse=False),
        "sparse": lambda noisy: box_error(truth, noisy, nonnegative=True, sparse=True),
    }
    table = f"Ablation, {truth.name}, epsilon {epsilon}"
    cells = []
    for method in (
        "quadtree",
        "quad-opt",
        "kd-tree",
        "kd-hybrid",
        "adaptive-grid",
        "adaptive-tree",
    ):
        noisy = [
            measured(truth, MethodOptions(mechanism=method), epsilon, seed) for seed in range(runs)
        ]
        for way, error in ways.items():
            cells.append(mean_cell(table, method, way, [error(one) for one in noisy]))
    return cells


def line_cells(
    name: str,
    counts: IntArray,
    epsilon: str,
    runs: int,
    methods: Sequence[str] = ("noisy-merge", "structure-merge"),
) -> list[Cell]:
    """Merged bins against single ones: mean squared error per bin."""
    truth = truth_of(name, counts)
    flat = float(np.exp(-float(epsilon)))
    table = f"Merged bins, {len(counts):,} of them, epsilon {epsilon}"
    cells = [
        Cell(table, name, "flat (exact)", None, 2 * flat / (1 - flat) ** 2, "mean squared error")
    ]
    for method in methods:
        errors = []
        for seed in range(runs):
            noisy = measured(truth, MethodOptions(mechanism=method), epsilon, seed)  # type: ignore[arg-type]
            values, variances = combine_measurements(noisy.tree.n_nodes, list(noisy.measurements))
            estimates = estimate_map(
                noisy.tree,
                values,
                variances,
                leaves=noisy.leaves,
                nonnegative=False,
                integers=False,
            )
            errors.append(float(((MapSurface(estimates).density - counts) ** 2).mean()))
        cells.append(mean_cell(table, name, method, errors, "mean squared error"))
    return cells


def summary_cells(cells: Sequence[Cell]) -> list[Cell]:
    """In how many cells the expected order holds."""
    ours = {(cell.table, cell.row, cell.column): cell.ours or 0.0 for cell in cells}
    found = []
    for rule in ("least squares", "nonnegative"):
        pairs = [
            (value, ours[table, row, "uniform-grid"])
            for (table, row, column), value in ours.items()
            if column == "adaptive-grid" and table.startswith("Boxes") and table.endswith(rule)
        ]
        share = float(np.mean([adaptive <= uniform for adaptive, uniform in pairs]))
        found.append(
            Cell(
                "Summary",
                "adaptive-grid at or below uniform-grid",
                rule,
                None,
                share,
                "share of cells",
            )
        )
    ratios = [cell for cell in cells if cell.table.startswith("auto over")]
    within = float(np.mean([(cell.ours or 0.0) <= 1.05 for cell in ratios]))
    claim = "auto within 5 % of the best named method"
    found.append(Cell("Summary", claim, "all", None, within, "share of cells"))
    worst = max(ratios, key=lambda cell: cell.ours or 0.0)
    claim = "auto over the best named method"
    found.append(Cell("Summary", claim, "worst", None, worst.ours, "ratio", worst.spread))
    return found
