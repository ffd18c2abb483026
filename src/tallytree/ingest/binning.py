"""Values into bins, and counts taken as they are: what a histogram accepts, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallytree.errors import InputError
from tallytree.ingest.values import BinnedValues
from tallytree.model.arrays import IntArray
from tallytree.model.bins import Bins
from tallytree.options.choices import Outside

NOTES: dict[Outside, str] = {
    "error": "values outside the bins are refused",
    "clip": "values outside the bins count in the nearest bin",
    "drop": "values outside the bins are left out",
}


def note_of(outside: Outside, bins: Bins) -> str:
    """What is done to values outside the bins, for the manifest."""
    return NOTES["drop" if bins.categories is not None and outside == "clip" else outside]


def count_values(
    values: Any, bins: Bins, *, outside: Outside = "error", weights: IntArray | None = None
) -> IntArray:
    """How many values lie in each bin.

    Parameters
    ----------
    values, weights
        As for :func:`bin_values`.
    outside
        What happens to values outside the bins: ``error`` refuses them all, ``clip`` counts them in
        the nearest bin, ``drop`` leaves them out, and both leave out what is none of the
        categories. No message says how many there are.
    """
    return bin_values(values, bins, weights=weights).settle(outside)


def bin_values(values: Any, bins: Bins, *, weights: IntArray | None = None) -> BinnedValues:
    """How many values lie in each bin, and how many in none.

    Parameters
    ----------
    values
        Numbers, or for categories their names; a list or any array, one value per entity.
    weights
        How often each value occurs; once if not given.
    """
    column = _column(values)
    named = bins.categories is not None
    place, is_outside = _places_by_name(column, bins) if named else _places(column, bins)
    often = np.ones(len(place), dtype=np.int64) if weights is None else weights
    inside, beyond = np.zeros((2, bins.n_bins), dtype=np.int64)
    for counts, chosen in ((inside, ~is_outside), (beyond, is_outside & (not named))):
        np.add.at(counts, place[chosen], often[chosen])
    n_unlisted = int(often[is_outside].sum()) if named else 0
    return BinnedValues(inside, beyond, n_unlisted, 0, "")


def _column(values: Any) -> Any:
    if isinstance(values, str | bytes) or values is None:
        raise InputError("Values of a histogram are a list or an array, one value per entity.")
    column = np.asarray(values)
    if column.ndim != 1:
        raise InputError(f"Values of a histogram have one dimension, got {column.ndim}.")
    return column


def _places(column: Any, bins: Bins) -> tuple[IntArray, Any]:
    """Bin of each number, the nearest one for numbers outside, and which those are."""
    if column.dtype == object:
        try:
            column = column.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "Values of a histogram of numbers are numbers; for names give categories."
            ) from None
    if column.dtype.kind not in "iuf":
        raise InputError(
            f"Values of a histogram of numbers are numbers, not {column.dtype}. For names give "
            "categories."
        )
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise InputError("Some values are missing (NaN or null). Remove or replace them first.")
    place = np.searchsorted(bins.edges, column, side="right") - 1
    is_outside = (column < bins.edges[0]) | (column > bins.edges[-1])
    return np.clip(place, 0, bins.n_bins - 1), is_outside


def _places_by_name(column: Any, bins: Bins) -> tuple[IntArray, Any]:
    assert bins.categories is not None
    if any(_is_missing(value) for value in column.tolist()):
        raise InputError("Some values are missing (NaN or null). Remove or replace them first.")
    position = {name: place for place, name in enumerate(bins.categories)}
    place = np.array([position.get(str(value), -1) for value in column.tolist()], dtype=np.int64)
    return np.maximum(place, 0), place < 0


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def check_counts(counts: Any) -> IntArray:
    """Counts per bin as given: whole numbers of at least 0, in one or more dimensions."""
    if isinstance(counts, str | bytes) or counts is None:
        raise InputError("Counts of a histogram are a list or an array of whole numbers.")
    table = np.asarray(counts)
    if table.ndim < 1 or table.size == 0:
        raise InputError("A histogram needs at least one bin.")
    if table.dtype.kind not in "iu":
        raise InputError(
            f"Counts of a histogram are whole numbers, not {table.dtype}. "
            "To count values instead, give edges, bins, width or categories."
        )
    if np.any(table < 0) or (table.dtype.kind == "u" and np.any(table > np.iinfo(np.int64).max)):
        raise InputError("Counts of a histogram are at least 0 and below 2^63.")
    return np.array(table, dtype=np.int64)
