"""A table as a picture: a bar for each value of an attribute."""

from __future__ import annotations

from tallytree.errors import RequestError
from tallytree.model.notebook import Picture
from tallytree.releases.report.bars import Bars, bars_svg
from tallytree.tables.release import TableRelease


def plot_table(release: TableRelease, region: str | None = None, by: str | None = None) -> Picture:
    """The values of one attribute of a region, with intervals; of the first one and the root where
    none is named.
    """
    names, path = release.attributes.names, release.root if region is None else region
    if not names:
        raise RequestError("A table without attributes has nothing to draw; see its table().")
    name = names[0] if by is None else by
    values = release.attributes.values_of(name)
    found = release.answers_of([path], [{name: value} for value in values])
    title = f"{path} by {name}"
    low, high = found.low.tolist(), found.high.tolist()
    return Picture(bars_svg(Bars(title, name, values, found.estimate.tolist(), low, high)))
