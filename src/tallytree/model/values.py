"""Attributes of rows with what is public about their values: lists, orders, and classes of values
in order.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.attributes import OTHER, Attributes
from tallytree.model.classes import OPEN, class_span
from tallytree.model.limits import LARGEST_NUMBER

MOST_IN_RANGE = 1_000_000
"""Numbers that a range alone may stand for."""


@dataclass(frozen=True)
class Values(Attributes):
    """Attributes whose values may have an order, and classes that are ranges of them.

    Attributes
    ----------
    ordered
        Names of attributes whose values, all but "other", are in order.
    classes
        Per attribute with classes: its name, and each class with its first and last value.

    Examples
    --------
    >>> by = Values(("age",), (("0", "1", "2"),), ("age",), (("age", (("young", "0", "1"),)),))
    >>> by.places("age", "young").tolist(), by.places("age", "1-2").tolist()
    ([0, 1], [1, 2])
    """

    ordered: tuple[str, ...] = ()
    classes: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.ordered:
            self.chosen([name])
        for name, classes in self.classes:
            if name not in self.ordered:
                raise RequestError(f"Classes are of ordered attributes; {name!r} is none.")
            for _, low, high in classes:
                self._between(name, low, high)

    def values_of(self, name: str) -> tuple[str, ...]:
        """The values of an attribute."""
        (place,) = self.chosen([name])
        return self.values[place]

    def n_in_order(self, name: str) -> int:
        """How many values are in order: "other", which comes last, is none of them."""
        return len([value for value in self.values_of(name) if value != OTHER])

    def places(self, name: str, asked: str) -> IntArray:
        """Places of the values that a word means: a value, a class, or a range ``16-64`` of values
        in order.
        """
        values = self.values_of(name)
        if asked in values:
            return np.array([values.index(asked)])
        for low, high in (
            (low, high) for label, low, high in self.classes_of(name) if label == asked
        ):
            return self._between(name, low, high)
        if name in self.ordered:
            for place in range(1, len(asked)):
                low, mark, high = asked[:place], asked[place], asked[place + 1 :]
                if mark in "-–:" and low.strip() in values and high.strip() in values:
                    return self._between(name, low.strip(), high.strip())
        known = ", ".join(values[:10]) + (", …" if len(values) > 10 else "")
        raise RequestError(f"{name} has no value {asked!r}. Its values are {known}.")

    def classes_of(self, name: str) -> tuple[tuple[str, str, str], ...]:
        """The classes of an attribute: label, first and last value."""
        return dict(self.classes).get(name, ())

    def _between(self, name: str, low: str, high: str) -> IntArray:
        values = self.values_of(name)
        if low not in values or high not in values or values.index(low) > values.index(high):
            raise RequestError(f"{low} to {high} is no range of the values of {name}.")
        return np.arange(values.index(low), values.index(high) + 1)

    def described(self) -> list[dict[str, Any]]:
        """Names, values, orders and classes as JSON-ready facts."""
        found = self.to_json()
        for fact in found:
            fact["ordered"] = fact["name"] in self.ordered
            fact["classes"] = [list(one) for one in self.classes_of(fact["name"])]
        return found


def values_from_json(facts: Sequence[Mapping[str, Any]]) -> Values:
    """What :meth:`Values.described` wrote."""
    classes = tuple(
        (str(fact["name"]), tuple((str(a), str(b), str(c)) for a, b, c in fact["classes"]))
        for fact in facts
        if fact["classes"]
    )
    return Values(
        tuple(str(fact["name"]) for fact in facts),
        tuple(tuple(map(str, fact["values"])) for fact in facts),
        tuple(str(fact["name"]) for fact in facts if fact["ordered"] is True),
        classes,
    )


def spans_of(values: Sequence[str]) -> tuple[tuple[int, int], ...] | None:
    """First and last whole number of each value; None where one is no number or class of numbers.

    Examples
    --------
    >>> spans_of(["0-4", "5", "65+"]) == ((0, 4), (5, 5), (65, OPEN))
    True
    """
    found = []
    for value in values:
        try:
            found.append(class_span(value))
        except RequestError:
            return None
    return tuple(found)


def in_rising_order(spans: Sequence[tuple[int, int]]) -> bool:
    """Whether each span lies above the one before."""
    return all(before[1] < after[0] for before, after in itertools.pairwise(spans))


def listed_values(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """The public values of an attribute; of one range of numbers alone each number.

    Examples
    --------
    >>> listed_values("age", ["0-3"]), listed_values("sex", ["f", "m"])
    (('0', '1', '2', '3'), ('f', 'm'))
    """
    labels = tuple(str(value).strip() for value in values)
    if not labels or not all(labels) or len(set(labels)) != len(labels):
        raise RequestError(f"by= gives {name!r} a list with no, an empty or a repeated value.")
    spans = spans_of(labels)
    for first, last in spans or ():
        if max(first, 0 if last == OPEN else last) > LARGEST_NUMBER:
            raise RequestError(f"by= gives {name!r} a number above 2^53, which is not counted by.")
    if len(labels) == 1 and spans and spans[0][0] < spans[0][1] < OPEN:
        if spans[0][1] - spans[0][0] >= MOST_IN_RANGE:
            raise RequestError(
                f"by= gives {name!r} the range {labels[0]}, which stands for every number in it: "
                f"more than {MOST_IN_RANGE:,}. List classes of numbers."
            )
        return tuple(map(str, range(spans[0][0], spans[0][1] + 1)))
    return labels
