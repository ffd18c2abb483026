"""The best branching factor for a histogram, from its number of bins alone."""

from __future__ import annotations

from typing import Literal, get_args

from tallytree.errors import RequestError
from tallytree.model.range_tree import RangeTree
from tallytree.options.choices import Allocation
from tallytree.privacy.noise_variances import NoiseKind, level_variances
from tallytree.strategies.errors import tree_range_error
from tallytree.strategies.formulas import consistent_error_estimate, tree_error_approximation
from tallytree.strategies.level_budgets import level_shares

Criterion = Literal["exact", "exact-blocks", "estimate", "estimate-blocks"]
LARGEST_BRANCHING = (
    1024  # as far as qardaji2013 §3.4 looks; wider trees are flat ones for all N that matter
)


def regular_tree_error(
    n_bins: int,
    branching: int,
    *,
    consistent: bool = True,
    allocation: Allocation = "equal",
    budget: float = 1.0,
    noise: NoiseKind = "laplace",
) -> float:
    """Exact average variance over all ranges of H_b^c, or of H_b when not ``consistent``."""
    tree = RangeTree.regular(n_bins, branching)
    shares = level_shares(tree, allocation, budget=budget, noise=noise)
    return tree_range_error(
        tree, level_variances(shares, budget=budget, noise=noise), consistent=consistent
    )


def best_branching(
    n_bins: int,
    criterion: Criterion = "exact",
    *,
    budget: float = 1.0,
    noise: NoiseKind = "laplace",
) -> int:
    """Branching factor with the least error over all ranges at equal budgets; the smallest such if
    several tie.

    ``exact`` minimises the exact error of H_b^c, which also finds 11 for N = 2^10, where
    qardaji2013's Algorithm 2 (``estimate``) takes 32; the ``-blocks`` criteria do the same for H_b,
    without constrained inference (equation 3 and exact, Table 1). A factor of at least ``n_bins``
    means that the flat method is best: then N itself is returned, as in the paper's tables.

    Examples
    --------
    >>> [best_branching(2**exponent) for exponent in (5, 6, 8, 10)]
    [32, 8, 16, 11]
    """
    if criterion not in get_args(Criterion):
        raise RequestError(
            f"A criterion is one of {', '.join(get_args(Criterion))}; got {criterion!r}."
        )

    def error(branching: int) -> float:
        match criterion:
            case "estimate":
                return consistent_error_estimate(n_bins, branching)
            case "estimate-blocks":
                return tree_error_approximation(n_bins, branching)
        consistent = criterion == "exact"
        return regular_tree_error(
            n_bins, branching, consistent=consistent, budget=budget, noise=noise
        )

    if n_bins < 2:
        return 2
    return min(range(2, min(n_bins, LARGEST_BRANCHING) + 1), key=error)
