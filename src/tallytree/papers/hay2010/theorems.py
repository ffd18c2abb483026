"""The theorems of hay2010, measured: Theorem 2 and Appendix E bound errors, Theorem 4 (iv) states
what consistency gains.

Theorem 2 has constants that the paper does not give: shown is the least constant c = c₁ = c₂ with
which its bound holds. Appendix E prints its condition on ε without the number of records N; an
absolute error of at most ε N is what it means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from tallytree.kernels.isotonic import isotonic_l2
from tallytree.kernels.range_moments import running_sum
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.range_tree import RangeTree
from tallytree.papers.cells import Cell, mean_of_runs, ratio_of_means
from tallytree.privacy.budget import Budget
from tallytree.privacy.noise import DiscreteLaplace, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.ranges.plan import HistogramPlan, plan_histogram
from tallytree.strategies.estimates import range_errors
from tallytree.strategies.level_budgets import equal_shares
from tallytree.strategies.strategies import TreeStrategy
from tallytree.strategies.tree import TreeErrors, fewest_blocks

# Epsilon of Theorem 2's runs: small enough that noise in whole numbers is as good as Laplace's.
THEOREM_2_EPSILON = Fraction(1, 10)


def binary_plan(n_bins: int, epsilon: Fraction) -> HistogramPlan:
    """The paper's tree: binary, the whole domain counted too, the same noise on every level."""
    tree = RangeTree.regular(n_bins, 2, count_total=True)
    return plan_histogram(
        TreeStrategy("hierarchical", tree, equal_shares(tree.n_levels)), Budget("pure", epsilon)
    )


def tree_errors(plan: HistogramPlan) -> TreeErrors:
    """The errors of a plan over a tree."""
    errors = range_errors(plan.strategy, plan.noise)
    assert isinstance(errors, TreeErrors)
    return errors


def theorem_2(sequences: Mapping[str, IntArray], runs: int) -> list[Cell]:
    """Squared error of S̄, the plain least-squares fit, times ε², beside Σ (ln³ n_i + 1) over the d
    distinct counts.

    Equal counts, d = 1, show how the error grows with their number: like a power of its logarithm,
    not like n.
    """
    noise, epsilon = DiscreteLaplace(1 / THEOREM_2_EPSILON), float(THEOREM_2_EPSILON)
    equal = {f"{n:,} equal counts": np.full(n, 50) for n in (100, 10_000, 100_000)}
    cells, table = [], "Theorem 2"
    for name, counts in {**equal, **sequences}.items():
        exact, squared = np.sort(counts), []
        for run in range(runs):
            noisy = add_noise(
                exact, noise, KeyStream.from_insecure_seed(run), level=0, query="sorted"
            )
            squared.append(float(np.square(isotonic_l2(noisy) - exact).sum()) * epsilon**2)
        alike = np.unique(exact, return_counts=True)[1]
        bound = float((np.log(alike) ** 3 + 1).sum())
        mean, spread = mean_of_runs(squared)
        share = None if spread is None else spread / bound
        cells += [
            Cell(table, name, "distinct counts d", None, float(len(alike)), "number"),
            Cell(table, name, "error of S̄, measured", None, mean, "squared error times ε²", spread),
            Cell(
                table,
                name,
                "error of S̃",
                None,
                noise.variance * len(exact) * epsilon**2,
                "squared error times ε²",
            ),
            Cell(table, name, "Σ (ln³ n_i + 1)", None, bound, "bound for c = 1"),
            Cell(table, name, "least c", None, mean / bound, "constant", share),
        ]
    return cells


def appendix_e(n_bins: int, runs: int, delta: float = 0.05) -> list[Cell]:
    """Largest error of all ranges at once, beside 16 ℓ^(3/2) ln(2n²/δ)/α, which holds with
    probability 1 − δ at least.
    """
    table, cells = f"Appendix E, {n_bins:,} bins, δ = {delta:g}", []
    first, last = np.triu_indices(n_bins + 1, k=1)
    for alpha in (Fraction(1), Fraction(1, 10)):
        plan = binary_plan(n_bins, alpha)
        errors = tree_errors(plan)
        levels, column = len(errors.variance), f"alpha = {float(alpha):g}"
        bound = 16 * levels**1.5 * math.log(2 * n_bins**2 / delta) / float(alpha)
        noisy, consistent = np.zeros(runs), np.zeros(runs)
        for run in range(runs):
            blocks = empty_tree(errors, DiscreteLaplace(levels / alpha), run)
            noisy[run] = np.abs(fewest_blocks(errors, blocks, first, last)[0]).max()
            sums = running_sum(errors.node_estimates(blocks)[errors.layout.leaves])
            consistent[run] = sums.max() - sums.min()
        cells += [
            Cell(table, "bound on the error of all ranges", column, None, bound, "absolute error"),
            Cell(
                table,
                f"H̃, largest error, {1 - delta:.0%} of {runs} runs",
                column,
                None,
                float(np.quantile(noisy, 1 - delta)),
                "absolute error",
                spread_of_quantile(noisy, 1 - delta),
            ),
            Cell(
                table,
                f"H̄, largest error, {1 - delta:.0%} of {runs} runs",
                column,
                None,
                float(np.quantile(consistent, 1 - delta)),
                "absolute error",
                spread_of_quantile(consistent, 1 - delta),
            ),
            Cell(
                table,
                "runs of H̃ within the bound",
                column,
                None,
                *_mean_and_unit((noisy <= bound).tolist(), "share"),
            ),
            Cell(table, "records for an error of 1 %", column, None, 100 * bound, "number N"),
        ]
    return cells


