"""The axes of a table: an attribute's values, and the partitions of them that are measured.

A partition cuts the values of an attribute, in their order, into classes; partitions of one axis
are nested, from one class of all values to single values. Functions of the values fall apart into
what each partition tells beyond the coarser one, its *component*. An orthonormal basis that is
written component by component turns least squares on tables into a problem per number.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tallytree.errors import InputError
from tallytree.model.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Axis:
    """Nested partitions of the values of an attribute.

    Attributes
    ----------
    n_values
        How many values there are.
    starts
        Per partition the first value of each class; the first partition is one class, the last one
        single values.

    Examples
    --------
    >>> age = Axis(6, ((0,), (0, 2, 4), (0, 1, 2, 3, 4, 5)))
    >>> age.n_classes, age.class_of(1).tolist()
    ((1, 3, 6), [0, 0, 1, 1, 2, 2])
    """

    n_values: int
    starts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        sets = [set(starts) for starts in self.starts]
        nested = all(coarse < fine for coarse, fine in itertools.pairwise(sets))
        ends = self.starts[0] == (0,) and self.starts[-1] == tuple(range(self.n_values))
        if not nested or not ends:
            raise InputError("Partitions of an axis are nested, from one class to single values.")

    @property
    def n_classes(self) -> tuple[int, ...]:
        """Classes of each partition."""
        return tuple(len(starts) for starts in self.starts)

    def class_of(self, partition: int) -> IntArray:
        """The class of each value."""
        starts = np.array(self.starts[partition], dtype=np.int64)
        return np.searchsorted(starts, np.arange(self.n_values), side="right") - 1

    def sizes(self, partition: int) -> IntArray:
        """How many values each class has."""
        return np.diff([*self.starts[partition], self.n_values])

    def model_variance(self, partition: int) -> float:
        """Variance of a number of the basis that the sums of classes tell of, in units of theirs.

        It is one over the size of the classes, the same for all numbers, where classes have one
        size; else the mean of that.
        """
        return float(np.mean(1 / self.sizes(partition)))

    def excess(self, partition: int) -> float:
        """How many times as large as :meth:`model_variance` the variance in any direction may be:
        1 where all classes have one size.
        """
        return float(1 / self.sizes(partition).min() / self.model_variance(partition))

    @cached_property
    def component(self) -> IntArray:
        """The component that each number of the basis belongs to, by its partition."""
        return np.repeat(np.arange(len(self.starts)), np.diff([0, *self.n_classes]))

    @cached_property
    def basis(self) -> FloatArray:
        """Orthonormal columns, ``(n_values, n_values)``: the first ``n_classes[k]`` of them span
        the functions that are constant on the classes of partition k.
        """
        columns = []
        for partition in range(len(self.starts)):
            spread = self.class_of(partition)[:, None] == np.arange(self.n_classes[partition])
            columns.append(spread / np.sqrt(self.sizes(partition)))
        # Gram and Schmidt by Householder: later columns lose what earlier ones span, and those
        # that nothing is left of are dropped.
        found = np.zeros((self.n_values, 0))
        for column in np.concatenate(columns, axis=1).T:
            for _ in range(2):
                column = column - found @ (found.T @ column)
            size = np.sqrt(column @ column)
            if size > 1e-9:
                found = np.concatenate([found, (column / size)[:, None]], axis=1)
        return found

    def from_sums(self, partition: int) -> FloatArray:
        """From sums of classes to numbers of the basis: ``(n_classes, n_classes)``, the transposed
        basis after the pseudo-inverse of summing.
        """
        n = self.n_classes[partition]
        of_classes = self.basis[list(self.starts[partition]), :n]
        return np.asarray(of_classes, dtype=np.float64)


def plain_axis(n_values: int) -> Axis:
    """The axis of an attribute whose values have no order: all of them, or each."""
    if n_values == 1:
        return Axis(1, ((0,),))
    return Axis(n_values, ((0,), tuple(range(n_values))))


def even_axis(n_values: int, widths: Sequence[int]) -> Axis:
    """The axis of ordered values: blocks of about so many values each, the widest first, all of
    them before and each after them.

    Examples
    --------
    >>> even_axis(11, (5,)).starts[1]
    (0, 6)
    """
    fine = tuple(range(n_values))
    partitions = [fine]
    for width in sorted(widths):
        finer = partitions[-1]
        n_blocks = max(1, round(n_values / width))
        if not 1 < n_blocks < len(finer):
            continue
        first = -(-np.arange(n_blocks) * len(finer) // n_blocks)
        partitions.append(tuple(finer[int(place)] for place in first))
    if n_values > 1:
        partitions.append((0,))
    return Axis(n_values, tuple(reversed(partitions)))
