"""The boxes of a map as a flat table whose columns say what they are, and as shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.boxes.release import SpatialRelease
from tallytree.errors import RequestError
from tallytree.kernels.trees.least_squares import variances_from_below
from tallytree.releases.export.geographic import Features
from tallytree.releases.export.sheet import (
    Codes,
    Column,
    Sheet,
    about_release,
    with_counts,
)

# Longitude and latitude on WGS 84, which both formats mean where they say nothing.
WORLD = ("OGC:CRS84", "EPSG:4326")


def map_sheet(release: SpatialRelease) -> Sheet:
    """The boxes that tile the map: number, ends per column, count, unbiased estimate, standard
    error, flag.
    """
    estimates, made = release.estimates, release.table()
    variance = variances_from_below(estimates.variances, estimates.tree.child_starts)
    leaves = np.flatnonzero(estimates.leaves)
    made = made.take(pa.array(leaves))
    rows: dict[str, Any] = {"box": made["node"]}
    columns = [Column("box", "key", "number of the box")]
    for name in release.columns:
        for end, word in (("low", "lower"), ("high", "upper")):
            rows[f"{end}_{name}"] = made[f"{end}_{name}"]
            columns.append(Column(f"{end}_{name}", "label", f"{word} end of the box in {name}"))
    rows, columns = with_counts(rows, columns, made, np.sqrt(variance[leaves]))
    ends = [
        (name, np.asarray(rows[f"low_{name}"]), np.asarray(rows[f"high_{name}"]))
        for name in release.columns
    ]
    labels = [
        ", ".join(f"{name} {low[box]:g} to {high[box]:g}" for name, low, high in ends)
        for box in range(len(leaves))
    ]
    codes = {"box": Codes(leaves.tolist(), labels)}
    title = f"Map by {' and '.join(release.columns)}"
    return Sheet(
        "counts",
        title,
        (*about_release(release), release.note),
        pa.table(rows),
        tuple(columns),
        codes,
    )


def box_features(release: SpatialRelease, sheet: Sheet) -> Features:
    """One row per box that tiles the map; the first column is the longitude or easting, the second
    the other one.
    """
    if len(release.columns) != 2:
        raise RequestError(
            f"A map of {len(release.columns)} columns has no boxes in a plane; take csv or parquet."
        )
    ends = [
        np.asarray(sheet.table[f"{end}_{name}"])
        for name in release.columns
        for end in ("low", "high")
    ]
    shapes = []
    for west, east, south, north in zip(*ends):
        corners = [(west, south), (east, south), (east, north), (west, north), (west, south)]
        shapes.append(((np.array(corners),),))
    crs = release.manifest.get("crs", "")
    return Features(sheet.table, shapes, sheet.about, "" if crs in WORLD else crs)
