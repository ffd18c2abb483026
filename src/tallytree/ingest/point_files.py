"""Files of points: GeoJSON, GeoParquet and shapefiles as tables of two coordinates and what is said
of each point.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tallytree.errors import InputError
from tallytree.ingest.encodings import LOOKED_AT, encoding_of
from tallytree.model.arrays import BoolArray, FloatArray
from tallytree.model.nested import parse_json

GEOJSON, SHAPEFILE, PARQUET = (".geojson", ".json"), (".shp",), (".parquet", ".pq", ".parq")
LONGITUDE_LATITUDE, X_Y = ("longitude", "latitude"), ("x", "y")
WORLD = "OGC:CRS84"
"""Longitude and latitude on WGS 84, in this order: what GeoJSON and, by default, GeoParquet are in."""
NO_POINTS = "holds shapes that are no points; a map counts points, one per row"


@dataclass(frozen=True)
class PointFile:
    """What a file of points says about itself, all of it public.

    Attributes
    ----------
    columns
        What the two coordinates are called: ``longitude`` and ``latitude``, or ``x`` and ``y``
        where they lie in a plane.
    crs
        Coordinate system: ``OGC:CRS84``, ``EPSG:27700``, the name in a ``.prj`` file; empty where
        the file does not say.
    """

    columns: tuple[str, str]
    crs: str


def describe_points(source: Any) -> PointFile | None:
    """What the file says; None where the source is no file of points."""
    path = Path(source) if isinstance(source, str | Path) and "://" not in str(source) else None
    if path is None or not path.is_file():
        return None
    suffix = path.suffix.lower()
    try:
        if suffix in GEOJSON:
            return _geojson_system(_geojson(path))
        if suffix in SHAPEFILE:
            return _shapefile_system(path)
        geo = _geo_metadata(path) if suffix in PARQUET else None
        return None if geo is None else _parquet_system(geo)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OSError,
        RecursionError,
        struct.error,
        pa.ArrowException,
    ):
        return None  # opening it says what is wrong


def is_point_file(path: str) -> bool:
    """Whether a file holds points by its name alone."""
    return Path(path).suffix.lower() in GEOJSON + SHAPEFILE


def has_geometry(path: str, columns: Sequence[str]) -> bool:
    """Whether a Parquet file has geometries, and the coordinates that are asked for are no columns
    of its own.
    """
    found = describe_points(path)
    return (
        found is not None
        and any(name in columns for name in found.columns)
        and not _has(path, found.columns)
    )


def _has(path: str, columns: Sequence[str]) -> bool:
    return set(columns) <= set(pq.read_schema(path).names)


def read_points_file(
    path: str, encoding: str | None = None, columns: Sequence[str] = ()
) -> pa.RecordBatchReader:
    """The points of a file: their coordinates, then what is said of each; of Parquet only the
    wanted ``columns``.
    """
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET:
        return _read_parquet(Path(path), columns)
    table = (
        _read_shapefile(Path(path), encoding) if suffix in SHAPEFILE else _read_geojson(Path(path))
    )
    return table.to_reader()


# GeoJSON


def _geojson(path: Path) -> dict[str, Any]:
    facts = parse_json(path.read_text(encoding="utf-8-sig"))
    if not isinstance(facts, dict) or facts.get("type") != "FeatureCollection":
        raise InputError(f"{path} is no GeoJSON file: a FeatureCollection is expected.")
    return facts


def _geojson_system(facts: dict[str, Any]) -> PointFile:
    """WGS 84, or what the member ``crs`` says that GeoJSON had before RFC 7946."""
    stated = facts.get("crs")
    name = WORLD if stated is None else _code(str(stated["properties"]["name"]))
    return PointFile(LONGITUDE_LATITUDE if name in (WORLD, "EPSG:4326") else X_Y, name)


def _code(urn: str) -> str:
    """``EPSG:27700`` from ``urn:ogc:def:crs:EPSG::27700``."""
    parts = [part for part in urn.split(":") if part]
    return (
        f"{parts[4]}:{parts[-1]}"
        if urn.lower().startswith("urn:ogc:def:crs:") and len(parts) > 5
        else urn
    )


def _read_geojson(path: Path) -> pa.Table:
    facts = _geojson(path)
    features = facts["features"]
    places = np.array([_position(feature.get("geometry"), path) for feature in features]).reshape(
        -1, 2
    )
    names = list(
        dict.fromkeys(chain.from_iterable(feature.get("properties") or {} for feature in features))
    )
    others = {
        name: _plain([(feature.get("properties") or {}).get(name) for feature in features])
        for name in names
    }
    return _with_coordinates(_geojson_system(facts), places, others)


def _position(geometry: dict[str, Any] | None, path: Path) -> tuple[float, float]:
    if geometry is None:
        return (np.nan, np.nan)
    if geometry["type"] != "Point":
        raise InputError(f"{path} {NO_POINTS}.")
    return tuple(geometry["coordinates"][:2]) or (np.nan, np.nan)


def _plain(values: list[Any]) -> pa.Array:
    """A column of one type; of several types, or of lists, the text of each value."""
    if all(isinstance(value, dict | list) or value is None for value in values):
        values = [None if value is None else json.dumps(value) for value in values]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])


def _with_coordinates(system: PointFile, places: FloatArray, others: dict[str, Any]) -> pa.Table:
    own = {name: value for name, value in others.items() if name not in system.columns}
    return pa.table({system.columns[0]: places[:, 0], system.columns[1]: places[:, 1], **own})


# GeoParquet


def _geo_metadata(path: Path) -> dict[str, Any] | None:
    metadata = pq.read_schema(path).metadata or {}
    return parse_json(metadata[b"geo"]) if b"geo" in metadata else None


def _parquet_system(geo: dict[str, Any]) -> PointFile:
    system = geo["columns"][geo["primary_column"]].get("crs", WORLD)
    if system == WORLD:
        return PointFile(LONGITUDE_LATITUDE, WORLD)
    if system is None:
        return PointFile(X_Y, "")
    known = system.get("id") or {}
    name = f"{known['authority']}:{known['code']}" if known else str(system.get("name", ""))
    return PointFile(
        LONGITUDE_LATITUDE if str(system.get("type")).startswith("Geographic") else X_Y, name
    )


def _read_parquet(path: Path, columns: Sequence[str]) -> pa.RecordBatchReader:
    geo = _geo_metadata(path) or {}
    file, geometry, system = pq.ParquetFile(path), geo["primary_column"], _parquet_system(geo)
    others = [
        name
        for name in columns
        if name in file.schema_arrow.names and name not in (geometry, *system.columns)
    ]
    coordinates = [pa.field(name, pa.float64()) for name in system.columns]
    schema = pa.schema([*coordinates, *(file.schema_arrow.field(name) for name in others)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in file.iter_batches(columns=[*others, geometry]):
            places = _coordinates(batch.column(geometry), path)
            arrays = [
                pa.array(places[:, 0]),
                pa.array(places[:, 1]),
                *(batch.column(name) for name in others),
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    found = batches()
    first = list(
        islice(found, 1)
    )  # what is wrong is said here; out of a stream it would come as an error of the engine
    return pa.RecordBatchReader.from_batches(schema, chain(first, found))


def _coordinates(column: pa.Array, path: Path) -> FloatArray:
    """Coordinates of points as well-known binary, or as a structure of x and y."""
    if pa.types.is_struct(column.type):
        return np.stack(
            [np.asarray(column.field(axis).to_numpy(zero_copy_only=False)) for axis in ("x", "y")],
            axis=1,
        )
    texts = column.to_pylist()
    if all(text is not None and len(text) == PLAIN.itemsize for text in texts):
        plain = np.frombuffer(b"".join(texts), dtype=PLAIN)
        if np.all(plain["order"] == 1) and np.all(plain["kind"] == 1):
            return np.stack([plain["x"], plain["y"]], axis=1)
    return np.array([_unpacked(text, path) for text in texts]).reshape(-1, 2)


PLAIN = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
"""A point of well-known binary as most programs write it: little-endian, two coordinates."""


def _unpacked(text: bytes | None, path: Path) -> tuple[float, float]:
    """Any point of well-known binary: either order of bytes, with heights, measures or a number of
    its system.
    """
    if text is None:
        return (np.nan, np.nan)
    order = "<" if text[0] == 1 else ">"
    (kind,) = struct.unpack_from(f"{order}I", text, 1)
    if (kind & 0x1FFFFFFF) % 1000 != 1:
        raise InputError(f"{path} {NO_POINTS}.")
    x, y = struct.unpack_from(f"{order}2d", text, 9 if kind & 0x20000000 else 5)
    return (x, y)


# Shapefiles (ESRI's technical description of 1998, and dBASE III for what is said of each point)

POINTS = (1, 11, 21)
"""Types of points: plain, with heights, with measures."""


def _shapefile_system(path: Path) -> PointFile:
    prj = path.with_suffix(".prj")
    if not prj.is_file():
        return PointFile(X_Y, "")
    text = prj.read_text(encoding="utf-8", errors="replace").strip()
    code = re.search(r'(?:AUTHORITY|ID)\["EPSG",\s*"?(\d+)"?\]\]$', text)
    name = re.search(r'"([^"]*)"', text)
    called = f"EPSG:{code[1]}" if code else name[1] if name else ""
    world = text.upper().startswith(("GEOGCS", "GEOGCRS"))
    return PointFile(
        LONGITUDE_LATITUDE if world else X_Y, WORLD if called == "GCS_WGS_1984" else called
    )


def _read_shapefile(path: Path, encoding: str | None) -> pa.Table:
    content = path.read_bytes()
    if struct.unpack_from(">i", content)[0] != 9994:
        raise InputError(f"{path} is no shapefile.")
    if struct.unpack_from("<i", content, 32)[0] not in POINTS:
        raise InputError(f"{path} {NO_POINTS}.")
    places = np.array(list(_records(content, path))).reshape(-1, 2)
    dbf = next(
        (path.with_suffix(end) for end in (".dbf", ".DBF") if path.with_suffix(end).is_file()), None
    )
    system = _shapefile_system(path)
    if dbf is None:
        return _with_coordinates(system, places, {})
    others, deleted = _read_dbf(dbf, encoding)
    if len(deleted) != len(places):
        raise InputError(f"{dbf} has another number of rows than {path}; the two belong together.")
    return _with_coordinates(system, places, others).filter(pa.array(~deleted))


def _records(content: bytes, path: Path) -> Iterator[tuple[float, float]]:
    place = 100
    while place < len(content):
        _, words, kind = struct.unpack_from(">ii", content, place) + struct.unpack_from(
            "<i", content, place + 8
        )
        if kind not in (0, *POINTS):
            raise InputError(f"{path} {NO_POINTS}.")
        yield struct.unpack_from("<2d", content, place + 12) if kind else (np.nan, np.nan)
        place += 8 + 2 * words


def _read_dbf(path: Path, encoding: str | None) -> tuple[dict[str, pa.Array], BoolArray]:
    """The fields of a dBASE file as text, blank ones as missing, and which rows are marked as
    deleted. Numbers are parsed where they are used.
    """
    content = path.read_bytes()
    n_rows, header, length = struct.unpack_from("<IHH", content, 4)
    ends = header - 1 - (header - 33) % 32
    starts = range(32, ends, 32)
    names = [content[start : start + 11].split(b"\0")[0] for start in starts]
    lengths = [content[start + 16] for start in starts]
    rows = content[header : header + n_rows * length]
    stated = encoding or _code_page(path)
    text = encoding_of(b" ".join(names) + rows[:LOOKED_AT], str(path), stated)
    row = np.dtype(
        [("deleted", "S1"), *((f"f{i}", f"S{length}") for i, length in enumerate(lengths))]
    )
    fields = np.frombuffer(rows, dtype=row, count=n_rows)
    columns = {
        name.decode(text): pa.array(
            [value.decode(text).strip() or None for value in fields[f"f{i}"].tolist()], pa.string()
        )
        for i, name in enumerate(names)
    }
    return columns, fields["deleted"] == b"*"


def _code_page(path: Path) -> str | None:
    """The encoding that a .cpg file beside states."""
    cpg = path.with_suffix(".cpg")
    said = cpg.read_text(encoding="ascii", errors="replace").strip() if cpg.is_file() else ""
    return {"1252": "windows-1252", "88591": "latin-1"}.get(said, said) or None
