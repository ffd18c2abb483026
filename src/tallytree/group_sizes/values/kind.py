"""Tables of values: sums, means, medians and the whole distribution of a value in every region.

A row with a value is as a group of that size, whole and by itself; so everything behind the door is
that of ``size-bins``. What is its own: the scale of values, its words, its statistics.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tallytree.group_sizes.manifest import VALUES
from tallytree.group_sizes.values.release import ValuesRelease, load_values
from tallytree.options.asking import PageOptions
from tallytree.options.exporting import ShapesOptions
from tallytree.options.groups import SourceOptions
from tallytree.releases.kind import Kind, No
from tallytree.releases.progress import Progress
from tallytree.releases.questions import Question, Reply

if TYPE_CHECKING:
    from tallytree.group_sizes.values.evaluate import ValuesEvaluation
    from tallytree.model.notebook import Picture
    from tallytree.releases.checks import Check
    from tallytree.releases.comparison import Comparison
    from tallytree.releases.export.geographic import Features
    from tallytree.releases.export.sheet import Sheet
    from tallytree.storage.folder import Folder

# What may be said of the data that a release is compared with; all else is in its manifest.
EVALUATES_WITH = frozenset(
    {"levels", "root", "hierarchy", *(field.name for field in fields(SourceOptions))}
)

# Each verb loads what it needs when it is called: a question needs none of the mechanism.


def ask(release: ValuesRelease, question: Question, progress: Progress) -> Reply:
    """Answer by the release alone, or with intervals from simulated copies of it."""
    if not question.copies:
        return release.ask(question)
    from tallytree.group_sizes.values.intervals import ask_values

    return ask_values(release, question, progress)


def check_privacy(folder: Folder) -> tuple[Check, ...]:
    """The loss recomputed from the manifest and the raw measurements."""
    from tallytree.group_sizes.check import check_group_sizes_privacy

    return check_group_sizes_privacy(folder)


def estimate(folder: Folder) -> ValuesRelease:
    """The release again from the raw measurements of a folder."""
    from tallytree.group_sizes.values.publish import estimate_values

    return estimate_values(folder)


def simulate(release: ValuesRelease, *, copies: int) -> ValuesRelease:
    """The release with intervals of its statistics."""
    from tallytree.group_sizes.values.intervals import with_statistics_intervals

    return with_statistics_intervals(release, copies=copies)


def evaluate(release: ValuesRelease, truth: Any, **source: Any) -> ValuesEvaluation:
    """Errors against the truth."""
    from tallytree.group_sizes.values.evaluate import evaluate_values

    return evaluate_values(release, truth, **source)


def plan(like: ValuesRelease, **asked: Any) -> ValuesEvaluation:
    """Expected errors of a release like an earlier one."""
    from tallytree.group_sizes.values.evaluate import plan_values

    return plan_values(like, **asked)


def compare(first: ValuesRelease, second: Any, **how: Any) -> Comparison:
    """Differences of two tables of values."""
    from tallytree.group_sizes.values.compare import compare_values

    return compare_values(first, second, **how)


def sheet(release: ValuesRelease) -> Sheet:
    """The release as flat tables."""
    from tallytree.group_sizes.values.sheet import values_sheet

    return values_sheet(release)


def features(release: ValuesRelease, rows: Sheet, outlines: ShapesOptions) -> Features:
    """Its regions with their outlines."""
    from tallytree.group_sizes.values.sheet import values_features

    return values_features(release, rows, outlines)


def page(release: ValuesRelease, evaluation: Any = None, look: PageOptions | None = None) -> str:
    """The report."""
    from tallytree.group_sizes.values.report import values_page

    return values_page(release, evaluation, look)


def plot(release: ValuesRelease, **what: Any) -> Picture:
    """How the values of a region are distributed."""
    from tallytree.group_sizes.values.picture import plot_values

    return plot_values(release, **what)


KIND = Kind(
    name=VALUES,
    title="a table of values",
    command="values",
    function="tallytree.values",
    load=load_values,
    check_privacy=check_privacy,
    page=page,
    plot=plot,
    estimate=estimate,
    simulate=simulate,
    evaluate=evaluate,
    evaluates_with=EVALUATES_WITH,
    plan=plan,
    intervals="simulated: of all statistics in the release, of other questions by query --copies",
    spark=No("values are read on one machine."),
    compare=compare,
    sheet=sheet,
    features=features,
    microdata=No(
        "counts.parquet says how many rows of every region have each value: repeat each row so often."
    ),
    ask=ask,
)
