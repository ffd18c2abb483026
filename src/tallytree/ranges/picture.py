"""A histogram as a picture: bars."""

from __future__ import annotations

from tallytree.model.notebook import Picture
from tallytree.ranges.release import RangeHistogram
from tallytree.releases.report.bars import Bars, bars_svg


def plot_histogram(histogram: RangeHistogram) -> Picture:
    """The bins of a histogram with intervals."""
    bins, answers = histogram.bins, histogram.bin_answers()
    names = (
        list(bins.categories)
        if bins.categories is not None
        else [f"{edge:g}" for edge in bins.edges[:-1]]
    )
    counts = histogram.counts.tolist()
    return Picture(
        bars_svg(
            Bars(
                "Counts per bin",
                "lower edge",
                names,
                counts,
                answers.low.tolist(),
                answers.high.tolist(),
            )
        )
    )
