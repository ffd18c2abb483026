"""The closed forms of qardaji2013, corrected where ERRATA or this file says so, for comparison with
the exact errors.

``n_bins`` is N, ``branching`` b, ``h = ⌈log_b N⌉`` the number of counted levels; level 1 holds the
bins, as in the paper. Errors are average variances over all ranges; ``variance`` is that of one
count on the whole budget (V_u = 2 at ε = 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from tallytree.errors import RequestError
from tallytree.model.range_tree import RangeTree, height
from tallytree.strategies.errors import block_uses, n_ranges


def uses_of_level(n_bins: int, branching: int, level: int) -> Fraction:
    """M(ℓ) of equation 2: how often all ranges but the range of everything use a node of that
    level, N a power of b.

    The paper's tables count the range of everything too, which adds b uses of the top level;
    :func:`tallytree.strategies.errors.block_uses` does, for any N.
    """
    n, b = n_bins, branching
    return (b - 1) * (Fraction(n * n, 2) - Fraction(n * (b + 1) * b ** (level - 1), 3) + n)


def tree_error_formula(n_bins: int, branching: int, variance: float = 2.0) -> float:
    """Equation 1 with its last term written out: Σ M(ℓ)·h²·V_u over the number of ranges; N a power
    of b.
    """
    h = height(n_bins, branching)
    uses = sum(uses_of_level(n_bins, branching, level) for level in range(1, h + 1))
    return float(uses / n_ranges(n_bins)) * h**2 * variance


def tree_error_approximation(n_bins: int, branching: int, variance: float = 2.0) -> float:
    """Equation 3, V* of H_b: ((b − 1)h³ − 2(b + 1)h²/3)·V_u. Equation 4 is b = 2."""
    h = height(n_bins, branching)
    return ((branching - 1) * h**3 - 2 * (branching + 1) * h**2 / 3) * variance


class NodeVariances(NamedTuple):
    """V↓ and V↑ of every level, the bins first: best estimates of a node from below and from above."""

    from_below: tuple[float, ...]
    from_above: tuple[float, ...]


def limiting_branching() -> float:
    """The branching factor that Eq. (3) favours for very many bins, where (b − 1)·log_b³N rules:
    the root of b ln b = 3(b − 1).

    Examples
    --------
    >>> round(limiting_branching(), 1)
    16.8
    """
    from scipy.optimize import brentq

    return float(brentq(lambda b: b * math.log(b) - 3 * (b - 1), 2.0, 100.0))


def node_variances(branching: int, level_variances: Sequence[float]) -> NodeVariances:
    """Algorithm 1: variances of the best estimates of a node from its subtree, and from all but its
    descendants.

    ``level_variances`` are the V_O of the levels, the bins first. The printed line 3 has 2/ε_i for
    2/ε_i² (ERRATA).
    """
    b, own = branching, level_variances
    below = [own[0]]
    for level in range(1, len(own)):
        children = b * below[-1]
        below.append(own[level] * children / (own[level] + children))
    above = [own[-1]]
    for level in reversed(range(len(own) - 1)):
        around = above[0] + (b - 1) * below[level]
        above.insert(0, own[level] * around / (own[level] + around))
    return NodeVariances(tuple(below), tuple(above))


def weighted_average_factor(branching: int, level: int) -> Fraction:
    """Proposition 3: V↓ of a level over V_O, b^(ℓ−1) / (1 + b + … + b^(ℓ−1)), for equal budgets."""
    return Fraction(branching ** (level - 1), sum(branching**i for i in range(level)))


def node_variance_bound(branching: int) -> Fraction:
    """Proposition 4: after constrained inference no node's variance is below (b − 1)/(b + 1) of
    V_O.
    """
    return Fraction(branching - 1, branching + 1)


def consistent_error_estimate(n_bins: int, branching: int, variance: float = 2.0) -> float:
    """Algorithm 2, V* of H_b^c: what two adjacent levels gain from each other; cross-level gains
    are left out.

    Three corrections. The mean over k = 1 … b − 1 of the variance of k siblings, from below and
    from above, is b((b + 1)V↓² + 3V↑V↓) / (6(V↑ + bV↓)): the printed Z_i has a factor b − 1 too
    many, being the sum. Without inference that mean is b/2 nodes, so that a node costs Z_i/(b/2),
    and a node of the top level V↓_h. The final sum is divided by the number of ranges (ERRATA).
    Node counts are exact also when N is not a power of b; the paper's values then differ a little.
    """
    tree = RangeTree.regular(n_bins, branching)
    b, h = branching, tree.n_levels
    below, above = node_variances(b, [variance * h**2] * h)
    total = 0.0
    for level, uses in enumerate(reversed(block_uses(tree))):
        per_node = below[level]
        if level < h - 1:
            up, down = above[level + 1], below[level]
            per_node = ((b + 1) * down**2 + 3 * up * down) / (3 * (up + b * down))
        total += uses * per_node
    return total / n_ranges(n_bins)


def grid_error_formula(
    per_axis: int, dimensions: int, branching: int, variance: float = 2.0
) -> float:
    """Propositions 5 and 6 with their constants, d ≥ 2: d·b^(d−1)/(b^(d−2) + … +
    1)·(1/3)^(d−1)·(n^(d−1) − 1)·h²·V_u.

    Equation 7 drops the factor h² = ⌈log_b n⌉² of the noise (ERRATA). For d = 2 this is Proposition
    5 before its Θ: (2/3)b(n − 1) nodes of variance h²·V_u.
    """
    if dimensions < 2:
        raise RequestError(f"The formula holds from 2 dimensions up, got {dimensions}.")
    d, b, h = dimensions, branching, height(per_axis, branching)
    nodes = (
        Fraction(d * b ** (d - 1), sum(b**i for i in range(d - 1)))
        * Fraction(1, 3) ** (d - 1)
        * (per_axis ** (d - 1) - 1)
    )
    return float(nodes) * h**2 * variance


class SmallestGrid(NamedTuple):
    """The least grid on which a hierarchy is expected to beat the flat method."""

    branching: int
    per_axis: int
    n_bins: int


def smallest_useful_grid(dimensions: int, *, most_levels: int = 8) -> SmallestGrid:
    """§5.3: from which size on a hierarchy with constrained inference pays in d ≥ 2 dimensions.

    Inference is taken to save a factor 3, which turns Proposition 6 against N/3^d into
    d·b^(d−1)/(b^(d−2) + … + 1)·h² ≤ n. For each height h the least b with n = b^h is taken, then
    the least n. (The paper prints b²/(b + 1) for d = 4; its solution is that of the formula here.)

    Examples
    --------
    >>> smallest_useful_grid(2)
    SmallestGrid(branching=8, per_axis=64, n_bins=4096)
    """
    if dimensions < 2:
        raise RequestError(f"The condition holds from 2 dimensions up, got {dimensions}.")
    d = dimensions
    found = []
    for h in range(2, most_levels + 1):
        b = 2
        while d * b ** (d - 1) * h**2 > b**h * sum(b**i for i in range(d - 1)):
            b += 1
        found.append(SmallestGrid(b, b**h, b ** (h * d)))
    return min(found, key=lambda grid: grid.per_axis)
