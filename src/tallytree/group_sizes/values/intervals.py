"""How far statistics and answers may be off: the release simulated again, as for sizes of groups."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.intervals.answers import interval_of, rank_of
from tallytree.group_sizes.intervals.copies import copy_release
from tallytree.group_sizes.release.region import Interval, RegionCounts
from tallytree.group_sizes.values.release import CONFIDENCE, ValuesRelease, asked_by
from tallytree.group_sizes.values.statistics import RegionValues
from tallytree.group_sizes.values.tables import Statistics, statistics_of_all
from tallytree.model.arrays import FloatArray
from tallytree.model.scale import ValueScale
from tallytree.releases.progress import Progress, silent
from tallytree.releases.questions import Question, Reply


def with_statistics_intervals(
    release: ValuesRelease, *, copies: int = 40, progress: Progress = silent
) -> ValuesRelease:
    """The same table with a standard error and interval beside every statistic; costs no privacy."""
    made = copy_release(release.in_steps, copies=copies, progress=progress)
    own, scale = release.statistics, release.scale
    # A statistic of no rows counts as 0, in a truth and in its copy.
    errors = np.sort(
        [
            np.nan_to_num(statistics_of_all(copy, scale))
            - np.nan_to_num(statistics_of_all(truth, scale))
            for truth, copy in zip(made.truths, made.copies)
        ],
        axis=0,
    )
    rank = rank_of(len(errors), CONFIDENCE)
    least, most = (np.array(ends) for ends in zip(*(_ends(name, scale) for name in own.names)))
    found: dict[str, FloatArray] = {
        "std_error": np.sqrt((errors**2).mean(axis=0)),
        "low": np.clip(own.value - errors[rank - 1], least, most),
        "high": np.clip(own.value - errors[-rank], least, most),
    }
    unknown = np.isnan(own.value)
    found = {name: np.where(unknown, np.nan, each) for name, each in found.items()}
    return replace(release, statistics=Statistics(own.names, own.value, found))


def _ends(name: str, scale: ValueScale) -> tuple[float, float]:
    """Ends that a statistic never leaves."""
    if name in ("gini", "top_tenth_share"):
        return 0.0, 1.0
    if name == "rows":
        return 0.0, math.inf
    if name == "sum":
        return (0.0 if scale.first >= 0 else -math.inf), (0.0 if scale.last <= 0 else math.inf)
    return scale.value(0), scale.value(scale.n_steps)


def ask_values(release: ValuesRelease, question: Question, progress: Progress) -> Reply:
    """Answer by the release alone, or with intervals from simulated copies of it."""
    if not question.copies:
        return release.ask(question)
    asked, scale = asked_by(question, release.scale), release.scale
    if not asked:
        raise RequestError(
            "Statistics have their intervals in the release, unless it was made with --intervals "
            "0; ask for a quantile, a mean, totals or a range."
        )
    paths = question.paths(release.root)
    region = release.regions(paths, question.where)
    values = {words: float(ask(region)) for words, ask in asked.items()}
    copies = copy_release(release.in_steps, copies=question.copies, progress=progress)
    _, pairs = copies.region(paths, question.where)
    confidence = CONFIDENCE if question.confidence is None else question.confidence

    def in_values(counts: RegionCounts) -> RegionValues:
        return RegionValues(counts.path, scale, counts.size, counts.count)

    found: dict[str, Interval] = {}
    for words, ask in asked.items():

        def answer(counts: RegionCounts, ask: object = ask) -> float:
            try:
                return float(ask(in_values(counts)))  # type: ignore[operator]
            except RequestError:
                return 0.0

        errors = np.array([answer(copy) - answer(truth) for truth, copy in pairs])
        found[words] = interval_of(values[words], errors, _ends_of(words, scale), confidence)
    return release.reply(question, found)


def _ends_of(words: str, scale: ValueScale) -> tuple[float, float]:
    """Ends that an answer never leaves, by the words of its question."""
    if words.startswith("share of "):
        return 0.0, 1.0
    if words.startswith("rows"):
        return _ends("rows", scale)
    return _ends("sum" if words.startswith("sum of ") else "mean", scale)
