"""What a split over levels is for: a goal by name, or errors that single levels are to have.

A goal is a weight per level: the split makes the product of the levels' predicted errors, each to the power of its weight,
small, so that a percent on a level of weight 1 counts the same whatever the level's error. Enters: public names; leaves: a
``Goal``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray
from tallytree.tuning.split import LEAF_WEIGHT, LEAVES_FIRST, MISSED, TOP_FIRST

GoalName = Literal["balanced", "leaves", "top", "no-level-behind"]
GOALS: tuple[str, ...] = get_args(GoalName)

_TARGET = re.compile(r"\s*(?P<level>.+?)\s*:\s*emd\s*<=\s*(?P<bound>[0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?)\s*")


@dataclass(frozen=True)
class Goal:
    """What a split is for.

    Attributes
    ----------
    name
        ``"balanced"``: every level counts, the leaves half as much again. ``"leaves"`` and ``"top"``: the leaves, or the root,
        count several times what another level does. ``"no-level-behind"``: the same share for every level, with which no level
        falls behind kuo2018 with equal shares.
    targets
        Mean earth mover's distance that single levels are to have at most, by the level's number; as far as the budget goes.
    """

    name: GoalName = "balanced"
    targets: Mapping[int, float] = field(default_factory=dict)

    def regret(self, errors: FloatArray) -> float:
        """How far predicted errors per level are from what is wanted; smaller is better."""
        weights = np.ones(len(errors))
        weights[-1] = LEAVES_FIRST if self.name == "leaves" else LEAF_WEIGHT
        if self.name == "top":
            weights[0], weights[-1] = TOP_FIRST, 1.0
        missed = sum(max(math.log(errors[level] / bound), 0.0) for level, bound in self.targets.items())
        return float((weights * np.log(errors)).sum() + MISSED * missed)


def goal_from(given: str | Sequence[str], level_names: Sequence[str]) -> Goal:
    """A goal by name, or targets such as ``"state: emd<=50"``.

    Examples
    --------
    >>> goal_from("leaves", ["US", "state"]).name
    'leaves'
    >>> goal_from(["state: emd<=50"], ["US", "state"]).targets
    {1: 50.0}
    """
    if isinstance(given, str) and ":" not in given:
        for name in get_args(GoalName):
            if given == name:
                return Goal(name)
        raise RequestError(
            f"The goal {given!r} is not known. Say one of {', '.join(GOALS)}, or targets: LEVEL: emd<=NUMBER."
        )
    targets = {}
    for text in [given] if isinstance(given, str) else given:
        found = _TARGET.fullmatch(text)
        if found is None or float(found["bound"]) <= 0:
            raise RequestError(
                f"The target {text!r} is not understood. Write LEVEL: emd<=NUMBER, for example state: emd<=50."
            )
        if found["level"] not in level_names:
            raise RequestError(f"There is no level {found['level']!r}; levels are {', '.join(level_names)}.")
        targets[list(level_names).index(found["level"])] = float(found["bound"])
    return Goal(targets=targets)
