"""Attributes of groups: what a group has besides its size and its place, each with a public list of
values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallytree.errors import InputError, RequestError

OTHER = "other"
"""The value of groups whose own value is missing or stands on no public list; every attribute has
it but those whose list is complete.
"""
COLUMNS = frozenset(
    [
        "level",
        "region",
        "label",
        "parent",
        "groups",
        "size",
        "class",
        "count",
        "std_error",
        "low",
        "high",
        "reliability",
        "query",
        "index",
        "value",
        "statistic",
        "rows",
        "group",
    ]
)
"""Names of columns in the tables of a release, its exports and its microdata; no attribute has one."""


def names_beside(names: Sequence[str], others: Iterable[str]) -> list[str]:
    """Names of columns, each with as many underscores at its end as tell it from all others.

    Examples
    --------
    >>> names_beside(["state", "size"], ["region", "size"])
    ['state', 'size_']
    """
    taken, free = set(others), []
    for name in names:
        while name in taken:
            name += "_"
        taken.add(name)
        free.append(name)
    return free


@dataclass(frozen=True)
class Attributes:
    """Names of attributes and their public values, in order; a *cell* is one combination of values.

    Examples
    --------
    >>> house = Attributes(("tenure", "head"), (("owned", "rented", "other"), ("young", "old", "other")))
    >>> house.n_cells, house.cell_of(("rented", "old")), house.labels_of(4)
    (9, 4, ('rented', 'old'))
    """

    names: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names) or len(self.names) != len(self.values):
            raise InputError("Attributes have different names, and a list of values each.")
        for name, values in zip(self.names, self.values):
            if name in COLUMNS:
                raise RequestError(
                    f"An attribute cannot be called {name!r}: the tables of a release have a "
                    f"column of that name. Give it another name, such as {name}_of_group; of a "
                    f"database with --sql (select {name} as {name}_of_group, …)."
                )
            if len(set(values)) != len(values) or not values:
                raise InputError(
                    f"The values of {name!r} are different, and there is at least one."
                )

    def __bool__(self) -> bool:
        return bool(self.names)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each attribute."""
        return tuple(len(values) for values in self.values)

    @property
    def n_cells(self) -> int:
        """Number of combinations of values; 1 without any attribute."""
        return math.prod(self.shape)

    def cell_of(self, labels: Sequence[str]) -> int:
        """Number of a combination of values."""
        cell = 0
        for values, label in zip(self.values, labels, strict=True):
            cell = cell * len(values) + values.index(label)
        return cell

    def labels_of(self, cell: int) -> tuple[str, ...]:
        """The values of a combination, by its number."""
        labels = []
        for values in reversed(self.values):
            cell, place = divmod(cell, len(values))
            labels.append(values[place])
        return tuple(reversed(labels))

    def chosen(self, names: Sequence[str]) -> tuple[int, ...]:
        """Places of some attributes, in their own order."""
        for name in names:
            if name not in self.names:
                raise RequestError(f"There is no attribute {name!r}; {self.known()}.")
        return tuple(place for place, name in enumerate(self.names) if name in names)

    def margin(self, places: Sequence[int]) -> Attributes:
        """These attributes alone."""
        return Attributes(
            tuple(self.names[i] for i in places), tuple(self.values[i] for i in places)
        )

    def known(self) -> str:
        """Which attributes there are, for messages."""
        return (
            f"attributes are {', '.join(self.names)}"
            if self.names
            else "the release has no attributes"
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Names and values as JSON-ready facts."""
        return [
            {"name": name, "values": list(values)} for name, values in zip(self.names, self.values)
        ]

    @classmethod
    def from_json(cls, facts: Sequence[Mapping[str, Any]]) -> Attributes:
        """What :meth:`to_json` wrote."""
        return cls(
            tuple(fact["name"] for fact in facts), tuple(tuple(fact["values"]) for fact in facts)
        )


NO_ATTRIBUTES = Attributes()
