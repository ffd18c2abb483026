"""Measuring histograms: the one door from :class:`ConfidentialHistogram` to noisy integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.model.arrays import IntArray, read_only
from tallytree.model.confidential_histogram import ConfidentialHistogram
from tallytree.privacy.noise import add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.ranges.plan import HistogramPlan
from tallytree.strategies.strategies import exact_answers, query_name, strategy_facts


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """Noisy answers of every level of a plan; an empty vector for a level that was not measured.

    ``looked`` is the noisy number of rows that was asked before, where the plan has such a look.
    """

    plan: HistogramPlan
    levels: tuple[IntArray, ...]
    looked: int | None = None

    def __post_init__(self) -> None:
        for level in self.levels:
            read_only(level)


def measure_histogram(
    histogram: ConfidentialHistogram,
    plan: HistogramPlan,
    stream: KeyStream,
    *,
    looked: int | None = None,
) -> NoisyHistogram:
    """Answer every level of the plan exactly, in whole numbers, and add exact noise; ``looked`` was
    answered before.
    """
    query, question = query_name(plan.strategy), strategy_facts(plan.strategy)
    answers = exact_answers(plan.strategy, histogram.counts.ravel())
    return NoisyHistogram(
        plan,
        tuple(
            add_noise(truth, noise, stream, level=level, query=query, question=question)
            if noise is not None
            else np.empty(0, dtype=np.int64)
            for level, (truth, noise) in enumerate(zip(answers, plan.noise))
        ),
        looked,
    )
