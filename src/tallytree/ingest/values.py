"""Reading columns of values into counts per bin. The engine, and with it Ibis, is loaded when the
first table is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.ingest.shapes import checked_unit
from tallytree.model.arrays import FloatArray, IntArray, read_only
from tallytree.model.bins import Bins
from tallytree.model.confidential import UNALTERED, Altered, Confidential
from tallytree.model.frame import Frame
from tallytree.model.part import Part, part_from
from tallytree.model.place import Place
from tallytree.model.unit import ENTITY, Unit
from tallytree.options.choices import Outside


@dataclass(frozen=True, eq=False, repr=False)
class BinnedValues(Confidential):
    """Confidential: how many values lie in each bin, and how many in none.

    Attributes
    ----------
    counts
        Values inside, per bin; one dimension per column.
    outside
        Values outside all bins, each counted in the nearest bin.
    n_unlisted
        Values that are none of the categories, and so have no nearest bin.
    n_missing
        Values that are null or NaN; points with a coordinate that is null, NaN or infinite.
    source
        What messages call the input; nothing where it has no name.
    n_left_out
        Rows beyond those that count of one unit.
    """

    counts: IntArray
    outside: IntArray
    n_unlisted: int
    n_missing: int
    source: str
    n_left_out: int = 0

    def __post_init__(self) -> None:
        read_only(self.counts)
        read_only(self.outside)

    def settle(self, outside: Outside) -> IntArray:
        """Counts per bin under a policy for values outside: refuse them, count them in the nearest
        bin, or drop them.

        What is none of the categories has no nearest bin and is left out unless refused. Missing
        values are refused under each policy. No message says how many there are.
        """
        if self.n_missing:
            raise InputError(
                f"{self.source} has missing values (null, NaN, an infinite coordinate) in a column "
                "to count; fill or drop them."
            )
        if outside not in ("error", "clip", "drop"):
            raise RequestError(f"outside is one of error, clip, drop; got {outside!r}.")
        if outside == "error" and (self.n_unlisted or self.outside.any()):
            what = ("values" if self.counts.ndim == 1 else "points") + (
                f" of {self.source}" if self.source else ""
            )
            where = "bins" if self.counts.ndim == 1 else "box"
            raise InputError(
                f"Some {what} lie outside the {where}; widen the {where}, or choose outside='clip' "
                "or 'drop'."
            )
        return self.counts + self.outside if outside == "clip" else self.counts.copy()

    def altered(self, outside: Outside, unit: Unit) -> Altered:
        """What :meth:`settle` does to values outside, and what was done to rows of units that have
        too many.
        """
        done = UNALTERED.also_rows_of(unit, self.n_left_out)
        kept = "counted in the nearest" if outside == "clip" else "left out"
        done = done.also(f"values outside all bins or the box, {kept}", int(self.outside.sum()))
        return (
            done.also("values that are none of the categories, left out", self.n_unlisted)
            if self.n_unlisted
            else done
        )

    def _shown(self) -> str:
        return f"{' x '.join(f'{length:,}' for length in self.counts.shape)} bins"


def read_values(
    source: Any,
    column: str,
    *,
    edges: Sequence[float] | FloatArray | None = None,
    categories: Sequence[object] | None = None,
    count: str | None = None,
    unit: str = ENTITY,
    contributions: int | None = None,
    where: str | tuple[str, str] | Part | None = None,
    **place: str | None,
) -> BinnedValues:
    """Count the values of a column per bin, inside the engine that holds the table.

    Parameters
    ----------
    source, place
        As for :func:`tallytree.ingest.read`; ``place`` are its ``table``, ``sql`` and ``encoding``.
    column
        Numbers, with ``edges``; or anything that can be written as text, with ``categories``.
    edges
        Bin ``i`` holds the values from ``edges[i]`` up to, not including, ``edges[i + 1]``; the
        last bin holds its upper edge too.
    categories
        One bin per category; a value belongs to the category with the same text.
    count
        Column that says how many entities have the value of a row; each row is one if not given.
    unit, contributions
        Column that names the protected unit, and how many rows of one unit count at most; see
        :mod:`tallytree.ingest.contribution`.
    where
        ``"COLUMN=VALUE"``: count only the rows whose column has exactly this label.

    Examples
    --------
    >>> import pyarrow as pa
    >>> ages = pa.table({"age": [3, 17, 18, 40]})
    >>> read_values(ages, "age", edges=[0, 18, 65]).settle("error").tolist()
    [2, 2]
    """
    if (edges is None) == (categories is None):
        raise RequestError(
            "Describe the bins of a column of numbers by edges=, those of other columns by "
            "categories=."
        )
    from tallytree.ingest.value_queries import (
        Column,
        count_in_categories,
        count_in_edges,
    )  # loads Ibis and DuckDB

    bound = _checked_unit(unit, contributions, count)
    column_of = Column(source, column, count, Place(**place), *bound, where=part_from(where))
    if categories is not None:
        return count_in_categories(column_of, _checked_categories(categories))
    return count_in_edges(column_of, _checked_edges(edges))


def read_points(
    source: Any,
    columns: Sequence[str],
    box: Sequence[tuple[float, float]],
    shape: Sequence[int],
    *,
    count: str | None = None,
    unit: str = ENTITY,
    contributions: int | None = None,
    where: str | tuple[str, str] | Part | None = None,
    axes: tuple[Bins, ...] | None = None,
    **place: str | None,
) -> BinnedValues:
    """Count points per cell of a grid, inside the engine that holds the table.

    Parameters
    ----------
    source, count, place, unit, contributions, where
        As for :func:`read_values`.
    columns
        One column of numbers per dimension.
    box
        Lower and upper end of each dimension, both included.
    shape
        Number of cells along each dimension. Along a dimension from ``a`` to ``b``, ``x`` lies in
        cell ``floor((x - a) * cells / (b - a))``, ``b`` itself in the last one.
    axes
        The bins of each dimension, where they are not cut evenly; between their edges as in
        :func:`read_values`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> pickups = pa.table({"x": [0.1, 0.9, 1.0], "y": [0.2, 0.3, 1.0]})
    >>> read_points(pickups, ["x", "y"], [(0, 1), (0, 1)], [2, 2]).settle("error").tolist()
    [[1, 0], [1, 1]]
    """
    if not len(columns) == len(box) == len(shape) or not columns:
        raise RequestError(
            "Points need as many columns as ends in box= and cells in shape=, at least one of each."
        )
    sides = [(float(low), float(high)) for low, high in box]
    if not all(math.isfinite(low) and math.isfinite(high) and low < high for low, high in sides):
        raise RequestError(
            "Each side of box= runs from a number to a larger one; got a side without extent."
        )
    cells = [int(number) for number in shape]
    if min(cells) < 1 or cells != list(shape) or math.prod(cells) > 2**31:
        raise RequestError(
            f"shape= holds whole numbers of at least 1, at most {2**31:,} cells in all; got "
            f"{list(shape)}."
        )
    if axes is not None and any(axis.categories is not None for axis in axes):
        raise RequestError(
            "Points are counted between edges; of categories give the counts per cell."
        )
    from tallytree.ingest.point_queries import count_in_grid  # loads Ibis and DuckDB
    from tallytree.ingest.value_queries import Column

    bound = _checked_unit(unit, contributions, count)
    points = Column(source, tuple(columns), count, Place(**place), *bound, where=part_from(where))
    return count_in_grid(points, Frame(tuple(sides), tuple(cells), axes))


def _checked_unit(
    unit: str, contributions: int | None, count: str | None
) -> tuple[str | None, int]:
    if unit != ENTITY and count is not None:
        raise RequestError(
            "unit= goes with rows that are entities; with count= a row stands for several of them."
        )
    return checked_unit(unit, contributions)


def _checked_edges(edges: Any) -> FloatArray:
    try:
        numbers = np.array(edges, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array([math.nan])
    if (
        numbers.ndim != 1
        or len(numbers) < 2
        or not np.all(np.isfinite(numbers))
        or not np.all(np.diff(numbers) > 0)
    ):
        raise RequestError("edges= holds at least two numbers, finite and strictly increasing.")
    return numbers


def _checked_categories(categories: Sequence[object]) -> list[str]:
    names = [str(category) for category in categories]
    if not names or len(set(names)) < len(names):
        raise RequestError("categories= holds at least one category, each once.")
    return names
