"""Whatever the estimates: whole numbers, nothing negative, public totals and tree sums exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tallytree.errors import RequestError
from tallytree.group_sizes.estimate.runs import Estimate
from tallytree.group_sizes.reconcile.matching import bottom_up, match_top_down
from tallytree.model.count_of_counts import CountsBySize, counts_on_all_levels
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tests.reference.group_sizes import counts_from_lists, hierarchies, lists_from_counts


def estimate_from_lists(sizes: list[list[int]], variance: float = 1.0) -> Estimate:
    counts = counts_from_lists(sizes)
    return Estimate(counts.offsets, counts.size, counts.count, variance / counts.count)


@st.composite
def hierarchies_with_estimates(draw: st.DrawFn) -> tuple[Hierarchy, np.ndarray, list[Estimate]]:
    """Estimates of each level that agree in nothing but the number of groups; leaves and whole
    subtrees may be empty.
    """
    hierarchy = draw(hierarchies())
    leaf_groups = np.array([draw(st.integers(0, 6)) for _ in range(hierarchy.n_leaves)])
    n_groups = hierarchy.sum_from_leaves(leaf_groups)
    estimates = [
        estimate_from_lists(
            [
                draw(st.lists(st.integers(0, 30), min_size=g, max_size=g))
                for g in n_groups[hierarchy.level_slice(level)].tolist()
            ],
            draw(st.sampled_from([0.0, 0.3, 2.0])),
        )
        for level in range(hierarchy.n_levels)
    ]
    return hierarchy, n_groups, estimates


@pytest.mark.parametrize("merge", ["weighted", "average"])
@given(drawn=hierarchies_with_estimates())
def test_leaves_add_up_to_public_totals_on_every_level(merge, drawn) -> None:
    hierarchy, n_groups, estimates = drawn
    leaves = match_top_down(hierarchy, estimates, merge=merge)
    released = counts_on_all_levels(hierarchy, leaves)
    assert released.size.dtype == released.count.dtype == np.int64
    assert_array_equal(released.n_groups(), n_groups)
    biggest = max((int(e.size.max(initial=0)) for e in estimates), default=0)
    assert released.size.max(initial=0) <= biggest
    dense = released.dense(biggest)
    for region in range(int(hierarchy.level_starts[-2])):
        children = slice(hierarchy.child_starts[region], hierarchy.child_starts[region + 1])
        assert_array_equal(dense[region], dense[children].sum(axis=0))


@given(hierarchies(), st.data())
def test_levels_that_agree_stay_as_they_are(hierarchy: Hierarchy, data: st.DataObject) -> None:
    leaves = counts_from_lists(
        [data.draw(st.lists(st.integers(0, 20), max_size=8)) for _ in range(hierarchy.n_leaves)]
    )
    all_levels = counts_on_all_levels(hierarchy, leaves)
    estimates = []
    for level in range(hierarchy.n_levels):
        counts = all_levels.regions(hierarchy.level_slice(level))
        estimates.append(Estimate(counts.offsets, counts.size, counts.count, 1.0 / counts.count))
    assert lists_from_counts(match_top_down(hierarchy, estimates)) == lists_from_counts(leaves)


def test_the_updated_region_is_matched_below_the_root() -> None:
    # The root says 8 and is sure; the middle says 0 and is not; the leaf must hear of it.
    chain = hierarchy_from_leaves(["a", "b"], [("x", "y")])
    estimates = [
        estimate_from_lists([[8]], 1.0),
        estimate_from_lists([[0]], 1e9),
        estimate_from_lists([[0]], 1.0),
    ]
    assert lists_from_counts(match_top_down(chain, estimates)) == [[4]]


def test_root_alone_and_bottom_up_are_the_estimate() -> None:
    root = hierarchy_from_leaves([], [()])
    estimate = estimate_from_lists([[1, 1, 5]])
    for leaves in (match_top_down(root, [estimate]), bottom_up(estimate)):
        assert isinstance(leaves, CountsBySize)
        assert lists_from_counts(leaves) == [[1, 1, 5]]


def test_refuses_unknown_merges_and_missing_levels() -> None:
    root = hierarchy_from_leaves([], [()])
    with pytest.raises(RequestError, match="Accepted: 'weighted', 'average'"):
        match_top_down(root, [estimate_from_lists([[1]])], merge="median")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="one estimate per level"):
        match_top_down(root, [])
