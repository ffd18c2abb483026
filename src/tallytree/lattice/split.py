"""Shares of a budget for the tables of a hierarchy, by their predicted errors in closed form.

The split makes the product of the errors of all tables that are wanted small: each counts the same,
relative to what it could be. Only public facts enter: regions, values, and what is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from tallytree.lattice.axes import Axis
from tallytree.lattice.precision import UNMEASURED, model_variance
from tallytree.lattice.tables import Axes, TableKey
from tallytree.model.arrays import BoolArray, FloatArray, IntArray

# Shares are whole multiples of this step; tables with less than the smallest share are not
# measured.
STEP = Fraction(1, 1000)
SMALLEST = 0.004
ROUNDS = 300
# Precision of what is known, beside that of all of the budget.
KNOWN = 1e6
# What it costs that a table is worse than with equal shares: per square of the logarithm of its
# variance over theirs.
WORSE = 20.0

Definition = Literal["pure", "zcdp"]


@dataclass(frozen=True, eq=False)
class Wanted:
    """Numbers whose errors count together: a level, and how much of the square of such a number
    lies in each component.

    Bounded ones are tables that equal shares would measure, and are to be no worse than with these.
    """

    level: int
    energy: FloatArray
    bounded: bool = False


def cells_wanted(axes: Axes, key: TableKey) -> Wanted:
    """The numbers of a table."""
    each = [_of_classes(axis, part) for axis, part in zip(axes.axes, key.parts)]
    return Wanted(key.level, _crossed(each), bounded=True)


def ranges_wanted(axes: Axes, key: TableKey, place: int) -> Wanted:
    """Ranges of all lengths on one axis, of the numbers of a table that has single values there."""
    each = [_of_classes(axis, part) for axis, part in zip(axes.axes, key.parts)]
    each[place] = _of_ranges(axes.axes[place])
    return Wanted(key.level, _crossed(each))


def _crossed(each: Sequence[FloatArray]) -> FloatArray:
    """Energies by components of all axes, from those of each."""
    energy = np.ones(1)
    for own in each:
        energy = np.multiply.outer(energy, own).ravel()
    return energy


@cache
def _of_classes(axis: Axis, part: int) -> FloatArray:
    """Mean energy of the classes of a partition."""
    sums = axis.class_of(part)[:, None] == np.arange(axis.n_classes[part])
    return _energies(axis, sums)


@cache
def _of_ranges(axis: Axis) -> FloatArray:
    """Mean energy of all ranges."""
    first, last = np.triu_indices(axis.n_values)
    values = np.arange(axis.n_values)[:, None]
    return _energies(axis, (values >= first) & (values <= last))


def _energies(axis: Axis, sums: BoolArray) -> FloatArray:
    squares = ((axis.basis.T @ sums) ** 2).mean(axis=1)
    return np.asarray(np.bincount(axis.component, squares), dtype=np.float64)


def planned_shares(
    axes: Axes,
    level_sizes: Sequence[int],
    wanted: Sequence[Wanted],
    definition: Definition,
    known: BoolArray | None = None,
) -> dict[TableKey, Fraction]:
    """The tables to measure, and their shares, for the wanted numbers.

    ``known`` says which components of each level are known, ``(n_levels, n_components)``; tables
    of these alone are not measured.
    """
    if known is None:
        known = np.zeros((len(level_sizes), len(axes.partitions)), dtype=bool)
    keys = [
        TableKey(level, parts) for level in range(len(level_sizes)) for parts in axes.partitions
    ]
    problem = _Problem(axes, tuple(level_sizes), tuple(keys), tuple(wanted), definition, known)
    best: tuple[float, FloatArray] | None = None
    for start in problem.starts():
        found = problem.descend(start)
        if best is None or found[0] < best[0] - 1e-9:
            best = found
    assert best is not None
    return _in_steps(keys, best[1])


def _in_steps(keys: Sequence[TableKey], shares: FloatArray) -> dict[TableKey, Fraction]:
    """Shares as multiples of :data:`STEP` that add up to 1."""
    n_steps = np.floor(shares / float(STEP) + 0.5).astype(int)
    n_steps[np.argmax(n_steps)] += int(1 / STEP) - n_steps.sum()
    return {key: int(n) * STEP for key, n in zip(keys, n_steps) if n > 0}


@dataclass(frozen=True, eq=False)
class _Problem:
    axes: Axes
    level_sizes: tuple[int, ...]
    keys: tuple[TableKey, ...]
    wanted: tuple[Wanted, ...]
    definition: Definition
    known: BoolArray

    def starts(self) -> list[FloatArray]:
        """Equal shares of all tables; all of the finest cells of every level; those of the leaves
        with much.
        """
        everywhere = np.ones(len(self.keys))
        cells = np.array([20.0 if key.parts == self.axes.finest else 0.5 for key in self.keys])
        last = len(self.level_sizes) - 1
        leaves = np.array([20.0 if key.level == last else 0.5 for key in self.keys])
        open_ones = ~self.known.ravel()
        starts = [start * open_ones for start in (everywhere, cells, leaves)]
        return [start / start.sum() for start in starts]

    def descend(self, shares: FloatArray) -> tuple[float, FloatArray]:
        """Shares are multiplied by a power of what they save, until they save alike."""
        power = 0.5 if self.definition == "zcdp" else 1 / 3
        kept = np.ones(len(shares), dtype=bool)
        for step in range(ROUNDS):
            saved = self._value_and_savings(shares)[1]
            shares = np.where(kept, shares * np.maximum(saved, 1e-300) ** power, 0)
            shares /= shares.sum()
            if step in (ROUNDS // 3, ROUNDS // 2, 2 * ROUNDS // 3, ROUNDS - 1):
                kept = shares >= SMALLEST * (0.5 if step < ROUNDS - 1 else 1)
                shares = np.where(kept, shares, 0)
                shares /= shares.sum()
        return self._value_and_savings(shares)[0], shares

    @cached_property
    def _told(self) -> FloatArray:
        """What a table of variance 1 tells of each component, ``(n_partitions, n_components)``."""
        partitions = np.array(self.axes.partitions).reshape(len(self.axes.partitions), -1)
        told = np.all(partitions[None] <= partitions[:, None], axis=2).astype(np.float64)
        each = [model_variance(self.axes, parts) for parts in self.axes.partitions]
        return told / np.array(each)[:, None]

    @cached_property
    def _energy(self) -> FloatArray:
        return np.array([one.energy for one in self.wanted])

    @cached_property
    def _levels(self) -> IntArray:
        return np.array([one.level for one in self.wanted])

    def _value_and_savings(self, shares: FloatArray) -> tuple[float, FloatArray]:
        """The sum of the logarithms of variances, dear where a table is worse than with equal
        shares of all that are wanted; and how fast it falls with each share.

        Forward as in :mod:`tallytree.lattice.precision`, with the mean number of children for every
        region; then backward through the same steps.
        """
        power, sizes = (1 if self.definition == "zcdp" else 2), self.level_sizes
        part = [above / below for above, below in pairwise(sizes)]
        table = shares.reshape(len(sizes), -1)
        up = table**power @ self._told
        up = np.maximum(up, UNMEASURED * up.max()) + KNOWN * self.known
        for level in range(len(sizes) - 2, -1, -1):
            up[level] += up[level + 1] * part[level]
        variance = 1 / up
        for level, k in enumerate(part, start=1):
            variance[level] = variance[level] * (1 - k) + k**2 * variance[level - 1]
        own = np.einsum("wc,wc->w", variance[self._levels], self._energy)
        bounded = np.array([one.bounded for one in self.wanted])
        worse = np.where(bounded, np.log(own) - power * np.log(max(bounded.sum(), 1)), 0)
        worse = np.maximum(worse, 0)
        value = float(np.log(own).sum() + WORSE * (worse**2).sum())
        slope = np.zeros_like(up)
        by_wish = ((1 + 2 * WORSE * worse) / own)[:, None] * self._energy
        np.add.at(slope, self._levels, by_wish)
        for level in range(len(sizes) - 1, 0, -1):
            slope[level - 1] += part[level - 1] ** 2 * slope[level]
            slope[level] *= 1 - part[level - 1]
        slope /= up**2
        for level in range(len(sizes) - 1):
            slope[level + 1] += slope[level] * part[level]
        saved = slope @ self._told.T * power * table ** (power - 1)
        return value, saved.ravel()
