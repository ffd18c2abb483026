"""Figures 5 and 7 of hay2010, theirs beside ours; Figure 6 is in :mod:`tallytree.papers.hay2010.ranges`,
the theorems in :mod:`tallytree.papers.hay2010.theorems`, the claims of §5 in
:mod:`tallytree.papers.hay2010.claims`.

The paper prints its figures as pictures only, so their cells have no value in the column ``paper``.
Its data are not public either: DPBench's NETTRACE and SEARCHLOGS come from the same sources at
4,096 bins, and the degrees of public graphs stand in for its social network. DPBench's NETTRACE is
sorted in falling order, which Figures 5 and 7 do not mind; for the ranges of Figure 6 it gets an
order drawn once. Without a data folder a synthetic histogram of the same kind, named so, is used;
at the height of the paper's tree it stands beside the real ones too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from tallytree.degree_sequences.estimate import estimate_sorted_counts
from tallytree.errors import StorageError
from tallytree.kernels.isotonic import isotonic_l2
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.papers.cells import Cell, mean_of_runs, ratio_of_means
from tallytree.papers.hay2010.claims import claims
from tallytree.papers.hay2010.ranges import expected_cells, figure_6
from tallytree.papers.hay2010.theorems import appendix_e, blum_bound, theorem_2, theorem_4
from tallytree.privacy.noise import DiscreteLaplace, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.progress import Progress, silent

EPSILONS = (Fraction(1), Fraction(1, 10), Fraction(1, 100))
SEQUENCES = ("NETTRACE", "SEARCHLOGS", "HEPTH", "INCOME", "ego-Facebook", "email-Enron")
HISTOGRAMS = ("NETTRACE", "SEARCHLOGS")
# Height 16, as in the example of §4.2; and a twelfth of all stretches busy, so that as many bins are
# not empty as in DPBench's NETTRACE, 3.4 %.
N_BINS_OF_THE_PAPER, BUSY_SHARE = 2**15, 0.085
CUT_OFF = "S̄, cut off at 0"
# S̄ of §3 may be negative; what this package publishes is cut off at 0.
ESTIMATORS: dict[str, Callable[[IntArray], FloatArray]] = {
    "S̃": partial(estimate_sorted_counts, method="noisy"),
    "S̃_r": partial(estimate_sorted_counts, method="sorted"),
    "S̄": isotonic_l2,
    CUT_OFF: partial(estimate_sorted_counts, method="isotonic"),
}
RUNS, QUICK_RUNS = 50, 5
CUTS = "5 runs instead of 50"


def reproduce(
    *, data: Path | None = None, quick: bool = False, progress: Progress = silent
) -> list[Cell]:
    """All cells; ``quick`` makes 5 runs where the paper makes 50."""
    runs = QUICK_RUNS if quick else RUNS
    sequences, histograms = load_counts(data, SEQUENCES), load_counts(data, HISTOGRAMS)
    steps: list[Callable[[], list[Cell]]] = [theorem_4, partial(theorem_2, sequences, runs)]
    steps += [partial(appendix_e, n_bins, 4 * runs) for n_bins in (64, 512)]
    steps += [blum_bound, expected_cells]
    steps += [partial(figure_5, name, counts, runs) for name, counts in sequences.items()]
    steps += [
        partial(figure_6, name, counts, epsilon, runs)
        for name, counts in in_an_order(histograms).items()
        for epsilon in EPSILONS
    ]
    steps += [
        partial(figure_7, name, counts, 4 * runs) for name, counts in list(histograms.items())[:1]
    ]
    cells: list[Cell] = []
    for done, step in enumerate(steps):
        progress(done, len(steps), "hay2010")
        cells += step()
    return cells + claims(cells)


def load_counts(data: Path | None, names: Iterable[str]) -> dict[str, IntArray]:
    """Counts by the name of their data set, from the data folder; one synthetic set without a
    folder.
    """
    if data is None:
        return {"synthetic": synthetic_counts()}
    found: dict[str, IntArray] = {}
    for file in (
        data / "dpbench_1d" / "dpbench_1d.npz",
        data / "graph_degrees" / "graph_degrees.npz",
    ):
        if not file.is_file():
            raise StorageError(
                f"{file} is missing. --data names the folder that holds dpbench_1d and "
                "graph_degrees."
            )
        with np.load(file) as stored:
            found |= {name: stored[name].astype(np.int64) for name in names if name in stored}
    return {name: found[name] for name in names}


def in_an_order(histograms: Mapping[str, IntArray]) -> dict[str, IntArray]:
    """Histograms whose neighbours are neighbours: sorted ones get a drawn order, and a synthetic
    one at the height of the paper's tree is added.
    """
    rng, found = np.random.default_rng(2010), {}
    for name, counts in histograms.items():
        if (np.diff(counts) <= 0).all():
            found[f"{name} in a drawn order"] = rng.permutation(counts)
        else:
            found[name] = counts
    return found | {"synthetic, height 16": synthetic_counts(N_BINS_OF_THE_PAPER, BUSY_SHARE)}


def synthetic_counts(n_bins: int = 4096, busy_share: float = 0.2) -> IntArray:
    """A sparse histogram with a heavy tail, in clusters: mostly zeros, many ones, a few hundreds."""
    rng = np.random.default_rng(2010)
    busy = np.repeat(rng.random(n_bins // 64) < busy_share, 64)
    return np.where(
        busy & (rng.random(n_bins) < 0.4), rng.zipf(1.8, n_bins).clip(max=1500), 0
    ).astype(np.int64)


def figure_5(name: str, counts: IntArray, runs: int) -> list[Cell]:
    """Squared error of the estimators of an unattributed histogram, mean of all runs, and what S̄
    gains.
    """
    exact = np.sort(counts)
    cells = []
    for epsilon in EPSILONS:
        noise = DiscreteLaplace(1 / epsilon)
        squared: dict[str, list[float]] = {row: [] for row in ESTIMATORS}
        for run in range(runs):
            stream = KeyStream.from_insecure_seed(run)
            noisy = add_noise(exact, noise, stream, level=0, query="sorted")
            for row, estimate in ESTIMATORS.items():
                squared[row].append(float(np.square(estimate(noisy) - exact).sum()))
        column = f"epsilon = {float(epsilon):g}"
        for row, values in squared.items():
            mean, spread = mean_of_runs(values)
            cells.append(
                Cell(f"Figure 5, {name}", row, column, None, mean, "squared error", spread)
            )
        for row, better in ((name, "S̄"), (f"{name}, cut off at 0", CUT_OFF)):
            gain, spread = ratio_of_means(squared["S̃"], squared[better])
            unit = f"error of S̃ over that of {better}"
            cells.append(Cell("Figure 5 in ratios", row, column, None, gain, unit, spread))
    return cells


def figure_7(name: str, counts: IntArray, runs: int) -> list[Cell]:
    """Where S̄ gains, ε = 1: mean squared error at positions of the sequence in falling order,
    beside the variance of S̃.
    """
    exact = np.sort(counts)
    noise, places = DiscreteLaplace(Fraction(1)), len(exact) - ranks(len(exact))
    squared = []
    for run in range(runs):
        noisy = add_noise(exact, noise, KeyStream.from_insecure_seed(run), level=0, query="sorted")
        wrong = estimate_sorted_counts(noisy, "isotonic")[places] - exact[places]
        squared.append(np.square(wrong).tolist())
    table, cells = f"Figure 7, {name}", []
    for place, values in zip(places.tolist(), zip(*squared)):
        column = f"rank = {len(exact) - place}"
        mean, spread = mean_of_runs(values)
        cells += [
            Cell(table, "S(I)", column, None, float(exact[place]), "count"),
            Cell(table, "error of S̄", column, None, mean, "squared error", spread),
            Cell(table, "error of S̃", column, None, noise.variance, "squared error, exact"),
        ]
    return cells


def ranks(n: int) -> IntArray:
    """Thirty positions from 1 to n, evenly spaced in their logarithm."""
    return np.unique(np.geomspace(1, n, 30).astype(np.int64))
