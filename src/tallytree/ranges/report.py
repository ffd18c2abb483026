"""What the page of a histogram shows, as JSON-ready facts, from a release alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tallytree.options.asking import PageOptions
from tallytree.ranges.release import RangeHistogram
from tallytree.releases.report.facts import (
    USE,
    common_facts,
    interleave,
    levels_paid,
    named,
    steps_paid,
    too_fine,
)
from tallytree.releases.report.html import page, plain_look, without_evaluation
from tallytree.releases.report.words import plural

# The standard errors of all ranges are n (n + 1) / 2 numbers; above this many bins a page asks the
# reader to use `query`.
_MOST_BINS_WITH_ERRORS = 128


def histogram_payload(histogram: RangeHistogram, look: PageOptions | None = None) -> dict[str, Any]:
    """The page of a range histogram: one region, its bins as sizes."""
    look = look or PageOptions()
    names, edges = histogram.bins.categories, [f"{edge:g}" for edge in histogram.bins.edges]
    labels = (
        list(names) if names is not None else [f"{low} to {high}" for low, high in pairwise(edges)]
    )
    answers = histogram.bin_answers()
    bounds = [
        [i, max(0, low), max(0, high)]
        for i, (low, high) in enumerate(zip(answers.low.tolist(), answers.high.tolist()))
    ]
    total = histogram.total()
    regions: dict[str, Any] = {
        "labels": ["all"],
        "parent": [-1],
        "runs": [
            interleave(np.flatnonzero(histogram.counts), histogram.counts[histogram.counts != 0])
        ],
        "bounds": [bounds],
    }
    if names is None and len(labels) <= _MOST_BINS_WITH_ERRORS:
        regions["errors"] = _range_errors(histogram)
    entities = plural(histogram.manifest)
    drawn = f"A bar shows how many {entities} fall into it."
    return {
        **common_facts(histogram.manifest, histogram.verify().checks),
        **named(
            look, histogram.manifest, f"Histogram of {len(labels):,} bins", drawn, whiskers=True
        ),
        "lead": f"How many {entities} fall into each of {len(labels):,} bins"
        + ("." if names is not None else f" from {edges[0]} to {edges[-1]}."),
        "words": {
            "groups": entities,
            "size": "bin",
            "largest": "",
            "bin": labels,
            "edges": None if names is not None else edges,
            "axis": "value",
        },
        "facts": [
            [f"{entities} in all", f"{total.estimate:,.6g}"],
            ["standard error of that", f"{total.std_error:,.3g}"],
            ["bins", f"{len(labels):,}"],
            ["fullest bin", labels[int(np.argmax(histogram.counts))]],
            # Which bin holds the median is asked only where noise left anything to count.
            *(
                [["median", f"{histogram.quantile(0.5).value:.4g}"]]
                if names is None and np.cumsum(histogram.counts).max() > 0
                else []
            ),
        ],
        "regions": regions,
        **(
            steps_paid(histogram.manifest)
            if histogram.plan is None
            else {"budget": levels_paid(histogram.manifest)}
        ),
        "use": [
            *USE[:1],
            "A range is the sum of its bins, but its error is smaller than the sum of theirs.",
            *too_fine(histogram.density),
        ],
    }


def _range_errors(histogram: RangeHistogram) -> list[list[float]]:
    """Standard error of every range, by its first bin and its length."""
    edges, n_bins = histogram.bins.edges, histogram.bins.n_bins
    errors = [
        histogram.ranges([(edges[first], high) for high in edges[first + 1 :]]).std_error
        for first in range(n_bins)
    ]
    return [row.round(3).tolist() for row in errors]


def histogram_page(
    histogram: RangeHistogram, evaluation: object = None, look: PageOptions | None = None
) -> str:
    """The page of a range histogram."""
    return page(
        histogram_payload(
            without_evaluation(evaluation, histogram),
            plain_look(look, "group_name", "level_names", "shapes"),
        )
    )
