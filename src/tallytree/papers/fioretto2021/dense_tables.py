"""The mechanisms of fioretto2021: from noisy measurements of all levels to one consistent table of
regions × sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tallytree.group_sizes.noisy import NoisyCounts, NoisyLevel
from tallytree.group_sizes.plan.plan import LevelPlan, Plan
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.chain import fit_chains
from tallytree.papers.fioretto2021.counts_tree import count_violations, relax_counts
from tallytree.papers.fioretto2021.cumulative_tree import fit_cumulative_then_tree, relax_cumulative
from tallytree.papers.fioretto2021.joint_fit import make_whole
from tallytree.papers.fioretto2021.kernels.allocation import LARGEST_WEIGHT, allocate_over_tree
from tallytree.papers.fioretto2021.topdown import fit_top_down

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


@dataclass(frozen=True, eq=False)
class DenseAnswers:
    """The noisy answers of all levels as the programs take them.

    Attributes
    ----------
    hierarchy, noisy
        The regions, and the answers level by level.
    totals
        Numbers of groups that are kept: of every region, ``(n_regions,)``, or of the root alone.
    weights
        Weight of a squared deviation, per level.
    half_width
        Half of the value windows of ``tree-program``.
    time_limit
        Seconds for a solver; None for its default.
    """

    hierarchy: Hierarchy
    noisy: NoisyCounts
    totals: IntArray | int
    weights: FloatArray
    half_width: int
    time_limit: float | None

    @property
    def root(self) -> int:
        """How many groups there are in all."""
        return int(self.noisy.n_groups[0])

    @property
    def whole_weights(self) -> IntArray:
        """The weights rounded, for programs in whole numbers."""
        return np.rint(self.weights).astype(np.int64)

    @property
    def counts(self) -> IntArray:
        """Noisy counts by size, ``(n_regions, n_sizes)``."""
        return np.concatenate([_rows(level, "counts") for level in self.noisy.levels])

    @property
    def cumulative(self) -> IntArray:
        """H_c[0 … K]: the last column was measured where only the root's total is known, otherwise
        it is the total.
        """
        noisy = self.noisy
        below = np.concatenate([_rows(level, "cumulative") for level in noisy.levels])
        last = noisy.n_groups.copy()
        for level in noisy.levels:
            if any(query.name == "last" for query in level.queries):
                last[self.hierarchy.level_slice(level.level)] = level["last"].values
        return np.column_stack([below, last])


def dense_answers(hierarchy: Hierarchy, plan: Plan, noisy: NoisyCounts) -> DenseAnswers:
    """The answers of a plan, which says which totals are kept and how much noise each level has."""
    totals: IntArray | int = noisy.n_groups if plan.totals == "regions" else int(noisy.n_groups[0])
    return DenseAnswers(
        hierarchy, noisy, totals, _weights(plan), half_width(plan.levels), plan.time_limit
    )


# Every table that the following return is whole, nonnegative, adds up and keeps the totals.


def fit_tree_dp(answers: DenseAnswers) -> DenseFit:
    """M_H^dp."""
    return DenseFit(
        allocate_over_tree(
            answers.hierarchy, answers.counts, answers.root, weights=answers.whole_weights
        )
    )


def fit_tree_exact(answers: DenseAnswers) -> DenseFit:
    """M_H."""
    from tallytree.papers.fioretto2021.solver_programs import solve_counts

    solved = solve_counts(
        answers.hierarchy,
        answers.counts,
        answers.totals,
        weights=answers.whole_weights,
        time_limit=answers.time_limit,
    )
    return DenseFit(solved.table, solved.facts)


def fit_tree_program(answers: DenseAnswers) -> DenseFit:
    """M_dp^OP."""
    from tallytree.papers.fioretto2021.cost_tables import solve_by_cost_tables

    solved = solve_by_cost_tables(
        answers.hierarchy,
        answers.counts,
        answers.root,
        answers.half_width,
        weights=answers.whole_weights,
        time_limit=answers.time_limit,
    )
    return DenseFit(solved.table, solved.facts)


def fit_tree_relaxed(answers: DenseAnswers) -> DenseFit:
    """M_H^r, repaired so that everything adds up."""
    hierarchy, totals = answers.hierarchy, answers.totals
    real = relax_counts(hierarchy, answers.counts, totals, weights=answers.whole_weights)
    violations = count_violations(hierarchy, np.rint(real).astype(np.int64))
    table = make_whole(hierarchy, np.cumsum(real, axis=1), totals)
    return DenseFit(table, {"violations before repair": violations})


def fit_topdown(answers: DenseAnswers) -> DenseFit:
    """The Census TopDown baseline."""
    return DenseFit(fit_top_down(answers.hierarchy, answers.counts, answers.totals))


def fit_cumulative_dp(answers: DenseAnswers) -> DenseFit:
    """M_c^dp."""
    return DenseFit(
        fit_cumulative_then_tree(
            answers.hierarchy, answers.cumulative, answers.root, weights=answers.whole_weights
        )
    )


def fit_cumulative_relaxed(answers: DenseAnswers) -> DenseFit:
    """M_c^r."""
    hierarchy, totals = answers.hierarchy, answers.totals
    fit = relax_cumulative(hierarchy, answers.cumulative, totals, weights=answers.weights)
    table = make_whole(hierarchy, fit.table, totals)
    return DenseFit(table, {"rounds": fit.rounds, "gap": fit.gap})


def fit_cumulative_exact(answers: DenseAnswers) -> DenseFit:
    """M_c."""
    from tallytree.papers.fioretto2021.solver_programs import solve_cumulative

    solved = solve_cumulative(
        answers.hierarchy,
        answers.cumulative,
        answers.totals,
        weights=answers.whole_weights,
        time_limit=answers.time_limit,
    )
    return DenseFit(solved.table, solved.facts)


def fit_chain(answers: DenseAnswers) -> DenseFit:
    """M_c^ch, with the chain's true sensitivity."""
    chains = [_chain(level) for level in answers.noisy.levels]
    return DenseFit(fit_chains(answers.hierarchy, chains, answers.root))


def half_width(levels: Sequence[LevelPlan]) -> int:
    """Half-width of the value windows of ``tree-program``: three times the noise variance
    (footnote 2).
    """
    return 3 * math.ceil(
        max(level.query.noise.variance for level in levels if level.query is not None)
    )


def _rows(level: NoisyLevel, query: str) -> IntArray:
    measured = level[query]
    # Only absurdly small budgets give values beyond the bound, which keeps all sums inside 64 bits.
    values = np.clip(measured.values, -LARGEST_VALUE, LARGEST_VALUE)
    return values.reshape(len(measured.offsets) - 1, -1)


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
