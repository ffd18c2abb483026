"""A table as a flat table whose columns say what they are, and by region as shapes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.attributes import names_beside
from tallytree.options.exporting import ShapesOptions
from tallytree.releases.export.geographic import Features
from tallytree.releases.export.placed import LEVEL, labels_by_level, level_names_of, placed
from tallytree.releases.export.sheet import Column, Sheet, about_release, with_errors
from tallytree.releases.region_tables import path_array
from tallytree.shapes.matching import read_shaped_level
from tallytree.tables.release import TableRelease

# A map has a column per combination of values; beyond this many it serves nobody.
MOST_COLUMNS = 200
ERRORS = ", of the noise alone"


def table_sheet(release: TableRelease) -> Sheet:
    """Level, one column per level with the labels as they were given, region (its path), attributes,
    count, standard error, flag.

    Every table by attributes is there; where one is not by an attribute, its value is ``all``.
    Counts of 0 are left out.
    """
    region, slot, count = counts_by_slot(release)
    rows, columns, codes = placed(release.lattice, region, slot, of="rows")
    rows["count"] = pa.array(count)
    columns.append(Column("count", "value", "rows of these values"))
    errors = {"std_error": slot_errors(release, region, slot)}
    rows, columns = with_errors(rows, columns, "count", errors, ERRORS)
    about = (*about_release(release), "Values that a region has no row for have a count of 0.")
    return Sheet(
        "counts",
        f"Table of {release.root}",
        about,
        pa.table(rows),
        tuple(columns),
        codes,
        True,
        (LEVEL,),
        _regions(release),
    )


def counts_by_slot(release: TableRelease) -> tuple[IntArray, IntArray, IntArray]:
    """Region, slot and count of every table by attributes, region by region."""
    lattice, tree = release.lattice, release.hierarchy
    found = []
    places = range(len(release.attributes.names))
    for n in range(len(places) + 1):
        for margin in combinations(places, n):
            slots = lattice.slots(margin)
            for level in range(tree.n_levels):
                cells = release.margin(level, margin)
                region, row = np.divmod(cells.cell, len(slots))
                found.append((region + tree.level_starts[level], slots[row], cells.n))
    region, slot, count = (np.concatenate(parts) for parts in zip(*found))
    order = np.lexsort((slot, region))
    return region[order], slot[order], count[order]


def slot_errors(release: TableRelease, region: IntArray, slot: IntArray) -> FloatArray:
    """Standard error of each count."""
    energies = np.ones((1, 1))
    for axis in release.plan.axes.axes:
        numbers = np.concatenate([axis.basis.sum(axis=0)[None], axis.basis])
        spread = np.stack(
            [np.bincount(axis.component, row**2) for row in numbers]
        )  # all values first, then each
        energies = (energies[:, None, :, None] * spread[None, :, None, :]).reshape(
            len(energies) * len(spread), -1
        )
    found = np.empty(len(region))
    for start in range(0, len(region), 1 << 18):
        here = slice(start, start + (1 << 18))
        products = release.plan.variance[region[here]] * energies[slot[here]]
        found[here] = np.sqrt(products.sum(axis=1))
    return found


def _regions(release: TableRelease) -> pa.Table:
    """One row per region: path, path of the region above, level, own label."""
    tree = release.hierarchy
    paths = path_array(tree).cast(pa.string())
    return pa.table(
        {
            "region": paths,
            "parent": paths.take(pa.array(tree.parent, mask=tree.parent < 0)),
            LEVEL: level_names_of(tree).cast(pa.string()),
            "label": pa.array(tree.labels, pa.string()),
        }
    )


def table_features(release: TableRelease, sheet: Sheet, outlines: ShapesOptions) -> Features:
    """Regions of one level with their outlines: all rows, and a column per value of each attribute
    alone.
    """
    if outlines.shapes is None:
        raise RequestError(
            "The regions of a release have no shapes of their own: name a file of outlines "
            "(--shapes)."
        )
    shaped = read_shaped_level(outlines, release.hierarchy)
    tree, lattice, regions = release.hierarchy, release.lattice, shaped.regions
    columns: dict[str, Any] = {"region": pa.array(tree.paths[regions], pa.string())}
    for name, labels in labels_by_level(tree).items():
        if labels.take(pa.array(regions)).null_count == 0:
            columns[name] = labels.take(pa.array(regions)).cast(pa.string())
    margins = [(), *((place,) for place in range(len(release.attributes.names)))]
    if sum(len(lattice.slots(margin)) for margin in margins) > MOST_COLUMNS:
        raise RequestError(
            f"The attributes have more than {MOST_COLUMNS} values, a column each here. Join csv "
            "with the outlines by region."
        )
    level = int(tree.level_of[regions[0]])
    start = int(tree.level_starts[level])
    for margin in margins:
        cells = release.margin(level, margin)
        slots = lattice.slots(margin)
        counts = np.zeros(tree.level_size(level) * len(slots), dtype=np.int64)
        counts[cells.cell] = cells.n
        for row, slot in enumerate(slots.tolist()):
            name = "_".join(
                f"{release.attributes.names[place]}_{release.attributes.values[place][row]}"
                for place in margin
            )
            own = counts.reshape(-1, len(slots))[regions - start, row]
            errors = slot_errors(release, regions, np.full(len(regions), slot))
            both = [f"{what}_{name}" if margin else what for what in ("count", "std_error")]
            columns |= dict(zip(names_beside(both, columns), (pa.array(own), pa.array(errors))))
    return Features(pa.table(columns), shaped.polygons, sheet.about)
