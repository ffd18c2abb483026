"""Points from GeoJSON, GeoParquet and shapefiles, written by the library that their users have."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.errors import InputError, RequestError
from tallytree.ingest.grids import read_grid
from tallytree.ingest.point_files import PointFile, describe_points
from tallytree.options.maps import GridOptions

geopandas = pytest.importorskip("geopandas")

SPOTS = np.array([[-0.5, 51.5], [-0.4, 51.6], [-0.4, 51.6], [0.3, 51.2]])
BOX = [(-1.0, 1.0), (51.0, 52.0)]
PLANE_BOX = [(400_000.0, 600_000.0), (100_000.0, 300_000.0)]


def frame(crs: str | None = "EPSG:4326") -> Any:
    spots = geopandas.points_from_xy(*SPOTS.T)
    made = geopandas.GeoDataFrame(
        {"ward": ["Süd", "Nord", "Nord", "Süd"], "n": [1, 2, 3, 4]}, geometry=spots, crs="EPSG:4326"
    )
    return made if crs == "EPSG:4326" else made.to_crs(crs)


def written(made: Any, form: str, folder: Path) -> Path:
    file = folder / f"points.{form}"
    if form == "parquet":
        made.to_parquet(file)
    else:
        made.to_file(file, driver="GeoJSON" if form == "geojson" else "ESRI Shapefile")
    return file


@pytest.mark.parametrize("form", ["geojson", "parquet", "shp"])
def test_points_of_the_world(form: str, tmp_path: Path) -> None:
    file = written(frame(), form, tmp_path)
    grid = read_grid(file, None, GridOptions(box=BOX, resolution=4))
    expected = read_grid(SPOTS, None, GridOptions(box=BOX, resolution=4))
    np.testing.assert_array_equal(grid.counts, expected.counts)
    assert grid.public.columns == ("longitude", "latitude")
    assert grid.public.crs in ("OGC:CRS84", "EPSG:4326")
    counted = read_grid(str(file), None, GridOptions(box=BOX, resolution=4, count="n"))
    assert counted.counts.sum() == 10


@pytest.mark.parametrize("form", ["geojson", "parquet", "shp"])
def test_points_of_a_plane_keep_their_system(form: str, tmp_path: Path) -> None:
    made = frame("EPSG:27700")
    file = written(made, form, tmp_path)
    released = tt.spatial(file, box=PLANE_BOX, epsilon=1, resolution=8)
    assert released.columns == ("x", "y")
    assert released.manifest["crs"] in ("EPSG:27700", "British_National_Grid")
    plane = np.stack([made.geometry.x, made.geometry.y], axis=1)
    expected = read_grid(plane, None, GridOptions(box=PLANE_BOX, resolution=8))
    np.testing.assert_array_equal(
        read_grid(file, None, GridOptions(box=PLANE_BOX, resolution=8)).counts, expected.counts
    )


def test_what_is_said_of_points_can_be_counted_too(tmp_path: Path) -> None:
    for form in ("geojson", "shp"):
        file = written(frame(), form, tmp_path)
        counts = tt.read(str(file), size="n", levels=["ward"], public="groups")
        assert counts.hierarchy.labels[1:].tolist() == ["Nord", "Süd"]


def test_exports_carry_the_system(tmp_path: Path) -> None:
    file = written(frame("EPSG:27700"), "geojson", tmp_path)
    released = tt.spatial(file, box=PLANE_BOX, epsilon=1, resolution=8)
    there = geopandas.read_file(
        tt.export(released, format="geojson", out=str(tmp_path / "boxes.geojson"))
    )
    assert there.crs.to_epsg() == 27700
    flat = geopandas.read_parquet(
        tt.export(released, format="geoparquet", out=str(tmp_path / "boxes.parquet"))
    )
    assert flat.crs is None
    assert pq.read_schema(tmp_path / "boxes.parquet").metadata[b"crs"] == b"EPSG:27700"


def test_a_box_in_the_coordinates_of_the_file_is_asked_for(tmp_path: Path) -> None:
    file = written(frame("EPSG:27700"), "geojson", tmp_path)
    with pytest.raises(RequestError, match="x then y, in the coordinates of the file, EPSG:27700"):
        tt.spatial(file, epsilon=1)
    with pytest.raises(RequestError, match="The points are in EPSG:27700, not in EPSG:4326"):
        tt.spatial(file, box=PLANE_BOX, epsilon=1, crs="EPSG:4326")


def test_shapes_that_are_no_points_are_refused(tmp_path: Path) -> None:
    area = frame("EPSG:27700")
    area["geometry"] = area.geometry.buffer(10)
    for form in ("geojson", "parquet", "shp"):
        file = written(area, form, tmp_path)
        with pytest.raises(InputError, match="shapes that are no points"):
            tt.spatial(file, box=PLANE_BOX, epsilon=1)


def test_points_without_a_place_are_missing(tmp_path: Path) -> None:
    gone = frame()
    gone.loc[1, "geometry"] = None
    for form in ("geojson", "parquet", "shp"):
        file = written(gone, form, tmp_path)
        with pytest.raises(InputError, match="missing values"):
            tt.spatial(file, box=BOX, epsilon=1)


def test_every_way_of_writing_a_point(tmp_path: Path) -> None:
    texts = [
        struct.pack("<BI2d", 1, 1, 1.0, 2.0),
        struct.pack(">BI2d", 0, 1, 1.0, 2.0),
        struct.pack("<BI3d", 1, 1001, 1.0, 2.0, 9.0),
        struct.pack("<BI3d", 1, 0x80000001, 1.0, 2.0, 9.0),
        struct.pack("<BII2d", 1, 0x20000001, 4326, 1.0, 2.0),
    ]
    geo = {
        "version": "1.1.0",
        "primary_column": "place",
        "columns": {"place": {"encoding": "WKB", "geometry_types": []}},
    }
    table = pa.table({"place": pa.array(texts, pa.binary())}).replace_schema_metadata(
        {"geo": json.dumps(geo)}
    )
    pq.write_table(table, tmp_path / "points.parquet")
    assert describe_points(tmp_path / "points.parquet") == PointFile(
        ("longitude", "latitude"), "OGC:CRS84"
    )
    grid = read_grid(
        tmp_path / "points.parquet", None, GridOptions(box=[(0, 4), (0, 4)], resolution=4)
    )
    assert grid.counts[1, 2] == 5
    separate = pa.StructArray.from_arrays([pa.array([1.0]), pa.array([2.0])], ["x", "y"])
    geo["columns"]["place"]["encoding"] = "point"  # type: ignore[index]
    pq.write_table(
        pa.table({"place": separate}).replace_schema_metadata({"geo": json.dumps(geo)}),
        tmp_path / "s.parquet",
    )
    assert (
        read_grid(
            tmp_path / "s.parquet", None, GridOptions(box=[(0, 4), (0, 4)], resolution=4)
        ).counts[1, 2]
        == 1
    )


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.geojson").write_text("{", encoding="utf-8")
    (tmp_path / "b.geojson").write_text('{"type": "Topology"}', encoding="utf-8")
    (tmp_path / "c.shp").write_bytes(b"no shapefile at all")
    whole = written(frame(), "shp", tmp_path)
    (tmp_path / "d.shp").write_bytes(whole.read_bytes()[:-10])
    for name in ("a.geojson", "b.geojson", "c.shp", "d.shp"):
        with pytest.raises(InputError, match=name):
            tt.spatial(tmp_path / name, columns=["longitude", "latitude"], box=BOX, epsilon=1)
