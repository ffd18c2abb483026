from itertools import pairwise

import numpy as np
import pytest

from tallytree.boxes.draft import Draft
from tallytree.papers.rivals.hilbert import split_along_curve
from tests.reference.hilbert import cell_at


def tree_of(shape):
    draft = Draft(shape, None)
    split_along_curve(draft)
    return draft.so_far()[0]


@pytest.mark.parametrize("side", [1, 2, 4, 8, 16])
def test_boxes_are_the_halves_of_halves_of_the_curve(side):
    """Every stretch of 2^k cells that begins at a multiple of 2^k is a box of the tree, and there
    are no others.
    """
    cells = [cell_at(side, number) for number in range(side * side)]
    assert all(abs(a - c) + abs(b - d) == 1 for (a, b), (c, d) in pairwise(cells))
    stretches = {
        frozenset(cells[first : first + size])
        for size in (2**k for k in range(side.bit_length() * 2 - 1))
        for first in range(0, side * side, size)
    }
    tree = tree_of((side, side))
    boxes = [
        frozenset((x, y) for x in range(a[0], b[0]) for y in range(a[1], b[1]))
        for a, b in zip(tree.low, tree.high)
    ]
    assert len(boxes) == len(set(boxes)) == 2 * side * side - 1
    # The curve may run in either of two ways, with the columns exchanged.
    turned = {frozenset((y, x) for x, y in box) for box in stretches}
    assert set(boxes) in (stretches, turned)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (6, 1), (5, 12), (12, 5), (3, 3), (20, 30)])
def test_any_grid_is_split_down_to_its_cells(shape):
    tree = tree_of(shape)
    assert tree.tiles()
    assert tree.volume[tree.is_leaf].tolist() == [1] * np.prod(shape)
    assert np.diff(tree.child_starts).max() <= 2
