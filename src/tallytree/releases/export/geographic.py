"""GeoJSON and GeoParquet: regions with their outlines, or the boxes of a map."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.shapes.outlines import Polygon


@dataclass(frozen=True, eq=False)
class Features:
    """Rows with a shape each.

    Attributes
    ----------
    table
        The properties.
    shapes
        The polygons of every row.
    about
        Sentences about the release.
    crs
        Coordinate system, such as ``EPSG:27700``; empty for longitude and latitude.
    """

    table: pa.Table
    shapes: Sequence[tuple[Polygon, ...]]
    about: tuple[str, ...]
    crs: str = ""


def write_geojson(features: Features, file: Path) -> None:
    """A FeatureCollection as in RFC 7946; in other coordinates than WGS 84 with the member that
    GeoJSON had for them before.
    """
    rows = features.table.to_pylist()
    made = {
        "type": "FeatureCollection",
        **_named_system(features.crs),
        "about": list(features.about),
        "features": [
            {"type": "Feature", "properties": _json_ready(row), "geometry": geometry(shape)}
            for row, shape in zip(rows, features.shapes)
        ],
    }
    text = json.dumps(made, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    file.write_text(text, encoding="utf-8")


def _named_system(crs: str) -> dict[str, Any]:
    authority, colon, code = crs.partition(":")
    if crs and not colon:
        raise RequestError(
            f"GeoJSON has no words for the coordinate system {crs!r}; take geoparquet or csv."
        )
    name = f"urn:ogc:def:crs:{authority}::{code}"
    return {"crs": {"type": "name", "properties": {"name": name}}} if crs else {}


def geometry(shape: tuple[Polygon, ...]) -> dict[str, Any]:
    """A polygon, or several, as GeoJSON has them."""
    parts = [[ring.tolist() for ring in polygon] for polygon in shape]
    return (
        {"type": "Polygon", "coordinates": parts[0]}
        if len(parts) == 1
        else {
            "type": "MultiPolygon",
            "coordinates": parts,
        }
    )


def write_geoparquet(features: Features, file: Path) -> None:
    """GeoParquet 1.1: the rows and a column of well-known binary. Other coordinates than longitude
    and latitude are marked as unknown, since the format wants their full definition; their name
    stands beside.
    """
    import pyarrow.parquet as pq

    kinds = sorted({"Polygon" if len(shape) == 1 else "MultiPolygon" for shape in features.shapes})
    corners = [ring for shape in features.shapes for polygon in shape for ring in polygon]
    low, high = (
        np.min([ring.min(axis=0) for ring in corners], axis=0),
        np.max([ring.max(axis=0) for ring in corners], axis=0),
    )
    column: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": kinds,
        "bbox": [*low.tolist(), *high.tolist()],
    }
    if features.crs:
        column["crs"] = None
    facts = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    table = features.table.append_column(
        "geometry", pa.array([_binary(shape) for shape in features.shapes])
    )
    named = {"geo": json.dumps(facts), "about": "\n".join(features.about)}
    named |= {"crs": features.crs} if features.crs else {}
    pq.write_table(table.replace_schema_metadata(named), file, compression="zstd")


def _binary(shape: tuple[Polygon, ...]) -> bytes:
    """Well-known binary, little-endian: 3 is a polygon, 6 several."""
    parts = [
        struct.pack("<BII", 1, 3, len(polygon))
        + b"".join(struct.pack("<I", len(ring)) + ring.astype("<f8").tobytes() for ring in polygon)
        for polygon in shape
    ]
    return parts[0] if len(parts) == 1 else struct.pack("<BII", 1, 6, len(parts)) + b"".join(parts)


def _json_ready(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in row.items()
    }
