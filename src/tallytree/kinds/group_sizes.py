"""Group sizes: how many groups of each size every region of a hierarchy has."""

from __future__ import annotations

from typing import Any

from tallytree.errors import RequestError
from tallytree.kinds.kind import Kind
from tallytree.model.confidential import ConfidentialCounts
from tallytree.publish.accuracy import plan_group_sizes
from tallytree.publish.group_sizes import estimate_group_sizes
from tallytree.publish.intervals import copy_release, interval
from tallytree.publish.progress import Progress
from tallytree.release.evaluation import Evaluation
from tallytree.release.evaluation import evaluate as evaluate_group_sizes
from tallytree.release.privacy_checks import check_group_sizes_privacy
from tallytree.release.questions import Question, Reply
from tallytree.release.region import questions_of
from tallytree.release.release import Release, load_release
from tallytree.report.html import group_sizes_page


def ask(release: Release, question: Question, progress: Progress) -> Reply:
    """Answer by the release alone, or with intervals from simulated copies of it."""
    if not question.copies:
        return release.ask(question)
    confidence = 0.95 if question.confidence is None else question.confidence
    path = release.root if question.region is None else question.region
    copies = copy_release(release, copies=question.copies, progress=progress)
    asked = questions_of(question)
    return release.reply(
        question, {words: interval(copies, path, one, confidence=confidence) for words, one in asked.items()}
    )


def evaluate(release: Release, truth: Any, **source: Any) -> Evaluation:
    """Errors per level against what :func:`tallytree.read` gave."""
    if source or not isinstance(truth, ConfidentialCounts):
        raise RequestError("Releases of group sizes are compared with what tallytree.read gave.")
    return evaluate_group_sizes(release, truth)


KIND = Kind(
    name="group-sizes",
    title="a release of group sizes",
    command="release",
    function="tallytree.release",
    load=load_release,
    check_privacy=check_group_sizes_privacy,
    page=group_sizes_page,
    estimate=estimate_group_sizes,
    evaluate=evaluate,
    plan=plan_group_sizes,
    intervals="simulated: with_intervals, query --copies",
    spark="matching and bottom-up",
    ask=ask,
)
