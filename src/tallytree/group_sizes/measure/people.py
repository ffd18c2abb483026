"""Measuring how many entities of each class regions have.

An entity has one class, and its group lies in one row of each table, so that a table costs its
share once; see ``people_sensitivity``. Sizes are questions of their own about the same entities:
losses add up.
"""

from __future__ import annotations

import numpy as np

from tallytree.group_sizes.noisy import NoisyLevel, NoisyQuery
from tallytree.group_sizes.plan.plan import LevelPlan, Plan
from tallytree.model.confidential import ConfidentialCounts
from tallytree.privacy.noise import add_noise
from tallytree.privacy.randomness import KeyStream

PEOPLE = "people"
"""The name of the question, in measurements and manifests."""


def measure_people(
    counts: ConfidentialCounts, plan: Plan, stream: KeyStream
) -> tuple[NoisyLevel, ...]:
    """Noisy numbers of entities per class, class after class, of every row of the tables that the
    plan names.
    """
    return tuple(_measure_table(counts, level, stream) for level in plan.people)


def _measure_table(counts: ConfidentialCounts, level: LevelPlan, stream: KeyStream) -> NoisyLevel:
    assert level.query is not None
    exact = counts.people_of(level.by, level.level)
    offsets = np.arange(len(exact) + 1) * exact.shape[1]
    name = level.question(PEOPLE)
    noisy = add_noise(
        exact.ravel(), level.query.noise, stream, level=level.level, query=name, offsets=offsets
    )
    return NoisyLevel(
        level.level, (NoisyQuery(PEOPLE, level.query.noise, offsets, noisy),), level.by
    )
