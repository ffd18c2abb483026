"""How the steps of a method share its budget, as exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

# Shares in millionths: exact, short to write, and no visible loss against the best real numbers.
UNITS = 1_000_000


def proportional_shares(
    weights: Sequence[float], total: Fraction = Fraction(1)
) -> tuple[Fraction, ...]:
    """Shares of ``total`` close to the weights, each at least a millionth of it, adding up to it
    exactly.

    Examples
    --------
    >>> proportional_shares([1, 1, 2])
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
    """
    if len(set(weights)) == 1:
        return (total / len(weights),) * len(weights)
    relative = np.asarray(weights, dtype=np.float64) / np.sum(weights)
    units = [max(1, int(share * UNITS)) for share in relative]
    units[int(np.argmax(relative))] += UNITS - sum(units)
    return tuple(total * Fraction(unit, UNITS) for unit in units)


def geometric_shares(
    n_levels: int, ratio: float, total: Fraction = Fraction(1)
) -> tuple[Fraction, ...]:
    """Shares of levels, the coarsest first, each ``ratio`` times the one before."""
    return proportional_shares([ratio**level for level in range(n_levels)], total)
