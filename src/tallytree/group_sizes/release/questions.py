"""What may be asked of the counts of a region, or of several together: each question in words and
as a function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.release.region import RegionCounts
from tallytree.model.classes import SizeClasses, SizeNames
from tallytree.releases.questions import Question


@dataclass(frozen=True)
class Asked:
    """Something to ask of a region's counts.

    Attributes
    ----------
    words
        The question in words.
    ask
        The answer of a region.
    about
        What the answer is: a number of ``groups``, a ``share`` of them, a ``size``, a ``mean``
        size, or a number of ``entities``.
    size
        Of questions for a single count: its size.
    """

    words: str
    ask: Callable[[RegionCounts], float]
    about: Literal["groups", "share", "size", "mean", "entities"]
    size: int | None = None

    def told(self, value: float, counts: RegionCounts) -> float | str:
        """An answer as it is told: a size in classes by the name of its class, and what groups of
        unknown size add to as at least so much.
        """
        if self.open_above(counts):
            return f"at least {value:.6g}" if self.about == "mean" else f"at least {value}"
        if counts.classes is None or self.about != "size":
            return value
        return counts.classes.names(counts.classes.number(np.array([value])))[0]

    def open_above(self, counts: RegionCounts) -> bool:
        """Whether the answer may be larger by any amount, since sizes above a bound are not known."""
        return self.about in ("mean", "entities") and counts.reaches_bound


def groups_of_size(size: int) -> Asked:
    """How many groups have exactly this size?"""
    return Asked(f"groups of size {size}", lambda region: region.of_size(size), "groups", size)


def groups_of_at_least(size: int) -> Asked:
    """How many groups have at least this size?"""
    return Asked(f"groups of at least {size}", lambda region: region.at_least(size), "groups")


def groups_between(low: int, high: int) -> Asked:
    """How many groups have a size from ``low`` to ``high``, both included?"""
    return Asked(
        f"groups of size {low} to {high}", lambda region: region.between(low, high), "groups"
    )


def kth_largest(k: int) -> Asked:
    """How large is the k-th largest group?"""
    return Asked(
        f"size of group {k} from the largest", lambda region: region.kth_largest(k), "size"
    )


def quantile(q: float) -> Asked:
    """Which size do a fraction ``q`` of the groups not exceed?"""
    return Asked(f"quantile {q:g}", lambda region: region.quantile(q), "size")


MEAN = Asked("mean size", lambda region: region.mean(), "mean")
GROUPS = Asked("groups", lambda region: region.n_groups, "groups")
ENTITIES = Asked("entities", lambda region: region.n_entities, "entities")


def share_of(asked: Asked) -> Asked:
    """The same as a share of all groups of the region."""

    def ask(region: RegionCounts) -> float:
        if not region.n_groups:
            raise RequestError(f"{region.path} has no groups, so there is no share of them.")
        return asked.ask(region) / region.n_groups

    return replace(asked, words=f"share of {asked.words}", ask=ask, about="share", size=None)


def asked_by(question: Question, classes: SizeNames | None = None) -> dict[str, Asked]:
    """What a question asks about a region, by its words; of sizes in classes there is no mean and
    no sum.
    """
    counted = [
        *([] if question.size is None else [groups_of_size(question.size)]),
        *([] if question.at_least is None else [groups_of_at_least(question.at_least)]),
        *([] if question.between is None else [groups_between(*question.between)]),
    ]
    if question.share and not counted:
        raise RequestError(
            "A share is one of groups of some size: say size, at_least or between with it."
        )
    found = [
        *(share_of(one) if question.share else one for one in counted),
        *([] if question.largest is None else [kth_largest(question.largest)]),
        *([] if question.quantile is None else [quantile(question.quantile)]),
        *([MEAN] if question.mean else []),
        *([GROUPS] if question.total else []),
        *([ENTITIES] if question.total and not isinstance(classes, SizeClasses) else []),
    ]
    return {one.words: one for one in found}
