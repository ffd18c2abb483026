"""Exact whole isotonic fit of one long chain of weighted means, by pool-adjacent-violators.

Entry i stands for ``weight[i]`` merged values with sum ``total[i]``. The nearest nondecreasing
*whole* chain is the nearest real one rounded to whole numbers, so one pass solves Model 3 of
fioretto2021 without its cost tables. Block means are compared as whole part and remainder: products
of sums and weights of a chain of millions of entries overflow 64 bits.
"""

from __future__ import annotations

import numpy as np

from tallytree.errors import InputError
from tallytree.kernels.jit import serial
from tallytree.model.arrays import IntArray


@serial
def _at_least(total_a, weight_a, total_b, weight_b):
    """Whether total_a / weight_a ≥ total_b / weight_b, exactly."""
    whole_a = total_a // weight_a
    whole_b = total_b // weight_b
    if whole_a != whole_b:
        return whole_a > whole_b
    # Remainders are below the weights, so the products stay below the square of the chain's length.
    return (total_a - whole_a * weight_a) * weight_b >= (total_b - whole_b * weight_b) * weight_a


@serial
def _fit(total, weight, lower, upper, fit):
    n = len(total)
    block_total = np.empty(n, dtype=np.int64)
    block_weight = np.empty(n, dtype=np.int64)
    block_start = np.empty(n, dtype=np.int64)
    top = -1
    for i in range(n):
        sum_here, weight_here, start = total[i], weight[i], i
        # Means rise strictly from block to block below.
        while top >= 0 and _at_least(block_total[top], block_weight[top], sum_here, weight_here):
            sum_here += block_total[top]
            weight_here += block_weight[top]
            start = block_start[top]
            top -= 1
        top += 1
        block_total[top], block_weight[top], block_start[top] = sum_here, weight_here, start
    end = n
    for block in range(top, -1, -1):
        # Half up: floor(mean + 1/2).
        whole = block_total[block] // block_weight[block]
        whole += 2 * (block_total[block] - whole * block_weight[block]) >= block_weight[block]
        fit[block_start[block] : end] = min(max(whole, lower), upper)
        end = block_start[block]


def fit_chain(total: IntArray, weight: IntArray, *, lower: int, upper: int) -> IntArray:
    """Nearest nondecreasing whole chain within bounds, in weighted squared distance to ``total /
    weight``.

    Exact; linear in the length. The sum of all weights must stay below 2^31, that of all totals
    below 2^62.
    """
    total = np.ascontiguousarray(total, dtype=np.int64)
    weight = np.ascontiguousarray(weight, dtype=np.int64)
    if len(total) != len(weight) or (len(weight) and weight.min() < 1) or weight.sum() >= 2**31:
        raise InputError(
            "A chain needs one whole weight of at least 1 per entry, less than 2^31 in all."
        )
    if len(total) and float(np.abs(total.astype(np.float64)).sum()) >= 2.0**62:
        raise InputError("The values of a chain must add up to less than 2^62.")
    fit = np.empty(len(total), dtype=np.int64)
    _fit(total, weight, lower, upper, fit)
    return fit
