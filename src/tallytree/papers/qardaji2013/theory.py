"""What §3.3 of qardaji2013 states about constrained inference, beside exact values: Propositions 3
and 4, the gain of two adjacent levels, and the example of Figure 1.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tallytree.model.range_tree import RangeTree
from tallytree.papers.cells import Cell, verdict
from tallytree.privacy.budget import Budget
from tallytree.ranges.plan import plan_histogram
from tallytree.strategies.branching import regular_tree_error
from tallytree.strategies.estimates import range_errors
from tallytree.strategies.formulas import node_variance_bound, node_variances
from tallytree.strategies.level_budgets import equal_shares
from tallytree.strategies.strategies import TreeStrategy
from tallytree.strategies.tree import TreeErrors, fewest_blocks

UNIT = "variance over V_O"
DEEP = 12


def theory_cells() -> list[Cell]:
    """All rows of §3.3."""
    return [*proposition_3(), *proposition_4(), *two_levels(), *figure_1()]


def proposition_3() -> list[Cell]:
    """V↓ of the first levels of H_2, printed as 1, 2/3, 4/7, 8/15."""
    below = node_variances(2, [1.0] * DEEP).from_below
    printed = (1.0, 2 / 3, 4 / 7, 8 / 15)
    return [
        Cell("Proposition 3", "H_2, weighted averaging", f"level {i + 1}", paper, below[i], UNIT)
        for i, paper in enumerate(printed)
    ]


def final_variances(branching: int, n_levels: int) -> list[float]:
    """Variance of a node of every level after inference, the bins first: V↑ and the sum of children
    combined.
    """
    below, above = node_variances(branching, [1.0] * n_levels)
    children = [branching * variance for variance in below[:-1]]
    combined = [one * two / (one + two) for one, two in zip(children, above[1:])]
    return [above[0], *combined]


def proposition_4() -> list[Cell]:
    """After inference no node is below (b − 1)/(b + 1); the middle comes near, the ends are near
    (b − 1)/b.
    """
    cells = []
    for branching in (2, 4, 16):
        row, found = f"b = {branching}, {DEEP} levels", final_variances(branching, DEEP)
        bound = float(node_variance_bound(branching))
        above = verdict(min(found) >= bound, "all levels at or above the bound")
        cells += [
            Cell("Proposition 4", row, "least of all levels", bound, min(found), UNIT, None, above),
            Cell(
                "Proposition 4",
                row,
                "bins",
                (branching - 1) / branching,
                found[0],
                UNIT,
                remark="§3.3: the lowest and highest levels are closer to (b − 1)/b",
            ),
        ]
    return cells


def two_level_gain(branching: int) -> float:
    """The mean variance of k = 1 … b − 1 siblings from below and from above, over that without
    inference, b/2 nodes, with (b − 1)/b for V↑ and V↓: what the paper sums in closed form.
    """
    b, v = branching, (branching - 1) / branching
    combined = [k * v * (v + (b - k) * v) / (v + b * v) for k in range(1, b)]
    return float(np.mean(combined)) / (b / 2)


def two_levels() -> list[Cell]:
    """The gain (b − 1)(b + 4)/(3b(b + 1)) beside its sum, and beside the exact gain of deep trees."""
    cells = []
    for branching, levels in ((2, 16), (4, 8), (16, 4)):
        b, n_bins = branching, branching**levels
        formula = (b - 1) * (b + 4) / (3 * b * (b + 1))
        exact = regular_tree_error(n_bins, b) / regular_tree_error(n_bins, b, consistent=False)
        table, row, unit = "§3.3 gain of inference", f"b = {b}", "variance left"
        cells += [
            Cell(table, row, "two levels, summed", formula, two_level_gain(b), unit),
            Cell(
                table,
                row,
                f"all ranges, exactly, N = 2^{round(np.log2(n_bins))}",
                formula,
                exact,
                unit,
                remark="the paper: too good for the lowest and highest level, too bad for b = 2",
            ),
        ]
    return cells


def figure_1() -> list[Cell]:
    """The first three bins of eight, b = 2, the root not counted: Var[q] = 399/441 V_O, before 2."""
    tree = RangeTree.regular(8, 2)
    strategy = TreeStrategy("hierarchical", tree, equal_shares(tree.n_levels))
    plan = plan_histogram(strategy, Budget("pure", Fraction(1)))
    errors = range_errors(plan.strategy, plan.noise)
    assert isinstance(errors, TreeErrors)
    first, last = np.array([0]), np.array([3])
    empty = [np.zeros(tree.n_blocks(level), dtype=np.int64) for level in range(tree.n_levels)]
    own = float(errors.variance[0])
    after = float(errors.moments(first, last)[0][0]) / own
    before = float(fewest_blocks(errors, empty, first, last)[1][0]) / own
    return [
        Cell("§3.3, Figure 1", "first 3 of 8 bins", "before inference", 2.0, before, UNIT),
        Cell("§3.3, Figure 1", "first 3 of 8 bins", "after inference", 399 / 441, after, UNIT),
    ]
