"""Releasing a map: points or a grid in, boxes with noisy counts, estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.measure.spatial import measure_map
from tallytree.model.arrays import IntArray
from tallytree.model.confidential_grid import ConfidentialGrid, check_box, check_cells, count_points
from tallytree.privacy.budget import Budget, Definition, exact
from tallytree.privacy.randomness import KeyStream
from tallytree.release.spatial import SpatialRelease
from tallytree.release.spatial_manifest import map_manifest
from tallytree.spatial.draft import combine_measurements
from tallytree.spatial.estimates import estimate_map
from tallytree.spatial.options import MethodOptions

# Cells of the fine grid that points are counted on, as a power of two: 1024 x 1024, 128 x 128 x 128, …
RESOLUTION_LOG2 = 20
NOTES = {
    "error": "points outside the box are refused",
    "clip": "points outside the box count at its border",
    "drop": "points outside the box are left out",
}


def spatial(
    points: Any = None,
    *,
    epsilon: object = None,
    rho: object = None,
    definition: Definition = "pure",
    counts: Any = None,
    columns: Sequence[str] | None = None,
    box: Sequence[Sequence[float]] | None = None,
    outside: str = "error",
    resolution: int | Sequence[int] | None = None,
    method: str = "auto",
    n_points: int | None = None,
    alpha: object = None,
    cells: int | None = None,
    depth: int | None = None,
    branching: int | None = None,
    prune: float | None = None,
    nonnegative: bool = True,
    integers: bool = True,
    contributions: int = 1,
    entity: str = "row",
    insecure_seed: int | None = None,
) -> SpatialRelease:
    """Release a map of points that answers how many lie in any box, with a differential privacy guarantee.

    Parameters
    ----------
    points
        Points as an array with one row each, as one array per column, or, with ``columns``, as a table of any form that
        :func:`tallytree.read` takes; or a :class:`ConfidentialGrid`.
    epsilon, rho, definition
        The privacy loss: ``epsilon`` for ``definition="pure"``, ``rho`` for ``"zcdp"``. Taken exactly: 0.1 is one tenth.
    counts
        A ready grid of counts instead of points.
    columns
        Two or more columns of numbers; names of the dimensions where points are arrays.
    box
        One pair (low, high) per column. It must be public: that of the data would give its outermost points away.
    outside
        Points outside the box: ``"error"``, ``"clip"`` to its border, or ``"drop"``.
    resolution
        Cells per column of the fine public grid that points are counted on; no box is smaller than a cell.
    method
        ``"auto"``, ``"flat"``, ``"hierarchical"``, ``"uniform-grid"``, ``"adaptive-grid"``, ``"quadtree"``, ``"quad-opt"``,
        ``"kd-tree"``, ``"kd-hybrid"`` or ``"adaptive-tree"``.
    n_points, alpha, cells, depth, branching, prune
        Parameters of methods; see :class:`tallytree.spatial.options.MethodOptions`.
    nonnegative, integers
        What is published. ``nonnegative=False, integers=False`` publishes the unbiased estimates.
    contributions, entity
        How many points one protected unit has at most, and what a point is called in the privacy statement.
    insecure_seed
        For tests and experiments only: repeatable noise. The release is marked "not private".
    """
    budget = _budget(epsilon, rho, definition)
    options = MethodOptions(
        method=method,  # type: ignore[arg-type]
        n_points=n_points,
        alpha=None if alpha is None else exact(alpha, "alpha"),
        cells=cells,
        depth=depth,
        branching=branching,
        prune=None if prune is None else float(prune),
    )
    grid = _confidential(points, counts, columns, box, outside, resolution, contributions, entity)
    return release_map(grid, budget, options, nonnegative=nonnegative, integers=integers, insecure_seed=insecure_seed)


def release_map(
    grid: ConfidentialGrid,
    budget: Budget,
    options: MethodOptions,
    *,
    nonnegative: bool = True,
    integers: bool = True,
    insecure_seed: int | None = None,
) -> SpatialRelease:
    """Measure a grid, estimate its boxes and put the release together."""
    stream = KeyStream.from_system() if insecure_seed is None else KeyStream.from_insecure_seed(insecure_seed)
    noisy = measure_map(grid, budget, options, stream)
    stream.forget()
    values, variances = combine_measurements(noisy.tree.n_nodes, list(noisy.measurements))
    estimates = estimate_map(
        noisy.tree, values, variances, prune=options.prune, nonnegative=bool(nonnegative), integers=bool(integers)
    )
    published = {"nonnegative": bool(nonnegative), "integers": bool(integers)}
    manifest = map_manifest(noisy, grid, options, published=published, secure=stream.secure)
    return SpatialRelease(estimates, manifest, noisy.measurements)


def _budget(epsilon: object, rho: object, definition: Definition) -> Budget:
    if definition not in ("pure", "zcdp"):
        raise RequestError(f"The definition must be one of pure, zcdp, got {definition!r}.")
    name, value, other = ("epsilon", epsilon, rho) if definition == "pure" else ("rho", rho, epsilon)
    if value is None or other is not None:
        raise RequestError(f"definition={definition!r} takes {name} and nothing else; give {name}=….")
    return Budget(definition, exact(value, name))


def _confidential(
    points: Any,
    counts: Any,
    columns: Sequence[str] | None,
    box: Sequence[Sequence[float]] | None,
    outside: str,
    resolution: int | Sequence[int] | None,
    contributions: int,
    entity: str,
) -> ConfidentialGrid:
    if (points is None) == (counts is None):
        raise RequestError("Give either points or counts=, one of the two.")
    if isinstance(points, ConfidentialGrid):
        return points
    if isinstance(contributions, bool) or not isinstance(contributions, int) or contributions < 1:
        raise RequestError(f"contributions is a whole number of at least 1, got {contributions!r}.")
    if counts is not None:
        table = _check_counts(counts)
        shape = check_cells(table.shape)
        sides = check_box(box, len(shape)) if box is not None else tuple((0.0, float(n)) for n in shape)
        return ConfidentialGrid(table, sides, _names(columns, len(shape)), entity, contributions)
    if box is None:
        raise RequestError(
            "Points need box=, one (low, high) per column. It must be public: that of the data would give its outermost "
            "points away."
        )
    if outside not in NOTES:
        raise RequestError(f"outside is one of {', '.join(NOTES)}; got {outside!r}.")
    parts = _columns_of(points)
    n_columns = len(parts) if parts is not None else len(columns or ())
    shape = _resolution(resolution, n_columns)
    sides = check_box(box, n_columns)
    if parts is None:
        return read_grid(
            points, tuple(columns or ()), sides, shape, outside, contributions=contributions, entity=entity
        )
    table = count_points(parts, sides, shape, outside)
    return ConfidentialGrid(table, sides, _names(columns, n_columns), entity, contributions, NOTES[outside])


def read_grid(
    source: Any,
    columns: tuple[str, ...],
    box: tuple[tuple[float, float], ...],
    shape: tuple[int, ...],
    outside: str,
    *,
    contributions: int = 1,
    entity: str = "row",
    **where: Any,
) -> ConfidentialGrid:
    """Count the points of a table on the fine grid, inside the engine that holds it."""
    from tallytree.ingest.values import read_points  # loads Ibis and DuckDB

    counted = read_points(source, list(columns), list(box), list(shape), **where).settle(outside)  # type: ignore[arg-type]
    return ConfidentialGrid(counted, box, columns, entity, contributions, NOTES[outside])


def _columns_of(points: Any) -> list[IntArray] | None:
    """Points given as arrays, one per column; None where they are a table of another kind."""
    if isinstance(points, np.ndarray):
        if points.ndim != 2:
            raise InputError(
                f"Points are an array of rows with one column per dimension, got {points.ndim} dimensions."
            )
        return [points[:, axis] for axis in range(points.shape[1])]
    if isinstance(points, tuple | list) and points and all(isinstance(part, np.ndarray) for part in points):
        return list(points)
    if isinstance(points, tuple | list):
        try:
            return _columns_of(np.asarray(points, dtype=np.float64))
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("Points are pairs of numbers, or one list of numbers per column.") from None
    return None


def _names(columns: Sequence[str] | None, dimensions: int) -> tuple[str, ...]:
    names = tuple(columns) if columns is not None else ("x", "y", "z")[:dimensions] if dimensions <= 3 else ()
    names = names or tuple(f"x{axis}" for axis in range(dimensions))
    if len(names) != dimensions or len(set(names)) != len(names):
        raise RequestError(f"{dimensions} dimensions need as many different column names, got {', '.join(names)}.")
    return names


def _resolution(resolution: int | Sequence[int] | None, dimensions: int) -> tuple[int, ...]:
    if dimensions < 2:
        raise RequestError(f"A map needs at least two columns, got {dimensions}. For one column use histogram.")
    if resolution is None:
        resolution = 1 << max(1, RESOLUTION_LOG2 // dimensions)
    cells = (resolution,) * dimensions if isinstance(resolution, int) else tuple(resolution)
    if len(cells) != dimensions:
        raise RequestError(f"The resolution is one number, or one per column; got {cells} for {dimensions} columns.")
    return check_cells(cells)


def _check_counts(counts: Any) -> IntArray:
    """A grid of counts as whole numbers; floats are taken where they are whole."""
    try:
        table = np.asarray(counts)
        numbers = table.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("A grid of counts is an array of numbers.") from None
    if table.dtype.kind not in "iuf" or not np.all(np.isfinite(numbers)):
        raise InputError("A grid of counts holds whole numbers, with no NaN or infinity among them.")
    if np.any(numbers < 0) or np.any(numbers != np.floor(numbers)) or np.any(numbers >= 2.0**53):
        raise InputError("A grid of counts holds whole numbers of at least 0 and below 2**53.")
    return np.array(table, dtype=np.int64)
