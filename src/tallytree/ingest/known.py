"""Known totals, from public tables: region, attributes, count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.errors import InputError
from tallytree.ingest.outside_tables import public_rows
from tallytree.model.attributes import Attributes
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.known import Known
from tallytree.model.limits import MOST_ENTITIES

# Known numbers of a level; they stand in the manifest.
MOST_NUMBERS = 200_000


def read_known(source: Any, hierarchy: Hierarchy, attributes: Attributes) -> Known:
    """One table: its regions are those of one level, all of them, by their paths from the root;
    without a column ``region`` it is of the root. Combinations that it leaves out are 0.
    """
    rows = source if isinstance(source, pa.Table) else public_rows(source)
    name = "the table" if isinstance(source, pa.Table) else str(source)
    names = [column for column in rows.column_names if column not in ("level", "region", "count")]
    margin = attributes.chosen(names)
    if "count" not in rows.column_names or not len(rows):
        raise InputError(f"Known totals of {name} need a column 'count', and rows.")
    paths = rows["region"].to_pylist() if "region" in rows.column_names else None
    regions = np.array([0 if path is None else hierarchy.find(path) for path in paths or [None] * len(rows)])  # fmt: skip
    levels = np.unique(hierarchy.level_of[regions])
    if len(levels) > 1:
        raise InputError(f"Known totals of {name} are of several levels; give a table for each.")
    level = int(levels[0])
    n_regions = hierarchy.level_size(level)
    if len(np.unique(regions)) < n_regions:
        raise InputError(
            f"Known totals of {name} lack regions; each {hierarchy.level_names[level]} has a row."
        )
    row = np.zeros(len(rows), dtype=np.int64)
    for place in margin:
        listed = {value: number for number, value in enumerate(attributes.values[place])}
        told = [str(value) for value in rows[attributes.names[place]].to_pylist()]
        for value in told:
            if value not in listed:
                raise InputError(
                    f"Known totals of {name} have {value!r}, which is no value of "
                    f"{attributes.names[place]}."
                )
        row = row * len(listed) + np.array([listed[value] for value in told])
    n_rows = int(np.prod([attributes.shape[place] for place in margin], dtype=np.int64))
    if n_regions * n_rows > MOST_NUMBERS:
        raise InputError(f"More than {MOST_NUMBERS:,} totals of {name} are too many to be known.")
    number = (regions - int(hierarchy.level_starts[level])) * n_rows + row
    if len(np.unique(number)) < len(number):
        raise InputError(f"Known totals of {name} have a number twice.")
    counts = np.zeros(n_regions * n_rows, dtype=np.int64)
    counts[number] = [_count(value, name) for value in rows["count"].to_pylist()]
    return Known(level, margin, counts.reshape(n_regions, n_rows))


def _count(value: object, name: str) -> int:
    text = str(value)
    if not text.isdecimal() or int(text) > MOST_ENTITIES:
        raise InputError(f"Known totals of {name} are whole numbers of at least 0; got {text!r}.")
    return int(text)