def _mean_and_unit(values: Sequence[float], unit: str) -> tuple[float, str, float | None]:
    """Mean, unit and spread, in the order of a cell."""
    mean, spread = mean_of_runs(values)
    return mean, unit, spread


def spread_of_quantile(values: FloatArray, share: float) -> float:
    """One standard deviation of a quantile of runs, from the places in their order where it may be.

    The number of runs below the true quantile is binomial, n·share with variance n·share·(1 −
    share): half the distance between the values one standard deviation of places down and up.
    """
    n, ordered = len(values), np.sort(values)
    away = math.sqrt(n * share * (1 - share))
    low, high = (int(np.clip(round(n * share + side * away), 1, n)) - 1 for side in (-1, 1))
    return float(ordered[high] - ordered[low]) / 2


def blum_bound(n_bins: int = 2**15, delta: float = 0.05, share: float = 0.01) -> list[Cell]:
    """The records that make all ranges useful, after both formulas of Appendix E with constants 1.

    The O(·) of Blum et al. has no constant in the paper, so only how the two grow compares: with
    1/ε against 1/ε³, and with the domain as log^(5/2) n against log n · log log n. ``share`` is
    the paper's ε, the error as a share of the records; α = 1.
    """
    table, height = "Appendix E beside Blum et al.", math.log2(n_bins) + 1

    def ours(share: float) -> float:
        return 16 * height**1.5 * math.log(2 * n_bins**2 / delta) / share

    def theirs(share: float) -> float:
        log_n = math.log(n_bins)
        return log_n * (math.log(log_n) + math.log(1 / (share * delta))) / share**3

    row, unit = f"{n_bins:,} bins, δ = {delta:g}, α = 1", "records N"
    return [
        Cell(table, row, f"H̃, error of {share:.0%}", None, ours(share), unit),
        Cell(
            table,
            row,
            f"Blum et al., error of {share:.0%}",
            None,
            theirs(share),
            unit,
            remark="its O(·) taken with a constant of 1, which the paper does not give",
        ),
        Cell(
            table, row, "H̃, for a tenth of the error", 10.0, ours(share / 10) / ours(share), "times"
        ),
        Cell(
            table,
            row,
            "Blum et al., for a tenth of the error",
            1000.0,
            theirs(share / 10) / theirs(share),
            "times",
            remark="the printed order 1/ε³; log(1/ε) adds the rest",
        ),
        Cell(
            table,
            row,
            "absolute error of Blum et al. with 8 times the records",
            4.0,
            8 ** (2 / 3),
            "times",
            remark="O(N^(2/3)); that of H̃ does not change",
        ),
    ]


def empty_tree(errors: TreeErrors, noise: DiscreteLaplace, seed: int) -> list[IntArray]:
    """Noisy blocks of a tree without entities, so that every answer is its own error: noise does
    not depend on the counts.
    """
    stream = KeyStream.from_insecure_seed(seed)
    return [
        add_noise(np.zeros(n, dtype=np.int64), noise, stream, level=level, query="block")
        for level, n in enumerate(np.diff(errors.layout.level_starts).tolist())
    ]


def measured_theorem_4(
    errors: TreeErrors, first: IntArray, last: IntArray, runs: int
) -> tuple[list[float], list[float]]:
    """Squared errors of one range in seeded runs, from the fewest noisy blocks and after inference."""
    noise = DiscreteLaplace(Fraction(len(errors.variance)))
    noisy, consistent = [], []
    for run in range(runs):
        levels = empty_tree(errors, noise, run)
        noisy.append(float(fewest_blocks(errors, levels, first, last)[0][0]) ** 2)
        sums = running_sum(errors.node_estimates(levels)[errors.layout.leaves])
        consistent.append(float(sums[last[0]] - sums[first[0]]) ** 2)
    return noisy, consistent


def theorem_4(height: int = 16, runs: int = 400) -> list[Cell]:
    """The range of all leaves but the first and the last, in a binary tree of 16 levels: H̄ against
    H̃, exactly.

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
    gain, spread = ratio_of_means(noisy, consistent)
    return [
        Cell(table, measured, column, None, gain, "ratio of mean squared errors", spread),
        Cell(
            table,
            "H̄: measured over predicted",
            column,
            None,
            *_mean_and_unit([value / float(inferred[0]) for value in consistent], "ratio"),
        ),
        Cell(table, "gain of H̄ over H̃, at least", column, 9.33, bound, "ratio of variances"),
        Cell(
            table,
            "gain of H̄ over H̃, exactly",
            column,
            None,
            float(without[0] / inferred[0]),
            "ratio of variances",
        ),
    ]
