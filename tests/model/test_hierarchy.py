import numpy as np
import pytest
from hypothesis import given

from tallytree.errors import InputError, RequestError
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tests.reference.group_sizes import hierarchies

US = hierarchy_from_leaves(
    ["state", "county"], [("GA", "Cobb"), ("GA", "Fulton"), ("NY", "Kings")], root="US"
)


def test_regions_are_numbered_level_by_level() -> None:
    assert list(US.paths) == ["US", "US/GA", "US/NY", "US/GA/Cobb", "US/GA/Fulton", "US/NY/Kings"]
    assert US.parent.tolist() == [-1, 0, 0, 1, 1, 2]
    assert US.level_of.tolist() == [0, 1, 1, 2, 2, 2]
    assert US.sum_from_leaves(np.array([1, 10, 100])).tolist() == [111, 11, 100, 1, 10, 100]


def test_root_alone() -> None:
    root = hierarchy_from_leaves([], [()], root="total")
    assert (root.n_levels, root.n_regions, root.n_leaves) == (1, 1, 1)


def test_unknown_region_names_its_siblings() -> None:
    with pytest.raises(
        RequestError,
        match=r"no region 'US/GA/Nowhere'. Below 'US/GA' there are 2 regions: 'US/GA/Cobb'",
    ):
        US.find("US/GA/Nowhere")
    assert US.find("US/NY/Kings") == 5


def test_a_slash_in_a_label_cannot_forge_a_path() -> None:
    tree = hierarchy_from_leaves(["a", "b"], [("x", "y/z"), ("x/y", "z")], root="r")
    assert len(set(tree.paths)) == tree.n_regions
    assert tree.paths[-2] == "r/x/y%2Fz"


@pytest.mark.parametrize("parent", [[-1, 0, 0, 2, 1], [-1, 0, 0, 1, 1], [-1, 0, 0, 2, 2]])
def test_regions_out_of_order_or_without_children_are_refused(parent: list[int]) -> None:
    with pytest.raises(InputError, match="level order"):
        Hierarchy(
            ("r", "a", "b"),
            np.array([0, 1, 3, 5]),
            np.array(parent),
            np.array(list("rabcd"), dtype=object),
        )


def test_repeated_leaves_are_refused() -> None:
    with pytest.raises(InputError, match="distinct"):
        hierarchy_from_leaves(["a"], [("x",), ("x",)])


@given(hierarchies())
def test_children_and_leaves_agree_with_a_walk_over_parents(tree: Hierarchy) -> None:
    leaf_level = tree.level_starts[-2]
    for region in range(tree.n_regions):
        children = [c for c in range(tree.n_regions) if tree.parent[c] == region]
        assert children == list(range(tree.child_starts[region], tree.child_starts[region + 1]))
        below = []
        for leaf in range(leaf_level, tree.n_regions):
            ancestor = leaf
            while ancestor > region:
                ancestor = tree.parent[ancestor]
            if ancestor == region:
                below.append(leaf - leaf_level)
        assert below == list(range(tree.leaf_starts[region], tree.leaf_ends[region]))
