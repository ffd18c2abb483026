import pytest

from tallytree.errors import RequestError
from tallytree.model.range_tree import RangeTree
from tallytree.strategies.errors import tree_range_error
from tallytree.strategies.grid_errors import flat_grid_error, grid_range_error
from tests.reference import range_errors as slow

CASES = [
    ((6, 6), (3, 1), [2.0, 3.0]),
    ((5, 7), (4, 2, 1), [1.0, 2.0, 3.5]),
    ((3, 4, 5), (2, 1), [1.5, 2.0]),
    ((2, 9), (4, 2, 1), [1.0, 0.3, 2.0]),
    ((4, 3, 2), (4, 2, 1), [8.0, 1.0, 2.0]),
    ((7,), (4, 2, 1), [1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize(("shape", "widths", "variances"), CASES)
def test_grid_errors_equal_brute_force(
    shape: tuple[int, ...], widths: tuple[int, ...], variances: list[float]
) -> None:
    expected = slow.consistent_grid_error(shape, widths, variances)
    assert grid_range_error(shape, widths, variances) == pytest.approx(expected, rel=1e-10)
    expected = slow.fewest_nodes_grid_error(shape, widths, variances)
    assert grid_range_error(shape, widths, variances, consistent=False) == pytest.approx(
        expected, rel=1e-12
    )


def test_one_axis_is_the_range_tree() -> None:
    tree, variances = RangeTree.regular(1000, 6), [3.0, 1.0, 2.0, 4.0]
    assert grid_range_error([1000], tree.widths, variances) == pytest.approx(
        tree_range_error(tree, variances), rel=1e-10
    )


def test_flat_grid() -> None:
    assert flat_grid_error((6, 5), 2.0) == pytest.approx(
        slow.consistent_grid_error((6, 5), (1,), [2.0])
    )
    assert flat_grid_error((6, 5), 2.0) == pytest.approx(
        grid_range_error((6, 5), (1,), [2.0], consistent=False)
    )


def equal_grid_error(n: int, d: int, b: int) -> float:
    widths = RangeTree.regular(n, b).widths
    return grid_range_error([n] * d, widths, [2.0 * len(widths) ** 2] * len(widths))


def test_when_flat_is_best_as_in_figure_4() -> None:
    # qardaji2013 §5.3: no hierarchy beats flat at d = 2, N = 2^10 and d = 3, N = 2^12; 8 × 8 does
    # at d = 2, N = 2^12.
    flat = flat_grid_error((32, 32))
    assert min(equal_grid_error(32, 2, b) for b in range(2, 32)) > flat
    by_branching = {b: equal_grid_error(64, 2, b) for b in range(2, 64)}
    assert min(by_branching, key=lambda b: by_branching[b]) == 8
    assert by_branching[8] == pytest.approx(865.565, abs=1e-3)
    assert by_branching[8] < flat_grid_error((64, 64)) == 968.0
    assert min(equal_grid_error(16, 3, b) for b in range(2, 16)) > flat_grid_error((16, 16, 16))


def test_wrong_widths_and_variances_are_refused() -> None:
    for widths, variances in (((4, 2), [1.0, 1.0]), ((3, 2, 1), [1.0] * 3), ((2, 1), [1.0])):
        with pytest.raises(RequestError):
            grid_range_error((8, 8), widths, variances)
