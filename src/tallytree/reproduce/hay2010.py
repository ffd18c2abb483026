"""Figures 5, 6 and 7 of hay2010 and the query of its Theorem 4 (iv), theirs beside ours.

The paper prints its figures as pictures only, so their cells have no value in the column ``paper``; its claims in words
are tests. Its data are not public either: DPBench's NETTRACE and SEARCHLOGS come from the same sources at 4,096 bins,
and the degrees of public graphs stand in for its social network. Without a data folder a synthetic histogram of the
same kind, named so, is used.

On H̄ of Figure 6. After §4.2's rule, a subtree whose root is at most 0 becomes 0, the tree no longer adds up, and it
matters how a range is answered. Summing leaves, as §4.2 says one may before the rule, adds up the bias of all leaves
and is worse than H̃ on long ranges; summing the fewest blocks of the zeroed tree shows what the figure shows, and is
what ``H̄ (zeroed subtrees)`` does here. ``H̄ (top-down)`` is what this package publishes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from tallytree.errors import StorageError
from tallytree.estimate.unattributed import estimate_sorted_counts
from tallytree.kernels.range_moments import running_sum
from tallytree.kernels.trees.nonnegative import split_downwards, zero_subtrees
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.range_tree import RangeTree
from tallytree.options.choices import DegreeMethod
from tallytree.planning.ranges.level_budgets import equal_shares
from tallytree.privacy.budget import Budget
from tallytree.privacy.noise import DiscreteLaplace, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.publish.progress import Progress, silent
from tallytree.ranges.estimates import range_errors
from tallytree.ranges.plan import HistogramPlan, plan_histogram
from tallytree.ranges.strategies import TreeStrategy
from tallytree.ranges.tree import TreeErrors, fewest_blocks
from tallytree.reproduce.cells import Cell

EPSILONS = (Fraction(1), Fraction(1, 10), Fraction(1, 100))
SEQUENCES = ("NETTRACE", "SEARCHLOGS", "HEPTH", "INCOME", "ego-Facebook", "email-Enron")
HISTOGRAMS = ("NETTRACE", "SEARCHLOGS")
ESTIMATORS: dict[str, DegreeMethod] = {"S̃": "noisy", "S̃_r": "sorted", "S̄": "isotonic"}
RUNS, QUICK_RUNS = 50, 5


def reproduce(*, data: Path | None = None, quick: bool = False, progress: Progress = silent) -> list[Cell]:
    """All cells; ``quick`` makes 5 runs where the paper makes 50."""
    runs = QUICK_RUNS if quick else RUNS
    sequences, histograms = load_counts(data, SEQUENCES), load_counts(data, HISTOGRAMS)
    steps: list[Callable[[], list[Cell]]] = [theorem_4]
    steps += [partial(figure_5, name, counts, runs) for name, counts in sequences.items()]
    steps += [partial(figure_6, name, counts, runs) for name, counts in histograms.items()]
    steps += [partial(figure_7, name, counts, 4 * runs) for name, counts in list(histograms.items())[:1]]
    cells: list[Cell] = []
    for done, step in enumerate(steps):
        progress(done, len(steps), "hay2010")
        cells += step()
    return cells


def load_counts(data: Path | None, names: Iterable[str]) -> dict[str, IntArray]:
    """Counts by the name of their data set, from the data folder; one synthetic set without a folder."""
    if data is None:
        return {"synthetic": synthetic_counts()}
    found: dict[str, IntArray] = {}
    for file in (data / "dpbench_1d" / "dpbench_1d.npz", data / "graph_degrees" / "graph_degrees.npz"):
        if not file.is_file():
            raise StorageError(f"{file} is missing. --data names the folder that holds dpbench_1d and graph_degrees.")
        with np.load(file) as stored:
            found |= {name: stored[name].astype(np.int64) for name in names if name in stored}
    return {name: found[name] for name in names}


def synthetic_counts(n_bins: int = 4096) -> IntArray:
    """A sparse histogram with a heavy tail, in clusters: mostly zeros, many ones, a few hundreds."""
    rng = np.random.default_rng(2010)
    busy = np.repeat(rng.random(n_bins // 64) < 0.2, 64)
    return np.where(busy & (rng.random(n_bins) < 0.4), rng.zipf(1.8, n_bins).clip(max=1500), 0).astype(np.int64)


def figure_5(name: str, counts: IntArray, runs: int) -> list[Cell]:
    """Squared error of the three estimators of an unattributed histogram, mean of all runs, and what S̄ gains."""
    exact = np.sort(counts)
    cells = []
    for epsilon in EPSILONS:
        noise, squared = DiscreteLaplace(1 / epsilon), dict.fromkeys(ESTIMATORS, 0.0)
        for run in range(runs):
            noisy = add_noise(exact, noise, KeyStream.from_insecure_seed(run), level=0, query="sorted")
            for estimator, method in ESTIMATORS.items():
                squared[estimator] += float(np.square(estimate_sorted_counts(noisy, method) - exact).sum()) / runs
        column = f"epsilon = {float(epsilon):g}"
        cells += [
            Cell(f"Figure 5, {name}", row, column, None, error, "squared error") for row, error in squared.items()
        ]
        gain = squared["S̃"] / squared["S̄"]
        cells.append(Cell("Figure 5 in ratios", name, column, None, gain, "error of S̃ over that of S̄"))
    return cells


def binary_plan(n_bins: int, epsilon: Fraction) -> HistogramPlan:
    """The paper's tree: binary, the whole domain counted too, the same noise on every level."""
    tree = RangeTree.regular(n_bins, 2, count_total=True)
    return plan_histogram(TreeStrategy("hierarchical", tree, equal_shares(tree.n_levels)), Budget("pure", epsilon))


