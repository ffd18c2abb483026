"""A table of values as a picture: bars of its distribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.group_sizes.values.release import ValuesRelease
from tallytree.group_sizes.values.report import bar_edges
from tallytree.model.notebook import Picture
from tallytree.releases.report.bars import Bars, bars_svg


def plot_values(
    release: ValuesRelease, *, region: str | None = None, where: Sequence[str] = ()
) -> Picture:
    """How many rows of a region have a value in each of some classes."""
    found, edges = release.region(region or release.root, where), bar_edges(release)
    place = np.searchsorted(edges, found.steps, side="right") - 1
    counts = np.bincount(place, found.count, len(edges) - 1).astype(np.int64)
    names = [f"{number:g}" for number in np.asarray(release.scale.values(edges[:-1]), float)]
    title = f"Rows of {found.path} by {release.scale.name}"
    return Picture(
        bars_svg(Bars(title, f"{release.scale.name}, from", names, counts.tolist(), [], []))
    )
