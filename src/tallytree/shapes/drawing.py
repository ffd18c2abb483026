"""Outlines small enough for a page: projected, rounded to a grid, points that fall together
dropped.

Neighbours round their common border alike, so that no gaps open between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.shapes.matching import ShapedLevel

# Cells along the wider side of the finest grid, and points that a page draws without delay.
FINEST, MOST_POINTS = 4000, 90_000
# Mean radius of the earth in kilometres.
EARTH = 6371.0


@dataclass(frozen=True, eq=False)
class Drawing:
    """Rings of whole coordinates per region.

    Attributes
    ----------
    width, height
        Of the drawing.
    rings
        Per region its rings; a ring is its first point, then steps to the next ones: ``[x, y, dx,
        dy, …]``.
    km
        Kilometres that one step of the grid is long in the middle of the drawing; None where
        coordinates are not longitude and latitude.
    """

    width: int
    height: int
    rings: list[list[list[int]]]
    km: float | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON-ready facts."""
        return {"width": self.width, "height": self.height, "rings": self.rings, "km": self.km}


def draw_outlines(shaped: ShapedLevel) -> Drawing:
    """The outlines of a level on the finest grid that keeps a page small."""
    projected = _projected(shaped)
    corners = np.concatenate([ring for shape in projected for ring in shape])
    low, high = corners.min(axis=0), corners.max(axis=0)
    extent = float(max(high - low)) or 1.0
    cells = FINEST
    while True:
        scale = cells / extent
        rings = [_rounded(shape, low, high, scale) for shape in projected]
        n_points = sum(len(ring) // 2 for shape in rings for ring in shape)
        if n_points <= MOST_POINTS or cells < 300:
            break
        cells = int(cells * 0.75)
    width, height = np.ceil((high - low) * scale).astype(int).tolist()
    return Drawing(width + 1, height + 1, rings, EARTH / scale if _is_geographic(shaped) else None)


def _is_geographic(shaped: ShapedLevel) -> bool:
    """Whether coordinates can be longitude and latitude."""
    largest = np.max(
        [
            np.abs(ring).max(axis=0)
            for shape in shaped.polygons
            for polygon in shape
            for ring in polygon
        ],
        axis=0,
    )
    return bool(largest[0] <= 360 and largest[1] <= 90)


def _projected(shaped: ShapedLevel) -> list[list[FloatArray]]:
    """Longitude and latitude in Lambert's equal-area projection around their middle; other
    coordinates as they are.
    """
    shapes = [[ring for polygon in shape for ring in polygon] for shape in shaped.polygons]
    if not _is_geographic(shaped):
        return shapes
    middles = np.array([ring.mean(axis=0) for shape in shapes for ring in shape])
    center = np.radians(np.median(middles, axis=0))

    def flat(ring: FloatArray) -> FloatArray:
        lon, lat = np.radians(ring.T)
        lon = lon - center[0]
        cosine = np.sin(center[1]) * np.sin(lat) + np.cos(center[1]) * np.cos(lat) * np.cos(lon)
        k = np.sqrt(2 / np.maximum(1 + cosine, 1e-9))
        x = k * np.cos(lat) * np.sin(lon)
        y = k * (np.cos(center[1]) * np.sin(lat) - np.sin(center[1]) * np.cos(lat) * np.cos(lon))
        return np.stack([x, y], axis=1)

    return [[flat(ring) for ring in shape] for shape in shapes]


def _rounded(
    shape: list[FloatArray], low: FloatArray, high: FloatArray, scale: float
) -> list[list[int]]:
    """Rings on the grid, the y axis downwards; of islands that vanish the largest stays as a point
    with a size.
    """
    found, smallest = [], None
    for ring in sorted(shape, key=len, reverse=True):
        grid = np.rint(
            np.stack([(ring[:, 0] - low[0]) * scale, (high[1] - ring[:, 1]) * scale], axis=1)
        ).astype(np.int64)
        kept = _turning(grid[np.append(True, np.any(np.diff(grid, axis=0) != 0, axis=1))])
        if len(kept) >= 4:
            steps = np.diff(kept[:-1], axis=0).ravel().tolist()
            found.append([*kept[0].tolist(), *steps])
        elif smallest is None:
            smallest = grid[0]
    if not found and smallest is not None:
        found.append([*smallest.tolist(), 1, 0, 0, 1, -1, 0])
    return found


def _turning(ring: IntArray) -> IntArray:
    """The points of a ring that do not lie on the straight way from the one before to the one
    after.
    """
    if len(ring) < 4:
        return ring
    before, after = ring[1:-1] - ring[:-2], ring[2:] - ring[1:-1]
    turns = before[:, 0] * after[:, 1] != before[:, 1] * after[:, 0]
    return ring[np.concatenate([[True], turns, [True]])]
