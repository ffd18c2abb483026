"""Classes of entities: what a person is besides a member of a group (age, sex …), each with a
public list of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.attributes import NO_ATTRIBUTES, OTHER, Attributes
from tallytree.model.lattice import Family, Lattice


@dataclass(frozen=True)
class People:
    """How entities are counted: by their own classes, and by some attributes of their groups.

    Attributes
    ----------
    classes
        Attributes of entities and their public values; none where entities are not counted by
        class.
    by
        Names of attributes of groups that the counts are also by.

    Examples
    --------
    >>> people = People(Attributes(("age",), (("child", "adult", "other"),)))
    >>> bool(people), people.classes.n_cells
    (True, 3)
    """

    classes: Attributes = NO_ATTRIBUTES
    by: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.classes)

    def groups(self, lattice: Lattice) -> Lattice:
        """The tables of groups that people are counted in: all levels, and the attributes that they
        are by.
        """
        return Lattice(
            lattice.hierarchy, lattice.attributes.margin(lattice.attributes.chosen(self.by))
        )

    def tables(self, lattice: Lattice) -> Lattice:
        """All tables of people: levels by subsets of the attributes of their groups and of their
        own classes.
        """
        own = self.groups(lattice).attributes
        both = Attributes((*own.names, *self.classes.names), (*own.values, *self.classes.values))
        return Lattice(lattice.hierarchy, both)

    def family(self, lattice: Lattice) -> Family:
        """The finest table of groups that people are counted in, among the families of all
        attributes.
        """
        return Family(lattice.finest.level, lattice.attributes.chosen(self.by))

    def checked(self, attributes: Attributes) -> People:
        """These, where they fit the attributes of groups."""
        for name in self.by:
            if name not in attributes.names:
                raise RequestError(
                    f"people_by= names {name!r}, which is no attribute of groups; name it in by= "
                    "too."
                )
        twice = [name for name in self.classes.names if name in attributes.names]
        if twice:
            raise RequestError(
                f"{twice[0]!r} is an attribute of groups and cannot be a class of entities too."
            )
        return People(self.classes, tuple(name for name in attributes.names if name in self.by))

    def to_json(self) -> dict[str, Any]:
        """JSON-ready facts."""
        return {"classes": self.classes.to_json(), "by": list(self.by)}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any] | None) -> People:
        """What :meth:`to_json` wrote; nobody where there are no such facts."""
        if facts is None:
            return NO_PEOPLE
        return cls(Attributes.from_json(facts["classes"]), tuple(facts["by"]))


def classes_of_entities(asked: Sequence[tuple[str, tuple[str, ...] | None]]) -> Attributes:
    """Classes with their public lists of values, which "other" ends; a list read off the entities
    would tell of them.
    """
    unlisted = [name for name, values in asked if values is None]
    if unlisted:
        raise RequestError(
            f"people= needs the public values of {unlisted[0]!r}, {unlisted[0]}=VALUE,VALUE: one "
            "entity may be the only one of "
            "its value, so values cannot be read off the data. All others count as 'other'."
        )
    lists = tuple(
        (*(value for value in values or () if value != OTHER), OTHER) for _, values in asked
    )
    return Attributes(tuple(name for name, _ in asked), lists)


def dealt(rows: IntArray, columns: IntArray, row_of: IntArray) -> IntArray:
    """Whole tables with given sums, one after the other: the entities of cells filled class by
    class, in their order.

    Parameters
    ----------
    rows
        Entities of each cell.
    columns
        Entities of each class (columns) of every row of a coarser table, which add up to those of
        the row's cells.
    row_of
        The row in which each cell lies.

    Examples
    --------
    >>> dealt(np.array([3, 1]), np.array([[2, 2]]), np.array([0, 0])).tolist()
    [[2, 1], [0, 1]]
    """
    order = np.argsort(row_of, kind="stable")
    ends = np.cumsum(rows[order])
    opens = np.r_[True, np.diff(row_of[order]) > 0]
    before = (ends - rows[order])[opens][np.cumsum(opens) - 1]
    stops = np.cumsum(columns, axis=1)[row_of[order]]
    # Cells and classes are stretches of the same line; how much they overlap is how many of a class
    # a cell has.
    low = np.maximum((ends - before - rows[order])[:, None], stops - columns[row_of[order]])
    high = np.minimum((ends - before)[:, None], stops)
    table = np.empty((len(rows), columns.shape[1]), dtype=np.int64)
    table[order] = np.maximum(high - low, 0)
    return table


NO_PEOPLE = People()
