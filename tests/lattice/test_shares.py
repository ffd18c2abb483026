"""Variances of rows of any family, all interactions at once, beside one interaction at a time."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.lattice.shares import CombinedVariances, Shares
from tallytree.model.arrays import FloatArray
from tallytree.model.attributes import Attributes
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.lattice import Family, Lattice

TREE = hierarchy_from_leaves(
    ["state", "county"], [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")], root="US"
)


def own_variance(family: Family, share: Fraction) -> FloatArray:
    return np.arange(1, 5) / (float(share) * (1 + family.level)) ** 2


def slow_variance(
    lattice: Lattice, n_values: tuple[int, ...], family: Family, shares: Shares
) -> FloatArray:
    """One interaction after the other."""
    found = np.zeros(4)
    for n in range(len(family.margin) + 1):
        for interaction in combinations(family.margin, n):
            own = math.prod(1 - 1 / n_values[place] for place in interaction)
            summed = math.prod(n_values[p] for p in family.margin if p not in interaction)
            of_levels = slow_interaction(lattice, n_values, interaction, shares)
            found = found + own * of_levels[family.level] / summed**2
    return found


def slow_interaction(
    lattice: Lattice, n_values: tuple[int, ...], interaction: tuple[int, ...], shares: Shares
) -> list[FloatArray]:
    """Of the part of the tables that belongs to an interaction: up the levels, then down."""
    sizes = [lattice.hierarchy.level_size(level) for level in range(3)]
    precision = [np.zeros(4) for _ in sizes]
    for family, share in shares.items():
        if set(interaction) <= set(family.margin):
            summed = math.prod(n_values[p] for p in family.margin if p not in interaction)
            precision[family.level] = precision[family.level] + 1 / (
                own_variance(family, share) * summed
            )
    for level in (1, 0):
        fanout = sizes[level + 1] / sizes[level]
        precision[level] = precision[level] + precision[level + 1] / fanout
    variance = [1 / np.maximum(here, 1e-24) for here in precision]
    for level in (1, 2):
        fanout = sizes[level] / sizes[level - 1]
        known = np.minimum(1.0, variance[level - 1] / (variance[level] * fanout))
        variance[level] = variance[level] * (1 - (1 - known) / fanout)
    return variance


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_all_interactions_at_once_are_one_at_a_time(data: st.DataObject) -> None:
    n_values = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    values = tuple((*(f"v{i}" for i in range(n)), "other") for n in n_values)
    lattice = Lattice(TREE, Attributes(tuple(f"a{i}" for i in range(len(values))), values))
    measured = data.draw(
        st.lists(st.sampled_from(lattice.families), min_size=1, max_size=5, unique=True)
    )
    shares = {family: Fraction(data.draw(st.integers(1, 200)), 200) for family in measured}
    model = CombinedVariances(lattice, n_values, own_variance)
    for family in lattice.families:
        slow = slow_variance(lattice, n_values, family, shares)
        assert np.array_equal(model.variance(family, shares) + np.zeros(4), slow)
    half = {family: share / 2 for family, share in shares.items()}
    assert np.array_equal(
        model.variance(lattice.finest, half) + np.zeros(4),
        slow_variance(lattice, n_values, lattice.finest, half),
    )
