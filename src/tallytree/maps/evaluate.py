"""Errors of a map against the true points: for the owner of the data, and as confidential as the
data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.boxes.answers import boxes_in_cells
from tallytree.boxes.release import SpatialRelease
from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.releases.query_evaluation import QueryEvaluation, evaluate_boxes


def evaluate_map(
    release: SpatialRelease,
    truth: ConfidentialGrid,
    *,
    ranges: Sequence[Sequence[Sequence[object]]] | None = None,
    threshold: float | None = None,
) -> QueryEvaluation:
    """Compare a map with the exact counts of boxes of three sizes, of cells and of everything, or
    of given boxes.

    Given boxes begin and end on lines of the fine grid: elsewhere the data, counted on that grid,
    have no exact count. The result is NOT private.
    """
    data = truth.public
    if (data.shape, data.box) != (release.shape, release.box):
        raise RequestError(
            f"The map has {release.shape} cells in {release.box}, the data {data.shape} in "
            f"{data.box}; they must be equal."
        )

    def answer(low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        ends = low.astype(np.float64), high.astype(np.float64)
        noise, _, _, unknown = release.surface.uncertainty(*ends)
        return release.surface.answer(*ends), np.sqrt(noise + unknown)

    asked = None
    if ranges:
        low, high = boxes_in_cells(ranges, release.frame)
        if max(np.abs(low - np.rint(low)).max(), np.abs(high - np.rint(high)).max()) > 1e-6:
            raise RequestError(
                "Boxes to compare begin and end on lines of the map's fine grid; the data are "
                "counted there."
            )
        asked = np.rint(low).astype(np.int64), np.rint(high).astype(np.int64)
    return evaluate_boxes(truth.counts, answer, noun="boxes", asked=asked, threshold=threshold)
