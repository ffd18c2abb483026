"""What the slides state about bins that hold enough: the average-case error of a flat histogram, and
the rule of 5/ε entities per bin.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from tallytree.maps.publish import spatial
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.papers.cells import Cell, mean_of_runs
from tallytree.privacy.noise import DiscreteLaplace, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.strategies.density import LEAST_COUNT

# How many times the 5/ε of the rule a bin holds.
DENSITIES = (Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(3))
EPSILON = Fraction(1, 10)


def formula_cells(histograms: Mapping[str, IntArray], runs: int) -> list[Cell]:
    """Both, the second on histograms by name."""
    cells = [cell for n_bins in (16, 256) for cell in average_case(n_bins, 50 * runs)]
    for name, counts in histograms.items():
        for density in DENSITIES:
            cells += dense_rule(name, counts, density, runs)
    return cells


def average_case(n_bins: int, runs: int) -> list[Cell]:
    """Mean squared error of all ranges of a flat histogram: (m + 2)/3 · 2/ε² beside measured ones."""
    table, row = "Average-case MSE, flat", f"m = {n_bins}"
    noise = DiscreteLaplace(1 / EPSILON)
    errors = []
    for run in range(runs):
        stream = KeyStream.from_insecure_seed(run)
        empty = np.zeros(n_bins, dtype=np.int64)
        errors.append(mean_square_of_ranges(add_noise(empty, noise, stream, level=0, query="bin")))
    mean, spread = mean_of_runs(errors)
    formula = (n_bins + 2) / 3 * 2 * float(1 / EPSILON) ** 2
    column, unit = f"ε = {float(EPSILON):g}", "squared error"
    remark = "noise in whole numbers has 0.999 of that variance"
    return [Cell(table, row, column, formula, mean, unit, spread, remark)]


def mean_square_of_ranges(errors: IntArray | FloatArray) -> float:
    """Mean over all ranges of the square of a sum: of the differences of all pairs of running sums.

    Σ over s < t of (X_t − X_s)² = n Σ X² − (Σ X)² for the n = m + 1 running sums.
    """
    sums = np.concatenate([[0.0], np.cumsum(errors)])
    n = len(sums)
    return float(n * np.square(sums).sum() - sums.sum() ** 2) / (n * (n - 1) / 2)


def dense_rule(name: str, counts: IntArray, density: Fraction, runs: int) -> list[Cell]:
    """Bins that hold ``density`` times 5/ε on average: the noise of one over its mean count, and
    what bins measured one by one cost beside merged ones.

    ε is what makes the histogram so dense. A tenth is where this package begins to warn; between a
    tenth and one the rule is broken and a histogram still worth something: its noise is 283 to 28 %
    of a mean count.
    """
    table = "The rule of 5/ε"
    row, column = name, f"{float(density):.2g} times 5/ε"
    epsilon = (density * Fraction(LEAST_COUNT) * len(counts) / int(counts.sum())).limit_denominator(
        10**6
    )
    noise = DiscreteLaplace(1 / epsilon)
    merged = []
    for seed in range(runs):
        made = spatial(
            counts=counts,
            mechanism="noisy-merge",
            epsilon=epsilon,
            nonnegative=False,
            integers=False,
            insecure_seed=seed,
        )
        merged.append(float(np.square(made.surface.density - counts).mean()) / noise.variance)
    mean, spread = mean_of_runs(merged)
    relative = float(noise.variance**0.5 / counts.mean())
    return [
        Cell(table, row, f"{column}: noise of a bin", None, relative, "of a mean count"),
        Cell(
            table,
            row,
            f"{column}: noisy-merge",
            None,
            mean,
            "squared error over that of single bins",
            spread,
        ),
    ]
