"""Degree sequences: sorted counts without names."""

from __future__ import annotations

from typing import Any

from tallytree.degree_sequences.check import check_degrees_privacy
from tallytree.degree_sequences.evaluate import evaluate_degrees, true_degrees
from tallytree.degree_sequences.picture import plot_degrees
from tallytree.degree_sequences.publish import estimate_degrees
from tallytree.degree_sequences.release import DegreeSequence, load_degrees
from tallytree.degree_sequences.report import degrees_page
from tallytree.degree_sequences.sheet import degrees_sheet
from tallytree.model.part import part_of
from tallytree.options.choices import PublicDegrees
from tallytree.options.degrees import DegreesOptions
from tallytree.releases.kind import Kind, No
from tallytree.releases.query_evaluation import QueryEvaluation


def evaluate(
    release: DegreeSequence, truth: Any, *, threshold: float | None = None, **source: Any
) -> QueryEvaluation:
    """Errors of the sorted degrees, and of how many nodes have each, against the true ones."""
    if source:
        public: PublicDegrees | None = (
            "groups" if "edges" not in source else None if "nodes" in source else "nodes"
        )
        options = DegreesOptions(
            epsilon=1, public=public, where=part_of(release.manifest), **source
        )
        return evaluate_degrees(release, true_degrees(truth, options), threshold=threshold)
    return evaluate_degrees(release, true_degrees(truth, None), threshold=threshold)


KIND = Kind(
    name="degrees",
    title="a degree sequence",
    command="degrees",
    function="tallytree.degrees",
    load=load_degrees,
    check_privacy=check_degrees_privacy,
    page=degrees_page,
    plot=plot_degrees,
    estimate=estimate_degrees,
    evaluate=evaluate,
    evaluates_with=frozenset(
        {"column", "edges", "directed", "nodes", "size", "table", "sql", "encoding", "threshold"}
    ),
    plan=No("its error depends on how many degrees are alike, which is not public."),
    intervals=No("the isotonic fit has no simple error law."),
    spark="nodes by degree, counted on the executors",
    sheet=degrees_sheet,
)
