import numpy as np
import pytest

from tallytree.errors import InputError, RequestError
from tallytree.kinds.verbs import load, verify
from tallytree.publish.grid_histogram import choose_grid, grid_histogram
from tallytree.publish.histogram import histogram
from tallytree.publish.strategies import Terms

COUNTS = np.random.default_rng(3).poisson(40, (12, 18))


@pytest.mark.parametrize(
    ("strategy", "branching"), [("flat", None), ("hierarchical", 4), ("hierarchical", None), ("auto", None)]
)
def test_boxes_are_sums_of_cells(strategy, branching):
    released = grid_histogram(COUNTS, epsilon=1, strategy=strategy, branching=branching, insecure_seed=1)
    answer = released.box((2, 3), (10, 17))
    assert answer.estimate == released.counts[2:10, 3:17].sum()
    assert answer.low <= answer.estimate <= answer.high
    assert released.total().estimate == released.counts.sum()
    assert released.counts.min() >= 0
    assert released.verify()
    assert released.table().num_rows == COUNTS.size


def test_errors_and_intervals_are_as_stated():
    lows, highs = np.array([[0, 0], [2, 3], [5, 5]]), np.array([[12, 18], [10, 17], [6, 6]])
    truth = np.array([COUNTS[a:c, b:d].sum() for (a, b), (c, d) in zip(lows, highs)])
    squared, held, runs = np.zeros(3), np.zeros(3), 300
    for seed in range(runs):
        answers = grid_histogram(
            COUNTS, epsilon=1, strategy="hierarchical", branching=4, integers=False, insecure_seed=seed
        ).cell_boxes(lows, highs)
        squared += (answers.estimate - truth) ** 2
        held += (answers.low <= truth) & (truth <= answers.high)
    np.testing.assert_allclose(squared / runs, answers.standard_error**2, rtol=0.35)
    assert np.all(np.abs(held / runs - 0.95) < 0.04)


def test_one_dimension_agrees_with_the_range_histogram():
    counts = np.random.default_rng(4).poisson(50, 60)
    line = histogram(counts, epsilon=1, strategy="hierarchical", branching=8, insecure_seed=2)
    grid = grid_histogram(counts, epsilon=1, strategy="hierarchical", branching=8, insecure_seed=2)
    np.testing.assert_array_equal(grid.counts, line.counts)
    assert grid.box((5,), (40,)).standard_error == pytest.approx(line.range(5, 40).standard_error)


@pytest.mark.parametrize("noisy", [True, False])
def test_saved_grids_load_and_verify(tmp_path, noisy):
    axes = [np.arange(13) * 2.5, np.arange(19)]
    released = grid_histogram(COUNTS, axes=axes, epsilon=1, strategy="hierarchical", branching=4, insecure_seed=1)
    released.save(tmp_path / "grid", noisy=noisy)
    loaded = load(tmp_path / "grid")
    assert verify(tmp_path / "grid")
    assert loaded.axes == released.axes
    assert loaded.box((2.5, 0), (10, 7)) == released.box((2.5, 0), (10, 7))
    assert "12 x 18 cells" in repr(loaded)


def test_flat_is_best_on_small_grids_and_in_three_dimensions():
    budget = Terms(1.0, "laplace")
    assert choose_grid((32, 32), "auto", None, budget)[0].name == "flat"
    assert choose_grid((16, 16, 16), "auto", None, budget)[0].name == "flat"
    assert choose_grid((256, 256), "auto", None, budget)[0].name == "hierarchical"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: grid_histogram(COUNTS, epsilon=0), RequestError, "greater than 0"),
        (lambda: grid_histogram(COUNTS / 2, epsilon=1), InputError, "whole numbers"),
        (lambda: grid_histogram(COUNTS, epsilon=1, strategy="wavelet"), RequestError, "auto, flat, hierarchical"),
        (lambda: grid_histogram(COUNTS, epsilon=1, strategy="hierarchical", branching=1), RequestError, "at least 2"),
        (lambda: grid_histogram(COUNTS, epsilon=1, branching=2), RequestError, "goes with"),
        (lambda: grid_histogram(COUNTS, epsilon=1, axes=[[0, 1], [0, 1]]), RequestError, "as many bins"),
        (lambda: grid_histogram(COUNTS, epsilon=1, contributions=0), RequestError, "at least 1"),
        (
            lambda: grid_histogram(COUNTS, epsilon=1, insecure_seed=1).box((0, 0), (13, 1)),
            RequestError,
            "outside the bins",
        ),
        (lambda: grid_histogram(COUNTS, epsilon=1, insecure_seed=1).box((3, 0), (3, 1)), RequestError, "low to high"),
        (lambda: grid_histogram(COUNTS, epsilon=1, insecure_seed=1).box((0,), (1,)), RequestError, "two corners"),
    ],
)
def test_bad_requests_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
