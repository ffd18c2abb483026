"""Streams: how many came so far, step after step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.ingest.binning import check_counts
from tallytree.releases.kind import Kind, No
from tallytree.releases.metrics import query_errors
from tallytree.releases.query_evaluation import QueryEvaluation
from tallytree.streams.check import check_stream_privacy
from tallytree.streams.picture import plot_stream
from tallytree.streams.publish import estimate_again
from tallytree.streams.release import StreamRelease, load_stream
from tallytree.streams.report import stream_page
from tallytree.streams.sheet import stream_sheet


def evaluate(
    release: StreamRelease,
    truth: Any,
    *,
    ranges: Sequence[tuple[object, object]] | None = None,
    threshold: float | None = None,
) -> QueryEvaluation:
    """Errors of the counts so far, and of given ranges of steps, against the true counts per step."""
    if isinstance(truth, str):
        raise RequestError("Counts per step come from Python: tallytree.evaluate(release, counts).")
    counts = check_counts(truth)
    if counts.shape != (release.n_steps,):
        raise RequestError(
            f"The stream has {release.n_steps} steps; give one count for each, not {counts.shape}."
        )
    sums = np.concatenate([[0], np.cumsum(counts)])
    found = release.step_answers()
    spans = np.arange(1, release.n_steps + 1)
    classes = [("counts so far", found, np.zeros_like(spans), spans)]
    if ranges:
        pairs = np.array([release.span(*pair) for pair in ranges])
        classes = [("given ranges", release.ranges(ranges), *pairs.T)]
    return QueryEvaluation(
        tuple(
            query_errors(
                name,
                answers.estimate,
                sums[last] - sums[first],
                total=float(sums[-1]),
                threshold=threshold,
                std_errors=answers.std_error,
            )
            for name, answers, first, last in classes
        )
    )


KIND = Kind(
    name="stream",
    title="a stream",
    command="stream",
    function="tallytree.stream, tallytree.StreamCounter",
    load=load_stream,
    check_privacy=check_stream_privacy,
    page=stream_page,
    plot=plot_stream,
    estimate=estimate_again,
    evaluate=evaluate,
    evaluates_with=frozenset({"ranges", "threshold"}),
    plan=No(
        "its standard errors do not depend on the data; a trial run with an insecure seed on "
        "made-up counts shows them."
    ),
    intervals="exact, with every answer",
    spark=No("aggregate on the cluster and hand over counts per step."),
    sheet=stream_sheet,
)
