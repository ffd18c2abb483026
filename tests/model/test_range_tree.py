import pytest

from tallytree.errors import RequestError
from tallytree.model.range_tree import RangeTree, height


@pytest.mark.parametrize(
    ("n_bins", "branching", "levels"),
    [(1, 2, 1), (2, 2, 1), (3, 2, 2), (8, 2, 3), (9, 2, 4), (2**20, 16, 5), (243, 3, 5)],
)
def test_height_is_the_rounded_up_logarithm(n_bins: int, branching: int, levels: int) -> None:
    assert height(n_bins, branching) == levels
    assert RangeTree.regular(n_bins, branching).n_levels == levels


def test_regular_tree_cuts_the_last_block_short() -> None:
    tree = RangeTree.regular(16, 12)
    assert tree.widths == (12, 1)
    assert [tree.n_blocks(level) for level in range(2)] == [2, 16]
    assert not tree.is_perfect
    assert RangeTree.regular(16, 4).is_perfect


def test_total_can_be_counted_too() -> None:
    tree = RangeTree.regular(8, 2, count_total=True)
    assert tree.widths == (8, 4, 2, 1)
    assert tree.n_blocks(0) == 1
    assert RangeTree.regular(1, 2, count_total=True) == RangeTree.flat(1)


@pytest.mark.parametrize(
    ("n_bins", "widths"),
    [(0, (1,)), (8, ()), (8, (4, 2)), (8, (4, 4, 1)), (8, (5, 2, 1)), (8, (1, 2)), (8, (16, 8, 1))],
)
def test_widths_that_do_not_nest_are_refused(n_bins: int, widths: tuple[int, ...]) -> None:
    with pytest.raises(RequestError):
        RangeTree(n_bins, widths)


@pytest.mark.parametrize(("n_bins", "branching"), [(8, 1), (8, 0), (0, 2)])
def test_impossible_regular_trees_are_refused(n_bins: int, branching: int) -> None:
    with pytest.raises(RequestError):
        RangeTree.regular(n_bins, branching)
