"""What a split over levels is for: a goal by name, or errors that single levels are to have.

A goal is a weight per level: the split makes the product of the levels' predicted errors, each to
the power of its weight, small, so that a percent on a level of weight 1 counts the same whatever
the level's error. The balanced goal also compares every level with the plain choices, kuo2018 with
equal shares and all to the leaves: what lies behind them counts more. Enters: public names; leaves:
a ``Goal``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray
from tallytree.tuning.split import (
    BEHIND,
    BEHIND_KUO2018,
    HALF,
    LEAVES_FIRST,
    MISSED,
    NOTICED,
    TOP_FIRST,
    UNSURE,
    UNSURE_ROOT,
)

GoalName = Literal["balanced", "leaves", "top", "no-level-behind"]
GOALS: tuple[str, ...] = get_args(GoalName)

_TARGET = re.compile(
    r"\s*(?P<level>.+?)\s*:\s*emd\s*<=\s*(?P<bound>[0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?)\s*"
)


class PlainErrors(NamedTuple):
    """Predicted errors per level of kuo2018 with equal shares, and of the better of it and of all
    to the leaves.
    """

    kuo2018: FloatArray
    better: FloatArray


@dataclass(frozen=True)
class Goal:
    """What a split is for.

    Attributes
    ----------
    name
        ``"balanced"``: every level counts the same, and more where it lies behind the plain
        choices. ``"leaves"`` and ``"top"``: the leaves, or the root, count several times what
        another level does. ``"no-level-behind"``: the same share for every level, with which no
        level falls behind kuo2018 with equal shares.
    targets
        Mean earth mover's distance that single levels are to have at most, by the level's number;
        as far as the budget goes.
    """

    name: GoalName = "balanced"
    targets: Mapping[int, float] = field(default_factory=dict)

    def regret(self, errors: FloatArray, plain: PlainErrors) -> FloatArray:
        """How far predicted errors per level are from what is wanted; smaller is better. Levels are
        the last axis.
        """
        weights = np.ones(errors.shape[-1])
        behind = np.zeros(errors.shape[:-1])
        if self.name == "leaves":
            weights[-1] = LEAVES_FIRST
        elif self.name == "top":
            weights[0] = TOP_FIRST
        else:
            behind = _behind(errors, plain)
        missed = np.zeros(errors.shape[:-1])
        for level, bound in self.targets.items():
            missed = missed + np.maximum(np.log(errors[..., level] / bound), 0.0)
        found: FloatArray = (weights * np.log(errors)).sum(axis=-1) + behind + MISSED * missed
        return found


def _behind(errors: FloatArray, plain: PlainErrors) -> FloatArray:
    """What levels behind the plain choices cost: by how much, and the chance that it is more than
    is noticed; less the chance of half of kuo2018's error.
    """
    to_better, to_kuo2018 = np.log(errors / plain.better), np.log(errors / plain.kuo2018)
    unsure = np.full(errors.shape[-1], UNSURE)
    unsure[0] = UNSURE_ROOT
    kinks = BEHIND * np.maximum(to_better, 0.0) + BEHIND_KUO2018 * np.maximum(to_kuo2018, 0.0)
    chances = _chance((to_better - NOTICED) / unsure) - HALF * _chance(
        (-math.log(2) - to_kuo2018) / unsure
    )
    found: FloatArray = (kinks + chances).sum(axis=-1)
    return found


def _chance(deviations: FloatArray) -> FloatArray:
    """A normal distribution function, as near as a logistic one comes."""
    chance: FloatArray = 1 / (1 + np.exp(-1.7 * np.clip(deviations, -100.0, 100.0)))
    return chance


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
            f"The goal {given!r} is not known. Say one of {', '.join(GOALS)}, or targets: LEVEL: "
            "emd<=NUMBER."
        )
    targets = {}
    for text in [given] if isinstance(given, str) else given:
        found = _TARGET.fullmatch(text)
        if found is None or float(found["bound"]) <= 0:
            raise RequestError(
                f"The target {text!r} is not understood. Write LEVEL: emd<=NUMBER, for example "
                "state: emd<=50."
            )
        if found["level"] not in level_names:
            raise RequestError(
                f"There is no level {found['level']!r}; levels are {', '.join(level_names)}."
            )
        targets[list(level_names).index(found["level"])] = float(found["bound"])
    return Goal(targets=targets)
