"""How a budget is divided among the levels of a range tree: exact shares that sum to one, the
coarsest level first.

Shares are whole multiples of 2^-20 (equal shares of 1/h), so that noise scales stay small fractions
and nothing is lost or overspent. What a share is a share of depends on the definition: of ε under
pure differential privacy, of ρ under zCDP.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import get_args

from tallytree.errors import RequestError
from tallytree.model.range_tree import RangeTree
from tallytree.options.choices import Allocation
from tallytree.privacy.noise_variances import NoiseKind, level_variances
from tallytree.strategies.errors import block_uses, level_contributions

GRAIN = 2**20


def level_shares(
    tree: RangeTree,
    allocation: Allocation = "equal",
    *,
    budget: float = 1.0,
    noise: NoiseKind = "laplace",
) -> tuple[Fraction, ...]:
    """Shares of the budget for the levels of a tree, the coarsest first.

    ``equal`` gives every level the same. ``geometric`` gives a level ∛b times the share of the next
    coarser one, b being the number of children (slides; qardaji2013 prints the h-th root, see
    ERRATA). ``optimal-blocks`` is optimal when ranges are answered by the fewest noisy blocks
    (qardaji2013 §3.5, a_i from equation 2). ``optimal`` is the locally optimal iteration of that
    section for least-squares estimates; a level that is better not counted gets 0, see
    :func:`without_empty_levels`. ``budget`` matters to ``optimal`` alone, and only where the
    discrete law departs from the continuous one.
    """
    match allocation:
        case "equal":
            return equal_shares(tree.n_levels)
        case "geometric":
            return exact_shares([width ** (-1.0 / 3.0) for width in tree.widths])
        case "optimal-blocks":
            return exact_shares([float(uses) ** marginal_power(noise) for uses in block_uses(tree)])
        case "optimal":
            return locally_optimal_shares(tree, budget=budget, noise=noise)
        case _:
            raise RequestError(
                f"An allocation is one of {', '.join(get_args(Allocation))}; got {allocation!r}."
            )


def equal_shares(n_levels: int) -> tuple[Fraction, ...]:
    """The same share for each of ``n_levels`` levels."""
    return (Fraction(1, n_levels),) * n_levels


def exact_shares(weights: Sequence[float]) -> tuple[Fraction, ...]:
    """Multiples of 2^-20 in proportion to positive weights, summing to one: rounded down, then the
    largest remainders up.
    """
    if (
        not weights
        or not all(weight >= 0 for weight in weights)
        or not 0 < sum(weights) < float("inf")
    ):
        raise RequestError(
            f"Shares need finite weights of at least 0, not all of them 0; got {list(weights)}."
        )
    total = sum(weights)
    wanted = [max(weight / total * GRAIN, 1.0 if weight > 0 else 0.0) for weight in weights]
    grains = [int(grain) for grain in wanted]
    by_remainder = sorted(range(len(weights)), key=lambda level: grains[level] - wanted[level])
    missing = GRAIN - sum(grains)
    for level in by_remainder[: max(missing, 0)]:
        grains[level] += 1
    if missing < 0:  # a level so weak that it was lifted to one grain: take it from the strongest
        grains[max(range(len(weights)), key=lambda level: grains[level])] += missing
    return tuple(Fraction(grain, GRAIN) for grain in grains)


def marginal_power(noise: NoiseKind) -> float:
    """Exponent of a_i in the optimal share: Σ a_i/ε_i² is least at ε_i ∝ a_i^(1/3), Σ a_i/ρ_i at
    ρ_i ∝ a_i^(1/2).
    """
    return 0.5 if noise == "gaussian" else 1.0 / 3.0


def without_empty_levels(
    tree: RangeTree, shares: Sequence[Fraction]
) -> tuple[RangeTree, tuple[Fraction, ...]]:
    """The tree and its shares without the levels that have no share."""
    kept = [level for level, share in enumerate(shares) if share > 0]
    if not kept or kept[-1] != tree.n_levels - 1:
        raise RequestError(
            "The finest level needs a share of the budget: otherwise single bins cannot be "
            "answered."
        )
    return RangeTree(tree.n_bins, tuple(tree.widths[level] for level in kept)), tuple(
        shares[level] for level in kept
    )


def locally_optimal_shares(
    tree: RangeTree,
    *,
    budget: float = 1.0,
    noise: NoiseKind = "laplace",
    tolerance: float = 1e-9,
    most_rounds: int = 500,
) -> tuple[Fraction, ...]:
    """Shares at which the least-squares error over all ranges cannot be lowered by moving budget a
    little (qardaji2013 §3.5).

    Starting from equal shares: compute what each level's noise contributes to the error, a_i/ε_i²;
    share in proportion to a_i^(1/3) as if a_i were fixed; repeat. A fixed point is a stationary
    point of the true error, because the estimator is optimal for the budgets it is computed with. A
    share that falls below 2^-20 is set to 0.
    """
    shares = [1.0 / tree.n_levels] * tree.n_levels
    cost = 1.0 if noise == "gaussian" else 2.0
    for _ in range(most_rounds):
        contributions = level_contributions(
            tree, level_variances(shares, budget=budget, noise=noise)
        )
        weights = [
            (part * share**cost) ** marginal_power(noise)
            for part, share in zip(contributions, shares)
        ]
        moved = [
            weight / sum(weights) if weight * GRAIN > sum(weights) else 0.0 for weight in weights
        ]
        change = max(abs(new - old) for new, old in zip(moved, shares))
        shares = moved
        if change < tolerance:
            break
    return exact_shares(shares)
