"""People and sizes together: against joint least squares by dense matrices; whole people keep every
sum.
"""

from fractions import Fraction

import numpy as np
import pytest

from tallytree.group_sizes.kernels.curves import Curves
from tallytree.group_sizes.noisy import NoisyLevel, NoisyQuery
from tallytree.group_sizes.reconcile.people import counted_people, shift_of_entities, whole_people
from tallytree.group_sizes.reconcile.staircases import shifted
from tallytree.lattice.least_squares import least_squares_cells
from tallytree.model.lattice import Family, Lattice
from tallytree.model.people import dealt
from tallytree.privacy.noise import DiscreteLaplace
from tests.model.test_lattice import LATTICE
from tests.reference.lattice import dense_joint_entities

N_CLASSES = 6
GROUPS = Lattice(LATTICE.hierarchy, LATTICE.attributes.margin((0,)))


def noisy_people(
    families: list[Family], table: np.ndarray, rng: np.random.Generator
) -> tuple[NoisyLevel, ...]:
    made = []
    for number, family in enumerate(families):
        noise = DiscreteLaplace(Fraction(3 + number))
        exact = GROUPS.sums(family, table)
        offsets = np.arange(len(exact) + 1) * N_CLASSES
        values = exact.ravel() + np.rint(rng.laplace(0, float(noise.scale), exact.size)).astype(
            np.int64
        )
        by = GROUPS.attributes.margin(family.margin).names
        made.append(NoisyLevel(family.level, (NoisyQuery("people", noise, offsets, values),), by))
    return tuple(made)


@pytest.mark.parametrize(
    "families", [[GROUPS.finest], [Family(0, ()), Family(1, (0,)), GROUPS.finest]]
)
def test_entities_are_those_of_joint_least_squares(families: list[Family]) -> None:
    """Curves with one variance per row and classes with one per table: the shift is that of the
    joint optimum.
    """
    rng = np.random.default_rng(2)
    n_sizes = 4
    truth = rng.integers(0, 60, (LATTICE.n_rows(LATTICE.finest), n_sizes)).astype(np.float64)
    sizes = {}
    for family in (Family(0, (0, 1)), LATTICE.finest):
        variance = np.full((LATTICE.n_rows(family), n_sizes), 7.0 + family.level)
        sizes[family] = Curves(
            LATTICE.sums(family, truth) + rng.normal(0, 3, variance.shape),
            variance,
            np.empty((0, 0)),
        )
    table = rng.integers(0, 80, (GROUPS.n_rows(GROUPS.finest), N_CLASSES))
    people = counted_people(GROUPS, noisy_people(families, table, rng))
    shift = shift_of_entities(LATTICE, sizes, GROUPS, people)
    cells = least_squares_cells(LATTICE, sizes)
    moved = shifted(Curves(cells, np.full_like(cells, 2.0), np.empty((0, 0))), shift).height
    expected = dense_joint_entities(LATTICE, sizes, GROUPS, people)
    assert np.allclose(moved, expected, atol=1e-6)
    assert np.abs(shift).max() > 0.1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("by", [(), (0,), (0, 1)])
def test_whole_people_add_up_to_the_entities_and_over_the_tree(
    seed: int, by: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(seed)
    groups = Lattice(LATTICE.hierarchy, LATTICE.attributes.margin(by))
    n_cells = groups.n_rows(groups.finest)
    estimate = Curves(
        rng.normal(2, 9, (n_cells, N_CLASSES)), np.full((n_cells, 1), 9.0), np.empty((0, 0))
    )
    entities = rng.integers(0, 30, n_cells) * rng.integers(0, 2, n_cells)
    whole = whole_people(groups, {groups.finest: estimate}, entities)
    assert whole.dtype == np.int64
    assert (whole >= 0).all()
    assert np.array_equal(whole.sum(axis=1), entities)


def test_without_noise_people_are_exact() -> None:
    rng = np.random.default_rng(5)
    table = rng.integers(0, 40, (GROUPS.n_rows(GROUPS.finest), N_CLASSES))
    exact = Curves(table.astype(np.float64), np.full((len(table), 1), 1.0), np.empty((0, 0)))
    assert np.array_equal(whole_people(GROUPS, {GROUPS.finest: exact}, table.sum(axis=1)), table)


def test_rows_without_groups_have_no_people() -> None:
    rng = np.random.default_rng(6)
    table = rng.integers(1, 40, (GROUPS.n_rows(GROUPS.finest), N_CLASSES))
    table[::2] = 0
    found = counted_people(GROUPS, noisy_people([GROUPS.finest], table, rng), table.sum(axis=1))
    assert np.array_equal(found[GROUPS.finest].height[::2], table[::2])
    assert not np.array_equal(found[GROUPS.finest].height, table)


def test_dealing_keeps_both_sums() -> None:
    rng = np.random.default_rng(7)
    row_of = rng.permutation(np.repeat(np.arange(4), 5))
    rows = rng.integers(0, 9, 20)
    totals = np.bincount(row_of, weights=rows, minlength=4).astype(np.int64)
    columns = rng.multinomial(totals, [0.2, 0.5, 0.3])
    found = dealt(rows, columns, row_of)
    assert (found >= 0).all()
    assert np.array_equal(found.sum(axis=1), rows)
    assert np.array_equal(np.stack([found[row_of == row].sum(axis=0) for row in range(4)]), columns)
