"""What one may ask of a release, and what comes back: the same for every kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Question:
    """A question to a release; each kind answers some of its parts and refuses the others.

    Attributes
    ----------
    region
        Path of a region, or several that are added up; the root when left out.
    where
        Values of attributes of groups, such as ``tenure=rented``; all groups when left out.
    by
        Of a table: attributes, for each of whose values, or all combinations of them, there is an
        answer.
    between, share
        How many groups have a size from low to high, both included; counts of groups as shares of
        all of them.
    size, at_least, largest, quantile, mean, total
        How many groups have exactly, or at least, this size; how large is the k-th largest group;
        which size do this fraction of the groups not exceed; what is the mean size; how many groups
        and entities there are.
    people
        How many entities of each class there are; ``where`` may then name classes too.
    ranges
        Ranges ``LOW:HIGH`` of a histogram, or boxes ``LOW:HIGH,LOW:HIGH`` of a map.
    confidence
        Of intervals; 0.95 when left out.
    copies
        Simulate a release of group sizes this often for intervals.
    """

    region: str | Sequence[str] | None = None
    where: Sequence[str] = ()
    size: int | None = None
    at_least: int | None = None
    between: tuple[int, int] | None = None
    share: bool = False
    by: Sequence[str] = ()
    largest: int | None = None
    quantile: float | None = None
    mean: bool = False
    total: bool = False
    people: bool = False
    ranges: Sequence[str] = ()
    confidence: float | None = None
    copies: int = 0

    def paths(self, root: str) -> list[str]:
        """The regions that are asked about, the root where none is named."""
        named = [self.region] if isinstance(self.region, str) else list(self.region or ())
        return named or [root]

    def asked(self) -> list[str]:
        """Names of the parts that were asked."""
        return [
            part.name for part in fields(self) if getattr(self, part.name) not in (part.default, ())
        ]


FLAGS = {part.name: f"--{part.name.replace('_', '-')}" for part in fields(Question)} | {
    "ranges": "--range"
}
"""How each part of a question is spelled on the command line."""


@dataclass(frozen=True)
class Reply:
    """Answers as a table for people (``columns``, ``rows``) and as JSON-ready ``facts`` for
    programs.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    facts: dict[str, Any] = field(default_factory=dict)
    note: str = ""
