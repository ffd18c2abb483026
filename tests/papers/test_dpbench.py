import json

import numpy as np
import pytest

from tallytree.errors import StorageError
from tallytree.papers.cells import tables
from tallytree.papers.dpbench import reproduce as dpbench
from tallytree.papers.plots import write_plots


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Seven lines and seven maps, of which the quick protocol takes the first and the last."""
    place = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    lines = {f"line {i}": np.repeat(rng.poisson(2 + 50 * (i == 6), size=64), 8) for i in range(7)}
    maps = {f"map {i}": np.outer(np.arange(64) < 32, np.ones(64)) + (i == 0) for i in range(7)}
    for dimensions, arrays in ((1, lines), (2, maps)):
        (place / f"dpbench_{dimensions}d").mkdir()
        np.savez(place / f"dpbench_{dimensions}d" / f"dpbench_{dimensions}d.npz", **arrays)
    return place


@pytest.fixture(scope="module")
def cells(folder):
    return dpbench.reproduce(data=folder, quick=True)


def test_every_method_has_an_error_in_every_cell_and_the_best_has_regret_one(cells):
    for size, names, methods in (
        ("256 bins", {"line 0", "line 6"}, {"auto", *dpbench.STRATEGIES, *dpbench.LINE_METHODS}),
        ("32 x 32 cells", {"map 0", "map 6"}, {"auto", *dpbench.MAP_METHODS}),
    ):
        for epsilon in dpbench.EPSILONS:
            for scale in dpbench.QUICK_SCALES:
                found = tables(cells)[f"{size}, epsilon {epsilon}, scale {scale}"]
                assert {cell.column for cell in found} == methods
                assert {cell.row for cell in found} == names
                assert all(0 < cell.ours < 10 for cell in found)
            regrets = tables(cells)[f"Figure: regret, {size}, epsilon {epsilon}"]
            assert {cell.row for cell in regrets} == methods
            assert all(cell.ours >= 1 for cell in regrets)


def test_scale_and_epsilon_trade_against_each_other(cells):
    """Ten times the rows at a tenth of ε: the scaled error of what does not look at the data is
    that of noise alone.
    """

    def error(epsilon, scale):
        found = tables(cells)[f"256 bins, epsilon {epsilon}, scale {scale}"]
        return next(
            cell.ours for cell in found if (cell.row, cell.column) == ("line 6", "hierarchical")
        )

    assert error("0.1", 1000) / error("0.1", 100_000) == pytest.approx(100, rel=0.6)
    assert error("0.1", 100_000) / error("1", 100_000) == pytest.approx(10, rel=0.6)


def test_summaries_and_plots_are_there(cells, tmp_path):
    summary = tables(cells)["Summary, auto, maps"]
    assert [cell.row for cell in summary] == [
        "over the best other method",
        "over the best other method",
        "within 10 % of it",
        "over dawa",
        "over the best that does not look",
    ]
    assert summary[0].ours <= summary[1].ours
    plots = write_plots(cells, tmp_path)
    assert len(plots) == 4
    points = json.loads(plots[0].read_text())["data"]["values"]
    assert {point["x"] for point in points} == set(dpbench.QUICK_SCALES)


def test_samples_keep_the_shape_and_have_the_scale():
    shape = np.repeat([1.0, 3.0], [8, 8])
    sample = dpbench.sample_of("steps", shape, 4, 100_000)
    assert sample.grid.counts.sum() == 100_000
    assert sample.grid.counts / 100_000 == pytest.approx([1 / 8, 1 / 8, 3 / 8, 3 / 8], abs=0.01)
    assert sample.counts.tolist() == np.cumsum(sample.grid.counts).tolist()
    assert sample.error(sample.grid.counts.astype(float)) == 0
    assert sample.error(sample.grid.counts + np.array([100.0, 0, 0, 0])) == pytest.approx(0.001)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(StorageError, match="dpbench_1d"):
        dpbench.reproduce(data=tmp_path, quick=True)


def test_without_data_shapes_are_made_up():
    lines, maps = dpbench.shapes(None, 1, quick=False), dpbench.shapes(None, 2, quick=False)
    assert (len(lines), len(maps)) == (12, 12)
    assert all(shape.shape == (4096,) for shape in lines.values())
    assert all(shape.shape == (256, 256) for shape in maps.values())
    assert all(shape.min() >= 0 and shape.sum() > 0 for shape in (*lines.values(), *maps.values()))
    assert list(dpbench.shapes(None, 2, quick=True)) == [
        "even (synthetic)",
        "city blocks (synthetic)",
    ]
