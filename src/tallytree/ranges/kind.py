"""Histograms of one column that answer any range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallytree.errors import RequestError
from tallytree.ingest.binning import check_counts, count_values
from tallytree.ingest.values import read_values
from tallytree.model.arrays import IntArray
from tallytree.model.part import part_of
from tallytree.options.choices import Outside
from tallytree.options.text import value_range
from tallytree.ranges.check import check_histogram_privacy
from tallytree.ranges.evaluate import evaluate_histogram
from tallytree.ranges.picture import plot_histogram
from tallytree.ranges.publish import estimate_histogram
from tallytree.ranges.release import RangeHistogram, load_histogram
from tallytree.ranges.report import histogram_page
from tallytree.ranges.sheet import histogram_sheet
from tallytree.releases.kind import Kind, No
from tallytree.releases.query_evaluation import QueryEvaluation


def evaluate(
    release: RangeHistogram,
    truth: Any,
    *,
    ranges: Sequence[Any] | None = None,
    threshold: float | None = None,
    **source: Any,
) -> QueryEvaluation:
    """Errors of ranges by length, or of given ones, against the true values or counts."""
    asked = [
        release.as_asked(value_range(pair)) if isinstance(pair, str) else pair
        for pair in ranges or ()
    ]
    return evaluate_histogram(
        release, counts_like(release, truth, **source), ranges=asked, threshold=threshold
    )


def counts_like(
    release: RangeHistogram,
    truth: Any,
    *,
    counts: bool = False,
    column: str | None = None,
    outside: Outside = "error",
    **source: Any,
) -> IntArray:
    """The data counted in the bins of a histogram."""
    bins, part = release.bins, part_of(release.manifest)
    if counts:
        return check_counts(truth)
    if column is None and (part is not None or source or isinstance(truth, str)):
        raise RequestError(
            "Values of a table to compare with need their column (column=, --column)."
        )
    if column is None:
        return count_values(truth, bins, outside=outside)
    named: dict[str, Any] = (
        {"categories": bins.categories} if bins.categories is not None else {"edges": bins.edges}
    )
    return read_values(truth, column, where=part, **named, **source).settle(outside)


KIND = Kind(
    name="histogram",
    title="a histogram",
    command="histogram",
    function="tallytree.histogram",
    load=load_histogram,
    check_privacy=check_histogram_privacy,
    page=histogram_page,
    plot=plot_histogram,
    estimate=estimate_histogram,
    evaluate=evaluate,
    evaluates_with=frozenset(
        {"column", "outside", "count", "table", "sql", "encoding", "counts", "ranges", "threshold"}
    ),
    plan=No(
        "the standard errors of strategies do not depend on the data; the reason of mechanism auto "
        "states them."
    ),
    intervals="exact, with every answer; approximate for adaptive",
    spark="counts per bin, made on the executors",
    sheet=histogram_sheet,
)
