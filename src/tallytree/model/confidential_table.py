"""The confidential counts of a table: rows by region and attributes, kept apart from everything that
may be shown or saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tallytree.errors import InputError
from tallytree.model.arrays import BoolArray, IntArray, read_only
from tallytree.model.confidential import UNALTERED, Altered, Confidential, Fact
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.known import Known
from tallytree.model.limits import MOST_ENTITIES, MOST_IN_ALL
from tallytree.model.part import Part
from tallytree.model.rules import Rule, possible_cells
from tallytree.model.unit import ONE_ROW, Unit
from tallytree.model.values import Values


@dataclass(frozen=True)
class PublicTable:
    """What is public about a table, and what else its manifest says.

    Attributes
    ----------
    hierarchy
        Which regions there are.
    values
        The attributes, their values in order and classes of them.
    unit
        What is protected.
    part
        The rows that were read: those of one part, or all of them (None).
    alone
        In words, where a unit that is alone is not covered, because regions were read off the rows;
        empty if nowhere.
    regions_note
        In words, why the regions count as public.
    rules
        What every row keeps.
    known
        Known totals of each level, from the root to the last one that has some.
    """

    hierarchy: Hierarchy
    values: Values
    unit: Unit = ONE_ROW
    part: Part | None = None
    alone: str = ""
    regions_note: str = "stated by the user"
    rules: tuple[Rule, ...] = ()
    known: tuple[Known, ...] = ()

    @cached_property
    def possible(self) -> BoolArray | None:
        """Which cells of a region may have rows; None where no rule forbids any."""
        found = possible_cells(self.values, self.rules) if self.rules else None
        return None if found is None or found.all() else read_only(found)


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialTable(Confidential):
    """Exact counts of the finest cells of every leaf, those of 0 left out. Only
    :mod:`tallytree.tables.measure` and evaluations look inside.

    Attributes
    ----------
    public
        What is public about them.
    cell
        Confidential: leaf times cells plus cell of each count, rising.
    n
        Confidential: the counts.
    altered
        Confidential: how many rows were left out.
    """

    public: PublicTable
    cell: IntArray
    n: IntArray
    altered: Altered = UNALTERED

    def __post_init__(self) -> None:
        n_cells = self.public.values.n_cells * self.public.hierarchy.n_leaves
        rising = len(self.cell) < 2 or bool(np.all(np.diff(self.cell) > 0))
        inside = not len(self.cell) or (self.cell[0] >= 0 and self.cell[-1] < n_cells)
        if len(self.cell) != len(self.n) or not rising or not inside or np.any(self.n <= 0):
            raise InputError("A table has one count of at least 1 per cell, in their order.")
        # As in model.limits.saturated: by the number of all cells, which is public.
        most = min(MOST_ENTITIES, MOST_IN_ALL // n_cells)
        object.__setattr__(self, "n", read_only(np.minimum(self.n, most)))
        read_only(self.cell)

    def leaves(self) -> IntArray:
        """Confidential: the leaf of each count."""
        return self._places[0]

    def cells(self) -> IntArray:
        """Confidential: the cell of each count within its leaf."""
        return self._places[1]

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        leaf, cell = np.divmod(self.cell, self.public.values.n_cells)
        return leaf, cell

    def facts(self) -> Iterator[Fact]:
        """As in :class:`~tallytree.model.confidential.ExactValues`."""
        yield self.public.hierarchy.fingerprint
        yield repr((self.public.values, self.public.unit, self.public.rules))
        yield self.cell
        yield self.n

    def _shown(self) -> str:
        names = ", ".join(self.public.values.names)
        return repr(self.public.hierarchy) + (f" by {names}" if names else "")
