"""Degree sequences: sorted counts without names."""

from __future__ import annotations

from tallytree.exporting.sheets import degrees_sheet
from tallytree.kinds.kind import Kind, No
from tallytree.publish.degrees import estimate_degrees
from tallytree.released.degrees import load_degrees
from tallytree.released.privacy_checks import check_privacy
from tallytree.report.html import degrees_page

KIND = Kind(
    name="degrees",
    title="a degree sequence",
    command="degrees",
    function="tallytree.degrees",
    load=load_degrees,
    check_privacy=check_privacy,
    page=degrees_page,
    estimate=estimate_degrees,
    evaluate=No("errors against the truth are to come."),
    plan=No("its error depends on how many degrees are alike, which is not public."),
    intervals=No("the isotonic fit has no simple error law."),
    spark=No("aggregate on the cluster and hand over the counts."),
    sheet=degrees_sheet,
)