def tree_errors(plan: HistogramPlan) -> TreeErrors:
    """The errors of a plan over a tree."""
    errors = range_errors(plan.strategy, plan.noise)
    assert isinstance(errors, TreeErrors)
    return errors


def figure_6(name: str, counts: IntArray, runs: int, n_ranges: int = 1000) -> list[Cell]:
    """Squared error of ranges by their size: L̃, H̃ and H̄, all made nonnegative and whole as in §5.2."""
    rng, cells = np.random.default_rng(6), []
    sizes = [2**i for i in range(int(np.log2(len(counts))))]
    starts = {size: rng.integers(0, len(counts) - size + 1, n_ranges) for size in sizes}
    truth = running_sum(counts)
    for epsilon in EPSILONS:
        plan = binary_plan(len(counts), epsilon)
        errors = tree_errors(plan)
        squared: dict[str, FloatArray] = {}
        for run in range(runs):
            answer = estimators_of_ranges(counts, plan, errors, epsilon, KeyStream.from_insecure_seed(run))
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
    blocks = [zeroed[start:stop] for start, stop in zip(layout.level_starts[:-1], layout.level_starts[1:])]
    ours = running_sum(split_downwards(nodes, errors.from_below, layout.child_starts)[layout.leaves])
    unit = running_sum(np.maximum(flat, 0))
    raw = [np.maximum(level, 0) for level in noisy]
    return {
        "L̃": lambda first, last: unit[last] - unit[first],
        "H̃": lambda first, last: fewest_blocks(errors, raw, first, last)[0],
        "H̄ (zeroed subtrees)": lambda first, last: fewest_blocks(errors, blocks, first, last)[0],
        "H̄ (top-down)": lambda first, last: ours[last] - ours[first],
    }


def figure_7(name: str, counts: IntArray, runs: int) -> list[Cell]:
    """Where S̄ gains, ε = 1: mean squared error at positions of the sequence in falling order, beside the variance of
    S̃."""
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
            Cell(f"Figure 7, {name}", row, f"rank = {position}", None, float(value), "count or squared error")
            for row, value in values.items()
        ]
    return cells


def measured_theorem_4(errors: TreeErrors, first: IntArray, last: IntArray, runs: int) -> tuple[float, float]:
    """Mean squared errors of one range over seeded runs, from the fewest noisy blocks and after inference.

    The tree is empty, so that every answer is its own error: noise does not depend on the counts.
    """
    noise = DiscreteLaplace(Fraction(len(errors.variance)))
    starts, squared = errors.layout.level_starts, np.zeros(2)
    for run in range(runs):
        stream = KeyStream.from_insecure_seed(run)
        levels = [
            add_noise(np.zeros(n, dtype=np.int64), noise, stream, level=level, query="block")
            for level, n in enumerate(np.diff(starts).tolist())
        ]
        plain = float(fewest_blocks(errors, levels, first, last)[0][0])
        sums = running_sum(errors.node_estimates(levels)[errors.layout.leaves])
        squared += np.square([plain, float(sums[last[0]] - sums[first[0]])]) / runs
    return float(squared[0]), float(squared[1])


def theorem_4(height: int = 16, runs: int = 400) -> list[Cell]:
    """The range of all leaves but the first and the last, in a binary tree of 16 levels: H̄ against H̃, exactly.

    The paper bounds the gain from below by (2(ℓ − 1)(k − 1) − k)/3 = 9.33; the true gain is larger.
    """
    n_bins = 2 ** (height - 1)
    errors = tree_errors(binary_plan(n_bins, Fraction(1)))
    first, last = np.array([1]), np.array([n_bins - 1])
    blocks = [np.zeros(n, dtype=np.int64) for n in np.diff(errors.layout.level_starts)]
    without, _ = fewest_blocks(errors, blocks, first, last)[1:]
    inferred, _ = errors.moments(first, last)
    bound = (2 * (height - 1) - 2) / 3
    table, column = "Theorem 4 (iv)", f"height = {height}"
    noisy, consistent = measured_theorem_4(errors, first, last, runs)
    measured = f"gain of H̄ over H̃, measured in {runs} runs"
    return [
        Cell(table, measured, column, None, noisy / consistent, "ratio of mean squared errors"),
        Cell(table, "H̄: measured over predicted", column, None, consistent / float(inferred[0]), "ratio"),
        Cell(table, "gain of H̄ over H̃, at least", column, 9.33, bound, "ratio of variances"),
        Cell(table, "gain of H̄ over H̃, exactly", column, None, float(without[0] / inferred[0]), "ratio of variances"),
    ]
