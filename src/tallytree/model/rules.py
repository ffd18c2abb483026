"""Declared impossibilities: public rules that every row keeps, as cells of a table that are always 0.

A rule speaks of a few attributes and forbids some combinations of their values. Whoever counts,
estimates or rounds needs no more than the cells that are left: :func:`possible_cells`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import BoolArray
from tallytree.model.values import Values, spans_of

_CONDITION = re.compile(r"\s*(?P<name>.+?)\s*(?P<relation><=|>=|!=|<|>|=)\s*(?P<asked>.+?)\s*")
HOW = 'a rule is written "age<15 => marital=single"; conditions are separated by commas'
# Combinations of values of the attributes of one rule.
MOST_COMBINATIONS = 1_000_000


class Condition(NamedTuple):
    """An attribute compared with a value; ``=`` and ``!=`` take several, ``a|b``, and ranges."""

    name: str
    relation: str
    asked: str

    def holds(self, values: Values) -> BoolArray:
        """Of which values of the attribute it is true. "other" is neither small nor large."""
        n_values = len(values.values_of(self.name))
        if self.relation in ("=", "!="):
            found = np.zeros(n_values, dtype=bool)
            for word in self.asked.split("|"):
                found[values.places(self.name, word.strip())] = True
            return found if self.relation == "=" else ~found
        if self.name not in values.ordered:
            raise RequestError(
                f"The values of {self.name!r} are in no order, so {self.relation} says nothing; "
                "name it under ordered=, or list values: a|b."
            )
        found = np.zeros(n_values, dtype=bool)
        n_below = self._n_below(values)
        first_above = n_below[1] if self.relation in ("<=", ">") else n_below[0]
        in_order = values.n_in_order(self.name)
        if self.relation.startswith("<"):
            found[:first_above] = True
        else:
            found[first_above:in_order] = True
        return found

    def _n_below(self, values: Values) -> tuple[int, int]:
        """How many values lie below what is asked for, and how many do not lie above it."""
        listed = values.values_of(self.name)[: values.n_in_order(self.name)]
        if self.asked in listed:
            place = listed.index(self.asked)
            return place, place + 1
        spans = spans_of(listed)
        if spans is None or not self.asked.isdecimal():
            raise RequestError(f"{self.name} has no value {self.asked!r}.")
        number = int(self.asked)
        below, upto = number, number + 1
        # A class is counted whole: the number must lie between two of them on the side that counts.
        edge = below if self.relation in ("<", ">=") else upto
        for (low, high), label in zip(spans, listed):
            if low < edge <= high:
                raise RequestError(
                    f"{self.name} {self.relation} {self.asked} cuts the class {label!r}; a rule "
                    "goes by whole classes."
                )
        n_below = sum(low < edge for low, _ in spans)
        return n_below, n_below


@dataclass(frozen=True)
class Rule:
    """What every row keeps: an implication as it was written, or the possible combinations of some
    attributes, so that one may follow from others.

    Attributes
    ----------
    text
        ``"age<15 => marital=single"``; empty for combinations.
    names, possible
        Attributes, and their possible combinations; empty for an implication.

    Examples
    --------
    >>> by = Values(("couple", "beds"), (("yes", "no"), ("1", "2", "3+")), ("beds",))
    >>> places, broken = Rule("couple=yes => beds>=2").broken(by)
    >>> places, broken.tolist()
    ((0, 1), [[True, False, False], [False, False, False]])
    """

    text: str = ""
    names: tuple[str, ...] = ()
    possible: tuple[tuple[str, ...], ...] = ()

    def broken(self, values: Values) -> tuple[tuple[int, ...], BoolArray]:
        """Places of the attributes it speaks of, rising, and the combinations of their values that
        break it.
        """
        return self._of_combinations(values) if self.names else self._of_conditions(values)

    def _of_conditions(self, values: Values) -> tuple[tuple[int, ...], BoolArray]:
        given, then = self._sides()
        places = values.chosen([one.name for one in (*given, *then)])
        shape = self._shape(values, places)

        def together(conditions: Sequence[Condition]) -> BoolArray:
            found = np.ones(shape, dtype=bool)
            for one in conditions:
                axis = places.index(values.names.index(one.name))
                along = [-1 if number == axis else 1 for number in range(len(places))]
                found &= one.holds(values).reshape(along)
            return found

        return places, together(given) & ~together(then)

    def _of_combinations(self, values: Values) -> tuple[tuple[int, ...], BoolArray]:
        places = values.chosen(self.names)
        broken = np.ones(self._shape(values, places), dtype=bool)
        column = [self.names.index(values.names[place]) for place in places]
        for one in self.possible:
            known = [values.values[place] for place in places]
            for listed, number in zip(known, column):
                if one[number] not in listed:
                    raise RequestError(
                        f"A rule lists {self.names[number]} {one[number]!r}, which is no value of "
                        "it."
                    )
            broken[tuple(listed.index(one[number]) for listed, number in zip(known, column))] = (
                False
            )
        return places, broken

    def _shape(self, values: Values, places: Sequence[int]) -> tuple[int, ...]:
        shape = tuple(values.shape[place] for place in places)
        if math.prod(shape) > MOST_COMBINATIONS:
            raise RequestError(
                f"A rule of {', '.join(values.names[place] for place in places)} has more than "
                f"{MOST_COMBINATIONS:,} combinations; say it in rules of fewer attributes."
            )
        return shape

    def _sides(self) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
        """What is given, and what follows."""
        sides = self.text.split("=>")
        if len(sides) != 2:
            raise RequestError(f"{self.text!r} is no rule: {HOW}.")
        given, then = (tuple(self._condition(part) for part in side.split(",")) for side in sides)
        return given, then

    def _condition(self, text: str) -> Condition:
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise RequestError(f"{self.text!r} is no rule, for {text.strip()!r} in it: {HOW}.")
        return Condition(match["name"], match["relation"], match["asked"])

    @property
    def words(self) -> str:
        """The rule as people read it."""
        if not self.names:
            return " ".join(self.text.split())
        return f"{len(self.possible):,} possible combinations of {', '.join(self.names)}"

    def described(self) -> dict[str, Any]:
        """JSON-ready facts."""
        if not self.names:
            return {"rule": self.text}
        return {"attributes": list(self.names), "possible": [list(one) for one in self.possible]}


def rule_from(told: Rule | str | Mapping[str, Any]) -> Rule:
    """A rule from its text, or from what :meth:`Rule.described` wrote."""
    if isinstance(told, Rule):
        return told
    if isinstance(told, str):
        return Rule(told)
    if "rule" in told:
        return Rule(str(told["rule"]))
    possible = tuple(tuple(map(str, one)) for one in told["possible"])
    return Rule("", tuple(map(str, told["attributes"])), possible)


def possible_cells(values: Values, rules: Sequence[Rule]) -> BoolArray:
    """Which cells no rule forbids, in their order.

    Examples
    --------
    >>> by = Values(("couple", "beds"), (("yes", "no"), ("1", "2")), ("beds",))
    >>> possible_cells(by, [Rule("couple=yes => beds>=2")]).tolist()
    [False, True, True, True]
    """
    found = np.ones(values.shape, dtype=bool)
    for rule in rules:
        places, broken = rule.broken(values)
        along = [size if place in places else 1 for place, size in enumerate(values.shape)]
        found &= ~broken.reshape(along)
    if not found.any():
        raise RequestError(
            "The rules leave no combination of values that a row may have: they contradict each "
            "other."
        )
    return found.ravel()
