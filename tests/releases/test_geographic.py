"""Regions with outlines and boxes of maps, read back by geopandas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import InputError, RequestError
from tallytree.kinds.table import KINDS
from tests.releases.test_formats import with_errors

SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
HOLE = [[0.2, 0.2], [0.2, 0.4], [0.4, 0.4], [0.4, 0.2], [0.2, 0.2]]
OUTLINES = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "properties": {"code": "01001"}, "geometry": {"type": "Polygon", "coordinates": [SQUARE, HOLE]}},
        {"type": "Feature", "properties": {"code": "01/2"}, "geometry": {
            "type": "MultiPolygon", "coordinates": [[[[x + 2, y] for x, y in SQUARE]], [[[x + 4, y] for x, y in SQUARE]]],
        }},
        {"type": "Feature", "properties": {"code": "elsewhere"}, "geometry": {"type": "Point", "coordinates": [0, 0]}},
    ],
}  # fmt: skip


@pytest.fixture
def outlines(tmp_path: Path) -> str:
    file = tmp_path / "outlines.json"
    file.write_text(json.dumps(OUTLINES), encoding="utf-8")
    return str(file)


def read(file: Path) -> Any:
    import geopandas

    return geopandas.read_parquet(file) if file.suffix == ".parquet" else geopandas.read_file(file)


@pytest.mark.parametrize(("name", "how"), [("a.geojson", "geojson"), ("a.parquet", "geoparquet")])
def test_regions_with_outlines(name: str, how: Any, outlines: str, tmp_path: Path) -> None:
    release = with_errors()
    tt.export(release, out=str(tmp_path / name), format=how, shapes=outlines, shapes_id="code")
    found = read(tmp_path / name)
    assert found["county"].tolist() == ["01/2", "01001"]
    assert found["region"].tolist() == ["total/01/01%2F2", "total/01/01001"]
    assert [shape.area for shape in found.geometry] == pytest.approx([2.0, 0.96])
    assert str(found.crs) in ("EPSG:4326", "OGC:CRS84")
    for row in found.to_dict("records"):
        region = release.region(row["region"])
        assert row["groups"] == region.n_groups
        for size in np.unique(release.counts.size).tolist():
            assert row[f"count_{size}"] == region.of_size(size)
            known = region.of_size(size) > 0
            assert (row[f"std_error_{size}"] > 0) == known
            assert isinstance(row[f"reliability_{size}"], str) == known


@pytest.mark.parametrize(("name", "how"), [("a.geojson", "geojson"), ("a.parquet", "geoparquet")])
def test_boxes_of_a_map(name: str, how: Any, tmp_path: Path) -> None:
    points = np.random.default_rng(1).uniform(size=(500, 2)) * [2, 1]
    made = tt.spatial(points, box=[(0, 2), (0, 1)], epsilon=1, insecure_seed=1, resolution=8)
    tt.export(made, out=str(tmp_path / name), format=how)
    found, sheet = read(tmp_path / name), KINDS["map"].verb("sheet")(made)
    assert found["count"].tolist() == sheet.table["count"].to_pylist()
    assert found["std_error"].tolist() == pytest.approx(sheet.table["std_error"].to_pylist())
    assert sum(shape.area for shape in found.geometry) == pytest.approx(2)
    for shape, low, high in zip(
        found.geometry, sheet.table["low_x"].to_pylist(), sheet.table["high_x"].to_pylist()
    ):
        assert (shape.bounds[0], shape.bounds[2]) == pytest.approx((low, high))


def test_topojson_gives_the_same_outlines(tmp_path: Path, outlines: str) -> None:
    """Two squares that share a side, as arcs: quantised, and one of them walked backwards."""
    topology = {
        "type": "Topology",
        "transform": {"scale": [0.5, 0.5], "translate": [10, 0]},
        "arcs": [
            [[2, 0], [0, 2]],
            [[2, 2], [-2, 0], [0, -2], [2, 0]],
            [[2, 0], [2, 0], [0, 2], [-2, 0]],
        ],
        "objects": {
            "nation": {"type": "GeometryCollection", "geometries": []},
            "counties": {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Polygon", "id": "01001", "arcs": [[0, 1]]},
                    {"type": "MultiPolygon", "id": "01/2", "arcs": [[[2, -1]]]},
                ],
            },
        },
    }
    (tmp_path / "t.json").write_text(json.dumps(topology), encoding="utf-8")
    tt.export(with_errors(), out=str(tmp_path / "a.geojson"), shapes=str(tmp_path / "t.json"))
    found = read(tmp_path / "a.geojson")
    assert found["county"].tolist() == ["01/2", "01001"]
    assert [shape.bounds for shape in found.geometry] == [(11, 0, 12, 1), (10, 0, 11, 1)]
    assert [shape.area for shape in found.geometry] == [1, 1]


def test_unknown_outlines_are_named(tmp_path: Path, outlines: str) -> None:
    release = with_errors()
    with pytest.raises(InputError, match="Say another property: code"):
        tt.export(release, out=str(tmp_path / "a.geojson"), shapes=outlines, shapes_id="fips")
    with pytest.raises(RequestError, match="There is no level 'nation'"):
        tt.export(
            release,
            out=str(tmp_path / "a.geojson"),
            shapes=outlines,
            shapes_id="code",
            shapes_level="nation",
        )
    with pytest.raises(RequestError, match="No outline is called like a region"):
        tt.export(
            release,
            out=str(tmp_path / "a.geojson"),
            shapes=outlines,
            shapes_id="code",
            shapes_level="state",
        )
    (tmp_path / "p.json").write_text("[1]")
    with pytest.raises(InputError, match="neither GeoJSON nor TopoJSON"):
        tt.export(release, out=str(tmp_path / "a.geojson"), shapes=str(tmp_path / "p.json"))


def test_the_command_exports(
    tmp_path: Path, outlines: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with_errors().save(tmp_path / "out")
    for words in (
        ["--to", "csv", "--out", str(tmp_path / "a")],
        [
            "--format",
            "geojson",
            "--shapes",
            outlines,
            "--shapes-id",
            "code",
            "--out",
            str(tmp_path / "b"),
        ],
    ):
        with pytest.raises(SystemExit) as end:
            main(["export", str(tmp_path / "out"), *words])
        assert end.value.code == 0
        assert words[-1] in capsys.readouterr().err.replace("\n", "")
    assert len(read(tmp_path / "b")) == 2
    with pytest.raises(SystemExit) as end:
        main(["export", str(tmp_path / "out"), "--to", "dbf", "--out", str(tmp_path / "c")])
    assert end.value.code == 2
