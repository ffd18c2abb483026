"""Points and ready grids of counts on a fine public grid: what a map accepts, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.ingest.binning import check_counts
from tallytree.ingest.point_files import WORLD, describe_points
from tallytree.ingest.values import BinnedValues, read_points
from tallytree.model.bins import Bins, bins_from_edges, bins_of_categories
from tallytree.model.confidential_grid import ConfidentialGrid, PublicGrid
from tallytree.model.frame import Box, Frame, check_box, check_cells, frame_of
from tallytree.model.part import Part
from tallytree.model.unit import ENTITY, unit_from
from tallytree.options.choices import Outside
from tallytree.options.maps import GridOptions

# Cells of the fine grid that points are counted on, as a power of two: 1024 x 1024, 64 x 64 x 64,
# …; 4,096 of one column.
RESOLUTION_LOG2 = 20
LONGEST_LOG2 = 12
NOTES: dict[Outside, str] = {
    "error": "points outside the box are refused",
    "clip": "points outside the box count at its border",
    "drop": "points outside the box are left out",
}
_ON_EARTH = {
    "latitude": (("lat", "latitude"), -90, 90),
    "longitude": (("lon", "lng", "long", "longitude"), -180, 360),
}
UNIT_NEEDS_TABLE = "unit= names a column, so it goes with a table; of other data state contributions=, which is then trusted."

WHERE_NEEDS_TABLE = "where= names a column, so it goes with a table; filter other data before."


def read_grid(
    points: Any, counts: Any, options: GridOptions, *, part: Part | None = None
) -> ConfidentialGrid:
    """Count points, or take given counts, on the fine grid; of a table only the rows of ``part``."""
    if (points is None) == (counts is None):
        raise RequestError("Give either points or counts=, one of the two.")
    if isinstance(points, ConfidentialGrid):
        return points
    options, crs = _in_their_system(points, options)
    arrays = None if counts is not None else _columns_of(points)
    of_table = counts is None and arrays is None
    if part is not None and not of_table:
        raise RequestError(WHERE_NEEDS_TABLE)
    if options.unit != ENTITY and not of_table:
        raise RequestError(UNIT_NEEDS_TABLE)
    counted = counts is not None or options.count is not None
    unit = unit_from(options.unit, options.entity, options.contributions, counted=counted)
    if counts is not None:
        given = check_counts(counts)
        frame, names = _frame_of_counts(given.shape, options), _names(options.columns, given.ndim)
        public = PublicGrid(frame.box, names, given.shape, unit=unit, crs=crs)
        return ConfidentialGrid(given, public, frame.axes)
    n_columns = len(options.columns or ()) if arrays is None else len(arrays)
    frame, names, outside = (
        _frame(n_columns, options),
        _names(options.columns, n_columns),
        options.outside,
    )
    _refuse_no_place(names, frame.box, crs)
    if arrays is not None:
        found = bin_points(arrays, frame)
    else:
        bound = {"unit": options.unit, "contributions": unit.contributions} if unit.column else {}
        place: dict[str, Any] = {"count": options.count, **asdict(options.place()), **bound}
        place |= {"where": part, "axes": frame.axes}
        found = read_points(points, list(names), frame.box, frame.shape, **place)
    settled, altered = found.settle(outside), found.altered(outside, unit)
    public = PublicGrid(frame.box, names, settled.shape, NOTES[outside], unit, part, crs)
    return ConfidentialGrid(settled, public, frame.axes, altered)


def _in_their_system(points: Any, options: GridOptions) -> tuple[GridOptions, str]:
    """The options with the columns of a file of points, where they are not named, and the
    coordinate system.
    """
    stated = options.crs or ""
    described = describe_points(points)
    if described is None:
        return options, stated
    if stated and described.crs and stated != described.crs:
        raise RequestError(
            f"The points are in {described.crs}, not in {stated}; leave crs= out, or convert them "
            "with another program."
        )
    columns = described.columns if options.columns is None else tuple(options.columns)
    own = columns == described.columns
    if options.box is None and options.edges is None and own:
        said = f"in the coordinates of the file, {described.crs or 'whose system it does not say'}"
        raise RequestError(
            f"Points need box=, {columns[0]} then {columns[1]}, {said}. It must be public."
        )
    return replace(options, columns=columns), stated or (described.crs if own else "")


def _refuse_no_place(names: Sequence[str], box: Box, crs: str) -> None:
    """Refuse longitudes and latitudes that are nowhere on Earth, as where a box names its ranges in
    another order than the columns.
    """
    if crs not in ("", WORLD, "EPSG:4326"):
        return
    for name, (low, high) in zip(names, box):
        for what, (called, least, most) in _ON_EARTH.items():
            if name.lower() in called and not least <= low < high <= most:
                raise RequestError(
                    f"Column {name!r} is a {what}, from {least} to {most}, and the box has {low:g} to "
                    f"{high:g} for it. The ranges of a box stand in the order of the columns: "
                    f"{', '.join(names)}."
                )


def _frame(n_columns: int, options: GridOptions) -> Frame:
    """The public cells that points are counted in."""
    if n_columns < 1:
        raise RequestError("Points have at least one column; name them: columns= (--columns).")
    if options.edges is not None:
        return _stated_frame(options, n_columns)
    if options.box is None:
        raise RequestError(
            "Points need box=, one (low, high) per column, or edges=. It must be public: that of "
            "the data would give its "
            "outermost points away."
        )
    return Frame(check_box(options.box, n_columns), _shape(options.resolution, n_columns))


def _frame_of_counts(shape: tuple[int, ...], options: GridOptions) -> Frame:
    """The public cells of given counts: numbered, where neither a box nor edges are given."""
    if options.edges is not None:
        stated = _stated_frame(options, len(shape))
        return Frame(stated.box, shape, stated.axes)
    cells = check_cells(shape)
    box = (
        check_box(options.box, len(cells))
        if options.box is not None
        else tuple((0.0, float(n)) for n in cells)
    )
    return Frame(box, cells)


def _stated_frame(options: GridOptions, n_columns: int) -> Frame:
    if options.box is not None or options.resolution is not None:
        raise RequestError("edges= says where the cells lie; leave box= and resolution= out.")
    axes = [_bins(axis) for axis in options.edges or ()]
    if len(axes) != n_columns:
        raise RequestError(
            f"edges= has one list per column; got {len(axes)} for {n_columns} columns."
        )
    return frame_of(axes)


def _bins(axis: Any) -> Bins:
    if isinstance(axis, Bins):
        return axis
    return (
        bins_of_categories(axis)
        if any(isinstance(name, str) for name in axis)
        else bins_from_edges(axis)
    )


def bin_points(points: Sequence[Any], frame: Frame) -> BinnedValues:
    """Count points per cell of a frame, as :func:`tallytree.ingest.values.read_points` does in a
    table.
    """
    n_points = len(points[0])
    place, inside = np.zeros(n_points, dtype=np.int64), np.ones(n_points, dtype=bool)
    for axis, (values, (low, high), cells) in enumerate(zip(points, frame.box, frame.shape)):
        x = np.asarray(values)
        if x.dtype.kind not in "iufb" or x.ndim != 1 or len(x) != n_points:
            raise InputError("Points are columns of numbers of equal length.")
        x = x.astype(np.float64)
        if not np.all(np.isfinite(x)):
            raise InputError(
                "Some coordinates are missing, NaN or infinite; fill or drop these points."
            )
        inside &= (x >= low) & (x <= high)
        if frame.axes is not None:
            cell = np.searchsorted(frame.axes[axis].edges[1:-1], x, side="right")
        else:
            cell = np.floor((np.clip(x, low, high) - low) * cells / (high - low)).astype(np.int64)
        place = place * cells + np.minimum(cell, cells - 1)
    tables = [
        np.bincount(place[chosen], minlength=math.prod(frame.shape)) for chosen in (inside, ~inside)
    ]
    counts, beyond = (table.reshape(frame.shape).astype(np.int64) for table in tables)
    return BinnedValues(counts, beyond, 0, 0, "")


def _columns_of(points: Any) -> list[Any] | None:
    """Points given as arrays or lists, one array per column; None where they are a table of another
    kind.
    """
    if isinstance(points, tuple | list):
        if points and all(isinstance(part, np.ndarray) and part.ndim == 1 for part in points):
            return list(points)
        try:
            points = np.asarray(points, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("Points are rows of numbers, or one array per column.") from None
    if not isinstance(points, np.ndarray):
        return None
    if points.ndim == 1:
        return [points]
    if points.ndim != 2:
        raise InputError(
            f"Points are an array of rows with one column per dimension, got {points.ndim} "
            "dimensions."
        )
    return [points[:, axis] for axis in range(points.shape[1])]


def _names(columns: Sequence[str] | None, dimensions: int) -> tuple[str, ...]:
    default = (
        ("x", "y", "z")[:dimensions]
        if dimensions <= 3
        else tuple(f"x{axis}" for axis in range(dimensions))
    )
    names = tuple(columns) if columns is not None else default
    if len(names) != dimensions or len(set(names)) != len(names):
        raise RequestError(
            f"{dimensions} dimensions need as many different column names, got {', '.join(names)}."
        )
    return names


def _shape(resolution: int | Sequence[int] | None, dimensions: int) -> tuple[int, ...]:
    if resolution is None:
        resolution = 1 << min(LONGEST_LOG2, max(1, RESOLUTION_LOG2 // dimensions))
    cells = (resolution,) * dimensions if isinstance(resolution, int) else tuple(resolution)
    if len(cells) != dimensions:
        raise RequestError(
            f"The resolution is one number, or one per column; got {cells} for {dimensions} "
            "columns."
        )
    return check_cells(cells)
