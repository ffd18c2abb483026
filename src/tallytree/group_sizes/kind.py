"""Group sizes: how many groups of each size every region of a hierarchy has."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallytree.group_sizes.release.release import Release, load_release
from tallytree.options.asking import PageOptions
from tallytree.options.exporting import ShapesOptions
from tallytree.options.reading import ReadOptions
from tallytree.releases.kind import Kind
from tallytree.releases.progress import Progress
from tallytree.releases.questions import Question, Reply

if TYPE_CHECKING:
    from tallytree.group_sizes.accuracy import Prediction
    from tallytree.group_sizes.evaluate import Evaluation
    from tallytree.model.notebook import Picture
    from tallytree.releases.checks import Check
    from tallytree.releases.comparison import Comparison
    from tallytree.releases.export.geographic import Features
    from tallytree.releases.export.sheet import Sheet
    from tallytree.storage.folder import Folder

# Each verb loads what it needs when it is called: a question needs none of the mechanisms.


def ask(release: Release, question: Question, progress: Progress) -> Reply:
    """Answer by the release alone, or with intervals from simulated copies of it."""
    if not question.copies:
        return release.ask(question)
    from tallytree.group_sizes.verbs import ask_copies

    return ask_copies(release, question, progress)


def check_privacy(folder: Folder) -> tuple[Check, ...]:
    """The loss recomputed from the manifest and the raw measurements."""
    from tallytree.group_sizes.check import check_group_sizes_privacy

    return check_group_sizes_privacy(folder)


def estimate(folder: Folder, *, norm: int | None = None, merge: str | None = None) -> Release:
    """The release again from the raw measurements of a folder."""
    from tallytree.group_sizes.publish import estimate_group_sizes

    return estimate_group_sizes(folder, norm=norm, merge=merge)


def simulate(release: Release, *, copies: int) -> Release:
    """The release with intervals of its counts."""
    from tallytree.group_sizes.intervals.intervals import with_intervals

    return with_intervals(release, copies=copies)


def evaluate(release: Release, truth: Any, **source: Any) -> Evaluation:
    """Errors against the truth."""
    from tallytree.group_sizes.verbs import evaluate

    return evaluate(release, truth, **source)


def plan(like: Any, **asked: Any) -> Prediction:
    """Expected errors of a release like an earlier one."""
    from tallytree.group_sizes.accuracy import plan_group_sizes

    return plan_group_sizes(like, **asked)


def compare(first: Release, second: Any, **how: Any) -> Comparison:
    """Differences of two releases, or of a release and a published table."""
    from tallytree.group_sizes.verbs import compare

    return compare(first, second, **how)


def sheet(release: Release) -> Sheet:
    """The release as one flat table."""
    from tallytree.group_sizes.sheet import group_sizes_sheet

    return group_sizes_sheet(release)


def features(release: Release, rows: Sheet, outlines: ShapesOptions) -> Features:
    """Its rows with the outlines of regions."""
    from tallytree.group_sizes.verbs import features

    return features(release, rows, outlines)


def microdata(release: Release, out: str | Path, *, overwrite: bool = False) -> Path:
    """Synthetic groups and entities that tabulate to the release."""
    from tallytree.group_sizes.microdata import write_microdata

    return write_microdata(release, out, overwrite=overwrite)


def page(release: Release, evaluation: Any = None, look: PageOptions | None = None) -> str:
    """The report."""
    from tallytree.group_sizes.report import group_sizes_page

    return group_sizes_page(release, evaluation, look)


def plot(release: Release, **what: Any) -> Picture:
    """How many groups of each size a region has."""
    from tallytree.group_sizes.picture import plot_group_sizes

    return plot_group_sizes(release, **what)


KIND = Kind(
    name="group-sizes",
    title="a release of group sizes",
    command="release",
    function="tallytree.release",
    load=load_release,
    check_privacy=check_privacy,
    page=page,
    plot=plot,
    estimate=estimate,
    simulate=simulate,
    evaluate=evaluate,
    evaluates_with=frozenset(field.name for field in fields(ReadOptions)),
    plan=plan,
    intervals="simulated: with_intervals, query --copies",
    spark="adaptive, matching and bottom-up; by attributes and of whole groups, counted on the "
    "executors",
    compare=compare,
    sheet=sheet,
    features=features,
    microdata=microdata,
    ask=ask,
)
