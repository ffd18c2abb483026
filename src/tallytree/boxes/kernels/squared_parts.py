"""Best partitions of bins into every number of parts, by squared deviations rounded down: whole
numbers, exactly.

The dynamic program of Xu et al. 2012 (V-optimal histograms): T(j, q) = min over i < q of T(j − 1,
i) + cost(i, q), the least cost of the first q bins in j parts. Costs are whole numbers because the
scores of a private choice must be: see
:func:`tallytree.privacy.sensitivity.squares_score_sensitivity`. O(k N²) for k parts, N³/6 for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.jit import as_input, serial
from tallytree.model.arrays import IntArray

# N³/6 steps and a table of N² costs: some ten seconds and 134 MB.
MOST_BINS = 1 << 12
# The square of a sum of counts fits 64 bits: (2^12 · 2^18)² = 2^60.
LARGEST_COUNT = 1 << 18


@serial
def _costs_up_to(counts, end, cost):
    """cost[i] = ⌊Σ x² − (Σ x)²/n⌋ over the bins i … end − 1, for every i below ``end``."""
    total, squares = 0, 0
    for i in range(end - 1, -1, -1):
        total += counts[i]
        squares += counts[i] * counts[i]
        # Counts are not negative, so this is the quotient rounded up.
        cost[i] = squares - (total * total + end - i - 1) // (end - i)


@serial
def _cheapest(counts, cost, table):
    """table[j - 1, q] = T(j, q) for q >= j, q by q, so that a row of costs is in use at a time."""
    n_parts, n_bins = table.shape[0], table.shape[1] - 1
    for q in range(1, n_bins + 1):
        _costs_up_to(counts, q, cost)
        table[0, q] = cost[0]
        for j in range(1, min(n_parts, q)):
            best = table[j - 1, j] + cost[j]
            for i in range(j + 1, q):
                best = min(best, table[j - 1, i] + cost[i])
            table[j, q] = best


@dataclass(frozen=True, eq=False, repr=False)
class SquaredParts:
    """Counts of bins, and the least costs of the first bins in 1, 2, … parts."""

    counts: IntArray
    table: IntArray

    @classmethod
    def of(cls, counts: IntArray, n_parts: int) -> SquaredParts:
        """The table for up to ``n_parts`` parts of bins with counts of 0 … 2^18."""
        values = as_input(counts, np.int64)
        n_bins = len(values)
        if not 1 <= n_parts <= n_bins <= MOST_BINS:
            raise RequestError(
                f"1 to {MOST_BINS:,} bins are divided into at most as many parts; got {n_bins}, "
                f"{n_parts}."
            )
        if values.min() < 0 or values.max() > LARGEST_COUNT:
            raise RequestError(
                f"Counts of bins that are divided lie between 0 and {LARGEST_COUNT:,}."
            )
        table = np.zeros((n_parts, n_bins + 1), dtype=np.int64)
        _cheapest(values, np.empty(n_bins, dtype=np.int64), table)
        return cls(values, table)

    def last_cuts(self, n_parts: int, end: int) -> IntArray:
        """Cost of the first ``end`` bins in n_parts + 1 parts, by where the last of them begins: at
        n_parts … end − 1.
        """
        cost = np.empty(end, dtype=np.int64)
        _costs_up_to(self.counts, end, cost)
        return self.table[n_parts - 1, n_parts:end] + cost[n_parts:]
