"""How far the counts of a stream are off, from public facts alone: decoding weights, variances of
blocks, the best tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tallytree.model.arrays import FloatArray
from tallytree.streams.kernels import square_root_weights

_WIDEST_BRANCHING = 1024


def n_levels(n_steps: int, branching: int) -> int:
    """Levels of a tree whose largest blocks, b**(h-1) steps, fit into the stream."""
    levels = 1
    while branching**levels <= n_steps:
        levels += 1
    return levels


@lru_cache(maxsize=256)
def best_stream_branching(n_steps: int, laplace: bool) -> int:
    """The branching with the least mean variance of the counts after steps 1 … n, for continuous
    noise.
    """

    def mean_variance(branching: int) -> float:
        levels = n_levels(n_steps, branching)
        own = 2.0 * levels**2 if laplace else float(levels)
        variances = block_moments(own, 0.0, levels, branching, inference=True).variance
        uses = block_uses(n_steps, branching)
        return sum(use * variance for use, variance in zip(uses, variances.tolist()))

    return min(range(2, min(n_steps + 1, _WIDEST_BRANCHING) + 1), key=mean_variance, default=2)


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


@lru_cache(maxsize=8)
def decoding_weights(n_steps: int) -> FloatArray:
    """g with counts so far = Σ_j g_j row_{t-j}: the coefficients of 1/((1 - z) W(z)), W the rounded
    weights.

    Weights fall, so that 2**16 g is a renewal sequence: all g_j lie between 0 and 2**-16, and sums
    of them lose no digits. By Newton's iteration on power series, g <- g (2 - a g) with a = (1 - z)
    W(z), which doubles the number of right coefficients.
    """
    from scipy import fft  # a quarter of a second, which no other kind should wait for

    differences = np.diff(square_root_weights(n_steps), prepend=0).astype(np.float64)
    decoding, known = np.array([1 / differences[0]]), 1
    while known < n_steps:
        known = min(2 * known, n_steps)
        size = fft.next_fast_len(3 * known, real=True)
        found = fft.rfft(decoding, size)
        product = fft.rfft(differences[:known], size) * found
        decoding = fft.irfft(found * (2 - product), size)[:known]
    decoding.setflags(write=False)
    return decoding
