"""Figures 2, 3 and 4 of qardaji2013 in numbers; the paper plots them without printing any.

Figures 2 and 4 are exact. Figure 3 runs the mechanisms. Its methods add noise that does not depend
on the data, so without a folder of real data they run on empty histograms of the paper's sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tallytree.errors import StorageError
from tallytree.maps.publish import spatial
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.range_tree import RangeTree
from tallytree.options.choices import Allocation
from tallytree.papers.cells import Cell, mean_of_runs
from tallytree.ranges.publish import histogram
from tallytree.strategies.branching import best_branching, regular_tree_error
from tallytree.strategies.grid_errors import flat_grid_error, grid_range_error

UNIT = "average variance, ε = 1"
BRANCHINGS = (2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64)
METHODS_2: tuple[tuple[str, bool, Allocation], ...] = (
    ("H_b", False, "equal"),
    ("H_b,g", False, "geometric"),
    ("H_b,o", False, "optimal-blocks"),
    ("H_b^c", True, "equal"),
    ("H_b,g^c", True, "geometric"),
    ("H_b,o^c", True, "optimal"),
)
ERROR = "absolute error, ε = 1"
MOST_BINS_OF_SF = 1024
PAPER_SIZES = {"age": 96, "citation": 2414, "income": 10_000, "location": 2**16}


def figure_2(*, quick: bool) -> list[Cell]:
    """Error against the branching factor for every division of the budget."""
    cells = []
    for exponent in (8, 12) if quick else (8, 10, 12, 16):
        for branching in BRANCHINGS:
            for name, consistent, allocation in METHODS_2:
                error = regular_tree_error(
                    2**exponent, branching, consistent=consistent, allocation=allocation
                )
                cells.append(
                    Cell(f"Figure 2, N = 2^{exponent}", name, f"b = {branching}", None, error, UNIT)
                )
    return cells


def figure_4(*, quick: bool) -> list[Cell]:
    """Error against the branching factor per axis in two and three dimensions, beside the flat
    method.
    """
    cells = []
    for panel, dimensions, per_axis in (("a", 2, 32), ("b", 2, 64), ("c", 2, 128), ("d", 3, 16)):
        table = f"Figure 4 ({panel}), d = {dimensions}, n = {per_axis}"
        for branching in (
            b for b in (*BRANCHINGS, 128) if b < per_axis or (b == per_axis and not quick)
        ):
            widths = RangeTree.regular(per_axis, branching).widths
            variances = [2.0 * len(widths) ** 2] * len(widths)
            column, shape = f"b = {branching}", [per_axis] * dimensions
            blocks = grid_range_error(shape, widths, variances, consistent=False)
            cells += [
                Cell(table, "F", column, None, flat_grid_error(shape), UNIT),
                Cell(table, "H_b", column, None, blocks, UNIT),
                Cell(
                    table, "H_b^c", column, None, grid_range_error(shape, widths, variances), UNIT
                ),
            ]
    return cells


def figure_3(data: Path | None, *, quick: bool) -> list[Cell]:
    """Absolute error by range size of F, W_H, SF and H_b^c at ε = 1, with our choice beside them;
    candlesticks over all sizes.

    SF, the structure-first of the slides, takes cubic time and is shown for few bins alone, as in
    the paper.
    """
    cells = []
    for name, counts in _histograms(data, quick=quick).items():
        table = f"Figure 3, {name}, N = {len(counts)}"
        sizes = np.unique(np.linspace(1, len(counts), 11).astype(int)[1:])
        methods: dict[str, Release] = {
            "F": partial(_estimates, mechanism="flat"),
            "W_H": partial(_estimates, mechanism="wavelet"),
            "H_b^c": partial(
                _estimates, mechanism="hierarchical", branching=best_branching(len(counts))
            ),
            "auto (ours)": partial(_estimates, mechanism="auto"),
        }
        if len(counts) <= MOST_BINS_OF_SF:
            methods["SF"] = _structure_first
        for method, estimate in methods.items():
            errors = query_errors(counts, sizes, estimate, runs=3 if quick else 20)
            for place, size in enumerate(sizes):
                mean, spread = mean_of_runs(errors[:, place].mean(axis=1).tolist())
                cells.append(
                    Cell(table, method, f"size = {size}", None, mean, f"mean {ERROR}", spread)
                )
            for share in (25, 50, 75, 95):
                value = float(np.percentile(errors, share))
                cells.append(
                    Cell(
                        f"Candlesticks of {table}",
                        method,
                        f"{share} % of the queries",
                        None,
                        value,
                        ERROR,
                    )
                )
            cells.append(
                Cell(f"Candlesticks of {table}", method, "mean", None, float(errors.mean()), ERROR)
            )
    return cells


Release = Callable[[IntArray, int], FloatArray]


def query_errors(counts: IntArray, sizes: IntArray, estimate: Release, *, runs: int) -> FloatArray:
    """Absolute errors of 100 random ranges per size and run, as §4.3 has it: runs, sizes, ranges."""
    places = np.random.default_rng(0)  # places of the ranges, nothing private
    errors = np.empty((runs, len(sizes), 100))
    for seed in range(runs):
        wrong = np.concatenate([[0.0], np.cumsum(estimate(counts, seed) - counts)])
        for row, size in enumerate(sizes):
            start = places.integers(0, len(counts) - size + 1, size=100)
            errors[seed, row] = np.abs(wrong[start + size] - wrong[start])
    return errors


def _estimates(counts: IntArray, seed: int, **options: Any) -> FloatArray:
    made = histogram(
        counts=counts, epsilon=1, nonnegative=False, integers=False, insecure_seed=seed, **options
    )
    return made.estimates


def _structure_first(counts: IntArray, seed: int) -> FloatArray:
    made = spatial(
        counts=counts,
        mechanism="structure-first",
        epsilon=1,
        nonnegative=False,
        integers=False,
        insecure_seed=seed,
    )
    return made.surface.density


def _histograms(data: Path | None, *, quick: bool) -> dict[str, IntArray]:
    """DPBench's vectors where there is a folder of data, else empty histograms of the paper's
    sizes.
    """
    if data is None:
        sizes = {name: n for name, n in PAPER_SIZES.items() if not quick or n < 5000}
        return {f"size of {name} data": np.zeros(n, dtype=np.int64) for name, n in sizes.items()}
    file = data / "dpbench_1d" / "dpbench_1d.npz"
    if not file.is_file():
        raise StorageError(
            f"No file {file.name} in {file.parent}; see the description of the data sets."
        )
    with np.load(file) as arrays:
        found = {name: arrays[name].astype(np.int64) for name in ("HEPTH", "INCOME")}
    return found | {"HEPTH in fewer bins": found["HEPTH"].reshape(MOST_BINS_OF_SF, -1).sum(axis=1)}
