"""The slides' rule that a bin of a flat histogram holds 5/ε on average, in plans, releases and
reports.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tallytree as tt
from tallytree.cli.app import app
from tallytree.maps.accuracy import flat_density
from tallytree.maps.assumed import points_like
from tallytree.maps.report import map_payload
from tallytree.model.confidential_grid import ConfidentialGrid, PublicGrid
from tallytree.options.asking import PageOptions
from tallytree.ranges.report import histogram_payload
from tallytree.strategies.density import Density

FINE = "far too fine"


@pytest.mark.parametrize(
    ("total", "average", "dense", "fine"),
    [
        (5000, 50, True, False),
        (4999, 49.99, False, False),
        (500, 5, False, False),
        (499, 4.99, False, True),
        (-3, 0, False, True),
    ],
)
def test_the_rule_by_hand(total, average, dense, fine):
    found = Density.of(total, 100, 2 / 0.1**2)
    assert (found.average, found.dense, found.far_too_fine) == (pytest.approx(average), dense, fine)
    assert found.least == pytest.approx(50)
    assert (FINE in str(found)) == fine
    assert found.to_json() == {
        "average_count": found.average,
        "least_count": found.least,
        "dense": dense,
    }


def test_flat_releases_know_their_density_from_noisy_counts_alone():
    counts = np.full(64, 3)
    made = tt.histogram(counts=counts, mechanism="flat", epsilon="0.1", insecure_seed=1)
    assert made.density is not None
    assert made.density.average == pytest.approx(max(0.0, made.estimates.sum()) / 64)
    assert made.density.least == pytest.approx(5 * np.sqrt(made.plan.noise[0].variance / 2))  # type: ignore[union-attr]
    grid = tt.spatial(
        counts=counts.reshape(8, 8), mechanism="flat", rho="1/2", definition="zcdp", insecure_seed=1
    )
    assert grid.density is not None
    assert grid.density.average == pytest.approx(grid.estimates.unbiased[0] / 64)
    assert grid.density.least == pytest.approx(5 / np.sqrt(2))  # noise of variance 1
    assert (
        tt.histogram(counts=counts, mechanism="wavelet", epsilon=1, insecure_seed=1).density is None
    )
    assert (
        tt.spatial(
            counts=counts.reshape(8, 8), mechanism="quadtree", epsilon=1, insecure_seed=1
        ).density
        is None
    )


@pytest.mark.parametrize(("count", "warned"), [(1, True), (900, False)])
def test_reports_warn_of_bins_that_are_far_too_fine(count, warned):
    counts = np.full(64, count)
    line = tt.histogram(counts=counts, mechanism="flat", epsilon="0.1", insecure_seed=1)
    grid = tt.spatial(counts=counts.reshape(8, 8), mechanism="flat", epsilon="0.1", insecure_seed=1)
    for page in (histogram_payload(line, PageOptions()), map_payload(grid, PageOptions())):
        assert any(FINE in sentence for sentence in page["use"]) == warned


def test_plans_and_commands_say_it(tmp_path: Path):
    points = tmp_path / "points.csv"
    points.write_text("x,y\n" + "\n".join(f"{number % 16},{number // 16}" for number in range(256)))
    run = CliRunner()
    both = ["--epsilon", "0.01", "--insecure-seed", "1"]
    how = [
        "--columns",
        "x,y",
        "--box",
        "0:16,0:16",
        "--resolution",
        "16",
        "--mechanism",
        "flat",
        *both,
    ]
    released = run.invoke(app, ["spatial", str(points), *how, "--out", str(tmp_path / "map")])
    assert released.exit_code == 0, released.output
    assert FINE in released.output
    line = [
        "--column",
        "x",
        "--bounds",
        "0,16",
        "--bins",
        "16",
        "--mechanism",
        "flat",
        "--out",
        str(tmp_path / "line"),
    ]
    assert FINE in run.invoke(app, ["histogram", str(points), *line, *both]).output
    planned = run.invoke(
        app, ["plan", "--like", str(tmp_path / "map"), "--epsilon", "0.5", "--runs", "1", "--json"]
    )
    found = json.loads(planned.stdout)["density"]
    assumed = points_like(tt.load(tmp_path / "map"))
    assert found["average_count"] == assumed.counts.sum() / 256
    assert found["least_count"] == pytest.approx(10, rel=0.02)


def test_plans_count_several_rows_per_unit():
    assumed = ConfidentialGrid(
        np.full((4, 4), 8), PublicGrid(((0.0, 4.0),) * 2, ("x", "y"), (4, 4))
    )
    assert flat_density(assumed, "0.1").average == 8
    assert flat_density(assumed, "0.1").least == pytest.approx(50, rel=0.01)
