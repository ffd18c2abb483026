"""Histograms of several columns that answer any box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallytree.errors import RequestError
from tallytree.ingest.binning import check_counts
from tallytree.kinds.kind import Kind, No
from tallytree.publish.grid_histogram import estimate_grid_histogram
from tallytree.released.grid_histogram import GridHistogram, load_grid_histogram
from tallytree.released.histogram.evaluation import evaluate_grid_histogram
from tallytree.released.privacy_checks import check_privacy
from tallytree.released.query_evaluation import QueryEvaluation
from tallytree.report.html import grid_histogram_page


def evaluate(
    release: GridHistogram, truth: Any, *, ranges: Sequence[Any] | None = None, threshold: float | None = None
) -> QueryEvaluation:
    """Errors of boxes of three sizes, or of given ones (pairs of corners), against the exact counts per cell."""
    if isinstance(truth, str):
        raise RequestError(
            "Counts per cell come from Python: tallytree.evaluate(release, counts). Of a table release a map."
        )
    return evaluate_grid_histogram(release, check_counts(truth), ranges=ranges, threshold=threshold)


KIND = Kind(
    name="grid-histogram",
    title="a histogram in several dimensions",
    command="spatial",
    function="tallytree.grid_histogram",
    load=load_grid_histogram,
    check_privacy=check_privacy,
    page=grid_histogram_page,
    estimate=estimate_grid_histogram,
    evaluate=evaluate,
    evaluates_with=frozenset({"ranges", "threshold"}),
    plan=No("its standard errors do not depend on the data."),
    intervals="exact, with every answer",
    spark=No("aggregate on the cluster and hand over counts per cell."),
)
