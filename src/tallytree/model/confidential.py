"""The confidential counts: exact, and kept apart from everything that may be shown or saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, Protocol, Self, SupportsIndex, TypeVar

import numpy as np

from tallytree.errors import InputError
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.classes import SizeClasses
from tallytree.model.count_of_counts import (
    CountsBySize,
    concatenate,
    counts_by_level,
    counts_from_runs,
)
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Family, Lattice
from tallytree.model.limits import refuse_many_groups
from tallytree.model.notebook import html_table
from tallytree.model.part import Part
from tallytree.model.unit import Unit

Counts = TypeVar("Counts", bound="ConfidentialCounts")
Fact = IntArray | str
"""One of the values that mechanisms see: an array of whole numbers, or a name."""


class Confidential:
    """Base of every class that holds exact values: shows none of them, and cannot be pickled or
    copied.

    So it does not end up in a log, a cache, a worker or a file by accident. A dataclass that
    inherits it says ``repr=False``; ``tests/model/test_confidential.py`` finds the ones that hold
    exact values and lack this guard.
    """

    def _shown(self) -> str:
        """What is public about the object, for its repr."""
        return ""

    def __repr__(self) -> str:
        shown = self._shown()
        return f"{type(self).__name__}({shown + ', ' if shown else ''}values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} holds confidential values and cannot be pickled or copied; "
            "release them first."
        )

    def __reduce__(self) -> NoReturn:
        self.__reduce_ex__(0)


class ExactValues(Protocol):
    """Exact values that a release is measured from."""

    def facts(self) -> Iterator[Fact]:
        """Confidential: everything that mechanisms see, in one order; for a keyed fingerprint of it
        alone.
        """


@dataclass(frozen=True, eq=False, repr=False)
class Altered(Confidential):
    """How many values were changed or left out to keep within public bounds, for the owner who
    asks.

    Attributes
    ----------
    numbers
        What was done, in words that are public; and, confidential, to how many values.
    """

    numbers: tuple[tuple[str, int], ...] = ()

    def also(self, what: str, number: int) -> Altered:
        """The same, and one thing more."""
        return Altered((*self.numbers, (what, number)))

    def also_rows_of(self, unit: Unit, number: int) -> Altered:
        """The same, and so many rows beyond those that count of one unit; nothing more where all
        rows count.
        """
        bounded = unit.column or (unit.group if unit.contributions > 1 else "")
        return (
            self.also(
                f"rows beyond the {unit.contributions:,} that count of one {bounded}, left out",
                number,
            )
            if bounded
            else self
        )


UNALTERED = Altered()


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialCounts(Confidential):
    """Exact counts by size of every leaf, with what is public about them.

    Only the kinds' ``measure`` files and :func:`tallytree.evaluate` look inside.

    Attributes
    ----------
    public
        What is public about them.
    leaf_counts
        Confidential: counts by size per leaf, leaves numbered as in the hierarchy.
    n_groups
        Groups per leaf. Public when ``public.groups_public``, otherwise as confidential as the
        counts.
    remarks
        Sentences about the hierarchy that the user should see.
    cell_counts
        Confidential: counts by size per leaf and combination of values, as the finest family of a
        :class:`~tallytree.model.lattice.Lattice` numbers them; None without attributes. The numbers
        of groups of these cells are public when ``public.groups_public``.
    entity_counts
        Confidential: entities of each class (columns) per leaf and combination of values (rows), as
        in ``cell_counts``; None without classes.
    altered
        Confidential: what was done to values outside public bounds.

    Examples
    --------
    >>> counts = tt.read(people, group="household", levels=["state"], root="US", public="groups")
    >>> counts
    ConfidentialCounts(Hierarchy(US: 1, state: 2), values hidden)
    """

    public: PublicFacts
    leaf_counts: CountsBySize
    n_groups: IntArray
    remarks: tuple[str, ...] = ()
    cell_counts: CountsBySize | None = None
    entity_counts: IntArray | None = None
    altered: Altered = UNALTERED

    def __post_init__(self) -> None:
        if (
            self.leaf_counts.n_regions != self.hierarchy.n_leaves
            or len(self.n_groups) != self.hierarchy.n_leaves
        ):
            raise InputError(
                f"The hierarchy has {self.hierarchy.n_leaves} leaves; counts and group totals must "
                "match it."
            )
        refuse_many_groups(int(self.leaf_counts.count.sum()))
        if bool(self.public.attributes) != (self.cell_counts is not None):
            raise InputError("Attributes and counts per combination of their values come together.")
        if self.cell_counts is not None and not self._cells_add_up(self.cell_counts):
            raise InputError(
                "The counts per combination of values must add up to those of the leaves."
            )
        if bool(self.public.people) != (self.entity_counts is not None):
            raise InputError("Classes of entities and counts per class come together.")
        if self.entity_counts is not None and not self._people_add_up(self.entity_counts):
            raise InputError(
                "The entities of all classes must add up to the sizes of the groups they are in."
            )
        read_only(self.n_groups)

    @property
    def hierarchy(self) -> Hierarchy:
        """Which regions there are; public."""
        return self.public.hierarchy

    @property
    def lattice(self) -> Lattice:
        """All tables that levels and attributes make; public."""
        return self.public.lattice

    def with_public(self, **facts: Any) -> Self:
        """The same counts with other public facts."""
        return replace(self, public=replace(self.public, **facts))

    def counts_of(self, family: Family) -> CountsBySize:
        """Confidential: counts by size of every row of a family."""
        if self.cell_counts is None or not family.margin:
            return self._counts_by_level[family.level]
        return self.lattice.counts(family, self.cell_counts)

    def _cells_add_up(self, cell_counts: CountsBySize) -> bool:
        n_cells = self.public.attributes.n_cells
        if cell_counts.n_regions != self.hierarchy.n_leaves * n_cells:
            return False
        groups = cell_counts.n_groups().reshape(-1, n_cells).sum(axis=1)
        entities = cell_counts.n_entities().reshape(-1, n_cells).sum(axis=1)
        return np.array_equal(groups, self.n_groups) and np.array_equal(
            entities, self.leaf_counts.n_entities()
        )

    def people_cells(self) -> IntArray:
        """Confidential: entities of each class of every leaf and combination of values."""
        assert self.entity_counts is not None
        return self.entity_counts

    def people_of(self, by: Sequence[str], level: int) -> IntArray:
        """Confidential: entities of each class in every row of the table of a level by some
        attributes of groups.
        """
        return self.lattice.sums(
            Family(level, self.public.attributes.chosen(by)), self.people_cells()
        )

    def _people_add_up(self, entity_counts: IntArray) -> bool:
        cells = self.leaf_counts if self.cell_counts is None else self.cell_counts
        shape = (cells.n_regions, self.public.people.classes.n_cells)
        return entity_counts.shape == shape and np.array_equal(
            entity_counts.sum(axis=1), cells.n_entities()
        )

    def facts(self) -> Iterator[Fact]:
        """As in :class:`ExactValues`."""
        yield self.hierarchy.fingerprint
        yield repr(
            (
                self.public.attributes,
                self.public.people,
                self.public.classes,
                self.public.unit,
                self.public.max_quantity,
                self.public.least_size,
            )
        )
        yield self.n_groups
        yield from self.leaf_counts.facts()
        if self.cell_counts is not None:
            yield from self.cell_counts.facts()
        if self.entity_counts is not None:
            yield self.entity_counts

    @cached_property
    def _counts_by_level(self) -> list[CountsBySize]:
        return counts_by_level(self.hierarchy, self.leaf_counts)

    @cached_property
    def counts_on_levels(self) -> CountsBySize:
        """Confidential: counts by size of every region, added up from the leaves."""
        return concatenate(self._counts_by_level)

    def _shown(self) -> str:
        attributes = self.public.attributes
        by = f" by {', '.join(attributes.names)}" if attributes else ""
        return repr(self.hierarchy) + by

    def _repr_html_(self) -> str:
        names = enumerate(self.hierarchy.level_names)
        rows = [[level, name, self.hierarchy.level_size(level)] for level, name in names]
        return html_table(
            "Confidential counts, values hidden",
            ["level", "name", "regions"],
            rows,
            note=self.public.groups_note,
        )


def in_classes(counts: Counts, classes: SizeClasses) -> Counts:
    """The same groups, counted in classes of sizes; what is inside a class is lost here and goes
    nowhere.
    """

    def classed(own: CountsBySize) -> CountsBySize:
        return counts_from_runs(
            own.region_of_run(), classes.number(own.size), own.count, own.n_regions
        )

    own = counts.leaf_counts
    cells = None if counts.cell_counts is None else classed(counts.cell_counts)
    n_outside = int(own.count[classes.outside(own.size)].sum())
    altered = counts.altered.also(
        "groups with sizes outside the classes, counted in the first or last one", n_outside
    )
    return replace(
        counts,
        leaf_counts=classed(own),
        cell_counts=cells,
        public=replace(counts.public, least_size=0, classes=classes),
        altered=altered,
    )


class AssumedCounts(ConfidentialCounts):
    """Counts that stand in for confidential ones in plans and simulations: made up, or taken from a
    release. Public.

    Examples
    --------
    >>> from tallytree.group_sizes.plan.shapes import assumed_counts, named_shape
    >>> assumed = assumed_counts(counts.hierarchy, [30, 20], named_shape("households"))
    >>> [level.name for level in tt.plan(assumed, epsilon=1, runs=1).levels]
    ['US', 'state']
    """


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialDegrees(Confidential):
    """Exact degrees of the nodes of a graph, hidden like :class:`ConfidentialCounts`.

    Attributes
    ----------
    counts
        Confidential: nodes by degree, as the counts by size of one region.
    directed
        Whether degrees count outgoing edges only. One edge then changes one degree by 1, otherwise
        two.
    nodes_note
        In words, why the number of nodes counts as public; goes into the manifest.
    part
        The edges that were read: those of one part, or all of them (None).
    """

    counts: CountsBySize
    directed: bool = False
    nodes_note: str = "stated by the user"
    part: Part | None = None

    def __post_init__(self) -> None:
        if self.counts.n_regions != 1:
            raise InputError("The degrees of a graph are the counts by size of one region.")
