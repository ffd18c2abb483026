"""The dynamic program of fioretto2021 §6 with full cost tables and one constraint program per entry
(M_dp^OP).

A baseline, for small instances: it shows what the structure of the cost tables (§7) saves. Every
region and size has a table of costs τ(v) over a window of values around its noisy count; τ(v) adds
φ(v), the cheapest choice of one entry per child table with sum v, which a solver finds (each child
table is a set of 0-1 unknowns, one of which is 1). Needs the extra ``solvers``.

Erratum (footnote 2): the paper fixes the window at three times the noise variance. Here a window is
doubled and the program run again as long as an optimum lies on an edge that is not a real bound,
since beyond that edge it might be cheaper.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.counts_tree import relax_counts
from tallytree.papers.fioretto2021.joint_fit import check_table, make_whole
from tallytree.papers.fioretto2021.solver_programs import DEFAULT_SECONDS, Solved, require_solver


class _OutOfTimeError(Exception):
    """The time limit of a run is over."""


@dataclass(frozen=True, eq=False)
class CostTable:
    """Costs of the values ``first``, ``first + 1``, …; infinite where no choice below reaches the
    value.
    """

    first: int
    cost: FloatArray

    @property
    def last(self) -> int:
        """Largest value of the table."""
        return self.first + len(self.cost) - 1


class SplitProgram:
    """One entry per child table, with a given sum and the least total cost: Equations (4b) to (4d)."""

    def __init__(self, children: list[CostTable]) -> None:
        highspy = require_solver()
        self._children = children
        values = np.concatenate([np.arange(table.first, table.last + 1) for table in children])
        costs = np.concatenate([table.cost for table in children])
        self._owner = np.repeat(np.arange(len(children)), [len(table.cost) for table in children])
        self._value = values
        reachable = np.isfinite(costs)
        n = len(values)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n, len(children) + 1
        lp.col_cost_ = np.where(reachable, costs, 0.0)
        lp.col_lower_, lp.col_upper_ = np.zeros(n), reachable.astype(np.float64)
        lp.row_lower_ = lp.row_upper_ = np.append(np.ones(len(children)), 0.0)
        # Column: 1 in the row of its child, its value in the row of the sum.
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = 2 * np.arange(n + 1)
        lp.a_matrix_.index_ = np.column_stack([self._owner, np.full(n, len(children))]).ravel()
        lp.a_matrix_.value_ = np.column_stack([np.ones(n), values]).ravel().astype(np.float64)
        lp.integrality_ = [highspy.HighsVarType.kInteger] * n
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("mip_rel_gap", 0.0)
        self._highs.passModel(lp)
        self._optimal = highspy.HighsModelStatus.kOptimal

    def solve(self, total: int) -> tuple[float, list[int]] | None:
        """Least cost and the chosen values, or None where no choice has this sum."""
        self._highs.changeRowBounds(len(self._children), float(total), float(total))
        self._highs.run()
        if self._highs.getModelStatus() != self._optimal:
            return None
        chosen = np.asarray(self._highs.getSolution().col_value) > 0.5
        values = [int(v) for v in self._value[chosen]]
        cost = sum(table.cost[v - table.first] for table, v in zip(self._children, values))
        return float(cost), values


@dataclass
class _Run:
    """One pass of the dynamic program over given windows."""

    hierarchy: Hierarchy
    noisy: IntArray
    weights: IntArray
    windows: tuple[IntArray, IntArray]
    deadline: float
    programs: int = 0

    def table_of(
        self, region: int, size: int, splits: dict[tuple[int, int], SplitProgram]
    ) -> CostTable:
        """Bottom up: τ of a region and size; keeps the split program for the way down."""
        low, high = int(self.windows[0][region, size]), int(self.windows[1][region, size])
        values = np.arange(low, high + 1)
        own = (
            self.weights[self.hierarchy.level_of[region]] * (values - self.noisy[region, size]) ** 2
        )
        children = self._children(region)
        if not len(children):
            return CostTable(low, own.astype(np.float64))
        split = SplitProgram([self.table_of(child, size, splits) for child in children])
        splits[region, size] = split
        return CostTable(low, own + np.array([self._phi(split, int(v)) for v in values]))

    def _phi(self, split: SplitProgram, value: int) -> float:
        if time.perf_counter() > self.deadline:
            raise _OutOfTimeError
        self.programs += 1
        solved = split.solve(value)
        return np.inf if solved is None else solved[0]

    def _children(self, region: int) -> range:
        return range(
            int(self.hierarchy.child_starts[region]), int(self.hierarchy.child_starts[region + 1])
        )

    def solve(self, total: int) -> IntArray | None:
        """The optimal table within the windows, or None where none adds up to the total."""
        splits: dict[tuple[int, int], SplitProgram] = {}
        n_sizes = self.noisy.shape[1]
        roots = [self.table_of(0, size, splits) for size in range(n_sizes)]
        self.programs += 1
        top = SplitProgram(roots).solve(total)
        if top is None:
            return None
        table = np.empty(self.noisy.shape, dtype=np.int64)
        for size, value in enumerate(top[1]):
            table[0, size] = value
            for region in range(int(self.hierarchy.level_starts[-2])):
                solved = splits[region, size].solve(int(table[region, size]))
                assert solved is not None  # the value was chosen from a finite entry of the table
                table[self._children(region), size] = solved[1]
        return table


def solve_by_cost_tables(
    hierarchy: Hierarchy,
    noisy: IntArray,
    total: int,
    half_width: int,
    *,
    weights: IntArray | None = None,
    time_limit: float | None = None,
) -> Solved:
    """Model 1 with the root's total, exactly.

    Parameters
    ----------
    half_width
        How far the first windows reach to both sides of the noisy counts.
    time_limit
        Seconds; when they are over, a consistent table that is not proved optimal is returned.
    """
    check_table(hierarchy, noisy)
    require_solver()
    began = time.perf_counter()
    deadline = began + (DEFAULT_SECONDS if time_limit is None else time_limit)
    per_level = np.ones(hierarchy.n_levels, dtype=np.int64) if weights is None else weights
    centre = np.clip(noisy, 0, total)
    width = np.full(noisy.shape, half_width)
    programs, widened, optimal = 0, 0, False
    table = make_whole(
        hierarchy, np.cumsum(relax_counts(hierarchy, noisy, total, weights=weights), axis=1), total
    )
    try:
        while not optimal:
            low, high = np.maximum(centre - width, 0), np.minimum(centre + width, total)
            run = _Run(hierarchy, noisy, per_level, (low, high), deadline)
            try:
                found = run.solve(total)
            finally:
                programs += run.programs
            if found is None:
                width *= 2
                widened += 1
                continue
            on_edge = ((found == low) & (low > 0)) | ((found == high) & (high < total))
            table, optimal = found, not on_edge.any()
            width[on_edge] *= 2
            widened += int(not optimal)
    except _OutOfTimeError:
        pass
    cost = int((per_level[hierarchy.level_of][:, None] * (table - noisy) ** 2).sum())
    detail: dict[str, Any] = {"programs": programs, "windows widened": widened}
    return Solved(table, cost, optimal, time.perf_counter() - began, detail)
