"""Two tables side by side; what is clear of noise is said in :mod:`tallytree.releases.comparison`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.attributes import names_beside
from tallytree.releases.comparison import (
    LEAST_ERROR,
    Comparison,
    changes_of,
    half_width,
    p_values,
)
from tallytree.releases.export.placed import all_of
from tallytree.releases.progress import Progress, silent
from tallytree.releases.region_tables import attribute_columns
from tallytree.tables.release import TableRelease
from tallytree.tables.sheet import counts_by_slot, slot_errors


def compare_tables(
    first: TableRelease,
    second: object,
    *,
    rate: float = 0.05,
    copies: int = 0,
    progress: Progress = silent,
) -> Comparison:
    """Differences (second − first) of every count that one of two releases has, by all tables of
    attributes. Standard errors are known, so that no ``copies`` are made.
    """
    if not isinstance(second, TableRelease):
        raise RequestError("A table is compared with another release of a table.")
    if first.hierarchy != second.hierarchy or first.attributes != second.attributes:
        raise RequestError("The releases have other regions or values; only equal ones compare.")
    lattice, tree = first.lattice, first.hierarchy
    place, one, other = _counts(first, second)
    region, slot = np.divmod(place, lattice.n_slots)
    error = np.hypot(slot_errors(first, region, slot), slot_errors(second, region, slot))
    error = np.maximum(error, LEAST_ERROR)
    half = np.ceil(half_width(error, rate)).astype(np.int64)
    names = names_beside(lattice.attributes.names, ("first", "second", "difference"))
    values = zip(lattice.attributes.values, attribute_columns(lattice, slot))
    texts = [column.cast(pa.string()).fill_null(all_of(known)) for known, column in values]
    columns = {
        **dict(zip(names, texts)),
        "first": one,
        "second": other,
        "difference": other - one,
        "std_error": error,
        "low": other - one - half,
        "high": other - one + half,
    }
    return changes_of(tree, region, columns, p_values(other - one, error), rate, 0)


def _counts(first: TableRelease, second: TableRelease) -> tuple[IntArray, IntArray, IntArray]:
    """Region and slot of every count that one of both has, and both counts."""
    n_slots = first.lattice.n_slots
    found = [counts_by_slot(release) for release in (first, second)]
    places = [region * n_slots + slot for region, slot, _ in found]
    both = np.union1d(*places)
    counts = []
    for place, (_, _, n) in zip(places, found):
        own = np.zeros(len(both), dtype=np.int64)
        own[np.searchsorted(both, place)] = n
        counts.append(own)
    return both, counts[0], counts[1]
