"""People by class that agree with the sizes of groups.

Sizes and classes have one thing in common: how many entities a row has, Σ over sizes i of N(i) on
one side, Σ over classes on the other. All estimates of that number, from every measured table of
either kind, are combined by generalised least squares on the lattice; curves and classes each move
by their part of the difference, in proportion to their variances, which is the joint least squares
of both. Whole sizes come first, then whole people: from the root down, each row's classes add up to
the entities of its groups, and the classes of its rows to those of the row above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tallytree.group_sizes.noisy import NoisyLevel
from tallytree.lattice.least_squares import LEAST_VARIANCE, Answers, Rows, least_squares_cells
from tallytree.lattice.whole import whole_cells
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.lattice import Family, Lattice


def counted_people(
    groups: Lattice, noisy: Sequence[NoisyLevel], n_groups: IntArray | None = None
) -> dict[Family, Answers]:
    """What was measured of people, by family of the tables of groups: one column per class.

    Rows that have no groups by public numbers ``n_groups`` of the finest cells have no people.
    """
    found = {}
    for level in noisy:
        query = level.queries[0]
        family = Family(level.level, groups.attributes.chosen(level.by))
        answers = query.values.reshape(groups.n_rows(family), -1).astype(np.float64)
        variance = np.full((len(answers), 1), query.noise.variance)
        if n_groups is not None:
            empty = groups.sums(family, n_groups) == 0
            answers[empty], variance[empty] = 0.0, LEAST_VARIANCE
        found[family] = Answers(answers, variance)
    return found


def shift_of_entities(
    lattice: Lattice, sizes: Mapping[Family, Rows], groups: Lattice, people: Mapping[Family, Rows]
) -> FloatArray:
    """By how much the number of entities of each of the finest cells moves when people are heard
    beside sizes.

    Parameters
    ----------
    lattice
        The tables of groups by all attributes.
    sizes
        Estimated curves of the families whose sizes were measured, the finest among them.
    groups, people
        The tables in which people are counted, and what was measured there.
    """
    alone = {family: _entities(curves) for family, curves in sizes.items()}
    both = dict(alone)
    for family, counted in people.items():
        own = Family(
            family.level, lattice.attributes.chosen(groups.attributes.margin(family.margin).names)
        )
        n_classes = counted.height.shape[1]
        told = Answers(counted.height.sum(axis=1, keepdims=True), n_classes * counted.variance)
        both[own] = _by_inverse_variance(both[own], told) if own in both else told
    shift: FloatArray = least_squares_cells(lattice, both) - least_squares_cells(lattice, alone)
    return shift[:, 0]


def whole_people(groups: Lattice, people: Mapping[Family, Rows], entities: IntArray) -> IntArray:
    """Whole numbers of entities per class of the finest cells, at least 0, that add up to the
    entities of each cell.

    ``entities`` are those of the finest cells of ``groups``, as whole sizes have them.
    """
    return whole_cells(groups, least_squares_cells(groups, people), entities)


def _entities(curves: Rows) -> Answers:
    """The number of entities that curves tell, with its variance."""
    variance = np.maximum(curves.variance, LEAST_VARIANCE)
    return Answers(curves.height.sum(axis=1, keepdims=True), variance.sum(axis=1, keepdims=True))


def _by_inverse_variance(one: Answers, other: Rows) -> Answers:
    precision = 1 / one.variance + 1 / other.variance
    height = (one.height / one.variance + other.height / other.variance) / precision
    return Answers(height, 1 / precision)
