"""A box whose ranges stand in another order than the columns is refused where it is no place, and told where it may be one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import tallytree as tt
from tallytree.cli.app import app
from tallytree.errors import RequestError
from tallytree.maps.doubts import points_at_border

RNG = np.random.default_rng(5)
YORK = pd.DataFrame({"lon": RNG.normal(-73.9, 0.05, 3000), "lat": RNG.normal(40.7, 0.05, 3000)})
RIGHT, SWAPPED = ((-74.2, -73.6), (40.4, 41)), ((40.4, 41), (-74.2, -73.6))
HOW: dict[str, Any] = {"columns": ["lon", "lat"], "epsilon": 1, "insecure_seed": 4}


@pytest.mark.parametrize("columns", [["lon", "lat"], ["Longitude", "Latitude"]])
def test_no_place_on_earth_is_refused(columns: list[str]) -> None:
    rows = YORK.set_axis(columns, axis=1)
    with pytest.raises(RequestError, match="order of the columns"):
        tt.spatial(rows, columns=columns, box=((40, 41), (-118, -117)), epsilon=1)
    for crs in (None, "EPSG:27700"):
        box = ((-74.2, -73.6), (40.4, 41)) if crs is None else ((0, 9e5), (0, 9e5))
        tt.spatial(rows, columns=columns, box=box, crs=crs, epsilon=1, insecure_seed=1)
    tt.spatial(
        rows.set_axis(["x", "y"], axis=1), columns=["x", "y"], box=((0, 900), (0, 900)), epsilon=1
    )


@pytest.mark.parametrize("mechanism", ["auto", "quadtree", "uniform-grid"])
def test_points_along_the_border_are_told(mechanism: str) -> None:
    right = tt.spatial(YORK, box=RIGHT, mechanism=mechanism, **HOW)
    assert points_at_border(right) == ""
    swapped = tt.spatial(YORK, box=SWAPPED, mechanism=mechanism, **HOW)
    assert "lon from 40.4 to 41; lat from -74.2 to -73.6" in points_at_border(swapped)
    dropped = tt.spatial(YORK, box=SWAPPED, mechanism=mechanism, outside="drop", **HOW)
    assert points_at_border(dropped) == ""


def test_the_command_prints_each_axis(tmp_path: Path) -> None:
    YORK.to_csv(tmp_path / "rows.csv", index=False)
    call = ["spatial", str(tmp_path / "rows.csv"), "--columns", "lon,lat", "--epsilon", "1"]
    call += ["--box=40.4:41,-74.2:-73.6", "--out", str(tmp_path / "out")]
    made = CliRunner().invoke(app, call)
    assert made.exit_code == 0
    assert "The box: lon from 40.4 to 41; lat from -74.2 to -73.6" in made.stderr
    assert "along the border" in made.stderr
