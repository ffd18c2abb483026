"""Streams: how many came so far, step after step."""

from __future__ import annotations

from tallytree.exporting.sheets import stream_sheet
from tallytree.kinds.kind import Kind, No
from tallytree.publish.stream import estimate_again
from tallytree.released.privacy_checks import check_stream_privacy
from tallytree.released.stream.release import load_stream
from tallytree.report.html import stream_page

KIND = Kind(
    name="stream",
    title="a stream",
    command="stream",
    function="tallytree.stream, tallytree.StreamCounter",
    load=load_stream,
    check_privacy=check_stream_privacy,
    page=stream_page,
    estimate=estimate_again,
    evaluate=No("its standard errors are exact and do not need the truth."),
    plan=No(
        "its standard errors do not depend on the data; a trial run with an insecure seed on made-up counts shows them."
    ),
    intervals="exact, with every answer",
    spark=No("aggregate on the cluster and hand over counts per step."),
    sheet=stream_sheet,
)
