"""What the page of a map shows, as JSON-ready facts, from a release alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallytree.boxes.release import SpatialRelease
from tallytree.errors import RequestError
from tallytree.kernels.trees.least_squares import variances_from_below
from tallytree.options.asking import PageOptions
from tallytree.releases.report.facts import USE, common_facts, named, steps_paid, too_fine
from tallytree.releases.report.html import page, plain_look, without_evaluation
from tallytree.releases.report.words import plural
from tallytree.shapes.outlines import read_polygons

# The page draws at most so many cells per side, and works standard errors out from at most so many
# boxes.
MOST_CELLS = 256
MOST_NODES = 150_000


def map_payload(release: SpatialRelease, look: PageOptions | None = None) -> dict[str, Any]:
    """The page of a map: its counts on a grid small enough to draw, and the boxes that standard
    errors come from.

    Of more than two columns the page shows the first two, over all of the others.
    """
    look = look or PageOptions()
    entities = plural(release.manifest)
    n_boxes, total = int(release.estimates.leaves.sum()), release.total()
    names = " and ".join(release.columns)
    drawn = (
        f"Colours show how many {entities} there are, from few to many, as the scale below the map "
        "says. Point at a place to "
        "read its number, or draw a box."
    )
    return {
        **common_facts(release.manifest, release.verify().checks),
        **named(look, release.manifest, f"Map of {entities} by {names}", drawn),
        **_outlines(release, look),
        "lead": f"How many {entities} there are in any box of {names}. Colours are on a "
        "logarithmic scale.",
        "entities": entities,
        "facts": [
            [f"{entities} in all", f"{total.estimate:,.6g} ± {total.std_error:,.3g}"],
            ["mechanism", release.mechanism],
            ["boxes counted", f"{n_boxes:,}"],
            _cells_in_words(release),
            *([["coordinates", release.manifest["crs"]]] if "crs" in release.manifest else []),
        ],
        "columns": list(release.columns),
        "box": [list(side) for side in release.box],
        "fine": list(release.shape),
        "nonnegative": bool(release.manifest["published"]["nonnegative"]),
        **_grid(release),
        "tree": _tree(release),
        **steps_paid(release.manifest),
        "note": release.note,
        "use": [
            *USE[:2],
            "A box is the sum of its parts, but its error is smaller than the sum of theirs.",
            USE[3],
            *too_fine(release.density),
        ],
    }


def _outlines(release: SpatialRelease, look: PageOptions) -> dict[str, Any]:
    """Outlines to draw over the map, in parts of 10,000 of its width and height; those that lie
    outside are left out.
    """
    if look.shapes is None:
        return {}
    if len(release.columns) != 2 or release.axes is not None:
        raise RequestError("Outlines go with a map of two columns whose box is cut evenly.")
    low, high = np.array(release.box).T
    rings: list[list[int]] = []
    for ring in (ring for polygon in read_polygons(look.shapes) for ring in polygon):
        if np.any(ring.max(axis=0) < low) or np.any(ring.min(axis=0) > high):
            continue
        places = np.rint((ring - low) / (high - low) * 10_000).astype(np.int64)
        places[:, 1] = 10_000 - places[:, 1]
        kept = places[np.append(True, np.any(np.diff(places, axis=0) != 0, axis=1))]
        rings.append(kept.ravel().tolist())
    if not rings:
        raise RequestError(
            f"No outline of {look.shapes} lies in the box of the map; are both in the same "
            "coordinates?"
        )
    return {"outlines": rings}


def _cells_in_words(release: SpatialRelease) -> list[str]:
    """The width of a cell, or where edges were stated, how many cells there are."""
    if release.axes is not None:
        return ["cells", " x ".join(f"{cells:,}" for cells in release.shape)]
    widths = [(high - low) / cells for (low, high), cells in zip(release.box, release.shape)]
    return ["finest cell", " x ".join(f"{width:.3g}" for width in widths)]


def _grid(release: SpatialRelease) -> dict[str, Any]:
    """Published counts on the grid that is drawn: first column to the right, second upwards."""
    shape = release.shape
    cells = [min(n, MOST_CELLS) for n in shape[:2]] + [1] * (len(shape) - 2)
    counts = release.grid(cells).reshape(cells[0], -1)
    facts = {"cells": list(counts.shape), "counts": np.round(counts, 6).ravel().tolist()}
    if release.axes is None:
        return facts
    drawn = range(min(2, len(shape)))
    lines = [
        release.frame.lines(axis, np.linspace(0.0, shape[axis], cells[axis] + 1)) for axis in drawn
    ]
    names = [
        release.axes[axis].categories if cells[axis] == shape[axis] else None for axis in drawn
    ]
    return facts | {
        "lines": [line.tolist() for line in lines],
        "names": [name and list(name) for name in names],
    }


def _tree(release: SpatialRelease) -> dict[str, Any]:
    """The boxes down to those that tile the map, or as many depths as fit, each with the variance
    of its own count.

    Where the tree is cut off, a box has the variance of all counts at and below it, which is what a
    query that takes the whole box sees; one that cuts it sees an approximation, as ``coarse`` says.
    """
    estimates, tree = release.estimates, release.estimates.tree
    deepest = max(0, int(np.searchsorted(tree.layer_starts, MOST_NODES, side="right")) - 2)
    stops = estimates.leaves | (tree.depth == deepest)
    kept = ~tree.below(stops)
    stops = stops[kept] | tree.is_leaf[kept]
    own = np.where(
        stops,
        variances_from_below(estimates.variances, tree.child_starts)[kept],
        estimates.variances[kept],
    )
    distinct, place = np.unique(np.where(np.isfinite(own), own, -1.0), return_inverse=True)
    return {
        "low": tree.low[kept].ravel().tolist(),
        "high": tree.high[kept].ravel().tolist(),
        "children": np.where(stops, 0, np.diff(tree.child_starts)[kept]).tolist(),
        "variances": distinct.tolist(),
        "own": place.tolist(),
        "values": np.where(stops, estimates.published[kept], 0).tolist(),
        "clustering": release.surface.clustering,
        "alongBorder": release.surface.along_border,
        "coarse": bool(np.any(kept & (tree.depth == deepest) & ~estimates.leaves & ~tree.is_leaf)),
    }


def map_page(
    release: SpatialRelease, evaluation: object = None, look: PageOptions | None = None
) -> str:
    """The page of a map."""
    return page(
        map_payload(
            without_evaluation(evaluation, release),
            plain_look(look, "group_name", "level_names"),
        ),
        kind="map",
    )
