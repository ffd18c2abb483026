"""Average variance over all ranges of a one-dimensional histogram, exactly, for every strategy with
a structure.

Public inputs only: the tree, and the variance of the noise on each of its levels. The average runs
over the N(N + 1)/2 ranges of N bins with equal weight (qardaji2013 §2.2). With x an error per bin,
the sum over all ranges of the squared error is xᵀGx, where G = WᵀW has the entries min(i, j)·(N + 1
− max(i, j)), i and j from 1; so estimates with covariance C cost trace(CG). In prefix sums X_t =
x_1 + … + x_t, xᵀGx is the sum of (X_t − X_s)² over all pairs s < t of the N + 1 ends: the form
computed below.

Nothing here grows with N: a tree of h levels takes O(h²) steps, because each level has only two
kinds of block. The computation of qardaji2013 §3.4 kept a vector of coefficients per node and
stopped at N = 2^11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from tallytree.errors import RequestError
from tallytree.model.range_tree import RangeTree

Number = TypeVar("Number", float, complex)


def n_ranges(n_bins: int) -> int:
    """Number of non-empty ranges of ``n_bins`` bins."""
    return n_bins * (n_bins + 1) // 2


def flat_range_error(n_bins: int, variance: float = 2.0) -> float:
    """Average variance when every bin has noise of ``variance``: (N + 2)/3 times it (qardaji2013
    §3.1).
    """
    return (n_bins + 2) / 3 * variance


def tree_range_error(
    tree: RangeTree, variances: Sequence[float], *, consistent: bool = True
) -> float:
    """Average variance over all ranges when blocks are counted with noise of ``variances[level]``.

    Parameters
    ----------
    tree
        The blocks, coarsest level first.
    variances
        Variance of one noisy count per level; ``math.inf`` for a level that is not counted.
    consistent
        True for constrained inference, that is least squares over all counts (H_b^c; also for short
        blocks and unequal budgets); False for the sum of the fewest noisy blocks (H_b, hay2010's
        H̃).

    Examples
    --------
    >>> tree = RangeTree.regular(64, branching=8)
    >>> round(tree_range_error(tree, [8.0, 8.0]), 2)
    37.07
    """
    tree, variances = counted_levels(tree, variances)
    if consistent:
        return least_squares_sum(tree, variances) / n_ranges(tree.n_bins)
    return sum(uses * variance for uses, variance in zip(block_uses(tree), variances)) / n_ranges(
        tree.n_bins
    )


def wavelet_range_error(n_bins: int, variance: float | None = None) -> float:
    """Average variance of the Haar wavelet (Privelet), the bins padded with zeros to a power of two
    P.

    Each bin enters 1 + log2 P coefficients (the sum, and left half minus right half of each block
    around it) by ±1. ``variance`` is that of the noise on one coefficient for this sensitivity; if
    not given, 2(1 + log2 P)², which is ε = 1. Estimates are the inverse transform without the
    padding: unbiased, since each bin's estimate is; padding only costs height.
    """
    padded = 1 << (n_bins - 1).bit_length()
    if variance is None:
        variance = 2.0 * padded.bit_length() ** 2
    total = tail_form(n_bins, [(n_bins, 1.0 / padded)])
    width = padded
    while width > 1:
        half = width // 2
        n_full, short = divmod(n_bins, width)
        # Within a full block the prefix sums climb to half the width and come back to 0.
        sum_1, sum_2 = half * half, half * (2 * half * half + 1) // 3
        full = n_full * ((n_bins - width + 2) * sum_2 + (width - 1) * sum_2 - sum_1**2)
        cut = (
            tail_form(n_bins, [(min(short, half), 1.0), (max(short - half, 0), -1.0)])
            if short
            else 0.0
        )
        total += (full + cut) / width**2
        width = half
    return total * variance / n_ranges(n_bins)


def level_contributions(tree: RangeTree, variances: Sequence[float]) -> tuple[float, ...]:
    """What the noise of each level adds to the average variance after constrained inference; the
    sum is that average.

    These are the a_i/ε_i² of qardaji2013 equation 5, a_i taken at the given budgets. The variance
    V_i of level i enters the least-squares error E as V_i·∂E/∂V_i, because the estimator is optimal
    and E is homogeneous of degree one. The derivative is taken by a complex step, exact to
    rounding.
    """
    tree, counted = counted_levels(tree, variances)
    contributions = []
    for level, variance in enumerate(counted):
        step = 1e-30 * variance
        moved: list[complex] = list(counted)
        moved[level] = complex(variance, step)
        contributions.append(least_squares_sum(tree, moved).imag / 1e-30 / n_ranges(tree.n_bins))
    remaining = iter(contributions)
    return tuple(0.0 if math.isinf(variance) else next(remaining) for variance in variances)


def block_uses(tree: RangeTree) -> tuple[int, ...]:
    """How often all ranges together use a block of each level, when each range is the union of the
    fewest blocks.

    A block is used by the ranges that hold it but not its parent: left·(N − right + 1) less the
    same for the parent (qardaji2013 Prop. 1, proof). Blocks of the coarsest level have no counted
    parent; so the range of everything is counted here, as in the paper's tables, while its equation
    2 leaves that one range out.
    """
    n = tree.n_bins
    uses = []
    for level, width in enumerate(tree.widths):
        n_full, short = divmod(n, width)
        held = sum_of_left_times_right(n, width, n_full) + (n - short + 1 if short else 0)
        if level > 0:
            parent = tree.widths[level - 1]
            n_full, short = divmod(n, parent)
            held -= parent // width * sum_of_left_times_right(n, parent, n_full)
            held -= -(-short // width) * (n - short + 1)
        uses.append(held)
    return tuple(uses)


def counted_levels(
    tree: RangeTree, variances: Sequence[float]
) -> tuple[RangeTree, tuple[float, ...]]:
    """The tree and its variances without the levels of infinite variance; checks that the bins
    themselves are counted.
    """
    if len(variances) != tree.n_levels:
        raise RequestError(
            f"A tree of {tree.n_levels} levels needs as many variances, got {len(variances)}."
        )
    if not all(variance > 0 for variance in variances):
        raise RequestError(
            "Variances of noise are positive; use infinity for a level that is not counted."
        )
    if math.isinf(variances[-1]):
        raise RequestError(
            "The finest level must be counted: otherwise ranges inside a block cannot be answered."
        )
    kept = [level for level, variance in enumerate(variances) if not math.isinf(variance)]
    return RangeTree(tree.n_bins, tuple(tree.widths[level] for level in kept)), tuple(
        variances[level] for level in kept
    )


def least_squares_sum(tree: RangeTree, variances: Sequence[Number]) -> Number:
    """trace(CG) for the least-squares covariance C of a tree, from the bins upwards.

    Let D be the covariance of a block's bins from the counts strictly inside it, V the variance of
    the block's own noisy count. Adding that count changes D by −(D1)(D1)ᵀ/(V + 1ᵀD1)
    (Sherman–Morrison), hence trace(CG) by −(D1)ᵀG(D1)/(V + 1ᵀD1), and shrinks D1 by V/(V + 1ᵀD1).
    Over a full block D1 is constant by symmetry; over the short last block it is constant on at
    most one piece per level. So only the constant ``full`` and the ``pieces`` of the last block are
    carried along.
    """
    n = tree.n_bins
    total = variances[-1] * (n * (n + 1) * (n + 2) // 6)
    full = variances[-1]
    pieces: list[tuple[int, Number]] = []
    for level in reversed(range(tree.n_levels - 1)):
        width, child, variance = tree.widths[level], tree.widths[level + 1], variances[level]
        n_full, short = divmod(n, width)
        if short:
            pieces.insert(0, (short // child * child, full))
            own_total = variance + sum(length * value for length, value in pieces)
            total -= tail_form(n, pieces) / own_total
            pieces = [(length, value * (variance / own_total)) for length, value in pieces]
        own_total = variance + width * full
        total -= full**2 / own_total * constant_form(n, width, n_full)
        full *= variance / own_total
    return total


def constant_form(n_bins: int, width: int, n_full: int) -> int:
    """Σ xᵀGx over the first ``n_full`` blocks of a width, x being 1 on the block and 0 elsewhere.

    L = left and R = N − right + 1 ends lie outside; pairs of ends around the block give L·R·w²,
    pairs with one end inside (L + R)·Σi², pairs inside Σ(i − j)², with i, j = 1 … w − 1.
    """
    inside = width - 1
    one_inside = inside * width * (2 * width - 1) // 6
    both_inside = inside * inside * (inside * inside - 1) // 12
    around = sum_of_left_times_right(n_bins, width, n_full)
    return around * width**2 + n_full * ((n_bins - width + 2) * one_inside + both_inside)


def tail_form(n_bins: int, pieces: Sequence[tuple[int, Number]]) -> Number:
    """xᵀGx for x constant on consecutive ``pieces`` (length, value) that end at the last bin, and 0
    before them.
    """
    prefix: Number = 0.0
    sum_1: Number = 0.0
    sum_2: Number = 0.0
    for length, value in pieces:
        steps, squares = length * (length + 1) // 2, length * (length + 1) * (2 * length + 1) // 6
        sum_1 += length * prefix + value * steps
        sum_2 += length * prefix**2 + 2 * prefix * value * steps + value**2 * squares
        prefix += length * value
    return (n_bins + 1) * sum_2 - sum_1**2


def sum_of_left_times_right(n_bins: int, width: int, n_full: int) -> int:
    """Σ L·R over the first ``n_full`` blocks, L = jw + 1 and R = N − (j + 1)w + 1: how many ranges
    hold each block.
    """
    free = n_bins - width + 1
    sum_j, sum_j2 = n_full * (n_full - 1) // 2, (n_full - 1) * n_full * (2 * n_full - 1) // 6
    return n_full * free + (free - 1) * width * sum_j - width**2 * sum_j2
