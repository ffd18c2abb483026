"""Matching on runs against Algorithm 2 group by group, and against the best assignment there is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tallytree.errors import InputError
from tallytree.group_sizes.kernels import matching
from tallytree.group_sizes.kernels.matching import Runs, match_children
from tallytree.model.arrays import offsets_from_lengths
from tests.reference import matching as twin

# Variances whose inverses are exact in binary, so that no rounding of a size hangs on the order of
# floating-point operations.
variances = st.sampled_from([0.25, 1.0, 4.0])
sizes = st.integers(0, 8)


def runs_of(regions: list[list[twin.Group]]) -> Runs:
    """Groups that are sorted by size as runs: neighbours that are alike become one."""
    found: list[list[tuple[twin.Group, int]]] = []
    for groups in regions:
        runs: list[tuple[twin.Group, int]] = []
        for group in groups:
            if runs and runs[-1][0] == group:
                runs[-1] = (group, runs[-1][1] + 1)
            else:
                runs.append((group, 1))
        found.append(runs)
    flat = [run for runs in found for run in runs]
    return Runs(
        offsets_from_lengths(np.array([len(runs) for runs in found], dtype=np.int64)),
        np.array([size for (size, _), _ in flat], dtype=np.int64),
        np.array([count for _, count in flat], dtype=np.int64),
        np.array([variance for (_, variance), _ in flat], dtype=np.float64),
    )


@st.composite
def families(draw: st.DrawFn) -> tuple[list[twin.Group], list[list[twin.Group]]]:
    """A parent and its children, with one variance per size of a child and up to two for the
    parent.
    """
    children = []
    for _ in range(draw(st.integers(1, 4))):
        spread = [draw(variances) for _ in range(9)]
        children.append(
            [(size, spread[size]) for size in sorted(draw(st.lists(sizes, max_size=8)))]
        )
    n_groups = sum(map(len, children))
    top = sorted((draw(sizes), draw(variances)) for _ in range(n_groups))
    return top, children


@given(st.lists(families(), min_size=1, max_size=3), st.booleans())
def test_runs_give_what_groups_give(given_families: list, weighted: bool) -> None:
    parents = runs_of([top for top, _ in given_families])
    children = runs_of([child for _, children in given_families for child in children])
    starts = offsets_from_lengths(np.array([len(children) for _, children in given_families]))
    found = match_children(parents, children, starts, weighted=weighted)
    region = 0
    for top, below in given_families:
        expected: list[list[twin.Group]] = [[] for _ in below]
        for above, child, group in twin.match_groups(top, below):
            expected[child].append(twin.merge(above, group, weighted))
        for groups in expected:
            here = slice(found.offsets[region], found.offsets[region + 1])
            got = sorted(
                zip(
                    np.repeat(found.size[here], found.groups[here]),
                    np.repeat(found.variance[here], found.groups[here]),
                )
            )
            assert_allclose(got or np.empty((0, 2)), sorted(groups) or np.empty((0, 2)), rtol=1e-12)
            assert (np.diff(found.size[here]) >= 0).all()
            region += 1


@given(families())
def test_no_assignment_costs_less_and_every_group_is_used_once(family: tuple) -> None:
    top, below = family
    parents, children = runs_of([top]), runs_of(below)
    child, top_run, bottom_run, many = matching._pair_runs(parents, children, 0, 0, len(below))
    cost = (many * np.abs(parents.size[top_run] - children.size[bottom_run])).sum()
    assert cost == twin.least_cost(
        [size for size, _ in top], [size for groups in below for size, _ in groups]
    )
    assert_array_equal(np.bincount(top_run, many, minlength=len(parents.size)), parents.groups)
    assert_array_equal(np.bincount(bottom_run, many, minlength=len(children.size)), children.groups)
    assert_array_equal(
        np.bincount(child, many, minlength=len(below)), [len(groups) for groups in below]
    )


def test_a_small_block_is_split_in_proportion() -> None:
    # kuo2018 §5.2.1: 300 groups of the parent, 200 + 100 + 100 in the children.
    parents = Runs(np.array([0, 2]), np.array([1, 2]), np.array([300, 100]), np.array([1.0, 1.0]))
    children = Runs(
        np.array([0, 1, 2, 3]), np.array([1, 1, 1]), np.array([200, 100, 100]), np.full(3, 1.0)
    )
    _, top_run, _, many = matching._pair_runs(parents, children, 0, 0, 3)
    assert (top_run.tolist(), many.tolist()) == ([0, 0, 0, 1, 1, 1], [150, 75, 75, 50, 25, 25])


def test_shares_of_billions_of_groups_are_exact() -> None:
    left = np.array([1_500_000_001, 1_499_999_999], dtype=np.int64)
    # Remainders differ by 2 in 3 billion: 0.49999999967 and 0.50000000033.
    assert twin.largest_remainders(2_999_999_999, left.tolist()) == [1_500_000_000, 1_499_999_999]
    assert matching._shares(left, 3_000_000_000, 2_999_999_999).tolist() == [
        1_500_000_000,
        1_499_999_999,
    ]


def test_certain_sizes_win_and_two_of_them_meet_halfway() -> None:
    def merged(above: float, below: float) -> tuple[int, float]:
        parents = Runs(np.array([0, 1]), np.array([10]), np.array([1]), np.array([above]))
        children = Runs(np.array([0, 1]), np.array([5]), np.array([1]), np.array([below]))
        found = match_children(parents, children, np.array([0, 1]), weighted=True)
        return int(found.size[0]), float(found.variance[0])

    assert merged(0.0, 1.0) == (10, 0.0)
    assert merged(1.0, 0.0) == (5, 0.0)
    assert merged(0.0, 0.0) == (8, 0.0)
    assert merged(1.0, 3.0) == (9, 0.75)


def test_empty_regions() -> None:
    empty = Runs(np.array([0, 0]), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    assert match_children(empty, empty, np.array([0, 1]), weighted=True).offsets.tolist() == [0, 0]


def test_refuses_totals_that_differ_and_too_many_groups() -> None:
    one = Runs(np.array([0, 1]), np.array([3]), np.array([2]), np.array([1.0]))
    other = Runs(np.array([0, 1]), np.array([3]), np.array([3]), np.array([1.0]))
    with pytest.raises(InputError, match="as many groups"):
        match_children(one, other, np.array([0, 1]), weighted=True)
    many = Runs(np.array([0, 1]), np.array([3]), np.array([2**40]), np.array([1.0]))
    with pytest.raises(InputError, match="at most"):
        match_children(many, many, np.array([0, 1]), weighted=True)
