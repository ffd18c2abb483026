"""The algebra of noisy bins and blocks of sizes: Q, the precision of their answers per variance of
the noise.

Answers are a times the counts of bins and b times those of blocks, so Q = a² I + b² BᵀB, B adding
up the bins of a block; within a block that is a multiple of the identity and a rank-one matrix, and
everything has a formula.
"""

from __future__ import annotations

import numpy as np

from tallytree.group_sizes.plan.size_bins import SizeBins
from tallytree.model.arrays import FloatArray


def block_sums(values: FloatArray, bins: SizeBins) -> FloatArray:
    """Sums of each row over the bins of each block."""
    return np.add.reduceat(values, bins.block_starts, axis=1)


def repeated(of_blocks: FloatArray, bins: SizeBins) -> FloatArray:
    """One number per block given to all its bins."""
    return np.repeat(of_blocks, bins.block_sizes, axis=1)


def precision(values: FloatArray, bins: SizeBins) -> FloatArray:
    """Q = a² I + b² BᵀB times each row; a and b weigh bins and blocks, B adds up the bins of a
    block.
    """
    fine, coarse = bins.weights
    return fine**2 * values + coarse**2 * repeated(block_sums(values, bins), bins)


def solve(values: FloatArray, bins: SizeBins) -> FloatArray:
    """Q⁻¹ times each row, block by block: (I − b²/(a² + g b²) 11ᵀ)/a²."""
    fine, coarse = bins.weights
    part = coarse**2 / (fine**2 + coarse**2 * bins.block_sizes)
    return (values - repeated(part * block_sums(values, bins), bins)) / fine**2


def solve_diagonal(bins: SizeBins) -> FloatArray:
    """The diagonal of Q⁻¹."""
    fine, coarse = bins.weights
    part = coarse**2 / (fine**2 + coarse**2 * bins.block_sizes)
    diagonal: FloatArray = (1 - np.repeat(part, bins.block_sizes)) / fine**2
    return diagonal


def posterior(
    deviation: FloatArray, free: FloatArray, pull: FloatArray, noise: FloatArray, bins: SizeBins
) -> FloatArray:
    """(K⁻¹ + Q/noise)⁻¹ (Q/noise) deviation: what is believed of a deviation. Within a block, a
    rank-one update.
    """
    told = free * (precision(deviation, bins) / noise)
    return told - free * pull * repeated(
        block_sums(told, bins) / (1 + pull * block_sums(free, bins)), bins
    )
