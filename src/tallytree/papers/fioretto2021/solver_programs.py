"""The exact programs of fioretto2021, Models 1 and 2, through an open solver: the oracle for
everything faster.

Both minimise a sum of squares of whole unknowns. On whole numbers a square is a convex piecewise
linear function with a break at every integer, so a mixed-integer *linear* solver (HiGHS) finds the
exact optimum: each unknown x gets a cost c above all chords of its square, and chords are added
where the solution needs them until none is missing. Nothing is approximated. Chords are collected
without integrality first, which warm-started simplex does fast; the tree sums of Model 1 form a
network, so its solution is then whole already. Model 2 goes on with branch and bound.

Needs the extra ``solvers``. The relaxed programs go to a quadratic solver (OSQP), for comparison
with our own method.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tallytree.errors import MissingExtraError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.counts_tree import relax_counts
from tallytree.papers.fioretto2021.cumulative_tree import relax_cumulative
from tallytree.papers.fioretto2021.joint_fit import bounds_of, check_table, make_whole

if TYPE_CHECKING:
    import scipy.sparse as sp

DEFAULT_SECONDS = 600.0
# Objectives are whole numbers: a solution within less than 1 of the bound is optimal.
OPTIMAL_GAP = 0.999


@dataclass(frozen=True, eq=False)
class Solved:
    """Whole counts of every region and how they were found."""

    table: IntArray
    objective: int
    optimal: bool
    seconds: float
    detail: dict[str, Any]

    @property
    def facts(self) -> dict[str, Any]:
        """What the manifest says: whether the solver proved the optimum within its time."""
        return {"optimal": self.optimal, "seconds": round(self.seconds, 3), **self.detail}


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise Σ weight (x − target)² over whole x with ``lower ≤ matrix · x ≤ upper`` and ``0 ≤ x
    ≤ bound``.
    """

    target: IntArray
    weight: IntArray
    bound: IntArray
    matrix: sp.csr_matrix
    lower: FloatArray
    upper: FloatArray


def solve_counts(
    hierarchy: Hierarchy,
    noisy: IntArray,
    totals: IntArray | int,
    *,
    weights: IntArray | None = None,
    time_limit: float | None = None,
) -> Solved:
    """Model 1 exactly (M_H): whole counts that add up over the tree and to the public totals,
    closest to noisy ones.
    """
    check_table(hierarchy, noisy)
    require_solver()
    start = make_whole(
        hierarchy,
        np.cumsum(relax_counts(hierarchy, noisy, totals, weights=weights), axis=1),
        totals,
    )
    program = counts_program(hierarchy, noisy, totals, weights)
    return _solve(program, start, time_limit)


def solve_cumulative(
    hierarchy: Hierarchy,
    noisy: IntArray,
    totals: IntArray | int,
    *,
    weights: IntArray | None = None,
    time_limit: float | None = None,
) -> Solved:
    """Model 2 exactly (M_c): whole cumulative counts that rise and add up, closest to noisy ones;
    returned as counts.

    With totals per region the last column of ``noisy`` is not read.
    """
    check_table(hierarchy, noisy)
    require_solver()
    start = make_whole(hierarchy, relax_cumulative(hierarchy, noisy, totals).table, totals)
    target = noisy.copy()
    if np.ndim(totals) > 0:
        target[:, -1] = totals
    program = cumulative_program(hierarchy, target, totals, weights)
    solved = _solve(program, np.cumsum(start, axis=1), time_limit)
    return replace(solved, table=np.diff(solved.table, axis=1, prepend=0))


def counts_program(
    hierarchy: Hierarchy, noisy: IntArray, totals: IntArray | int, weights: IntArray | None
) -> Program:
    """Model 1; erratum (H2): the total holds at the root, or in every region with its own total."""
    import scipy.sparse as sp

    n_regions, n_sizes = noisy.shape
    bound = bounds_of(hierarchy, totals)
    sums = sp.kron(_tree_sums(hierarchy), sp.identity(n_sizes))
    rows = sp.kron(
        sp.identity(n_regions) if np.ndim(totals) else _first(n_regions), np.ones((1, n_sizes))
    )
    of_rows = bound if np.ndim(totals) else bound[:1]
    right = np.concatenate([np.zeros(sums.shape[0]), of_rows]).astype(np.float64)
    return Program(
        noisy.ravel(),
        _weight_per_cell(hierarchy, n_sizes, weights),
        np.repeat(bound, n_sizes),
        sp.csr_matrix(sp.vstack([sums, rows])),
        right,
        right,
    )


