"""Numbers of groups where they are not public: noisy totals made to add up (kuo2018, footnote 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.trees.nonnegative import nonnegative_least_squares
from tallytree.kernels.trees.rounding import round_tree
from tallytree.model.arrays import IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.limits import MOST_GROUPS

# Variances may be 0 in floating point under a huge budget; a level counts as at most this much
# surer than another.
_LEAST_RATIO = 1e-9


def consistent_totals(
    hierarchy: Hierarchy,
    noisy: IntArray,
    variances: Sequence[float],
    *,
    most_groups: int = MOST_GROUPS,
) -> IntArray:
    """Whole numbers of groups, at least 0, that add up from children to parents, close to the noisy
    ones.

    The exact nonnegative least squares over the tree, each square divided by its level's variance,
    then rounded so that every region goes down or up by less than 1.

    Parameters
    ----------
    noisy
        Noisy number of groups of every region, in the hierarchy's numbering.
    variances
        Variance of the noise, per level.
    most_groups
        More groups in all are scaled down to so many.
    """
    if len(noisy) != hierarchy.n_regions or len(variances) != hierarchy.n_levels:
        raise RequestError(
            f"Totals of {hierarchy.n_regions} regions and variances of {hierarchy.n_levels} levels "
            "are needed, "
            f"got {len(noisy)} and {len(variances)}."
        )
    largest = max(variances)
    relative = (
        np.maximum(np.asarray(variances) / largest, _LEAST_RATIO)
        if largest > 0
        else np.ones(len(variances))
    )
    fit = nonnegative_least_squares(
        noisy, relative[hierarchy.level_of], hierarchy.child_starts, hierarchy.level_starts
    )
    # More groups than a mechanism takes are scaled down, by noisy totals alone, so that nothing
    # fails because of the data.
    most = most_groups - 1.0
    return round_tree(fit * (most / fit[0]) if fit[0] > most else fit, hierarchy.child_starts)
