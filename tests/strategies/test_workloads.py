import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.model.range_tree import RangeTree
from tallytree.strategies.workload_errors import tree_error, wavelet_error
from tallytree.strategies.workloads import (
    AllRanges,
    Workload,
    given_ranges,
    identity,
    marginals,
    prefixes,
)
from tests.reference import range_errors as slow


def queries_of_ranges(n_bins: int, ranges: list[tuple[int, int]]) -> np.ndarray:
    return np.array([[start <= i < stop for i in range(n_bins)] for start, stop in ranges], float)


def cells_of_marginal(shape: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray:
    rows = {}
    for cell, place in enumerate(np.ndindex(*shape)):
        rows.setdefault(tuple(place[axis] for axis in axes), np.zeros(np.prod(shape)))[cell] = 1
    return np.array(list(rows.values()))


LISTED = [(0, 3), (2, 9), (2, 9), (8, 9), (0, 9)]
CASES: list[tuple[Workload, np.ndarray]] = [
    (AllRanges(1), slow.all_ranges(1)),
    (AllRanges(9), slow.all_ranges(9)),
    (prefixes(7), np.tril(np.ones((7, 7)))),
    (identity(5), np.eye(5)),
    (given_ranges(9, LISTED), queries_of_ranges(9, LISTED)),
    (
        marginals((3, 2, 4), 2),
        np.vstack([cells_of_marginal((3, 2, 4), axes) for axes in ((0, 1), (0, 2), (1, 2))]),
    ),
    (
        marginals((3, 2), [(), (1,)]),
        np.vstack([cells_of_marginal((3, 2), ()), cells_of_marginal((3, 2), (1,))]),
    ),
]


@pytest.mark.parametrize(("workload", "queries"), CASES, ids=lambda case: getattr(case, "key", ""))
def test_gram_matrices_equal_those_of_the_listed_queries(
    workload: Workload, queries: np.ndarray
) -> None:
    assert workload.n_queries == len(queries)
    np.testing.assert_allclose(workload.gram(), queries.T @ queries)
    rows = np.random.default_rng(1).normal(size=(4, workload.n_bins))
    np.testing.assert_allclose(
        workload.times_gram(rows), rows @ queries.T @ queries, rtol=1e-10, atol=1e-10
    )


def test_keys_tell_workloads_apart() -> None:
    workloads = [workload for workload, _ in CASES] + [
        given_ranges(9, LISTED[1:]),
        given_ranges(10, LISTED),
        prefixes(8),
    ]
    assert len({workload.key for workload in workloads}) == len(workloads)
    assert given_ranges(9, LISTED[::-1]).key == given_ranges(9, LISTED).key


@pytest.mark.parametrize("ranges", [[], [(3, 3)], [(4, 2)], [(-1, 2)], [(0, 10)]])
def test_ranges_out_of_order_or_domain_are_refused(ranges: list[tuple[int, int]]) -> None:
    with pytest.raises(RequestError):
        given_ranges(9, ranges)


def test_impossible_workloads_are_refused() -> None:
    for make in (
        lambda: AllRanges(0),
        lambda: prefixes(0),
        lambda: marginals((), 1),
        lambda: marginals((2, 3), [(2,)]),
    ):
        with pytest.raises(RequestError):
            make()
    with pytest.raises(RequestError):
        marginals((2, 3), [])
    with pytest.raises(RequestError):
        marginals((2, 0), 1)


@st.composite
def listed_cases(draw: st.DrawFn) -> tuple[RangeTree, list[float], list[tuple[int, int]]]:
    n_bins = draw(st.integers(1, 30))
    widths = [1]
    while draw(st.booleans()) and widths[0] < n_bins:
        widths.insert(0, widths[0] * draw(st.integers(2, 5)))
    variances = draw(st.lists(st.floats(0.1, 9.0), min_size=len(widths), max_size=len(widths)))
    ends = st.tuples(st.integers(0, n_bins), st.integers(0, n_bins)).filter(
        lambda pair: pair[0] < pair[1]
    )
    return (
        RangeTree(n_bins, tuple(widths)),
        variances,
        draw(st.lists(ends, min_size=1, max_size=12)),
    )


@settings(max_examples=120)
@given(listed_cases())
def test_tree_errors_over_listed_ranges_equal_brute_force(
    case: tuple[RangeTree, list[float], list[tuple[int, int]]],
) -> None:
    tree, variances, ranges = case
    workload = given_ranges(tree.n_bins, ranges)
    queries = queries_of_ranges(tree.n_bins, ranges)
    row_variances = np.array([variances[level] for level, _, _ in slow.tree_blocks(tree)])
    expected = slow.least_squares_error(slow.tree_matrix(tree), row_variances, queries)
    assert tree_error(tree, variances, workload) == pytest.approx(expected, rel=1e-9)
    expected = slow.fewest_blocks_error(tree, variances, ranges)
    assert tree_error(tree, variances, workload, consistent=False) == pytest.approx(
        expected, rel=1e-12
    )


@pytest.mark.parametrize("n_bins", [1, 2, 5, 8, 13])
def test_all_ranges_listed_are_all_ranges(n_bins: int) -> None:
    listed = given_ranges(n_bins, [(a, b) for a in range(n_bins) for b in range(a + 1, n_bins + 1)])
    tree = RangeTree.regular(n_bins, 2)
    variances = [1.0 + level for level in range(tree.n_levels)]
    for consistent in (True, False):
        expected = tree_error(tree, variances, AllRanges(n_bins), consistent=consistent)
        assert tree_error(tree, variances, listed, consistent=consistent) == pytest.approx(
            expected, rel=1e-10
        )
    assert wavelet_error(listed) == pytest.approx(wavelet_error(AllRanges(n_bins)), rel=1e-10)


def test_trees_refuse_workloads_without_order_or_over_other_bins() -> None:
    with pytest.raises(RequestError, match="ordered"):
        tree_error(RangeTree.flat(6), [1.0], marginals((2, 3), 1))
    with pytest.raises(RequestError, match="over 7 bins"):
        tree_error(RangeTree.flat(6), [1.0], prefixes(7))
