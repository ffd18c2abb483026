"""Questions about one region, and their answers with intervals.

Any question is asked of all copies; the error of each copy, (copy − possible truth), stands for
that of the release, and the interval is the answer less the quantiles of these errors. Single
counts have the pooled intervals of :mod:`tallytree.group_sizes.intervals.intervals`. No interval
leaves what is public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.intervals.copies import UNKNOWN, Copies, public_bounds
from tallytree.group_sizes.intervals.intervals import count_intervals, table_of_rows
from tallytree.group_sizes.release.questions import Asked
from tallytree.group_sizes.release.region import Interval, RegionCounts
from tallytree.model.arrays import FloatArray


def answer(
    copies: Copies,
    path: str | Sequence[str],
    question: Asked,
    *,
    confidence: float = 0.95,
    where: Sequence[str] = (),
) -> Interval:
    """The answer of one region, or of several added up, with its standard error and interval; of
    groups with some values of attributes, or of all.
    """
    paths = [path] if isinstance(path, str) else list(path)
    if question.size is not None and len(paths) == 1:
        return _single_count(copies, paths[0], question.size, confidence, where)
    released, pairs = copies.region(paths, where)
    value = float(question.ask(released))
    errors = [_asked(question, copy) - _asked(question, truth) for truth, copy in pairs]
    ends = _public_ends(copies, paths, question, released if where else None)
    return interval_of(value, np.array(errors, dtype=np.float64), ends, confidence)


def people_intervals(
    copies: Copies, paths: Sequence[str], where: Sequence[str], confidence: float
) -> list[Interval]:
    """Intervals of the numbers of entities of each class, in the order of
    :meth:`PeopleCounts.by_class`.
    """
    assert copies.release.people is not None
    released = [count for _, count in copies.release.people.by_class(paths, where)]
    pairs = [[dict(one.by_class(paths, where)) for one in pair] for pair in copies.people]
    errors = np.array(
        [[copy[labels] - truth[labels] for labels in truth] for truth, copy in pairs],
        dtype=np.float64,
    )
    return [
        interval_of(value, of_class, (0, math.inf), confidence)
        for value, of_class in zip(released, errors.T)
    ]


def rank_of(n_copies: int, confidence: float) -> int:
    """Which of the errors of copies, from the smallest, ends an interval above; as many from the
    largest end it below.

    The true error is one more beside those of the copies: ranks among (copies + 1), the outermost
    where there are too few.
    """
    return min(math.ceil((1 + confidence) / 2 * (n_copies + 1)), n_copies)


def interval_of(
    value: float, errors: FloatArray, ends: tuple[float, float], confidence: float
) -> Interval:
    """The answer less the quantiles of the errors of copies, within what is public."""
    ranked = np.sort(errors)
    rank = rank_of(len(ranked), confidence)
    low, high = np.clip([value - ranked[rank - 1], value - ranked[-rank]], *ends)
    return Interval(value, float(np.sqrt((ranked**2).mean())), float(low), float(high))


def _asked(question: Asked, region: RegionCounts) -> float:
    """The answer of a possible truth or a copy; a group that is not there counts as one of size 0."""
    try:
        return float(question.ask(region))
    except RequestError:
        return 0.0


def _public_ends(
    copies: Copies, paths: Sequence[str], question: Asked, cell: RegionCounts | None
) -> tuple[float, float]:
    """Ends that no answer leaves; of groups with some values, ``cell``, the number is public where
    totals are.
    """
    bounds = public_bounds(copies.release)
    most = [int(bounds.most_groups[copies.release.hierarchy.find(path)]) for path in paths]
    groups = UNKNOWN if UNKNOWN in most else sum(most)
    if cell is not None and groups != UNKNOWN:
        groups = cell.n_groups
    match question.about:
        case "share":
            return 0, 1
        case "groups":
            return 0, groups
        case "size" | "mean":
            return 0, bounds.max_size
        case "entities":
            return 0, UNKNOWN if UNKNOWN in (groups, bounds.max_size) else groups * bounds.max_size


def _single_count(
    copies: Copies, path: str, size: int, confidence: float, where: Sequence[str]
) -> Interval:
    """From the pools of all counts; a count of 0 has the upper end of those like it, and the spread
    of its own copies.
    """
    release, found = copies.release, count_intervals(copies, confidence=confidence)
    row = release.row(path, where)
    counts = release.all_counts.region(row)
    number = size if release.size_names is None else release.size_names.span(size, size)[0]
    run = np.flatnonzero(counts.size == number) + release.all_counts.offsets[row]
    if len(run):
        at = run[0]
        count, std_error = release.all_counts.count[at], found.std_error[at]
        return Interval(float(count), float(std_error), float(found.low[at]), float(found.high[at]))
    bounds = public_bounds(release)
    public = int(bounds.most_groups[release.hierarchy.find(path)])
    if release.attributes and public != UNKNOWN:
        public = int(counts.count.sum())
    most = public if size <= bounds.max_size else 0
    table = int(table_of_rows(release.lattice)[row])
    high = min(int(found.zeros.of(counts, table, np.array([number]))[0, 0]), most)
    errors = np.array(
        [copy.of_size(size) - truth.of_size(size) for truth, copy in copies.region(path, where)[1]]
    )
    return Interval(0.0, float(np.sqrt((errors.astype(np.float64) ** 2).mean())), 0.0, float(high))
