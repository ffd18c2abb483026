"""Maps: counts of boxes that answer how many points lie in any box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallytree.boxes.publish import estimate_again
from tallytree.boxes.release import SpatialRelease, load_map
from tallytree.errors import RequestError
from tallytree.ingest.grids import read_grid
from tallytree.maps.accuracy import plan_map
from tallytree.maps.check import check_map_privacy
from tallytree.maps.evaluate import evaluate_map
from tallytree.maps.picture import plot_map
from tallytree.maps.report import map_page
from tallytree.maps.sheet import box_features, map_sheet
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.model.part import part_of
from tallytree.options.exporting import ShapesOptions
from tallytree.options.maps import GridOptions
from tallytree.options.text import value_range
from tallytree.releases.export.geographic import Features
from tallytree.releases.export.sheet import Sheet
from tallytree.releases.kind import Kind
from tallytree.releases.query_evaluation import QueryEvaluation


def evaluate(
    release: SpatialRelease,
    truth: Any,
    *,
    ranges: Sequence[Any] | None = None,
    threshold: float | None = None,
    **source: Any,
) -> QueryEvaluation:
    """Errors of boxes of three sizes, or of given ones, against the true points."""
    boxes = [
        [value_range(side) for side in box.split(",")] if isinstance(box, str) else box
        for box in ranges or ()
    ]
    return evaluate_map(
        release, grid_like(release, truth, **source), ranges=boxes, threshold=threshold
    )


def grid_like(
    release: SpatialRelease, truth: Any, *, counts: bool = False, **source: Any
) -> ConfidentialGrid:
    """The data counted on the grid of a map."""
    columns = list(release.columns)
    even: dict[str, Any] = {"box": release.box, "resolution": release.shape}
    options = GridOptions(
        columns=columns, **(even if release.axes is None else {"edges": release.axes}), **source
    )
    points, given = (None, truth) if counts else (truth, None)
    return read_grid(points, given, options, part=part_of(release.manifest))


def features(release: SpatialRelease, sheet: Sheet, outlines: ShapesOptions) -> Features:
    """The boxes that tile the map, which are shapes themselves."""
    if outlines.shapes is not None:
        raise RequestError("A map brings its own boxes; outlines (--shapes) go with group sizes.")
    return box_features(release, sheet)


KIND = Kind(
    name="map",
    title="a map",
    command="spatial",
    function="tallytree.spatial",
    load=load_map,
    check_privacy=check_map_privacy,
    page=map_page,
    plot=plot_map,
    estimate=estimate_again,
    evaluate=evaluate,
    evaluates_with=frozenset(
        {"outside", "count", "crs", "table", "sql", "encoding", "counts", "ranges", "threshold"}
    ),
    plan=plan_map,
    intervals="exact where no box is cut (flat, hierarchical, quadtree, quad-opt, kd-tree, "
    "kd-hybrid, dawa, privtree, ahp), "
    "else approximate",
    spark="counts per cell of the fine grid, made on the executors",
    sheet=map_sheet,
    features=features,
)
