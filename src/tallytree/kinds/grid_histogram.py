"""Histograms of several columns that answer any box."""

from __future__ import annotations

from tallytree.exporting.sheets import grid_histogram_sheet
from tallytree.kinds.kind import Kind, No
from tallytree.publish.grid_histogram import estimate_grid_histogram
from tallytree.released.grid_histogram import load_grid_histogram
from tallytree.released.privacy_checks import check_privacy
from tallytree.report.html import grid_histogram_page

KIND = Kind(
    name="grid-histogram",
    title="a histogram in several dimensions",
    command="spatial",
    function="tallytree.grid_histogram",
    load=load_grid_histogram,
    check_privacy=check_privacy,
    page=grid_histogram_page,
    estimate=estimate_grid_histogram,
    evaluate=No("release a map instead, which can be compared with its points."),
    plan=No("its standard errors do not depend on the data."),
    intervals="exact, with every answer",
    spark=No("aggregate on the cluster and hand over counts per cell."),
    sheet=grid_histogram_sheet,
)
