import os
from pathlib import Path

import numpy as np
import pytest

from tallytree.errors import StorageError
from tallytree.options.maps import MethodOptions
from tallytree.papers.cells import tables
from tallytree.papers.slides import formulas
from tallytree.papers.slides import reproduce as slides


@pytest.fixture(scope="module")
def cells():
    return slides.reproduce(quick=True)


def of(cells, table, row=None):
    return {
        (cell.row, cell.column): cell.ours
        for cell in tables(cells)[table]
        if row in (None, cell.row)
    }


def test_every_method_has_a_figure_at_every_epsilon(cells):
    for epsilon in slides.EPSILONS:
        for rule in ("least squares", "nonnegative"):
            found = of(cells, f"Boxes, epsilon {epsilon}, {rule}")
            assert {column for _, column in found} == {*slides.NAMED, "auto"}
            assert all(value > 0 for value in found.values())


def test_adaptive_beats_uniform_beats_flat_where_noise_rules(cells):
    name = "two towns (synthetic)"
    found = of(cells, "Boxes, epsilon 0.01, least squares", name)
    assert found[name, "adaptive-grid"] <= found[name, "uniform-grid"] < found[name, "flat"] / 2
    assert found[name, "auto"] < found[name, "quadtree"] / 5


def test_inference_and_nonnegativity_help_trees(cells):
    found = of(cells, "Ablation, two towns (synthetic), epsilon 0.1")
    assert found["quadtree", "least squares"] < found["quadtree", "no inference"]
    assert found["quad-opt", "least squares"] < found["quadtree", "least squares"]
    assert found["quad-opt", "nonnegative"] < found["quad-opt", "least squares"]


def test_merged_bins_are_at_least_three_times_as_good_on_steps(cells):
    for epsilon in ("0.01", "0.1"):
        found = of(cells, f"Merged bins, 4,096 of them, epsilon {epsilon}")
        for name in {row for row, _ in found}:
            for method in ("noisy-merge", "structure-merge"):
                assert found[name, method] < found[name, "flat (exact)"] / 3, (
                    epsilon,
                    name,
                    method,
                )


def test_every_noisy_figure_has_its_spread(cells):
    for cell in cells:
        exact = cell.column == "flat (exact)" or "noise of a bin" in cell.column
        shares = cell.unit == "share of cells"
        assert (cell.spread is None) == (exact or shares), cell


def test_mean_squares_of_ranges_by_hand():
    """Errors 1, −2, 4: of the ranges 1, −2, 4, −1, 2 and 3."""
    expected = (1 + 4 + 16 + 1 + 4 + 9) / 6
    assert formulas.mean_square_of_ranges(np.array([1, -2, 4])) == pytest.approx(expected)


def test_a_flat_histogram_has_the_average_case_error_of_the_slides(cells):
    (small,) = (cell for cell in cells if cell.row == "m = 16")
    assert small.paper == pytest.approx((16 + 2) / 3 * 200)
    assert abs(small.ours - small.paper) < 4 * small.spread


def test_noise_at_the_rule_of_five_over_epsilon(cells):
    """√2/ε over 5/ε is 28 % of a mean count; at a tenth of the rule ten times that."""
    found = of(cells, "The rule of 5/ε", "25 steps up to 2,000 (synthetic)")
    name = "25 steps up to 2,000 (synthetic)"
    for share, expected in (("0.1", 2.828), ("1", 0.2828), ("3", 0.0943)):
        noise = found[name, f"{share} times 5/ε: noise of a bin"]
        assert noise == pytest.approx(expected, rel=0.01)
    assert found[name, "0.1 times 5/ε: noisy-merge"] < 0.1


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(StorageError, match="dpbench_2d"):
        slides.reproduce(data=tmp_path, quick=True)


@pytest.mark.data
@pytest.mark.proof
@pytest.mark.skipif(
    "TALLYTREE_DATA" not in os.environ,
    reason="TALLYTREE_DATA does not name the folder of real data",
)
def test_on_real_data_the_default_is_at_least_close_to_the_best():
    cells = slides.reproduce(data=Path(os.environ["TALLYTREE_DATA"]), quick=True)
    summary = of(cells, "Summary")
    assert summary["adaptive-grid at or below uniform-grid", "least squares"] >= 0.8
    assert summary["auto within 5 % of the best named method", "all"] >= 0.8


@pytest.mark.data
@pytest.mark.proof
@pytest.mark.skipif(
    "TALLYTREE_DATA" not in os.environ,
    reason="TALLYTREE_DATA does not name the folder of real data",
)
@pytest.mark.parametrize(("epsilon", "most"), [("0.01", 1.0), ("0.1", 1.3)])
def test_the_default_holds_its_own_where_all_points_lie_on_two_lines(epsilon, most):
    """The cells in which it was once 42 and 46 % behind ``kd-tree``, whose cuts find the lines.

    Means of twenty runs are off by a seventh, so it takes a hundred: at ε = 0.1 it is still some 15
    % behind.
    """
    counts = slides.maps(Path(os.environ["TALLYTREE_DATA"]), quick=False)["ADULT-2D"]
    truth = slides.truth_of("ADULT-2D", counts)
    errors = {}
    for method in ("auto", "kd-tree"):
        runs = [
            slides.measured(truth, MethodOptions(mechanism=method), epsilon, seed)
            for seed in range(100)
        ]
        errors[method] = np.mean([slides.box_error(truth, one, nonnegative=True) for one in runs])
    assert errors["auto"] < most * errors["kd-tree"]


def test_all_four_ways_to_merge_bins_stand_side_by_side(cells):
    found = of(cells, "Merged bins, 1,024 of them, epsilon 0.1")
    assert {column for _, column in found} == {
        "flat (exact)", "noisy-first", "structure-first", "noisy-merge", "structure-merge",
    }  # fmt: skip
    for name in {row for row, _ in found}:
        # The price of the slides merges too little, and their boundaries share their budget.
        assert found[name, "noisy-merge"] < found[name, "noisy-first"] < found[name, "flat (exact)"]
        assert found[name, "structure-merge"] < found[name, "structure-first"]
