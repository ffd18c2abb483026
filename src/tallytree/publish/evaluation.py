"""Errors of any release against the truth: the one function for the owner of the data."""

from __future__ import annotations

from typing import Any, overload

from tallytree.errors import RequestError
from tallytree.ingest.grids import read_grid
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.options.choices import Outside
from tallytree.options.maps import GridOptions
from tallytree.release.evaluation import Evaluation
from tallytree.release.evaluation import evaluate as evaluate_group_sizes
from tallytree.release.release import Release
from tallytree.release.spatial import SpatialRelease
from tallytree.release.spatial_evaluation import MapEvaluation, evaluate_map


@overload
def evaluate(release: Release, truth: ConfidentialCounts) -> Evaluation: ...
@overload
def evaluate(
    release: SpatialRelease,
    truth: Any,
    *,
    outside: Outside = "error",
    count: str | None = None,
    table: str | None = None,
    sql: str | None = None,
    counts: bool = False,
) -> MapEvaluation: ...
def evaluate(release: Release | SpatialRelease, truth: Any, **source: Any) -> Evaluation | MapEvaluation:
    """Compare a release with the exact data. The result is NOT private.

    Parameters
    ----------
    release
        Group sizes, or a map.
    truth
        For group sizes what :func:`tallytree.read` gave; for a map its points, in any form that
        :func:`tallytree.spatial` takes.
    source
        For a map, as for :func:`tallytree.spatial`: ``outside``, ``count``, ``table``, ``sql``, or ``counts=True`` where
        ``truth`` is a ready grid. Columns, box and resolution are those of the map.
    """
    if isinstance(release, SpatialRelease):
        return evaluate_map(release, grid_like(release, truth, **source))
    if isinstance(release, Release) and isinstance(truth, ConfidentialCounts) and not source:
        return evaluate_group_sizes(release, truth)
    raise RequestError("Releases of group sizes are compared with what tallytree.read gave, maps with their points.")


def grid_like(release: SpatialRelease, truth: Any, *, counts: bool = False, **source: Any) -> ConfidentialGrid:
    """The data counted on the grid of a map."""
    known = {"outside", "count", "table", "sql"}
    if not source.keys() <= known:
        raise RequestError(f"To compare a map, say {', '.join(sorted(known))} or counts; got {', '.join(source)}.")
    columns = list(release.columns)
    options = GridOptions(columns=columns, box=release.box, resolution=release.shape, **source)
    points, grid = (None, truth) if counts else (truth, None)
    return read_grid(points, grid, options, one_column=len(columns) == 1)
