"""Tables that levels and attributes make: numbering, sums, nested paths, against comparing labels
one by one.
"""

import numpy as np
import pytest

from tallytree.errors import InputError, RequestError
from tallytree.model.attributes import NO_ATTRIBUTES, Attributes
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.lattice import Family, Lattice
from tests.reference.lattice import membership

LEAVES = (("GA", "Cobb"), ("GA", "Fulton"), ("NY", "Kings"), ("NY", "Queens"), ("NY", "Bronx2"))
TREE = hierarchy_from_leaves(["state", "county"], sorted(LEAVES), root="US")
HOUSE = Attributes(("tenure", "head"), (("owned", "rented", "other"), ("young", "other")))
LATTICE = Lattice(TREE, HOUSE)


@pytest.mark.parametrize("family", LATTICE.families)
def test_sums_and_spreads_are_products_with_the_membership_of_cells(family: Family) -> None:
    rng = np.random.default_rng(1)
    matrix = membership(LATTICE, family)
    cells, rows = (
        rng.integers(0, 9, (LATTICE.n_rows(LATTICE.finest), 3)),
        rng.integers(0, 9, (len(matrix), 3)),
    )
    assert np.array_equal(LATTICE.sums(family, cells), matrix @ cells)
    assert np.array_equal(LATTICE.spread(family, rows), matrix.T @ rows)
    assert np.array_equal(LATTICE.rows_of_cells(family), matrix.argmax(axis=0))


def test_every_family_comes_after_those_that_cover_it() -> None:
    families = LATTICE.families
    assert len(families) == len(set(families)) == 12
    assert families[-1] == LATTICE.finest
    for place, family in enumerate(families):
        assert all(not family.covers(before) for before in families[:place])
    assert all(family.covers(LATTICE.finest) for family in families)


def test_rows_above_are_those_that_hold_all_cells_of_a_row() -> None:
    for coarse in LATTICE.families:
        for fine in LATTICE.families:
            if coarse.covers(fine):
                above = LATTICE.rows_above(coarse, fine)
                held = membership(LATTICE, coarse) @ membership(LATTICE, fine).T
                assert np.array_equal(above, held.argmax(axis=0))


def test_a_path_is_a_hierarchy_whose_sums_are_those_of_its_families() -> None:
    path = (Family(0, ()), Family(0, (1,)), Family(1, (0, 1)), LATTICE.finest)
    tree, orders = LATTICE.nested(path)
    cells = np.arange(LATTICE.n_rows(LATTICE.finest)) ** 2
    totals = tree.sum_from_leaves(cells[orders[-1]])
    for level, (family, order) in enumerate(zip(path, orders, strict=True)):
        assert np.array_equal(totals[tree.level_slice(level)], LATTICE.sums(family, cells)[order])


def test_margins_hold_every_family_slot_by_slot() -> None:
    rng = np.random.default_rng(2)
    n_cells = LATTICE.n_rows(LATTICE.finest)
    cells = counts_from_runs(
        rng.integers(0, n_cells, 80), rng.integers(0, 5, 80), rng.integers(1, 9, 80), n_cells
    )
    margins = LATTICE.margins(cells)
    assert margins.n_regions == TREE.n_regions * LATTICE.n_slots == 8 * 12
    for family in LATTICE.families:
        held = margins.at(LATTICE.rows_in_margins(family))
        assert np.array_equal(held.dense(5), membership(LATTICE, family) @ cells.dense(5))


def test_without_attributes_families_are_levels_and_slots_are_regions() -> None:
    bare = Lattice(TREE, NO_ATTRIBUTES)
    assert [family.level for family in bare.families] == [0, 1, 2]
    assert (bare.n_slots, NO_ATTRIBUTES.n_cells, bool(NO_ATTRIBUTES)) == (1, 1, False)
    assert bare.nested(bare.families)[0] is TREE


def test_attributes_have_lists_of_different_values() -> None:
    for values in ((), ("owned", "owned")):
        with pytest.raises(InputError, match="different"):
            Attributes(("tenure",), (values,))
    with pytest.raises(InputError, match="names"):
        Attributes(("tenure", "tenure"), (("other",), ("other",)))
    with pytest.raises(RequestError, match="attributes are tenure, head"):
        HOUSE.chosen(["rooms"])
    assert Attributes.from_json(HOUSE.to_json()) == HOUSE
    assert [HOUSE.cell_of(HOUSE.labels_of(cell)) for cell in range(6)] == list(range(6))
