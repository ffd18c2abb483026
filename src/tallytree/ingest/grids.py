"""Points and ready grids of counts on a fine public grid: what a map accepts, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.ingest.binning import check_counts
from tallytree.ingest.values import read_points
from tallytree.model.arrays import IntArray
from tallytree.model.confidential_grid import Box, ConfidentialGrid, check_box, check_cells
from tallytree.model.part import Part
from tallytree.model.unit import ENTITY, unit_from
from tallytree.options.choices import Outside
from tallytree.options.maps import GridOptions

# Cells of the fine grid that points are counted on, as a power of two: 1024 x 1024, 64 x 64 x 64, …
RESOLUTION_LOG2 = 20
NOTES: dict[Outside, str] = {
    "error": "points outside the box are refused",
    "clip": "points outside the box count at its border",
    "drop": "points outside the box are left out",
}
UNIT_NEEDS_TABLE = (
    "unit= names a column, so it goes with a table; of other data state contributions=, which is then trusted."
)

WHERE_NEEDS_TABLE = "where= names a column, so it goes with a table; filter other data before."


def read_grid(
    points: Any, counts: Any, options: GridOptions, *, part: Part | None = None, one_column: bool = False
) -> ConfidentialGrid:
    """Count points, or take given counts, on the fine grid; of a table only the rows of ``part``."""
    if (points is None) == (counts is None):
        raise RequestError("Give either points or counts=, one of the two.")
    if isinstance(points, ConfidentialGrid):
        return points
    unit = unit_from(options.unit, options.entity, options.contributions)
    if part is not None and (counts is not None or _columns_of(points) is not None):
        raise RequestError(WHERE_NEEDS_TABLE)
    if counts is not None:
        return _given_grid(check_counts(counts), options, one_column)
    if options.box is None:
        raise RequestError(
            "Points need box=, one (low, high) per column. It must be public: that of the data would give its "
            "outermost points away."
        )
    arrays = _columns_of(points)
    if options.unit != ENTITY and arrays is not None:
        raise RequestError(UNIT_NEEDS_TABLE)
    n_columns = len(options.columns or ()) if arrays is None else len(arrays)
    _check_columns(n_columns, one_column)
    shape = _shape(options.resolution, n_columns)
    box, names = check_box(options.box, n_columns), _names(options.columns, n_columns)
    outside = options.outside
    if arrays is not None:
        found = count_points(arrays, box, shape, outside)
    else:
        bound = {"unit": unit.column, "contributions": unit.contributions} if unit.column else {}
        place: dict[str, Any] = {"count": options.count, "table": options.table, "sql": options.sql, **bound}
        place["where"] = part
        found = read_points(points, list(names), list(box), list(shape), **place).settle(outside)
    return ConfidentialGrid(found, box, names, NOTES[outside], unit, part)


def _given_grid(counts: IntArray, options: GridOptions, one_column: bool) -> ConfidentialGrid:
    _check_columns(counts.ndim, one_column)
    shape = check_cells(counts.shape)
    box = check_box(options.box, len(shape)) if options.box is not None else tuple((0.0, float(n)) for n in shape)
    if options.unit != ENTITY:
        raise RequestError(UNIT_NEEDS_TABLE)
    names = _names(options.columns, len(shape))
    unit = unit_from(options.unit, options.entity, options.contributions)
    return ConfidentialGrid(counts, box, names, unit=unit)


def count_points(points: Sequence[Any], box: Box, shape: tuple[int, ...], outside: Outside) -> IntArray:
    """Count points per cell; along a side from a to b, x lies in cell floor((x - a) · cells / (b - a)), b in the last.

    No message says which or how many points are outside.
    """
    n_points = len(points[0])
    place, inside = np.zeros(n_points, dtype=np.int64), np.ones(n_points, dtype=bool)
    for values, (low, high), cells in zip(points, box, shape):
        x = np.asarray(values)
        if x.dtype.kind not in "iufb" or x.ndim != 1 or len(x) != n_points:
            raise InputError("Points are columns of numbers of equal length.")
        x = x.astype(np.float64)
        if not np.all(np.isfinite(x)):
            raise InputError("Some coordinates are missing, NaN or infinite; fill or drop these points.")
        inside &= (x >= low) & (x <= high)
        cell = np.floor((np.clip(x, low, high) - low) * cells / (high - low)).astype(np.int64)
        place = place * cells + np.minimum(cell, cells - 1)
    if outside == "error" and not inside.all():
        raise InputError("Some points lie outside the box. Widen the box, or choose outside='clip' or 'drop'.")
    if outside == "drop":
        place = place[inside]
    return np.bincount(place, minlength=math.prod(shape)).reshape(shape).astype(np.int64)


def _columns_of(points: Any) -> list[Any] | None:
    """Points given as arrays or lists, one array per column; None where they are a table of another kind."""
    if isinstance(points, tuple | list):
        if points and all(isinstance(part, np.ndarray) and part.ndim == 1 for part in points):
            return list(points)
        try:
            points = np.asarray(points, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("Points are rows of numbers, or one array per column.") from None
    if not isinstance(points, np.ndarray):
        return None
    if points.ndim != 2:
        raise InputError(f"Points are an array of rows with one column per dimension, got {points.ndim} dimensions.")
    return [points[:, axis] for axis in range(points.shape[1])]


def _names(columns: Sequence[str] | None, dimensions: int) -> tuple[str, ...]:
    default = ("x", "y", "z")[:dimensions] if dimensions <= 3 else tuple(f"x{axis}" for axis in range(dimensions))
    names = tuple(columns) if columns is not None else default
    if len(names) != dimensions or len(set(names)) != len(names):
        raise RequestError(f"{dimensions} dimensions need as many different column names, got {', '.join(names)}.")
    return names


def _check_columns(dimensions: int, one_column: bool) -> None:
    if one_column and dimensions != 1:
        raise RequestError(f"noisy-first and structure-first merge the bins of one column, got {dimensions}.")
    if not one_column and dimensions < 2:
        raise RequestError(
            f"A map needs at least two columns, got {dimensions}. For one column use histogram, or the methods "
            "noisy-first and structure-first."
        )


def _shape(resolution: int | Sequence[int] | None, dimensions: int) -> tuple[int, ...]:
    if resolution is None and dimensions == 1:
        raise RequestError("With one column the resolution is the number of bins; give resolution=.")
    if resolution is None:
        resolution = 1 << max(1, RESOLUTION_LOG2 // dimensions)
    cells = (resolution,) * dimensions if isinstance(resolution, int) else tuple(resolution)
    if len(cells) != dimensions:
        raise RequestError(f"The resolution is one number, or one per column; got {cells} for {dimensions} columns.")
    return check_cells(cells)
