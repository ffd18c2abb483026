"""Figures 2 and 4 of qardaji2013 in numbers, exactly; the paper plots them without printing any.
Figure 3 is in :mod:`tallytree.papers.qardaji2013.figure_3`.
"""

from __future__ import annotations

from tallytree.model.range_tree import RangeTree
from tallytree.options.choices import Allocation
from tallytree.papers.cells import Cell
from tallytree.strategies.branching import regular_tree_error
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
