"""Shares of a budget for the tables of a hierarchy, by their predicted errors in closed form.

The split makes the product of the errors of all tables that are wanted small: each counts the same,
relative to what it could be. Only public facts enter: regions, values, and what is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from tallytree.lattice.precision import UNMEASURED, model_variance
from tallytree.lattice.tables import Axes, TableKey
from tallytree.model.arrays import FloatArray, IntArray

# Shares are whole multiples of this step; tables with less than the smallest share are not
# measured.
STEP = Fraction(1, 1000)
SMALLEST = 0.004
ROUNDS = 300
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
    energy = np.ones(1)
    for axis, part in zip(axes.axes, key.parts):
        sums = axis.class_of(part)[:, None] == np.arange(axis.n_classes[part])
        energy = (energy[:, None] * _energies(axis.component, axis.basis.T @ sums)).ravel()
    return Wanted(key.level, energy, bounded=True)


def ranges_wanted(axes: Axes, key: TableKey, place: int) -> Wanted:
    """Ranges of all lengths on one axis, of the numbers of a table that has single values there."""
    energy = np.ones(1)
    for number, (axis, part) in enumerate(zip(axes.axes, key.parts)):
        if number == place:
            first, last = np.triu_indices(axis.n_values)
            values = np.arange(axis.n_values)[:, None]
            sums = (values >= first) & (values <= last)
        else:
            sums = axis.class_of(part)[:, None] == np.arange(axis.n_classes[part])
        energy = (energy[:, None] * _energies(axis.component, axis.basis.T @ sums)).ravel()
    return Wanted(key.level, energy)


def _energies(component: IntArray, numbers: FloatArray) -> FloatArray:
    squares = (numbers**2).mean(axis=1)
    return np.asarray(np.bincount(component, squares), dtype=np.float64)


def planned_shares(
    axes: Axes,
    level_sizes: Sequence[int],
    wanted: Sequence[Wanted],
    definition: Definition,
) -> dict[TableKey, Fraction]:
    """The tables to measure, and their shares, for the wanted numbers."""
    keys = [
        TableKey(level, parts) for level in range(len(level_sizes)) for parts in axes.partitions
    ]
    problem = _Problem(axes, tuple(level_sizes), tuple(keys), tuple(wanted), definition)
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

    def starts(self) -> list[FloatArray]:
        """Equal shares of all tables; all of the finest cells of every level; those of the leaves
        with much.
        """
        everywhere = np.ones(len(self.keys))
        cells = np.array([20.0 if key.parts == self.axes.finest else 0.5 for key in self.keys])
        last = len(self.level_sizes) - 1
        leaves = np.array([20.0 if key.level == last else 0.5 for key in self.keys])
        return [start / start.sum() for start in (everywhere, cells, leaves)]

    def descend(self, shares: FloatArray) -> tuple[float, FloatArray]:
        """Shares are multiplied by a power of what they save, until they save alike."""
        power = 0.5 if self.definition == "zcdp" else 1 / 3
        kept = np.ones(len(shares), dtype=bool)
        for step in range(ROUNDS):
            saved = self._gradient(shares) * kept
            shares = shares * np.maximum(saved, 1e-300) ** power
            shares = np.where(kept, shares, 0) / shares[kept].sum()
            if step in (ROUNDS // 3, ROUNDS // 2, 2 * ROUNDS // 3, ROUNDS - 1):
                kept = shares >= SMALLEST * (0.5 if step < ROUNDS - 1 else 1)
                shares = np.where(kept, shares, 0) / shares[kept].sum()
        return float(self._value(shares[None])[0]), shares

    def _gradient(self, shares: FloatArray) -> FloatArray:
        """How much the value falls per relative change of a share, divided by the share."""
        places = np.flatnonzero(shares)
        moved = np.tile(shares, (len(places) + 1, 1))
        moved[np.arange(len(places)), places] *= 1.01
        values = self._value(moved)
        found = np.zeros(len(shares))
        found[places] = np.maximum(values[-1] - values[:-1], 0) / (0.01 * shares[places])
        return found

    def _value(self, shares: FloatArray) -> FloatArray:
        """Sum of the logarithms of variances, for each row of shares; dear where a table is worse
        than with equal shares of all that are wanted.
        """
        variance = self._variances(shares)
        n_bounded = sum(one.bounded for one in self.wanted)
        equal = np.log(n_bounded) * (1 if self.definition == "zcdp" else 2)
        found = np.zeros(len(shares))
        for one in self.wanted:
            own = np.log(variance[:, one.level] @ one.energy)
            found += own
            if one.bounded:
                found += WORSE * np.maximum(own - equal, 0) ** 2
        return found

    def _variances(self, shares: FloatArray) -> FloatArray:
        """Of each component on each level, ``(n_rows, n_levels, n_components)``, with the mean
        number of children for every region.
        """
        n_levels, partitions = len(self.level_sizes), np.array(self.axes.partitions)
        partitions = partitions.reshape(len(partitions), -1)
        told = np.all(partitions[None] <= partitions[:, None], axis=2).astype(np.float64)
        told /= np.array([model_variance(self.axes, parts) for parts in self.axes.partitions])[
            :, None
        ]
        weight = shares.reshape(len(shares), n_levels, len(partitions))
        up = (weight if self.definition == "zcdp" else weight**2) @ told
        up = np.maximum(up, UNMEASURED * up.max(axis=(1, 2), keepdims=True))
        fanout = [below / above for above, below in zip(self.level_sizes, self.level_sizes[1:])]
        for level in range(n_levels - 2, -1, -1):
            up[:, level] += up[:, level + 1] / fanout[level]
        variance = 1 / up
        for level in range(1, n_levels):
            part = 1 / fanout[level - 1]
            variance[:, level] = variance[:, level] * (1 - part) + part**2 * variance[:, level - 1]
        return variance
