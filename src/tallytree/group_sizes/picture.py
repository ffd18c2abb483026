"""Group sizes as a picture: bars."""

from __future__ import annotations

from collections.abc import Sequence

from tallytree.group_sizes.release.release import Release
from tallytree.model.notebook import Picture
from tallytree.releases.report.bars import Bars, bars_svg


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
