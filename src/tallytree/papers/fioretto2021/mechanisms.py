"""The mechanisms of fioretto2021 for group sizes: all levels are measured as dense tables of regions
× sizes, and fitted together.
"""

from __future__ import annotations

from collections.abc import Callable

from tallytree.errors import RequestError
from tallytree.group_sizes.mechanisms.at_once import AtOnce
from tallytree.group_sizes.mechanisms.mechanism import Estimated, Measured
from tallytree.group_sizes.plan.plan import Plan
from tallytree.group_sizes.plan.traits import Traits
from tallytree.model.count_of_counts import counts_from_dense
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy
from tallytree.options.choices import Totals
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.papers.fioretto2021.dense_tables import (
    DenseAnswers,
    DenseFit,
    dense_answers,
    fit_chain,
    fit_cumulative_dp,
    fit_cumulative_exact,
    fit_cumulative_relaxed,
    fit_topdown,
    fit_tree_dp,
    fit_tree_exact,
    fit_tree_program,
    fit_tree_relaxed,
    half_width,
)
from tallytree.releases.progress import Progress

# Programs of tree-program, at about a millisecond each.
MOST_PROGRAMS = 50_000


def require_solver() -> None:
    """Raise MissingExtraError, before anything is measured, where the solver is not installed."""
    from tallytree.papers.fioretto2021 import solver_programs

    solver_programs.require_solver()


def check_programs(plan: Plan, hierarchy: Hierarchy) -> None:
    """Refuse ``tree-program`` where it would call its solver too often: once per entry of every
    cost table above the leaves.
    """
    if plan.max_size is None:
        return
    n_internal, width = int(hierarchy.level_starts[-2]), half_width(plan.levels)
    programs = n_internal * (plan.max_size + 1) * (2 * width + 1)
    if programs > MOST_PROGRAMS:
        raise RequestError(
            f"mechanism 'tree-program' would solve about {programs:,} programs ({n_internal:,} "
            f"regions × {plan.max_size + 1:,} sizes × {2 * width + 1:,} values); it takes at most "
            f"{MOST_PROGRAMS:,}. Choose a smaller max_size, a larger epsilon, or mechanism "
            "tree-dp, which has the same result."
        )


def _refuse_unrepaired(request: ReleaseOptions, facts: PublicFacts) -> None:
    if not request.repair:
        raise RequestError(
            "mechanism 'tree-relaxed' rounds a real solution, after which children need not add "
            "up; such a table is not released. Say repair=True (--repair) to round it so that "
            "everything adds up, or choose tree-dp."
        )


def _refuse_private_totals(request: ReleaseOptions, facts: PublicFacts) -> None:
    if not facts.groups_public:
        raise RequestError(
            "mechanism 'chain' needs public group totals: a group that comes and goes with its "
            "only entity changes every later entry of the chain. Choose cumulative-relaxed or "
            "matching."
        )


def _fitted(
    fit: Callable[[DenseAnswers], DenseFit],
) -> Callable[[Measured, PublicFacts, Progress], Estimated]:
    """A fit of dense tables as a step of a release."""

    def estimate(measured: Measured, facts: PublicFacts, progress: Progress) -> Estimated:
        plan, hierarchy = measured.settled.plan, facts.hierarchy
        n_levels = len(plan.levels)
        progress(n_levels, 2 * n_levels, f"fitting all levels ({plan.mechanism})")
        fitted = fit(dense_answers(hierarchy, plan, measured.noisy))
        leaves = fitted.table[hierarchy.level_slice(hierarchy.n_levels - 1)]
        return Estimated(measured.noisy, counts_from_dense(leaves), fitted.facts)

    return estimate


_EITHER: tuple[Totals, ...] = ("regions", "root")
# The limits of the exact programs keep an ordinary instance within minutes; each cell is one whole
# unknown.
MECHANISMS: dict[str, AtOnce] = {
    "tree-exact": AtOnce(
        Traits("naive", _EITHER, most_cells=30_000, solver=True),
        _fitted(fit_tree_exact),
        require_solver,
    ),
    "tree-relaxed": AtOnce(
        Traits("naive", _EITHER, refuse_request=_refuse_unrepaired), _fitted(fit_tree_relaxed)
    ),
    "tree-program": AtOnce(
        Traits("naive", ("root",), most_cells=300, solver=True, refuse_plan=check_programs),
        _fitted(fit_tree_program),
        require_solver,
    ),
    "tree-dp": AtOnce(Traits("naive", ("root",)), _fitted(fit_tree_dp)),
    "cumulative-exact": AtOnce(
        Traits("cumulative", _EITHER, most_cells=1_000, solver=True),
        _fitted(fit_cumulative_exact),
        require_solver,
    ),
    "cumulative-relaxed": AtOnce(Traits("cumulative", _EITHER), _fitted(fit_cumulative_relaxed)),
    "cumulative-dp": AtOnce(Traits("cumulative", ("root",)), _fitted(fit_cumulative_dp)),
    "chain": AtOnce(
        Traits("chain", ("root",), refuse_request=_refuse_private_totals), _fitted(fit_chain)
    ),
    "topdown": AtOnce(Traits("naive", _EITHER), _fitted(fit_topdown)),
}
