"""Figures 5, 6 and 7 of hay2010, theirs beside ours; its theorems are in
:mod:`tallytree.papers.hay2010.theorems`.

The paper prints its figures as pictures only, so their cells have no value in the column ``paper``;
its claims in words are tests. Its data are not public either: DPBench's NETTRACE and SEARCHLOGS
come from the same sources at 4,096 bins, and the degrees of public graphs stand in for its social
network. Without a data folder a synthetic histogram of the same kind, named so, is used.

On H̄ of Figure 6. After §4.2's rule, a subtree whose root is at most 0 becomes 0, the tree no
longer adds up, and it matters how a range is answered. Summing leaves, as §4.2 says one may before
the rule, adds up the bias of all leaves and is worse than H̃ on long ranges; summing the fewest
blocks of the zeroed tree shows what the figure shows, and is what ``H̄ (zeroed subtrees)`` does
here. ``H̄ (top-down)`` is what this package publishes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from tallytree.degree_sequences.estimate import estimate_sorted_counts
from tallytree.errors import StorageError
from tallytree.kernels.isotonic import isotonic_l2
from tallytree.kernels.range_moments import running_sum
from tallytree.kernels.trees.nonnegative import split_downwards, zero_subtrees
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.papers.cells import Cell
from tallytree.papers.hay2010.theorems import (
    appendix_e,
    binary_plan,
    theorem_2,
    theorem_4,
    tree_errors,
)
from tallytree.privacy.noise import DiscreteLaplace, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.ranges.plan import HistogramPlan
from tallytree.releases.progress import Progress, silent
from tallytree.strategies.tree import TreeErrors, fewest_blocks

EPSILONS = (Fraction(1), Fraction(1, 10), Fraction(1, 100))
SEQUENCES = ("NETTRACE", "SEARCHLOGS", "HEPTH", "INCOME", "ego-Facebook", "email-Enron")
HISTOGRAMS = ("NETTRACE", "SEARCHLOGS")
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
    steps += [partial(figure_5, name, counts, runs) for name, counts in sequences.items()]
    steps += [partial(figure_6, name, counts, runs) for name, counts in histograms.items()]
    steps += [
        partial(figure_7, name, counts, 4 * runs) for name, counts in list(histograms.items())[:1]
    ]
    cells: list[Cell] = []
    for done, step in enumerate(steps):
        progress(done, len(steps), "hay2010")
        cells += step()
    return cells


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


def synthetic_counts(n_bins: int = 4096) -> IntArray:
    """A sparse histogram with a heavy tail, in clusters: mostly zeros, many ones, a few hundreds."""
    rng = np.random.default_rng(2010)
    busy = np.repeat(rng.random(n_bins // 64) < 0.2, 64)
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
        noise, squared = DiscreteLaplace(1 / epsilon), dict.fromkeys(ESTIMATORS, 0.0)
        for run in range(runs):
            noisy = add_noise(
                exact, noise, KeyStream.from_insecure_seed(run), level=0, query="sorted"
            )
            for name_of, estimate in ESTIMATORS.items():
                squared[name_of] += float(np.square(estimate(noisy) - exact).sum()) / runs
        column = f"epsilon = {float(epsilon):g}"
        cells += [
            Cell(f"Figure 5, {name}", row, column, None, error, "squared error")
            for row, error in squared.items()
        ]
        for row, better in ((name, "S̄"), (f"{name}, cut off at 0", CUT_OFF)):
            gain = squared["S̃"] / squared[better]
            cells.append(
                Cell(
                    "Figure 5 in ratios",
                    row,
                    column,
                    None,
                    gain,
                    f"error of S̃ over that of {better}",
                )
            )
    return cells


def figure_6(name: str, counts: IntArray, runs: int, n_ranges: int = 1000) -> list[Cell]:
    """Squared error of ranges by their size: L̃, H̃ and H̄, all made nonnegative and whole as in
    §5.2.
    """
    rng, cells = np.random.default_rng(6), []
    sizes = [2**i for i in range(int(np.log2(len(counts))))]
    starts = {size: rng.integers(0, len(counts) - size + 1, n_ranges) for size in sizes}
    truth = running_sum(counts)
    for epsilon in EPSILONS:
        plan = binary_plan(len(counts), epsilon)
        errors = tree_errors(plan)
        squared: dict[str, FloatArray] = {}
        for run in range(runs):
            answer = estimators_of_ranges(
                counts, plan, errors, epsilon, KeyStream.from_insecure_seed(run)
            )
            for row, estimate in answer.items():
                found = [
                    np.square(estimate(at, at + size) - truth[at + size] + truth[at]).mean()
                    for size, at in starts.items()
                ]
                squared[row] = squared.get(row, np.zeros(len(sizes))) + np.array(found) / runs
        table = f"Figure 6, {name}, epsilon {float(epsilon):g}"
        for row, by_size in squared.items():
            cells += [
                Cell(table, row, f"range size = {size}", None, float(error), "squared error")
                for size, error in zip(sizes, by_size)
            ]
    return cells


Estimator = Callable[[IntArray, IntArray], FloatArray]


def estimators_of_ranges(
    counts: IntArray, plan: HistogramPlan, errors: TreeErrors, epsilon: Fraction, stream: KeyStream
) -> dict[str, Estimator]:
    """One release of each kind: functions from first and one past last bin to estimates."""
    layout = errors.layout
    noisy = [
        add_noise(sums, noise, stream, level=level, query="block")
        for level, (sums, noise) in enumerate(zip(layout.block_sums(counts), plan.noise))
        if noise is not None
    ]
    flat = add_noise(counts, DiscreteLaplace(1 / epsilon), stream, level=0, query="bin")
    nodes = errors.node_estimates(noisy)
    zeroed = np.rint(zero_subtrees(nodes, layout.child_starts)).astype(np.int64)
    blocks = [
        zeroed[start:stop] for start, stop in zip(layout.level_starts[:-1], layout.level_starts[1:])
    ]
    ours = running_sum(
        split_downwards(nodes, errors.from_below, layout.child_starts)[layout.leaves]
    )
    unit = running_sum(np.maximum(flat, 0))
    raw = [np.maximum(level, 0) for level in noisy]
    return {
        "L̃": lambda first, last: unit[last] - unit[first],
        "H̃": lambda first, last: fewest_blocks(errors, raw, first, last)[0],
        "H̄ (zeroed subtrees)": lambda first, last: fewest_blocks(errors, blocks, first, last)[0],
        "H̄ (top-down)": lambda first, last: ours[last] - ours[first],
    }


def figure_7(name: str, counts: IntArray, runs: int) -> list[Cell]:
    """Where S̄ gains, ε = 1: mean squared error at positions of the sequence in falling order,
    beside the variance of S̃.
    """
    exact = np.sort(counts)
    noise, squared = DiscreteLaplace(Fraction(1)), np.zeros(len(exact))
    for run in range(runs):
        noisy = add_noise(exact, noise, KeyStream.from_insecure_seed(run), level=0, query="sorted")
        squared += np.square(estimate_sorted_counts(noisy, "isotonic") - exact) / runs
    positions = np.unique(np.geomspace(1, len(exact), 30).astype(int))
    cells = []
    for position in positions:
        place = len(exact) - position
        values = {"S(I)": exact[place], "error of S̄": squared[place], "error of S̃": noise.variance}
        cells += [
            Cell(
                f"Figure 7, {name}",
                row,
                f"rank = {position}",
                None,
                float(value),
                "count or squared error",
            )
            for row, value in values.items()
        ]
    return cells
