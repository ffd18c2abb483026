"""The columns of a sheet that say where rows lie: level, labels of regions, attributes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.model.arrays import IntArray
from tallytree.model.attributes import names_beside
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.releases.export.sheet import Codes, Column
from tallytree.releases.region_tables import path_array

LEVEL = "level"


_COLUMNS = (LEVEL, *["region", "size", "class", "count", "std_error", "low", "high", "reliability"])


def placed(
    lattice: Lattice,
    region: IntArray,
    slot: IntArray,
    classes: Sequence[str] = (),
    of: str = "groups",
) -> tuple[dict[str, Any], list[Column], dict[str, Codes]]:
    """The columns that say where rows lie, and what these may hold: level, one per level, region,
    one per attribute.

    ``slot`` says which values each row is about; attributes named in ``classes`` are of entities,
    all others of what ``of`` says.
    """
    hierarchy, attributes = lattice.hierarchy, lattice.attributes
    rows: dict[str, Any] = {LEVEL: level_names_of(hierarchy).take(pa.array(region))}
    columns = [Column(LEVEL, "label", "name of the region's level")]
    for level, (name, labels) in enumerate(labels_by_level(hierarchy, attributes.names).items()):
        rows[name] = labels.take(pa.array(region))
        columns.append(
            Column(name, "label", f"{hierarchy.level_names[level]} that the region lies in or is")
        )
    paths = path_array(hierarchy).cast(pa.string())
    rows["region"] = pa.DictionaryArray.from_arrays(pa.array(region.astype(np.int32)), paths)
    columns.append(Column("region", "key", "path of the region from the root"))
    codes = {"region": Codes(paths.to_pylist(), hierarchy.labels.tolist(), hierarchy.parent)}
    for name, values, place in zip(attributes.names, attributes.values, lattice.slot_values(slot)):
        known = [all_of(values), *values]
        rows[name] = pa.DictionaryArray.from_arrays(
            pa.array((place + 1).astype(np.int32)), pa.array(known)
        )
        whose = "entities" if name in classes else of
        columns.append(Column(name, "key", f"{name} of the {whose}, or {known[0]}"))
        codes[name] = Codes(known, known, np.minimum(np.arange(len(known)), 1) - 1)
    return rows, columns, codes


def all_of(values: Sequence[str]) -> str:
    """What stands for all values of an attribute."""
    return "all" if "all" not in values else "all values"


def labels_by_level(
    hierarchy: Hierarchy, names: Sequence[str] = ()
) -> dict[str, pa.DictionaryArray]:
    """Per level, by the name of its column, the label that each region has there; null for regions
    above it.

    ``names`` are those of further columns.
    """
    found = {}
    columns = names_beside(hierarchy.level_names, (*_COLUMNS, *names))
    for level, (own_name, name) in enumerate(zip(hierarchy.level_names, columns, strict=True)):
        if name != own_name:
            warnings.warn(
                f"The level {own_name!r} is in the column {name!r}, since {own_name!r} is a column "
                "of every table.",
                UserWarning,
                stacklevel=2,
            )
        here = hierarchy.level_slice(level)
        place = np.full(hierarchy.n_regions, -1, dtype=np.int64)
        place[here] = np.arange(here.stop - here.start)
        for below in range(level + 1, hierarchy.n_levels):
            own = hierarchy.level_slice(below)
            place[own] = place[hierarchy.parent[own]]
        codes = pa.array(place.astype(np.int32), mask=place < 0)
        found[name] = pa.DictionaryArray.from_arrays(
            codes, pa.array(hierarchy.labels[here], pa.string())
        )
    return found


def level_names_of(hierarchy: Hierarchy) -> pa.DictionaryArray:
    """The name of the level of each region."""
    return pa.DictionaryArray.from_arrays(
        pa.array(hierarchy.level_of.astype(np.int32)), pa.array(hierarchy.level_names, pa.string())
    )
