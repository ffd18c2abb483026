"""What is done with a release of group sizes beyond loading it: answers with intervals, errors
against the truth, comparisons, outlines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tallytree.errors import RequestError
from tallytree.group_sizes.compare import PublishedTable, compare_group_sizes
from tallytree.group_sizes.evaluate import Evaluation
from tallytree.group_sizes.evaluate import evaluate as evaluate_group_sizes
from tallytree.group_sizes.intervals.answers import answer, people_intervals
from tallytree.group_sizes.intervals.bands import count_band
from tallytree.group_sizes.intervals.copies import Copies, copy_release
from tallytree.group_sizes.intervals.intervals import count_intervals, with_intervals
from tallytree.group_sizes.release.people import people_reply, refuse_people
from tallytree.group_sizes.release.questions import asked_by
from tallytree.group_sizes.release.region import RegionCounts
from tallytree.group_sizes.release.release import Release
from tallytree.group_sizes.sheet import group_sizes_sheet, region_features
from tallytree.ingest.read import read
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_on_all_levels
from tallytree.model.part import part_of
from tallytree.options.exporting import ShapesOptions
from tallytree.options.reading import ReadOptions
from tallytree.releases.comparison import Comparison
from tallytree.releases.export.geographic import Features
from tallytree.releases.export.sheet import Sheet
from tallytree.releases.progress import Progress, silent
from tallytree.releases.questions import Question, Reply
from tallytree.shapes.matching import read_shaped_level


def ask_copies(release: Release, question: Question, progress: Progress) -> Reply:
    """Answer with intervals from simulated copies of the release."""
    confidence = 0.95 if question.confidence is None else question.confidence
    if question.people:
        return _people_with_intervals(release, question, confidence, progress)
    paths, asked = question.paths(release.root), asked_by(question, release.size_names)
    counts = release.regions(paths, question.where)
    for one in asked.values():
        one.ask(counts)  # refuse what has no answer before simulating
    if not asked and len(paths) > 1:
        raise RequestError(
            "All counts at once have intervals for one region; of several, ask for a size or range."
        )
    copies = copy_release(release, copies=question.copies, progress=progress)
    if not asked:
        return _counts_with_intervals(
            release.regions(paths, question.where), copies, confidence, question
        )
    found = {
        words: answer(copies, paths, one, confidence=confidence, where=question.where)
        for words, one in asked.items()
    }
    return release.reply(question, found)


def _people_with_intervals(
    release: Release, question: Question, confidence: float, progress: Progress
) -> Reply:
    """Numbers of entities of each class with intervals."""
    people_reply(
        refuse_people(release.people), question, release.root
    )  # refuse what has no answer before simulating
    copies = copy_release(release, copies=question.copies, progress=progress)
    found = people_intervals(copies, question.paths(release.root), question.where, confidence)
    return people_reply(refuse_people(release.people), question, release.root, found)


def _counts_with_intervals(
    counts: RegionCounts, copies: Copies, confidence: float, question: Question
) -> Reply:
    """The counts of a region with single intervals, and with intervals that hold all counts at
    once.
    """
    release, (path,) = copies.release, question.paths(copies.release.root)
    found, row = count_intervals(copies, confidence=confidence), release.row(path, question.where)
    own = slice(*release.all_counts.offsets[row : row + 2].tolist())
    _, low, high = count_band(copies, path, confidence=confidence, where=question.where)
    head = "size" if counts.classes is None else "class"
    columns = (
        head,
        "count",
        "std_error",
        "low",
        "high",
        "low of all at once",
        "high of all at once",
    )
    ends = (
        found.std_error[own],
        found.low[own],
        found.high[own],
        low[counts.size],
        high[counts.size],
    )
    rows = [
        list(row)
        for row in zip(counts.names(), counts.count.tolist(), *(each.tolist() for each in ends))
    ]
    facts = {
        "region": counts.path,
        "groups": counts.n_groups,
        "columns": list(columns),
        "counts": rows,
    }
    return Reply(counts.path, columns, rows, facts)


def evaluate(release: Release, truth: Any, **source: Any) -> Evaluation:
    """Errors per level and by size against what :func:`tallytree.read` gave, or against a table and
    how to read it.
    """
    if isinstance(truth, ConfidentialCounts):
        if source:
            raise RequestError(f"Counts that were read need no {', '.join(source)}.")
        return evaluate_group_sizes(release, truth)
    part = part_of(release.manifest)
    options = ReadOptions(**source) if part is None else ReadOptions(**{**source, "where": part})
    return evaluate_group_sizes(release, read_truth(truth, options))


def read_truth(source: Any, options: ReadOptions) -> ConfidentialCounts:
    """Read the data for their owner, to compare a release with them: nothing is released, so
    nothing need be public.
    """
    said = options.public or options.groups is not None or options.group_totals is not None
    return read(
        source, options if said else replace(options, public="cells" if options.by else "groups")
    )


def features(release: Release, sheet: Sheet, outlines: ShapesOptions) -> Features:
    """Regions of one level with their outlines, of all groups together."""
    if outlines.shapes is None:
        raise RequestError(
            "The regions of a release have no shapes of their own: name a file of outlines "
            "(--shapes)."
        )
    shaped = read_shaped_level(outlines, release.hierarchy)
    if release.attributes:
        release = release.without_attributes()
        sheet = group_sizes_sheet(release)
    return region_features(release, sheet, shaped)


def compare(
    first: Release,
    second: Any,
    *,
    rate: float = 0.05,
    copies: int = 40,
    progress: Progress = silent,
    **source: Any,
) -> Comparison:
    """Differences of two releases, or of a published table and how to read it; intervals that are
    missing are simulated.
    """

    def certain(made: Release) -> Release:
        return (
            made
            if made.intervals is not None
            else with_intervals(made, copies=copies, progress=progress)
        )

    if not isinstance(second, Release):
        return compare_group_sizes(
            certain(first), published_table(second, ReadOptions(**source)), rate=rate
        )
    if source:
        raise RequestError(
            f"A second release needs no {', '.join(source)}; they say how to read a table."
        )
    return compare_group_sizes(certain(first), certain(second), rate=rate)


def published_table(source: Any, options: ReadOptions) -> PublishedTable:
    """A table of published numbers, read as confidential ones are."""
    counts = source if isinstance(source, ConfidentialCounts) else read_truth(source, options)
    return PublishedTable(
        counts.hierarchy,
        counts_on_all_levels(counts.hierarchy, counts.leaf_counts),
        counts.public.classes,
    )
