"""Workloads: the sets of counting queries that a histogram is meant to answer, known to planning as
Gram matrices.

With one row of W per query, planning needs only G = WᵀW and the number of queries. All ranges and
prefixes have G in closed form and never form W; the same goes for products with G, which take
linear time.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray, read_only


class Workload(Protocol):
    """What planning asks of a workload."""

    @property
    def name(self) -> str:
        """One word for messages and file names."""

    @property
    def n_bins(self) -> int:
        """Number of bins that the queries are over."""

    @property
    def n_queries(self) -> int:
        """Number of queries; errors are averages over them."""

    @property
    def key(self) -> str:
        """A text that two workloads share only if they are the same."""

    def gram(self) -> FloatArray:
        """WᵀW, dense."""

    def times_gram(self, rows: FloatArray) -> FloatArray:
        """``rows @ WᵀW`` without forming WᵀW where that is cheaper."""


@dataclass(frozen=True)
class AllRanges:
    """Every range of consecutive bins once."""

    n_bins: int

    def __post_init__(self) -> None:
        check_bins(self.n_bins)

    @property
    def name(self) -> str:
        """One word for messages and file names."""
        return "ranges"

    @property
    def n_queries(self) -> int:
        """N(N + 1)/2."""
        return self.n_bins * (self.n_bins + 1) // 2

    @property
    def key(self) -> str:
        """Name and size say everything."""
        return f"ranges-{self.n_bins}"

    def gram(self) -> FloatArray:
        """The entry of bins i and j, from 1, is min(i, j)·(N + 1 − max(i, j)): the ranges that hold
        both.
        """
        place = np.arange(1.0, self.n_bins + 1)
        return np.minimum.outer(place, place) * (self.n_bins + 1 - np.maximum.outer(place, place))

    def times_gram(self, rows: FloatArray) -> FloatArray:
        """(N + 1 − i)·Σ_{j ≤ i} j·x_j + i·Σ_{j > i} (N + 1 − j)·x_j, by running sums."""
        left = np.arange(1.0, self.n_bins + 1)
        right = self.n_bins + 1 - left
        up_to = np.cumsum(rows * left, axis=-1)
        down = rows * right
        beyond = down.sum(axis=-1, keepdims=True) - np.cumsum(down, axis=-1)
        return right * up_to + left * beyond


@dataclass(frozen=True, eq=False)
class GivenRanges:
    """Any ranges ``starts[q] ≤ bin < stops[q]``, each as often as it is listed. Make one with
    :func:`given_ranges`.
    """

    n_bins: int
    starts: IntArray
    stops: IntArray
    name: str = "given-ranges"

    @property
    def n_queries(self) -> int:
        """Number of ranges listed."""
        return len(self.starts)

    @property
    def key(self) -> str:
        """Name, size and a digest of the ranges in order of their ends."""
        order = np.lexsort((self.stops, self.starts))
        digest = hashlib.sha256(
            np.stack([self.starts[order], self.stops[order]]).tobytes()
        ).hexdigest()[:24]
        return f"{self.name}-{self.n_bins}-{digest}"

    def gram(self) -> FloatArray:
        """The entry of bins i ≤ j counts the ranges with start ≤ i and stop > j, from a table of
        ends.
        """
        ends = np.zeros((self.n_bins, self.n_bins))
        np.add.at(ends, (self.starts, self.stops - 1), 1.0)
        holding = np.cumsum(np.cumsum(ends, axis=0)[:, ::-1], axis=1)[:, ::-1]
        return np.triu(holding) + np.triu(holding, 1).T

    def times_gram(self, rows: FloatArray) -> FloatArray:
        """Answers of all ranges by running sums, then back the same way."""
        running = np.concatenate(
            [np.zeros((*rows.shape[:-1], 1)), np.cumsum(rows, axis=-1)], axis=-1
        )
        answers = running[..., self.stops] - running[..., self.starts]
        back = np.zeros((*rows.shape[:-1], self.n_bins + 1))
        for row, answer in zip(
            back.reshape(-1, self.n_bins + 1), answers.reshape(-1, self.n_queries)
        ):
            row += np.bincount(self.starts, answer, self.n_bins + 1) - np.bincount(
                self.stops, answer, self.n_bins + 1
            )
        return np.cumsum(back, axis=-1)[..., : self.n_bins]


def given_ranges(n_bins: int, ranges: Iterable[tuple[int, int]]) -> GivenRanges:
    """The workload of the listed ranges ``(start, stop)``: bins ``start`` up to, not including,
    ``stop``.
    """
    check_bins(n_bins)
    pairs = np.array(list(ranges), dtype=np.int64).reshape(-1, 2)
    if len(pairs) == 0:
        raise RequestError("A workload needs at least one range.")
    wrong = (pairs[:, 0] < 0) | (pairs[:, 0] >= pairs[:, 1]) | (pairs[:, 1] > n_bins)
    if wrong.any():
        start, stop = pairs[np.argmax(wrong)]
        raise RequestError(f"A range needs 0 ≤ start < stop ≤ {n_bins}, got ({start}, {stop}).")
    return GivenRanges(n_bins, read_only(pairs[:, 0].copy()), read_only(pairs[:, 1].copy()))


def prefixes(n_bins: int) -> GivenRanges:
    """The first bin, the first two, …, all bins: a distribution function."""
    check_bins(n_bins)
    stops = np.arange(1, n_bins + 1)
    return GivenRanges(
        n_bins, read_only(np.zeros(n_bins, dtype=np.int64)), read_only(stops), "prefixes"
    )


def identity(n_bins: int) -> GivenRanges:
    """Every bin alone."""
    check_bins(n_bins)
    starts = np.arange(n_bins)
    return GivenRanges(n_bins, read_only(starts), read_only(starts + 1), "identity")


@dataclass(frozen=True)
class Marginals:
    """Marginal tables over categories. Make one with :func:`marginals`.

    Bins are the cells of a table of ``shape`` in row-major order; each entry of ``kept`` names the
    axes that a marginal keeps, the others being summed over.
    """

    shape: tuple[int, ...]
    kept: tuple[tuple[int, ...], ...]

    @property
    def name(self) -> str:
        """One word for messages and file names."""
        return "marginals"

    @property
    def n_bins(self) -> int:
        """Cells of the table."""
        return math.prod(self.shape)

    @property
    def n_queries(self) -> int:
        """Cells of all marginals together."""
        return sum(math.prod(self.shape[axis] for axis in axes) for axes in self.kept)

    @property
    def key(self) -> str:
        """Shape and axes say everything."""
        axes = "_".join("".join(f"{axis}." for axis in kept) for kept in self.kept)
        return f"marginals-{'x'.join(map(str, self.shape))}-{hashlib.sha256(axes.encode()).hexdigest()[:24]}"

    def gram(self) -> FloatArray:
        """Sum over the marginals of ⊗ (I where an axis is kept, all ones where it is summed over)."""
        return self.times_gram(np.eye(self.n_bins))

    def times_gram(self, rows: FloatArray) -> FloatArray:
        """Each marginal of each row, spread back over its cells."""
        tables = rows.reshape(-1, *self.shape)
        total = np.zeros_like(tables)
        for axes in self.kept:
            summed = tuple(axis + 1 for axis in range(len(self.shape)) if axis not in axes)
            total += tables.sum(axis=summed, keepdims=True)
        return total.reshape(rows.shape)


def marginals(shape: Sequence[int], kept: Iterable[Sequence[int]] | int) -> Marginals:
    """The workload of marginal tables: the listed sets of axes, or all sets of a number of axes."""
    if not shape or any(size < 1 for size in shape):
        raise RequestError(
            f"A table needs at least one category per axis, got the shape {tuple(shape)}."
        )
    wanted = combinations(range(len(shape)), kept) if isinstance(kept, int) else kept
    chosen = tuple(sorted({tuple(sorted(set(axes))) for axes in wanted}))
    if not chosen or any(not 0 <= axis < len(shape) for axes in chosen for axis in axes):
        raise RequestError(f"Marginals keep axes 0 to {len(shape) - 1}, got {list(chosen)}.")
    return Marginals(tuple(shape), chosen)


def check_bins(n_bins: int) -> None:
    """Refuse a histogram without bins."""
    if n_bins < 1:
        raise RequestError(f"A histogram needs at least one bin, got {n_bins}.")