def cumulative_program(
    hierarchy: Hierarchy, noisy: IntArray, totals: IntArray | int, weights: IntArray | None
) -> Program:
    """Model 2; erratum (C2): with public totals of all regions every last cumulative count is
    fixed.
    """
    import scipy.sparse as sp

    n_regions, n_sizes = noisy.shape
    bound = bounds_of(hierarchy, totals)
    sums = sp.kron(_tree_sums(hierarchy), sp.identity(n_sizes))
    steps = sp.diags(
        [-np.ones(n_sizes - 1), np.ones(n_sizes - 1)], [0, 1], shape=(n_sizes - 1, n_sizes)
    )
    rises = sp.kron(sp.identity(n_regions), steps)
    last = sp.kron(
        sp.identity(n_regions) if np.ndim(totals) else _first(n_regions),
        _first(n_sizes, place=n_sizes - 1),
    )
    of_last = (bound if np.ndim(totals) else bound[:1]).astype(np.float64)
    lower = np.concatenate([np.zeros(sums.shape[0] + rises.shape[0]), of_last])
    upper = np.concatenate([np.zeros(sums.shape[0]), np.full(rises.shape[0], np.inf), of_last])
    return Program(
        noisy.ravel(),
        _weight_per_cell(hierarchy, n_sizes, weights),
        np.repeat(bound, n_sizes),
        sp.csr_matrix(sp.vstack([sums, rises, last])),
        lower,
        upper,
    )


def relax_by_solver(program: Program) -> FloatArray:
    """The program without integrality, by OSQP: real unknowns in the order of ``program.target``."""
    import scipy.sparse as sp

    try:
        import osqp
    except ImportError:
        raise MissingExtraError("The quadratic solver", "solvers") from None
    n = len(program.target)
    matrix = sp.csc_matrix(sp.vstack([program.matrix, sp.identity(n)]))
    lower = np.concatenate([program.lower, np.zeros(n)])
    upper = np.concatenate([program.upper, program.bound])
    solver = osqp.OSQP()
    quadratic = sp.csc_matrix(sp.diags(2.0 * program.weight))
    linear = -2.0 * program.weight * program.target
    solver.setup(
        quadratic,
        linear,
        matrix,
        lower,
        upper,
        verbose=False,
        eps_abs=1e-6,
        eps_rel=1e-6,
        max_iter=100_000,
        polishing=True,
    )
    return np.asarray(solver.solve(raise_error=True).x)


def require_solver() -> Any:
    """HiGHS, or an error that says which extra to install."""
    try:
        import highspy
    except ImportError:
        raise MissingExtraError("A mechanism that calls a solver", "solvers") from None
    return highspy


def _solve(program: Program, start: IntArray, time_limit: float | None) -> Solved:
    """Add chords until the solution of the linear program has its true cost; the best table seen is
    always kept.
    """
    began = time.perf_counter()
    limit = DEFAULT_SECONDS if time_limit is None else float(time_limit)
    best = start.ravel()
    best_cost = _cost(program, best)
    solver = _LinearSolver(program)
    # Chords around the starting table and around the noisy counts, where most unknowns end up.
    for base in (best - 1, best, best + 1, program.target, program.target - 1):
        solver.add_chords(np.arange(len(best)), np.clip(base, 0, np.maximum(program.bound - 1, 0)))
    rounds, optimal = 0, False
    while not optimal:
        remaining = limit - (time.perf_counter() - began)
        solution = solver.run(remaining) if remaining > 0 else None
        if solution is None:
            break
        rounds += 1
        values, costs = solution
        whole = np.rint(values).astype(np.int64)
        if np.abs(values - whole).max() < 1e-6 and _cost(program, whole) < best_cost:
            best, best_cost = whole, _cost(program, whole)
        # The solver's costs are a lower bound for every table; within less than 1 of a true cost
        # they prove it optimal.
        optimal = best_cost - float(costs.sum()) < OPTIMAL_GAP
        if not optimal and not solver.add_missing_chords(values, costs):
            solver.ask_for_whole_numbers()
    detail = {"solver": f"HiGHS {solver.version}", "rounds": rounds, "time limit": limit}
    return Solved(
        best.reshape(start.shape), best_cost, optimal, time.perf_counter() - began, detail
    )


def _cost(program: Program, whole: IntArray) -> int:
    return int((program.weight * (whole - program.target) ** 2).sum())


