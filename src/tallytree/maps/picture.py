"""A map as a picture: its colours, or bars."""

from __future__ import annotations

import numpy as np

from tallytree.boxes.picture import encode_png, map_pixels
from tallytree.boxes.release import SpatialRelease
from tallytree.errors import RequestError
from tallytree.model.notebook import Picture
from tallytree.releases.report.bars import Bars, bars_svg


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
