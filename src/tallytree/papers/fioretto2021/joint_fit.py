"""Least squares on two kinds of constraint at once: columns add up over the tree, every row lies in
a set of its own.

Projecting on either alone takes linear time. The alternating direction method of multipliers (ADMM)
combines the two into the nearest table on both, with no solver. Rows of all levels are constrained
although those of the leaves imply the others: it converges faster and gives the repair a good table
of each level's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tallytree.errors import InputError
from tallytree.kernels.trees.projection import project_on_tree_in_place
from tallytree.kernels.trees.rounding_down import round_down_tree
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.kernels.multipliers import add, blend, update_dual_in_place

# ADMM stops when neither the distance between its two copies nor the last step exceeds this part of
# the distance between fit and noisy table (all root mean squares); about 30 rounds. The weight of
# the agreement against the fit was chosen on housing-like data: with 1 twice as many rounds are
# needed, with 4 fewer, but they stop a tenth short at the root.
MAX_ROUNDS = 60
CLOSE_ENOUGH = 5e-4
PENALTY = 2.0


@dataclass(frozen=True, eq=False)
class JointFit:
    """A real table whose rows lie in their sets and whose columns add up but for ``gap`` (root mean
    square per cell).
    """

    table: FloatArray
    rounds: int
    gap: float


def fit_rows_on_tree(
    hierarchy: Hierarchy,
    target: FloatArray,
    project_rows: Callable[[FloatArray], FloatArray],
    *,
    weights: FloatArray | None = None,
    last_root: float | None = None,
    max_rounds: int = MAX_ROUNDS,
    close_enough: float = CLOSE_ENOUGH,
) -> JointFit:
    """Nearest table to ``target`` in the weighted squares of all cells.

    Parameters
    ----------
    project_rows
        Nearest table whose rows are allowed; must not change its argument.
    weights
        Weight of a squared deviation per level; ones if not given.
    last_root
        Value that the root's last column must take.
    """
    table = project_rows(target)
    dual = np.zeros_like(target)
    scale = float(np.sqrt(np.mean(np.square(target - table))))
    rounds, gap = 0, np.inf
    while rounds < max_rounds and gap > close_enough * scale:
        rounds += 1
        additive = blend(target, table, dual, PENALTY)
        project_on_tree_in_place(hierarchy, additive, weights, last_root=last_root)
        before = table
        table = project_rows(add(dual, additive))
        apart, step = update_dual_in_place(dual, additive, table, before)
        gap = max(apart, step)
    return JointFit(table, rounds, gap)


def bounds_of(hierarchy: Hierarchy, totals: IntArray | int) -> IntArray:
    """Largest number of groups per region: its public total, or the root's where only that is
    public.
    """
    bound = np.broadcast_to(np.asarray(totals, dtype=np.int64), (hierarchy.n_regions,))
    if bound.min() < 0:
        raise InputError("Public totals are at least 0.")
    return np.ascontiguousarray(bound)


def check_table(hierarchy: Hierarchy, noisy: IntArray) -> None:
    """One row per region, at least one column."""
    if noisy.ndim != 2 or noisy.shape[0] != hierarchy.n_regions or noisy.shape[1] == 0:
        raise InputError(
            f"Give one row for each of the {hierarchy.n_regions} regions and one column per size, "
            f"got {noisy.shape}."
        )


def make_whole(hierarchy: Hierarchy, cumulative: FloatArray, totals: IntArray | int) -> IntArray:
    """Whole counts by size, ``(n_regions, n_sizes)``, from real cumulative counts with
    nondecreasing rows.

    Keeps all that a release promises: nonnegative, tree sums, the public total of the root or of
    every region. The root is rounded first, then each level under the one above
    (:func:`round_down_tree`).
    """
    root_only = np.ndim(totals) == 0
    bound = bounds_of(hierarchy, totals)
    root = np.clip(np.rint(cumulative[0]), 0, bound[0]).astype(np.int64)
    root[-1] = bound[0]
    whole = np.empty(cumulative.shape, dtype=np.int64)
    n_free = cumulative.shape[1] if root_only else cumulative.shape[1] - 1
    whole[:, :n_free] = round_down_tree(hierarchy, cumulative[:, :n_free], root[:n_free], bound)
    if not root_only:
        whole[:, -1] = bound
    return np.diff(whole, axis=1, prepend=0)
