"""What the rows of a stream weigh: a power of the summing matrix, its rows and columns scaled.

Row t asks r_t Σ_s w_{t-s} d_s x_s, all whole numbers: the matrix is diag(r) W diag(d), W lower
triangular Toeplitz. With w the coefficients of (1 - z)**(-1/2) and r = d = 1 it is the square root
of the matrix A that adds up a stream. Two things are better. Columns that end soon are short, so d
lengthens them until all columns have nearly the same norm, which costs nothing (Kalinin, Upadhyay
and Lampert 2025 for r = 1: "normalized square root"). And the errors of the optimal matrix near
both ends are those of r_t = ((n - t + τ)/n)**p (t/n)**q with an exponent of W a little above ½:
with the four numbers of :data:`SHAPES` the error is within 1 % of the least possible for the mean,
and within 2 % for the largest, wherever that can be computed (n <= 1,024).

Everything is worked out in whole numbers and in decimals of fixed length, so that all machines ask
the same and sensitivities are exact: estimates invert the rounded matrix, so nothing is biased.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from tallytree.kernels.stream_rows import (
    COLUMN_BITS,
    Factors,
    column_sums,
    power_weights,
    square_root_weights,
)
from tallytree.model.arrays import IntArray, read_only
from tallytree.options.choices import StreamObjective

_FINEST_PIECE = 64  # pieces of r: a 64th of the way from the nearer end
_DECIMALS = Context(prec=30)


Aim = StreamObjective | Literal["every"]


class Bits(NamedTuple):
    """Binary digits of the factors: of w_0 beyond those of √n, of the largest r, of the smallest d."""

    weight: int
    row: int
    column: int


# The more, the nearer the error is to that of factors without rounding, and the larger are rows and
# their noise: the first that leaves room for the noise below 2**62 is taken.
BITS: dict[Aim, tuple[Bits, ...]] = {
    "mean": (Bits(2, 7, 9), Bits(1, 6, 8), Bits(0, 5, 6)),
    "every": (Bits(2, 7, 9), Bits(1, 6, 8), Bits(0, 5, 6)),
    "largest": (Bits(3, 8, 10), Bits(2, 7, 9), Bits(1, 6, 8), Bits(0, 5, 6)),
}


class Shape(NamedTuple):
    """τ, p, the exponent of W, and q, in thousandths."""

    shift: int
    end: int
    exponent: int
    start: int


# Of 2, 4, 8 … 65,536 steps; found by search over streams without rounding (python -m benchmarks
# streams). Between them in proportion, beyond them the last.
SHAPES: dict[Aim, tuple[Shape, ...]] = {
    "every": (Shape(202, 1735, 537, 74),),
    "mean": (
        Shape(300, 823, 559, 334),
        Shape(300, 641, 540, 280),
        Shape(300, 537, 530, 237),
        Shape(300, 472, 523, 203),
        Shape(300, 430, 519, 177),
        Shape(300, 401, 516, 156),
        Shape(300, 380, 513, 139),
        Shape(300, 364, 512, 126),
        Shape(300, 351, 510, 115),
        Shape(300, 341, 509, 105),
        Shape(300, 333, 509, 98),
        Shape(300, 326, 508, 91),
        Shape(300, 320, 507, 85),
        Shape(300, 315, 507, 80),
        Shape(300, 311, 506, 75),
        Shape(300, 307, 506, 71),
    ),
    "largest": (
        Shape(686, 177, 539, 328),
        Shape(905, 318, 537, 360),
        Shape(1122, 270, 500, 330),
        Shape(1240, 308, 523, 251),
        Shape(1338, 328, 529, 213),
        Shape(1462, 342, 529, 192),
        Shape(2032, 376, 533, 166),
        Shape(2463, 379, 530, 154),
        Shape(2178, 370, 525, 147),
        Shape(2470, 368, 523, 138),
        Shape(2553, 368, 521, 130),
        Shape(3582, 381, 520, 123),
        Shape(3975, 381, 518, 117),
        Shape(4263, 380, 517, 111),
        Shape(4618, 378, 516, 106),
        Shape(4953, 377, 514, 102),
    ),
}


@lru_cache(maxsize=8)
def square_root_factors(n_steps: int) -> Factors:
    """The square root of the summing matrix.

    Examples
    --------
    >>> square_root_factors(3).weights.tolist()
    [65536, 32768, 24576]
    """
    ones = read_only(np.ones(n_steps, dtype=np.int64))
    return Factors(square_root_weights(n_steps), ones, ones)


@lru_cache(maxsize=8)
def scaled_root_factors(n_steps: int, aim: Aim, bits: Bits) -> Factors:
    """The scaled root that makes the mean or the largest error small, or those of the first t steps
    for every t from a third of the steps on, where nobody knows how many there will be.

    Examples
    --------
    >>> scaled_root_factors(3, "mean", BITS["mean"][0]).rows.tolist()
    [128, 104, 40]
    """
    shape = _shape(n_steps, aim)
    weights = power_weights(n_steps, shape.exponent, bits.weight + (n_steps.bit_length() + 1) // 2)
    rows = _rows(n_steps, shape, bits.row)
    return Factors(weights, read_only(rows), read_only(_columns(weights, rows, bits.column)))


def _shape(n_steps: int, aim: Aim) -> Shape:
    """In proportion between those of the two powers of 2 around the number of steps."""
    shapes = SHAPES[aim]
    power = max(n_steps.bit_length() - 1, 1)
    if power >= len(shapes):
        return shapes[-1]
    low, high, beyond = shapes[power - 1], shapes[power], max(n_steps - (1 << power), 0)
    return Shape(*(one + ((other - one) * beyond >> power) for one, other in zip(low, high)))


def _rows(n_steps: int, shape: Shape, bits: int) -> IntArray:
    """r, at most 2**bits, constant over pieces that are shorter near both ends."""
    half, start = (n_steps + 1) // 2, 0
    starts: list[int] = []
    while start < half:
        starts.append(start)
        start += max(1, start // _FINEST_PIECE)
    ends = sorted({*starts, *(n_steps - start for start in starts)})
    logs = [_log_row(first + last + 1, n_steps, shape) for first, last in pairwise(ends)]
    largest, unit = max(logs), Decimal(1 << bits)
    context = _DECIMALS
    values = [
        max(1, int(context.multiply(unit, context.exp(context.subtract(log, largest))) + _HALF))
        for log in logs
    ]
    return np.repeat(np.array(values, dtype=np.int64), np.diff(ends))


_HALF = Decimal("0.5")


def _log_row(twice: int, n_steps: int, shape: Shape) -> Decimal:
    """log r_t for t = twice/2, counted from 1."""
    context = _DECIMALS
    left = context.divide(
        Decimal(1000 * (2 * n_steps - twice) + 2 * shape.shift), Decimal(2000 * n_steps)
    )
    past = context.divide(Decimal(twice), Decimal(2 * n_steps))
    exponents = Decimal(shape.end) / 1000, Decimal(shape.start) / 1000
    return context.add(
        context.multiply(exponents[0], context.ln(left)),
        context.multiply(exponents[1], context.ln(past)),
    )


def _columns(weights: IntArray, rows: IntArray, bits: int) -> IntArray:
    """d: 2**bits for the longest column, and for the others what makes them nearly as long."""
    norms = column_sums(weights**2, rows**2)
    longest = int(norms.max()) << 2 * bits
    beyond = max(longest.bit_length() - 62, 0)
    ratios = (longest >> beyond) // np.maximum(norms >> beyond, 1)
    # At most 2**36, of which floating point finds the whole root.
    columns: IntArray = np.floor(np.sqrt(np.minimum(ratios, 1 << 2 * COLUMN_BITS)))
    return columns.astype(np.int64)
