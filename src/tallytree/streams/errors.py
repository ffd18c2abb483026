"""How far the counts of a stream are off, from public facts alone: decoding weights, variances of
blocks, the best tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tallytree.kernels.stream_rows import Factors, row_moments
from tallytree.model.arrays import FloatArray, read_only
from tallytree.options.choices import StreamObjective

_WIDEST_BRANCHING = 1024


def n_levels(n_steps: int, branching: int) -> int:
    """Levels of a tree whose largest blocks, b**(h-1) steps, fit into the stream."""
    levels = 1
    while branching**levels <= n_steps:
        levels += 1
    return levels


@lru_cache(maxsize=256)
def best_stream_branching(n_steps: int, laplace: bool, objective: StreamObjective = "mean") -> int:
    """The branching with the least mean (or largest) variance of the counts after steps 1 … n, for
    continuous noise.
    """
    total = summed_variance if objective == "mean" else largest_variance

    def variance(branching: int) -> float:
        levels = n_levels(n_steps, branching)
        own = 2.0 * levels**2 if laplace else float(levels)
        variances = block_moments(own, 0.0, levels, branching, inference=True).variance
        return total(n_steps, branching, variances.tolist())

    return min(range(2, min(n_steps + 1, _WIDEST_BRANCHING) + 1), key=variance, default=2)


def summed_variance(n_steps: int, branching: int, variances: Sequence[float]) -> float:
    """Variances of the counts after steps 1 … n, all together, from those of blocks per level."""
    uses = block_uses(n_steps, branching)
    return math.fsum(use * variance for use, variance in zip(uses, variances, strict=True))


def largest_variance(n_steps: int, branching: int, variances: Sequence[float]) -> float:
    """The variance of the worst count after steps 1 … n.

    From the finest level up, for the steps that are left below a level: either all blocks that fit
    and the worst of the rest, or one block less and all parts of finer levels.
    """
    worst, full = 0.0, 0.0
    for level, variance in enumerate(variances):
        width = branching**level
        top = level == len(variances) - 1
        blocks = n_steps // width if top else n_steps // width % branching
        worst = max(blocks * variance + worst, (blocks - 1) * variance + full if blocks else 0.0)
        full += (branching - 1) * variance
    return worst


def block_uses(n_steps: int, branching: int) -> list[int]:
    """How many blocks of each level the counts after steps 1 … n are made of, all together: sums of
    digits of t.

    The coarsest level, whose blocks are b**(h-1) steps long, has what the levels above it would
    have too.
    """

    def floors(width: int) -> int:
        """Σ floor(t / width) over t = 0 … n."""
        whole, rest = divmod(n_steps + 1, width)
        return width * (whole * (whole - 1) // 2) + whole * rest

    widths = [branching**level for level in range(n_levels(n_steps, branching))]
    uses = [floors(width) - branching * floors(width * branching) for width in widths]
    return [*uses[:-1], floors(widths[-1])]


@dataclass(frozen=True, eq=False)
class BlockMoments:
    """Per level of a tree: variance and fourth cumulant of a block's estimate, and the weight of
    its own noisy count.
    """

    variance: FloatArray
    cumulant: FloatArray
    trust: FloatArray


def block_moments(
    own: float, kurtic: float, levels: int, branching: int, *, inference: bool
) -> BlockMoments:
    """From the finest level up: 1/v_l = 1/own + 1/(b v_{l-1}), each count weighted by its inverse
    variance.
    """
    variance, cumulant, trust = np.full(levels, own), np.full(levels, kurtic), np.ones(levels)
    for level in range(1, levels if inference else 1):
        below = branching * variance[level - 1]
        trust[level] = below / (own + below)
        variance[level] = trust[level] * own
        cumulant[level] = (
            trust[level] ** 4 * kurtic + (1 - trust[level]) ** 4 * branching * cumulant[level - 1]
        )
    return BlockMoments(variance, cumulant, trust)


@dataclass(frozen=True, eq=False)
class Inverse:
    """How counts follow from the rows of a root: arrivals are d_s^-1 Σ_t h_{s-t} row_t / r_t, h the
    coefficients of 1/W(z).

    ``backwards`` holds h from the last to the first, as sums over the past take them.
    """

    forwards: FloatArray
    backwards: FloatArray


@lru_cache(maxsize=8)
def inverse_weights(factors: Factors, n_steps: int) -> Inverse:
    """The first ``n_steps`` of them.

    Weights fall, so that the coefficients of w_0/((1 - z) W(z)) are a renewal sequence: they lie
    between 0 and 1, and sums of them lose no digits. By Newton's iteration on power series, g <- g
    (2 - a g) with a = (1 - z) W(z), which doubles the number of right coefficients.
    """
    from scipy import fft  # a quarter of a second, which no other kind should wait for

    differences = np.diff(factors.weights[:n_steps], prepend=0).astype(np.float64)
    decoding, known = np.array([1 / differences[0]]), 1
    while known < n_steps:
        known = min(2 * known, n_steps)
        size = fft.next_fast_len(3 * known, real=True)
        found = fft.rfft(decoding, size)
        product = fft.rfft(differences[:known], size) * found
        decoding = fft.irfft(found * (2 - product), size)[:known]
    forwards = np.diff(decoding, prepend=0.0)
    return Inverse(read_only(forwards), read_only(forwards[::-1].copy()))


@lru_cache(maxsize=8)
def root_moments(factors: Factors, n_steps: int) -> tuple[FloatArray, FloatArray]:
    """Σ_j L_{tj}² and Σ_j L_{tj}⁴ for the counts after steps 1 … n: L_{tj} is what the count takes
    of row j. Cost: quadratic in steps, a second or two for 65,536.
    """
    (arrivals, rows), inverse = factors.scales, inverse_weights(factors, n_steps).forwards
    return row_moments(inverse, arrivals[:n_steps], rows[:n_steps])


def known_steps(n_steps: int, most: int) -> int:
    """As many steps as a power of two, so that streams that grow work out few tables."""
    return min(1 << max(6, n_steps.bit_length()), most)
