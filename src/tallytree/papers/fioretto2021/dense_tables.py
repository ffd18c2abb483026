"""The mechanisms of fioretto2021: from noisy measurements of all levels to one consistent table of
regions × sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tallytree.group_sizes.mechanisms import TRAITS
from tallytree.group_sizes.plan.plan import Plan, half_width
from tallytree.kernels.trees.allocation import LARGEST_WEIGHT, allocate_over_tree
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.chain import fit_chains
from tallytree.papers.fioretto2021.counts_tree import count_violations, relax_counts
from tallytree.papers.fioretto2021.cumulative_tree import fit_cumulative_then_tree, relax_cumulative
from tallytree.papers.fioretto2021.joint_fit import make_whole
from tallytree.papers.fioretto2021.topdown import fit_top_down
from tallytree.privacy.noisy import NoisyCounts, NoisyLevel

LARGEST_VALUE = 2**38

# Programs that need a solver are imported where they run: sparse matrices take a moment to load,
# solvers may be missing.


@dataclass(frozen=True, eq=False)
class DenseFit:
    """Whole counts of every region, ``(n_regions, n_sizes)``, and facts about the fit that a
    manifest may state.
    """

    table: IntArray
    facts: dict[str, Any] = field(default_factory=dict)


def check_solver(mechanism: str) -> None:
    """Raise MissingExtraError, before anything is measured, where a mechanism needs a solver that
    is not installed.
    """
    if mechanism in TRAITS and TRAITS[mechanism].solver:
        from tallytree.papers.fioretto2021.solver_programs import require_solver

        require_solver()


def fit_dense_tables(hierarchy: Hierarchy, plan: Plan, noisy: NoisyCounts) -> DenseFit:
    """Run the plan's mechanism. Every table it returns is whole, nonnegative, adds up and keeps the
    plan's totals.
    """
    totals: IntArray | int = noisy.n_groups if plan.totals == "regions" else int(noisy.n_groups[0])
    root = int(noisy.n_groups[0])
    weights = _weights(plan)
    whole = np.rint(weights).astype(np.int64)
    limit = plan.time_limit
    match plan.mechanism:
        case "tree-dp":
            return DenseFit(allocate_over_tree(hierarchy, _counts(noisy), root, weights=whole))
        case "tree-exact":
            from tallytree.papers.fioretto2021.solver_programs import solve_counts

            solved = solve_counts(
                hierarchy, _counts(noisy), totals, weights=whole, time_limit=limit
            )
            return DenseFit(solved.table, solved.facts)
        case "tree-program":
            from tallytree.papers.fioretto2021.cost_tables import solve_by_cost_tables

            width = half_width(plan.levels)
            solved = solve_by_cost_tables(
                hierarchy, _counts(noisy), root, width, weights=whole, time_limit=limit
            )
            return DenseFit(solved.table, solved.facts)
        case "tree-relaxed":
            real = relax_counts(hierarchy, _counts(noisy), totals, weights=whole)
            rounded = np.rint(real).astype(np.int64)
            table = make_whole(hierarchy, np.cumsum(real, axis=1), totals)
            return DenseFit(
                table, {"violations before repair": count_violations(hierarchy, rounded)}
            )
        case "topdown":
            return DenseFit(fit_top_down(hierarchy, _counts(noisy), totals))
        case "cumulative-dp":
            return DenseFit(
                fit_cumulative_then_tree(
                    hierarchy, _cumulative(hierarchy, noisy), root, weights=whole
                )
            )
        case "cumulative-relaxed":
            fit = relax_cumulative(
                hierarchy, _cumulative(hierarchy, noisy), totals, weights=weights
            )
            return DenseFit(
                make_whole(hierarchy, fit.table, totals), {"rounds": fit.rounds, "gap": fit.gap}
            )
        case "cumulative-exact":
            from tallytree.papers.fioretto2021.solver_programs import solve_cumulative

            cumulative = _cumulative(hierarchy, noisy)
            solved = solve_cumulative(
                hierarchy, cumulative, totals, weights=whole, time_limit=limit
            )
            return DenseFit(solved.table, solved.facts)
        case "chain":
            return DenseFit(fit_chains(hierarchy, [_chain(level) for level in noisy.levels], root))
        case _:
            raise ValueError(f"{plan.mechanism} does not work on dense tables")


def _rows(level: NoisyLevel, query: str) -> IntArray:
    measured = level[query]
    # Only absurdly small budgets give values beyond the bound, which keeps all sums inside 64 bits.
    values = np.clip(measured.values, -LARGEST_VALUE, LARGEST_VALUE)
    return values.reshape(len(measured.offsets) - 1, -1)


def _counts(noisy: NoisyCounts) -> IntArray:
    return np.concatenate([_rows(level, "counts") for level in noisy.levels])


def _cumulative(hierarchy: Hierarchy, noisy: NoisyCounts) -> IntArray:
    """H_c[0 … K]: the last column was measured where only the root's total is known, otherwise it
    is the total.
    """
    below = np.concatenate([_rows(level, "cumulative") for level in noisy.levels])
    last = noisy.n_groups.copy()
    for level in noisy.levels:
        if any(query.name == "last" for query in level.queries):
            last[hierarchy.level_slice(level.level)] = level["last"].values
    return np.column_stack([below, last])


def _chain(level: NoisyLevel) -> IntArray:
    """The chain, sizes outside; it is stored region by region."""
    return _rows(level, "chain").T.ravel()


def _weights(plan: Plan) -> FloatArray:
    """Weight of a squared deviation per level: inverse variance, the noisiest level 1. All ones
    under an equal split.
    """
    variances = np.array(
        [level.query.noise.variance if level.query else np.inf for level in plan.levels]
    )
    return variances.max() / np.maximum(variances, variances.max() / LARGEST_WEIGHT)
