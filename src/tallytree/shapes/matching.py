"""Which outline belongs to which region: by the region's own label, on the level where most of them
are found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.options.exporting import ShapesOptions
from tallytree.shapes.outlines import Outlines, Polygon, layers_of, read_outlines


@dataclass(frozen=True, eq=False)
class ShapedLevel:
    """The regions of a level that have an outline.

    Attributes
    ----------
    level
        Number of the level.
    regions
        Their numbers, rising.
    polygons
        The outline of each.
    without
        How many regions of the level have none.
    names
        What people call each region, by the outlines; its label where they do not say.
    """

    level: int
    regions: IntArray
    polygons: tuple[tuple[Polygon, ...], ...]
    without: int
    names: tuple[str, ...] = ()


def read_shaped_level(shapes: ShapesOptions, hierarchy: Hierarchy) -> ShapedLevel:
    """The regions of a level with the outlines of a file; of TopoJSON with several layers those of
    the layer where the largest share of a level is found.
    """
    path, layer = str(shapes.shapes), shapes.shapes_layer
    several = layers_of(path) if layer is None else ()
    if len(several) < 2:
        found = read_outlines(path, shapes.shapes_id, layer=layer)
        return match_outlines(found, hierarchy, shapes.shapes_level)
    shaped, refused = [], []
    for one in several:
        try:
            found = read_outlines(path, shapes.shapes_id, layer=one)
            shaped.append(match_outlines(found, hierarchy, shapes.shapes_level))
        except (InputError, RequestError) as error:
            refused.append(error)
    if not shaped:
        raise RequestError(
            f"No layer of {path} fits; its layers are {', '.join(several)}, one of which "
            f"--shapes-layer names. The first: {refused[0]}"
        )
    return max(
        shaped, key=lambda one: (1 - one.without / hierarchy.level_size(one.level), one.level)
    )


def match_outlines(
    outlines: Outlines, hierarchy: Hierarchy, level: str | None = None
) -> ShapedLevel:
    """The regions of a level with their outlines; of the level with the largest share of matches
    where none is named.
    """
    if level is not None and level not in hierarchy.level_names:
        raise RequestError(
            f"There is no level {level!r}. Known: {', '.join(hierarchy.level_names)}."
        )
    numbers = range(hierarchy.n_levels) if level is None else [hierarchy.level_names.index(level)]
    found = {}
    for number in numbers:
        here = hierarchy.level_slice(number)
        found[number] = [
            region
            for region in range(here.start, here.stop)
            if hierarchy.labels[region] in outlines.polygons
        ]
    best = max(
        found, key=lambda number: (len(found[number]) / hierarchy.level_size(number), number)
    )
    if not found[best]:
        own = hierarchy.labels[hierarchy.level_slice(hierarchy.n_levels - 1)][:3]
        raise RequestError(
            "No outline is called like a region. Outlines: "
            f"{', '.join(list(outlines.polygons)[:3])}, …; regions: "
            f"{', '.join(own)}, …. Name the property that holds the regions' labels with "
            "--shapes-id."
        )
    polygons = tuple(outlines.polygons[hierarchy.labels[region]] for region in found[best])
    without = hierarchy.level_size(best) - len(polygons)
    labels = [hierarchy.labels[region] for region in found[best]]
    names = tuple(outlines.names.get(label, label) for label in labels)
    return ShapedLevel(best, np.array(found[best], dtype=np.int64), polygons, without, names)
