"""Figure 7 of fioretto2021: run time against the number of sizes, exact programs through open
solvers beside our own.

The solvers are the best open ones at hand: HiGHS for the integer programs, with squares written as
chords, OSQP for the relaxation. Each gets the same noisy tables and a time limit; a row stops where
the limit is reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.papers.cells import Cell, mean_of_runs
from tallytree.papers.fioretto2021.chain import fit_chains
from tallytree.papers.fioretto2021.cost_tables import solve_by_cost_tables
from tallytree.papers.fioretto2021.counts_tree import relax_counts
from tallytree.papers.fioretto2021.cumulative_tree import fit_cumulative_then_tree, relax_cumulative
from tallytree.papers.fioretto2021.joint_fit import make_whole
from tallytree.papers.fioretto2021.kernels.allocation import allocate_over_tree
from tallytree.papers.fioretto2021.runs import Exact, Noisy
from tallytree.papers.fioretto2021.solver_programs import (
    counts_program,
    cumulative_program,
    relax_by_solver,
    require_solver,
    solve_counts,
    solve_cumulative,
)
from tallytree.papers.fioretto2021.topdown import fit_top_down

EPSILON = Fraction(1)
REPEATS = 5
# Taxi zones per borough of New York, and taxis (§11).
ZONES = {"Bronx": 43, "Brooklyn": 61, "EWR": 1, "Manhattan": 69, "Queens": 69, "Staten Island": 20}
N_TAXIS = 13_282
MOST_PICKUPS = 64


def synthetic_taxis(seed: int = 0) -> Exact:
    """Taxis by number of pickups in each of 263 zones, SYNTHETIC, for the sweep where no taxi data
    is at hand.
    """
    rng = np.random.default_rng(seed)
    leaves = [(borough, f"zone {zone:02d}") for borough, n in ZONES.items() for zone in range(n)]
    hierarchy = hierarchy_from_leaves(["borough", "zone"], leaves, root="New York")
    busy = rng.lognormal(sigma=1.5, size=(len(leaves), 1))
    few = (1.0 + np.arange(MOST_PICKUPS)) ** -1.5
    zones = rng.poisson(N_TAXIS * busy / busy.max() * few / few.sum())
    levels = [zones, hierarchy.sum_to_parents(2, zones)]
    levels.append(hierarchy.sum_to_parents(1, levels[-1]))
    return Exact(hierarchy, np.concatenate(levels[::-1]))


def fast_programs(exact: Exact, noisy: Noisy) -> dict[str, Callable[[], Any]]:
    """Our own methods on one instance."""
    tree, total = exact.hierarchy, exact.total
    counts, cumulative, chains = noisy.counts(), noisy.cumulative(), noisy.chains(sound=True)
    return {
        "M_H^dp (tree-dp)": lambda: allocate_over_tree(tree, counts, total),
        "M_H^r (tree-relaxed)": lambda: relax_counts(tree, counts, total),
        "M_c^dp (cumulative-dp)": lambda: fit_cumulative_then_tree(tree, cumulative, total),
        "M_c^r (cumulative-relaxed)": lambda: make_whole(
            tree, relax_cumulative(tree, cumulative, total).table, total
        ),
        "M_c^ch (chain)": lambda: fit_chains(tree, chains, total),
        "TopDown": lambda: fit_top_down(tree, counts, total),
    }


def solver_programs(exact: Exact, noisy: Noisy, seconds: float) -> dict[str, Callable[[], Any]]:
    """The same instance through open solvers; the result says whether it was solved in time."""
    tree, total = exact.hierarchy, exact.total
    counts, cumulative = noisy.counts(), noisy.cumulative()
    half_width = 3 * int(2 * (2 * tree.n_levels / EPSILON) ** 2)
    return {
        "M_H (tree-exact), HiGHS": lambda: (
            solve_counts(tree, counts, total, time_limit=seconds).optimal
        ),
        "M_H^r, OSQP": lambda: (
            relax_by_solver(counts_program(tree, counts, total, None)) is not None
        ),
        "M_c (cumulative-exact), HiGHS": lambda: (
            solve_cumulative(tree, cumulative, total, time_limit=seconds).optimal
        ),
        "M_c^r, OSQP": lambda: (
            relax_by_solver(cumulative_program(tree, cumulative, total, None)) is not None
        ),
        "M_dp^OP (tree-program), HiGHS": lambda: (
            solve_by_cost_tables(tree, counts, total, half_width, time_limit=seconds).optimal
        ),
    }


def seconds_of(work: Callable[[], Any], repeats: int) -> tuple[list[float], Any]:
    """Times of several runs, and the last result."""
    times = []
    result = None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return times, result


def scaling_cells(exact: Exact, sweep: Sequence[int], solver_seconds: float) -> Iterator[Cell]:
    """Seconds of every method for growing numbers of sizes; None where a solver ran out of time."""
    require_solver()
    given_up: set[str] = set()
    table, unit = "Figure 7", "seconds"
    for n_sizes in sweep:
        small, column = exact.cut(n_sizes), f"N = {n_sizes}"
        noisy = Noisy(small, EPSILON, seed=0)
        for name, work in fast_programs(small, noisy).items():
            times, _ = seconds_of(work, REPEATS)
            mean, spread = mean_of_runs(times[1:])  # the first compiles kernels
            yield Cell(table, name, column, None, mean, unit, spread)
        for name, work in solver_programs(small, noisy, solver_seconds).items():
            times, solved = ([0.0], False) if name in given_up else seconds_of(work, 1)
            if not solved:
                given_up.add(name)
            yield Cell(
                table,
                name,
                column,
                None,
                times[0] if solved else None,
                unit,
                remark="one run" if solved else f"not solved in {solver_seconds:g} s",
            )
