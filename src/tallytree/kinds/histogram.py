"""Histograms of one column that answer any range."""

from __future__ import annotations

from tallytree.exporting.sheets import histogram_sheet
from tallytree.kinds.kind import Kind, No
from tallytree.publish.histogram import estimate_histogram
from tallytree.released.histogram.release import load_histogram
from tallytree.released.privacy_checks import check_privacy
from tallytree.report.html import histogram_page

KIND = Kind(
    name="histogram",
    title="a histogram",
    command="histogram",
    function="tallytree.histogram",
    load=load_histogram,
    check_privacy=check_privacy,
    page=histogram_page,
    estimate=estimate_histogram,
    evaluate=No("its standard errors are exact and do not need the truth; errors against the truth are to come."),
    plan=No("its standard errors do not depend on the data; the reason of strategy auto states them."),
    intervals="exact, with every answer",
    spark=No("aggregate on the cluster and hand over counts per bin."),
    sheet=histogram_sheet,
)
