"""Releases as pictures, a function per kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.boxes.picture import encode_png, map_pixels
from tallytree.boxes.release import SpatialRelease
from tallytree.degree_sequences.release import DegreeSequence
from tallytree.errors import RequestError
from tallytree.group_sizes.release.release import Release
from tallytree.model.notebook import Picture
from tallytree.ranges.release import RangeHistogram
from tallytree.releases.report.bars import Bars, bars_svg
from tallytree.streams.release import StreamRelease


def plot_group_sizes(
    release: Release, *, region: str | None = None, where: Sequence[str] = ()
) -> Picture:
    """How many groups of each size a region has; with intervals where the release has them."""
    path = release.root if region is None else region
    found = release.region(path, where)
    low: list[float] = []
    high: list[float] = []
    if release.intervals is not None:
        row = release.row(path, where)
        own = slice(*release.all_counts.offsets[row : row + 2].tolist())
        low, high = release.intervals.low[own].tolist(), release.intervals.high[own].tolist()
    axis = "size" if release.size_names is None else "class of sizes"
    names = [str(name) for name in found.names()]
    return Picture(
        bars_svg(
            Bars(f"Groups of {found.path} by size", axis, names, found.count.tolist(), low, high)
        )
    )


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


def plot_degrees(sequence: DegreeSequence) -> Picture:
    """How many nodes have each degree."""
    degree, count = np.unique(sequence.degrees, return_counts=True)
    return Picture(
        bars_svg(
            Bars("Nodes by degree", "degree", [str(one) for one in degree.tolist()], count.tolist())
        )
    )


def plot_stream(release: StreamRelease) -> Picture:
    """Counts so far after each step, with intervals."""
    answers = release.step_answers()
    names = [str(release.steps.name(step)) for step in range(release.n_steps)]
    ends = answers.low.tolist(), answers.high.tolist()
    return Picture(bars_svg(Bars("Counts so far", "step", names, release.counts.tolist(), *ends)))


def plot_map(release: SpatialRelease) -> Picture:
    """A map as a picture; a single column as bars."""
    if len(release.columns) == 2:
        return Picture(encode_png(map_pixels(release.surface.density)))
    if len(release.columns) > 2:
        raise RequestError("A picture shows one or two columns; take range() of the others first.")
    cells = min(release.shape[0], 60)
    counts, ends = release.grid(cells), np.linspace(0.0, release.shape[0], cells + 1)
    names = [f"{edge:.4g}" for edge in release.frame.lines(0, ends)[:-1]]
    return Picture(bars_svg(Bars("Counts", release.columns[0], names, counts.tolist())))
