"""Figure 3 of qardaji2013: absolute errors of ranges by size, measured.

F, W_H and H_b^c add noise that does not depend on the data: for them a histogram of the same size
is as good as the paper's own. Its ages and check-ins are made from what is public, and said to be
made: 96 years of age from classes of ages, each class spread evenly, and 2^16 places from the 256
columns of a map, each column spread evenly. SF does depend on the data; its histogram is one of the
kind that the paper's citations are: how many nodes of a graph have each degree.

H_b^c has the branching factor and the division of the budget that are best in theory (§4.3), with
equal shares beside it. SF takes cubic time, in the paper too, and is shown for few bins alone. Every
data set draws its own noise and places of ranges.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from tallytree.boxes.kernels.squared_parts import LARGEST_COUNT, SquaredParts
from tallytree.errors import StorageError
from tallytree.maps.publish import spatial
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.papers.cells import Cell, mean_of_runs, ratio_of_means, verdict_below_one
from tallytree.privacy.budget import Budget
from tallytree.privacy.exponential import exponential_rate
from tallytree.privacy.sensitivity import squares_score_sensitivity
from tallytree.ranges.publish import histogram
from tallytree.strategies.branching import best_branching

ERROR = "absolute error, ε = 1"
MOST_BINS_OF_SF = 1024
N_AGES, N_PLACES, DEGREES_OF = 96, 2**16, "email-Enron"
ONE_IN = 16
PAPER_SIZES = {"age": N_AGES, "citation": 2414, "income": 10_000, "location": N_PLACES}
RUNS, QUICK_RUNS = 20, 3
# Numbers of parts that are tried in hindsight.
PARTS = (2, 4, 8, 16, 32, 64, 128, 256)
Release = Callable[[IntArray, int], FloatArray]


def figure_3(data: Path | None, *, quick: bool) -> list[Cell]:
    """Absolute error by range size of F, W_H, SF and H_b^c at ε = 1, with our choice beside them;
    candlesticks over all sizes.
    """
    runs = QUICK_RUNS if quick else RUNS
    cells = []
    for name, counts in histograms(data, quick=quick).items():
        table = f"Figure 3, {name}, N = {len(counts)}"
        sizes = np.unique(np.linspace(1, len(counts), 11).astype(int)[1:])
        found = {
            method: query_errors(counts, sizes, release, runs=runs, first_seed=first_seed(name))
            for method, release in methods_for(counts).items()
        }
        for method, errors in found.items():
            cells += _lines(table, method, sizes, errors)
            cells += _candlesticks(table, method, errors)
        cells += _order(name, found)
    return cells


def methods_for(counts: IntArray) -> dict[str, Release]:
    """The methods of the figure for a histogram."""
    tree: dict[str, Any] = {"mechanism": "hierarchical", "branching": best_branching(len(counts))}
    methods: dict[str, Release] = {
        "F": partial(_estimates, mechanism="flat"),
        "W_H": partial(_estimates, mechanism="wavelet"),
        "H_b^c": partial(_estimates, budget="optimal", **tree),
        "H_b^c, equal shares": partial(_estimates, **tree),
        "auto (ours)": partial(_estimates, mechanism="auto"),
    }
    if len(counts) <= MOST_BINS_OF_SF:
        methods["SF"] = _structure_first
        methods["SF, best k in hindsight"] = structure_first_in_hindsight
    return methods


def first_seed(name: str) -> int:
    """Where the seeds of a data set begin, so that no two draw the same noise."""
    return crc32(name.encode()) % 10**6 * 1000


def _lines(table: str, method: str, sizes: IntArray, errors: FloatArray) -> list[Cell]:
    cells = []
    for place, size in enumerate(sizes):
        mean, spread = mean_of_runs(errors[:, place].mean(axis=1).tolist())
        cells.append(Cell(table, method, f"size = {size}", None, mean, f"mean {ERROR}", spread))
    return cells


def _candlesticks(table: str, method: str, errors: FloatArray) -> list[Cell]:
    """Quantiles of all queries; their spread is that of the quantiles of each run, because the
    queries of a run share its noise.
    """
    table = f"Candlesticks of {table}"
    cells = []
    for share in (25, 50, 75, 95):
        by_run = np.percentile(errors.reshape(len(errors), -1), share, axis=1)
        value, (_, spread) = float(np.percentile(errors, share)), mean_of_runs(by_run.tolist())
        cells.append(Cell(table, method, f"{share} % of the queries", None, value, ERROR, spread))
    mean, spread = mean_of_runs(errors.mean(axis=(1, 2)).tolist())
    return [*cells, Cell(table, method, "mean", None, mean, ERROR, spread)]


def _order(name: str, found: dict[str, FloatArray]) -> list[Cell]:
    """What §4.3 says of the order of the methods, as ratios of mean errors."""
    means = {method: errors.mean(axis=(1, 2)).tolist() for method, errors in found.items()}
    claims = [
        ("F has the largest error", "H_b^c", "F"),
        ("H_b^c is better than W_H in almost all cases", "H_b^c", "W_H"),
        ("SF is worse than H_b^c", "H_b^c", "SF"),
    ]
    if name.startswith("citation"):
        claim = "SF, at its best setting, is better than F"
        claims += [(claim, "SF", "F"), (claim, "SF, best k in hindsight", "F")]
    cells = []
    for claim, better, worse in claims:
        if better in means and worse in means:
            ratio, spread = ratio_of_means(means[better], means[worse])
            row, column = f"{claim}: {name}", f"{better} over {worse}"
            remark = verdict_below_one(ratio, spread, "mean over all sizes")
            cells.append(
                Cell("§4.3 in words", row, column, None, ratio, "ratio of errors", spread, remark)
            )
    return cells


def query_errors(
    counts: IntArray, sizes: IntArray, estimate: Release, *, runs: int, first_seed: int = 0
) -> FloatArray:
    """Absolute errors of 100 random ranges per size and run, as §4.3 has it: runs, sizes, ranges."""
    places = np.random.default_rng(first_seed)  # places of the ranges, nothing private
    errors = np.empty((runs, len(sizes), 100))
    for run in range(runs):
        wrong = np.concatenate([[0.0], np.cumsum(estimate(counts, first_seed + run) - counts)])
        for row, size in enumerate(sizes):
            start = places.integers(0, len(counts) - size + 1, size=100)
            errors[run, row] = np.abs(wrong[start + size] - wrong[start])
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


def structure_first_in_hindsight(counts: IntArray, seed: int) -> FloatArray:
    """SF with "the best setting of parameters" (§4.3): the number of parts that turned out best, and
    the largest count known, neither paid for. Not private.

    Half of ε = 1 is for the boundaries, divided by k − 1, half for the counts of parts.
    """
    rng, largest = np.random.default_rng(seed), int(np.clip(counts.max(), 1, LARGEST_COUNT))
    best = SquaredParts.of(np.minimum(counts, largest), min(max(PARTS), len(counts) - 1))
    sums = np.concatenate([[0], np.cumsum(counts)])
    found = []
    for n_parts in [n for n in PARTS if n < len(counts)]:
        part = Budget("pure", Fraction(1, 2 * (n_parts - 1)))
        rate = float(exponential_rate(part, squares_score_sensitivity(largest).l1))
        edges = [len(counts)]
        for before in range(n_parts - 1, 0, -1):
            scores = -rate * best.last_cuts(before, edges[-1]).astype(np.float64)
            edges.append(before + int(np.argmax(scores + rng.gumbel(size=len(scores)))))
        ends = np.array([0, *edges[::-1]])
        totals = np.diff(sums[ends]) + rng.laplace(scale=2.0, size=n_parts)
        found.append(np.repeat(totals / np.diff(ends), np.diff(ends)))
    return min(found, key=lambda estimates: float(np.abs(np.cumsum(estimates - counts)).sum()))


def histograms(data: Path | None, *, quick: bool) -> dict[str, IntArray]:
    """Histograms of the paper's sizes, from real data where there is a folder, else empty."""
    if data is None:
        sizes = {name: n for name, n in PAPER_SIZES.items() if not quick or n < 5000}
        return {f"size of {name} data": np.zeros(n, dtype=np.int64) for name, n in sizes.items()}
    with np.load(_file(data, "dpbench_1d/dpbench_1d.npz")) as arrays:
        found = {name: arrays[name].astype(np.int64) for name in ("HEPTH", "INCOME")}
    with np.load(_file(data, "dpbench_2d/dpbench_2d.npz")) as arrays:
        columns = arrays["GOWALLA"].astype(np.int64).sum(axis=0)
    with np.load(_file(data, "graph_degrees/graph_degrees.npz")) as arrays:
        degrees = np.bincount(arrays[DEGREES_OF].astype(np.int64), minlength=MOST_BINS_OF_SF)
    return {
        "age, made from classes": ages(data),
        **found,
        "HEPTH in fewer bins": found["HEPTH"].reshape(MOST_BINS_OF_SF, -1).sum(axis=1),
        f"citation, nodes of {DEGREES_OF} by degree": degrees[:MOST_BINS_OF_SF].astype(np.int64),
        "location, made from columns": spread_evenly(columns, [N_PLACES // len(columns)] * 256),
    }


def ages(data: Path) -> IntArray:
    """One in 16 people of the United States by year of age up to 95, made: classes of ages spread
    evenly. So there are 19 million rows, as in the paper.
    """
    file = _file(data, "us2010_age_sex_county/us2010_age_sex_county.csv.gz")
    with gzip.open(file, "rt", newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    classes = [name[2:] for name in rows[0] if name.startswith("m_")]
    firsts = [0 if name == "lt5" else int(name.rstrip("+").split("_")[0]) for name in classes]
    people = [sum(int(row[f"{sex}_{name}"]) for row in rows for sex in "mf") for name in classes]
    return spread_evenly(np.array(people) // ONE_IN, np.diff([*firsts, N_AGES]).tolist())


def spread_evenly(counts: IntArray, lengths: list[int]) -> IntArray:
    """Each count over so many bins, as evenly as whole numbers go: the first bins get one more.

    Examples
    --------
    >>> spread_evenly(np.array([5, 4]), [3, 2]).tolist()
    [2, 2, 1, 2, 2]
    """
    return np.concatenate(
        [
            np.full(n, count // n) + (np.arange(n) < count % n)
            for count, n in zip(counts.tolist(), lengths)
        ]
    )


def _file(data: Path, name: str) -> Path:
    file = data / name
    if not file.is_file():
        raise StorageError(
            f"No file {file.name} in {file.parent}; see the description of the data sets."
        )
    return file
