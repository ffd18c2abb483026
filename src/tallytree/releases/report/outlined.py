"""Outlines of regions on a page."""

from __future__ import annotations

from typing import Any

from tallytree.errors import RequestError
from tallytree.model.hierarchy import Hierarchy
from tallytree.options.asking import PageOptions
from tallytree.shapes.drawing import draw_outlines
from tallytree.shapes.matching import read_shaped_level


def with_names(labels: list[str], outlines: dict[str, Any]) -> list[str]:
    """Labels, with the names that outlines give to codes before them: ``Mohave (04015)``."""
    if not outlines:
        return labels
    drawn = outlines["outlines"]
    for region, name in zip(drawn["members"], drawn.pop("names")):
        labels[region] = labels[region] if name == labels[region] else f"{name} ({labels[region]})"
    return labels


def outlines_of(hierarchy: Hierarchy, look: PageOptions, n_regions: int) -> dict[str, Any]:
    """The outlines of one level, on a grid of whole numbers, where a file of them was named."""
    if look.shapes is None:
        return {}
    found = read_shaped_level(look, hierarchy)
    if found.regions[-1] >= n_regions:
        raise RequestError(
            "The level of the outlines does not fit into this page; name outlines of a level above "
            "it."
        )
    return {
        "outlines": {
            **draw_outlines(found).to_json(),
            "members": found.regions.tolist(),
            "names": list(found.names),
        }
    }