class _LinearSolver:
    """The mixed-integer linear program over (x, c), kept between rounds."""

    def __init__(self, program: Program) -> None:
        import scipy.sparse as sp

        highspy = require_solver()
        self._program = program
        n = len(program.target)
        self._n = n
        matrix = sp.csc_matrix(
            sp.hstack([program.matrix, sp.csr_matrix((program.matrix.shape[0], n))])
        )
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = 2 * n, matrix.shape[0]
        lp.col_cost_ = np.concatenate([np.zeros(n), np.ones(n)])
        lp.col_lower_ = np.zeros(2 * n)
        lp.col_upper_ = np.concatenate([program.bound.astype(np.float64), np.full(n, np.inf)])
        lp.row_lower_, lp.row_upper_ = program.lower, program.upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = (
            matrix.indptr,
            matrix.indices,
            matrix.data,
        )
        self._integer = int(highspy.HighsVarType.kInteger)
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("mip_rel_gap", 0.0)
        self._highs.setOptionValue("mip_abs_gap", OPTIMAL_GAP / 2)
        self._highs.passModel(lp)
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._seen: set[tuple[int, int]] = set()
        self.version = self._highs.version()

    def ask_for_whole_numbers(self) -> None:
        """From now on branch and bound."""
        unknowns = np.arange(self._n, dtype=np.int32)
        self._highs.changeColsIntegrality(
            self._n, unknowns, np.full(self._n, self._integer, dtype=np.uint8)
        )

    def add_missing_chords(self, values: FloatArray, costs: FloatArray) -> bool:
        """Add the chords that the solution lies below; False when there is none."""
        lowest = np.clip(np.floor(values + 1e-9), 0, np.maximum(self._program.bound - 1, 0)).astype(
            np.int64
        )
        weight, y = self._program.weight, self._program.target
        chord = weight * ((lowest - y) ** 2 + (2 * lowest + 1 - 2 * y) * (values - lowest))
        short = np.flatnonzero(costs < chord - 1e-6)
        return (
            self.add_chords(short, lowest[short])
            + self.add_chords(short, np.maximum(lowest[short] - 1, 0))
            > 0
        )

    def add_chords(self, unknowns: IntArray, base: IntArray) -> int:
        """Bound the cost of each unknown from below by the chord of its square from ``base`` to
        ``base + 1``.
        """
        fresh = [
            (int(i), int(k)) for i, k in zip(unknowns, base) if (int(i), int(k)) not in self._seen
        ]
        if not fresh:
            return 0
        self._seen.update(fresh)
        i, k = np.array(fresh).T
        weight, y = self._program.weight[i], self._program.target[i]
        slope = weight * (2 * k + 1 - 2 * y)
        # c − slope · x ≥ weight (k − y)² − slope · k
        right = (weight * (k - y) ** 2 - slope * k).astype(np.float64)
        index = np.column_stack([i, self._n + i]).ravel().astype(np.int32)
        value = np.column_stack([-slope, np.ones(len(i))]).ravel().astype(np.float64)
        starts = (2 * np.arange(len(i))).astype(np.int32)
        self._highs.addRows(
            len(i), right, np.full(len(i), np.inf), len(index), starts, index, value
        )
        return len(fresh)

    def run(self, seconds: float) -> tuple[FloatArray, FloatArray] | None:
        """Unknowns and their costs at the optimum, or None when the time is over first."""
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + seconds)
        self._highs.run()
        if self._highs.getModelStatus() != self._optimal:
            return None
        values = np.asarray(self._highs.getSolution().col_value)
        return values[: self._n], values[self._n :]


def _tree_sums(hierarchy: Hierarchy) -> sp.csr_matrix:
    """Row per internal region: its children minus itself."""
    import scipy.sparse as sp

    n_internal = int(hierarchy.level_starts[-2])
    child = np.arange(1, hierarchy.n_regions)
    rows = np.concatenate([hierarchy.parent[1:], np.arange(n_internal)])
    columns = np.concatenate([child, np.arange(n_internal)])
    signs = np.concatenate([np.ones(len(child)), -np.ones(n_internal)])
    return sp.csr_matrix((signs, (rows, columns)), shape=(n_internal, hierarchy.n_regions))


def _first(n: int, place: int = 0) -> sp.csr_matrix:
    import scipy.sparse as sp

    return sp.csr_matrix(([1.0], ([0], [place])), shape=(1, n))


def _weight_per_cell(hierarchy: Hierarchy, n_sizes: int, weights: IntArray | None) -> IntArray:
    per_level = (
        np.ones(hierarchy.n_levels, dtype=np.int64)
        if weights is None
        else np.asarray(weights, dtype=np.int64)
    )
    return np.repeat(per_level[hierarchy.level_of], n_sizes)
