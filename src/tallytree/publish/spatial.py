"""Releasing a map: points or a grid in, boxes with noisy counts, estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallytree.errors import RequestError
from tallytree.ingest.grids import MapSource, read_grid
from tallytree.measure.spatial import measure_map
from tallytree.model.arrays import BoolArray
from tallytree.model.box_tree import BoxTree
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.model.part import Part
from tallytree.model.unit import ENTITY
from tallytree.privacy.budget import Budget, Definition, exact
from tallytree.privacy.stated_budget import stated_budget
from tallytree.publish.keeping import paid_noise
from tallytree.publish.payment import Payment, payment_from
from tallytree.release.published import NO_MEASUREMENTS
from tallytree.release.spatial import SpatialRelease, noise_variances
from tallytree.release.spatial_manifest import planned_manifest, with_measurements
from tallytree.release.spatial_tables import layout_table, measurements_from_table, noisy_table, tree_from_table
from tallytree.spatial.draft import Measurement, combine_measurements
from tallytree.spatial.estimates import estimate_map
from tallytree.spatial.options import LINES, MethodOptions
from tallytree.storage.folder import Folder, Manifest


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
    count: str | None = None,
    table: str | None = None,
    sql: str | None = None,
    method: str = "auto",
    n_points: int | None = None,
    alpha: object = None,
    cells: int | None = None,
    depth: int | None = None,
    branching: int | None = None,
    prune: float | None = None,
    nonnegative: bool = True,
    integers: bool = True,
    where: str | tuple[str, str] | Part | None = None,
    unit: str = ENTITY,
    contributions: int = 1,
    entity: str = "row",
    insecure_seed: int | None = None,
    ledger: str | Payment | None = None,
    dataset: str | None = None,
) -> SpatialRelease:
    """Release a map of points that answers how many lie in any box, with a differential privacy guarantee.

    Parameters
    ----------
    points
        Points as an array with one row each, as one array per column, or, with ``columns``, as a table of any form that
        :func:`tallytree.read` takes; or a :class:`ConfidentialGrid`.
    epsilon, rho, definition
        The privacy loss: ``epsilon`` for ``definition="pure"``, ``rho`` for ``"zcdp"``. Taken exactly: 0.1 is one
        tenth.
    counts
        A ready grid of counts instead of points.
    columns, count, table, sql
        Two or more columns of numbers (names of the dimensions where points are arrays); for a table also the column
        that says how many entities a row stands for, and which table of a database or query on it.
    box
        One pair (low, high) per column. It must be public: that of the data would give its outermost points away.
    where
        ``"COLUMN=VALUE"``: of a table, only the rows whose column has exactly this label; see :func:`tallytree.read`.
    outside
        Points outside the box: ``"error"``, ``"clip"`` to its border, or ``"drop"``.
    resolution
        Cells per column of the fine public grid that points are counted on; no box is smaller than a cell.
    method
        ``"auto"``, ``"flat"``, ``"hierarchical"``, ``"uniform-grid"``, ``"adaptive-grid"``, ``"quadtree"``,
        ``"quad-opt"``, ``"kd-tree"``, ``"kd-hybrid"`` or ``"adaptive-tree"``; for one column ``"noisy-first"``
        or ``"structure-first"``.
    n_points, alpha, cells, depth, branching, prune
        Parameters of methods; see :class:`tallytree.spatial.options.MethodOptions`.
    nonnegative, integers
        What is published. ``nonnegative=False, integers=False`` publishes the unbiased estimates.
    unit, contributions, entity
        ``unit``: the column that names the protected unit, of whose rows at most ``contributions`` are then counted. Without
        it, how many points one protected unit has at most, which is taken on trust. ``entity`` is what that unit is called
        in the privacy statement.
    insecure_seed
        For tests and experiments only: repeatable noise. The release is marked "not private".
    ledger, dataset
        Budget account that pays before any noise is drawn; see :func:`tallytree.release`.
    """
    budget = stated_budget(epsilon, rho, definition)
    options = MethodOptions(
        method=method,  # type: ignore[arg-type]
        n_points=n_points,
        alpha=None if alpha is None else exact(alpha, "alpha"),
        cells=cells,
        depth=depth,
        branching=branching,
        prune=prune,
    )
    line = method in LINES
    grid = read_grid(
        MapSource(
            points,
            counts,
            columns,
            box,
            outside,
            resolution,
            count,
            table,
            sql,
            contributions,
            entity,
            line,
            unit,
            where,
        )
    )
    return release_map(
        grid,
        budget,
        options,
        nonnegative=nonnegative,
        integers=integers,
        insecure_seed=insecure_seed,
        payment=payment_from(ledger, dataset),
    )


def release_map(
    grid: ConfidentialGrid,
    budget: Budget,
    options: MethodOptions,
    *,
    nonnegative: bool = True,
    integers: bool = True,
    insecure_seed: int | None = None,
    payment: Payment | None = None,
) -> SpatialRelease:
    """Pay for a map, measure it, estimate its boxes and put the release together.

    The whole budget is paid before the first question is asked; which questions follow is only known from the answers.
    """
    published = {"nonnegative": bool(nonnegative), "integers": bool(integers)}
    manifest = planned_manifest(grid, budget, options, published=published, secure=insecure_seed is None)
    with paid_noise(payment, manifest, insecure_seed) as paid:
        noisy = measure_map(grid, budget, options, paid.stream)
        manifest = with_measurements(paid.manifest, noisy)
        layout = layout_table(noisy.tree, noisy.leaves, grid.columns)
        paid.measured(manifest, {"noisy.parquet": noisy_table(noisy.measurements), "boxes.parquet": layout})
    return map_from_noisy(noisy.tree, noisy.leaves, noisy.measurements, manifest)


def map_from_noisy(
    tree: BoxTree, leaves: BoolArray, measurements: tuple[Measurement, ...], manifest: Manifest
) -> SpatialRelease:
    """The map that follows from raw measurements: post-processing only."""
    values, variances = combine_measurements(tree.n_nodes, list(measurements))
    prune = manifest["mechanism"]["prune"]
    estimates = estimate_map(tree, values, variances, leaves=leaves, prune=prune, **manifest["published"])
    return SpatialRelease(estimates, manifest, measurements)


def estimate_again(folder: Folder) -> SpatialRelease:
    """A map estimated again from the raw measurements of a folder."""
    if not folder.has("noisy.parquet"):
        raise RequestError(NO_MEASUREMENTS)
    manifest = folder.manifest
    boxes = folder.table("boxes.parquet" if folder.has("boxes.parquet") else "counts.parquet")
    tree, leaves = tree_from_table(boxes, manifest["columns"], tuple(manifest["resolution"]))
    noisy = measurements_from_table(folder.table("noisy.parquet"), noise_variances(manifest))
    return map_from_noisy(tree, leaves, noisy, manifest)
